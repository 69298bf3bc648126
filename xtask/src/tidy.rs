//! Source rules that neither the compiler nor clippy checks. Each check takes text and returns findings; only `Tree` reads
//! files, so that every check is tested on made-up source.

mod dependencies;
mod imports;
mod links;
mod source;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::docs;
use crate::process::{cargo_command, output};

/// Directories without source files.
const FOREIGN: &[&str] = &[
    "target", ".git", "fuzz/targets/target", "fuzz/targets/corpus", "fuzz/targets/artifacts",
    "fuzz/targets/coverage",
];
/// Text files to check.
const TEXT_ENDINGS: &[&str] = &["rs", "md", "toml", "sh", "fio", "run", "json", "txt"];

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TidyFinding {
    /// Path from the workspace's directory.
    path: String,
    /// 0 if the whole file is meant.
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
    let mut findings = imports::check(&metadata(&["--no-deps", "--offline"])?);
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    for manifest in ["Cargo.toml", "fuzz/targets/Cargo.toml"] {
        // Packages that were never downloaded are.
        let arguments = ["--locked", "--filter-platform", &platform, "--manifest-path", manifest];
        findings.extend(dependencies::check(manifest, &metadata(&arguments)?));
    }
    findings.extend(dependencies::check_use(&tree));
    findings.extend(source::check(&tree));
    findings.extend(links::check(&tree));
    findings.extend(words::check(&tree));
    findings.extend(docs::stale(root).into_iter().map(|(path, message)| TidyFinding::new(path, 0, message)));
    findings.sort();
    findings.iter().for_each(|finding| println!("{finding}"));
    ensure!(findings.is_empty(), "tidy: findings: {}, listed above", findings.len());
    Ok(())
}

/// Cargo's metadata.
fn metadata(arguments: &[&str]) -> anyhow::Result<serde_json::Value> {
    let text = output(cargo_command(&["metadata", "--format-version=1", "--all-features"]).args(arguments))?;
    serde_json::from_str(&text).context("cargo metadata did not print JSON")
}

/// The files of the workspace, read once.
struct Tree {
    /// All text files, by path.
    texts: BTreeMap<String, String>,
    /// Every file and directory, by path.
    paths: Vec<String>,
}

impl Tree {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Tree { texts: BTreeMap::new(), paths: Vec::new() };
        tree.add(root, "")?;
        Ok(tree)
    }

    fn rust(&self) -> impl Iterator<Item = SourceFile<'_>> {
        let rust = self.texts.iter().filter(|(path, _)| path.ends_with(".rs"));
        rust.map(|(path, text)| SourceFile { path, text })
    }

    /// The manifests of packages.
    fn manifests(&self) -> impl Iterator<Item = (&String, &String)> {
        self.texts.iter().filter(|(path, _)| path.ends_with("/Cargo.toml"))
    }

    fn add(&mut self, root: &Path, directory: &str) -> anyhow::Result<()> {
        let full = root.join(directory);
        let mut entries = std::fs::read_dir(&full)
            .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
            .with_context(|| format!("cannot list {}", full.display()))?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
            if FOREIGN.contains(&path.as_str()) {
                continue;
            }
            self.paths.push(path.clone());
            let is_text = TEXT_ENDINGS.contains(&name.rsplit('.').next().unwrap_or_default());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add(root, &path)?;
            } else if (is_text || path == ".ci/run")
                // Test fixtures may be binary on purpose.
                && let Ok(text) = std::fs::read_to_string(entry.path())
            {
                self.texts.insert(path, text);
            }
        }
        Ok(())
    }
}

/// A Rust file.
#[derive(Clone, Copy)]
struct SourceFile<'a> {
    /// Path from the workspace's directory.
    path: &'a str,
    text: &'a str,
}

impl<'a> SourceFile<'a> {
    /// True for files that hold nothing but tests.
    fn is_test(self) -> bool {
        let in_tests = self.path.split('/').any(|part| part == "tests" || part == "suite");
        let is_tests = self.path.ends_with("/tests.rs") || self.path.ends_with("_tests.rs");
        (in_tests && !self.path.starts_with("tests/harness/")) || is_tests
    }

    /// The lines before the tests at the end of the file, numbered from 1.
    fn product(self) -> impl Iterator<Item = (usize, &'a str)> {
        let lines = self.text.lines().take_while(|line| *line != "#[cfg(test)]");
        lines.enumerate().filter(move |_| !self.is_test()).map(|(index, line)| (index + 1, line))
    }

    /// The part that holds tests.
    fn tests(self) -> &'a str {
        match self.text.split_once("\n#[cfg(test)]\n") {
            _ if self.is_test() => self.text,
            Some((_, tests)) => tests,
            None => "",
        }
    }
}

/// True if `text` holds `ident` as a whole word.
fn has_ident(text: &str, ident: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == ident)
}
