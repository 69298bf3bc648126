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

/// A page that is generated from runs: tests of its own (package, filter) write it if this variable is set, and otherwise
/// compare it with what comes out today. The checks of the source would have to build and run all of that each time.
const BY_TESTS: (&str, &str, &str) = ("fathom-assess", "published::", "FATHOM_WRITE_DOCS");

/// Writes them all.
pub fn write(root: &Path) -> anyhow::Result<()> {
    for document in GENERATED {
        let path = root.join(document.path);
        std::fs::write(&path, (document.content)())
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", document.path);
    }
    let (package, tests, variable) = BY_TESTS;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--quiet", "-p", package, "--test", "suite", tests]);
    cargo.env(variable, "1").current_dir(root);
    let status = cargo.status().context("cannot run cargo")?;
    anyhow::ensure!(status.success(), "the tests `{tests}` of {package}, which write a page, have failed");
    println!("wrote docs/src/reference/published-figures.md");
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
