//! Documents that are generated from tables in the code, so that there is no second truth to keep by hand.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

/// A generated document: where it lies and what makes it.
pub struct Generated {
    /// Path from the workspace's directory.
    pub path: &'static str,
    /// Its content.
    pub content: fn() -> String,
}

/// Every generated document.
pub const GENERATED: &[Generated] =
    &[Generated { path: "docs/src/reference/fio-compat.md", content: fathom_options::compatibility_page }];

/// Pages that are written from runs: tests of their own (package, program, filter) write them if this variable is set, and otherwise
/// compare them with what comes out today. The checks of the source would have to build and run all of that each time.
const BY_TESTS: [(&str, &str, &str); 2] = [("fathom-assess", "suite", "published::"), ("fathom", "cli", "")];
const VARIABLE: &str = "FATHOM_WRITE_DOCS";

/// The program that makes pages of the book, and its version.
const MDBOOK: &str = "mdbook@0.5.4";
/// Where it is installed, and where the pages go.
const TOOLS: &str = "target/tools";
const BOOK: &str = "target/book";

/// Writes them all, and makes the pages of the book.
pub fn write(root: &Path) -> anyhow::Result<()> {
    for document in GENERATED {
        let path = root.join(document.path);
        std::fs::write(&path, (document.content)())
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", document.path);
    }
    for (package, program, tests) in BY_TESTS {
        let mut cargo = cargo(root, &["test", "--quiet", "-p", package, "--test", program, tests]);
        cargo.env(VARIABLE, "1");
        succeed(cargo, &format!("the tests `{tests}` of {package}, which write pages"))?;
    }
    build(root)
}

/// Makes the pages of the book, which can be searched and need no network.
fn build(root: &Path) -> anyhow::Result<()> {
    let mdbook = root.join(TOOLS).join("bin/mdbook");
    if !mdbook.exists() {
        succeed(
            cargo(root, &["install", "--quiet", "--locked", "--root", TOOLS, MDBOOK]),
            "installing mdbook",
        )?;
    }
    let mut command = Command::new(mdbook);
    command.args(["build", "docs", "--dest-dir"]).arg(root.join(BOOK)).current_dir(root);
    succeed(command, "mdbook")?;
    println!("wrote {BOOK}/index.html");
    Ok(())
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).current_dir(root);
    cargo
}

fn succeed(mut command: Command, what: &str) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot run {what}"))?;
    anyhow::ensure!(status.success(), "{what} failed");
    Ok(())
}

/// Outdated documents in `root`: one message per document.
pub fn stale(root: &Path) -> Vec<(&'static str, String)> {
    let differs = |document: &Generated| {
        let stored = std::fs::read_to_string(root.join(document.path)).unwrap_or_default();
        let wanted = (document.content)();
        let lines =
            stored.lines().zip(wanted.lines()).take_while(|(stored, wanted)| stored == wanted).count();
        (stored != wanted)
            .then(|| (document.path, format!("differs from line {} on: run `cargo xtask docs`", lines + 1)))
    };
    GENERATED.iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_documents_are_reported() {
        let stale: Vec<_> = stale(Path::new("/nonexistent")).into_iter().map(|(path, _)| path).collect();
        assert_eq!(stale, GENERATED.iter().map(|document| document.path).collect::<Vec<_>>());
    }
}
