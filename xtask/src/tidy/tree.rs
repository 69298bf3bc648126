//! The files of the workspace, read once.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

/// Directories without source files.
const FOREIGN: &[&str] = &[
    "target",
    ".git",
    "fuzz/targets/target",
    "fuzz/targets/corpus",
    "fuzz/targets/artifacts",
    "fuzz/targets/coverage",
];
/// Text files to check.
const TEXT_ENDINGS: &[&str] = &["rs", "md", "toml", "sh", "fio", "run", "json", "txt"];

/// A Rust file, parsed.
pub struct RustFile {
    /// Path from the workspace's directory.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Its syntax.
    pub syntax: syn::File,
}

impl RustFile {
    /// Parses `text`.
    pub fn parse(path: &str, text: &str) -> anyhow::Result<Self> {
        let syntax = syn::parse_file(text).with_context(|| format!("{path} does not parse"))?;
        Ok(RustFile { path: path.to_owned(), text: text.to_owned(), syntax })
    }

    /// True for files that hold nothing but tests.
    pub fn is_test(&self) -> bool {
        let in_tests = self.path.split('/').any(|part| part == "tests" || part == "suite");
        let is_tests = self.path.ends_with("/tests.rs") || self.path.ends_with("_tests.rs");
        (in_tests && !self.path.starts_with("tests/harness/")) || is_tests
    }

    /// The line on which the tests at the end of the file begin, or one past its last line.
    pub fn tests_begin(&self) -> usize {
        let lines = self.text.lines().count();
        if self.is_test() {
            return 1;
        }
        let is_start = |line: &str| line == "#[cfg(test)]";
        self.text.lines().position(is_start).map_or(lines + 1, |index| index + 1)
    }

    /// The part that holds tests.
    pub fn test_text(&self) -> String {
        self.text.lines().skip(self.tests_begin() - 1).collect::<Vec<_>>().join("\n")
    }
}

/// The input of all checks.
pub struct Tree {
    /// Rust files.
    pub rust: Vec<RustFile>,
    /// All text files, Rust among them, by path.
    pub texts: BTreeMap<String, String>,
    /// Every file and directory, by path.
    pub paths: Vec<String>,
}

impl Tree {
    /// Reads the workspace at `root`.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Tree { rust: Vec::new(), texts: BTreeMap::new(), paths: Vec::new() };
        tree.add(root, "")?;
        for (path, text) in tree.texts.iter().filter(|(path, _)| path.ends_with(".rs")) {
            tree.rust.push(RustFile::parse(path, text)?);
        }
        Ok(tree)
    }

    /// The manifests of the workspace's packages.
    pub fn manifests(&self) -> impl Iterator<Item = (&String, &String)> {
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
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add(root, &path)?;
            } else if TEXT_ENDINGS.contains(&name.rsplit('.').next().unwrap_or_default()) || path == ".ci/run"
            {
                // Test fixtures may be binary on purpose.
                if let Ok(text) = std::fs::read_to_string(entry.path()) {
                    self.texts.insert(path, text);
                }
            }
        }
        Ok(())
    }
}

/// Cargo's metadata of the workspace's packages.
pub fn cargo_metadata(root: &Path) -> anyhow::Result<serde_json::Value> {
    metadata(root, &["--no-deps", "--offline"])
}

/// The same with every package that those of `manifest` build on Linux. Packages that were never downloaded are.
pub fn resolved_metadata(root: &Path, manifest: &str) -> anyhow::Result<serde_json::Value> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    metadata(root, &["--locked", "--filter-platform", &platform, "--manifest-path", manifest])
}

fn metadata(root: &Path, arguments: &[&str]) -> anyhow::Result<serde_json::Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["metadata", "--format-version=1", "--all-features"]).args(arguments);
    let output = command.output().context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata did not print JSON")
}
