//! Source rules that no compiler checks. Each check takes text and returns findings; only `tree` reads files, so that
//! every check is tested on made-up source.

mod attributes;
mod dependencies;
mod imports;
mod links;
mod phrases;
mod registries;
mod sizes;
mod tools;
mod tree;
mod words;

use std::fmt;
use std::path::Path;

use anyhow::bail;

use crate::docs;
use tree::Tree;

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TidyFinding {
    /// Path from the workspace's directory.
    path: String,
    /// 0 where the whole file is meant.
    line: usize,
    /// The problem and the remedy.
    message: String,
}

impl TidyFinding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        TidyFinding { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Runs every check over the workspace at `root` and lists what does not hold.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    let mut findings = imports::check(&tree::cargo_metadata(root)?);
    for file in &tree.rust {
        findings.extend(sizes::check(file));
        findings.extend(attributes::check(file));
        findings.extend(phrases::check(file));
    }
    let resolved = tree::resolved_metadata(root, "Cargo.toml")?;
    findings.extend(dependencies::check("Cargo.toml", &resolved));
    let fuzz = "fuzz/targets/Cargo.toml";
    findings.extend(dependencies::check(fuzz, &tree::resolved_metadata(root, fuzz)?));
    findings.extend(dependencies::check_use(&tree));
    findings.extend(sizes::check_exceptions(&tree.rust));
    findings.extend(tree.manifests().flat_map(|(path, text)| attributes::check_manifest(path, text)));
    findings.extend(tree.texts.iter().flat_map(|(path, text)| words::check(path, text)));
    findings.extend(links::check(&tree));
    findings.extend(registries::check(&tree.rust));
    findings.extend(tools::check(&tree.rust));
    findings.extend(docs::stale(root).into_iter().map(|(path, message)| TidyFinding::new(path, 0, message)));
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy: one finding, listed above"),
        n => bail!("tidy: {n} findings, listed above"),
    }
}
