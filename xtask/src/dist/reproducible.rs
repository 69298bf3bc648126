//! The proof that a release depends on its source alone: it is made again from a copy of the source in another directory, with other
//! directories for everything on the way, and compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::build::{Place, empty};
use crate::process::output;

/// Parts of cargo's home that a build reads.
const CARGO_HOME: [&str; 3] = ["config.toml", "git", "registry"];

/// Another place with a copy of the source.
pub fn other_place(place: &Place) -> anyhow::Result<Place> {
    let top = place.work.join("again");
    let other = Place {
        root: top.join("source"),
        work: top.join("work"),
        out: top.join("artefacts"),
        cargo_home: top.join("cargo"),
    };
    for directory in [&other.root, &other.out, &other.cargo_home] {
        empty(directory)?;
    }
    for name in CARGO_HOME.iter().filter(|name| place.cargo_home.join(name).exists()) {
        symlink(place.cargo_home.join(name), other.cargo_home.join(name))
            .context("cannot link cargo's home")?;
    }
    copy_source(&place.root, &other.root)?;
    Ok(other)
}

/// Copies the files of the working tree that git knows.
fn copy_source(from: &Path, to: &Path) -> anyhow::Result<()> {
    let list = output(Command::new("git").current_dir(from).args(["ls-files", "-z", "--cached"]))?;
    for name in list.split('\0').filter(|name| !name.is_empty()) {
        let (source, copy) = (from.join(name), to.join(name));
        if !source.exists() {
            bail!("{name} is removed but not committed");
        }
        let parent = copy.parent().context("a file has a directory")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::copy(&source, &copy).with_context(|| format!("cannot copy {name}"))?;
    }
    Ok(())
}

/// Compares two releases by the lines of their checksums.
pub fn compare(first: &Path, second: &Path) -> anyhow::Result<usize> {
    let read = |directory: &Path| {
        let path: PathBuf = directory.join(super::CHECKSUMS);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (first, second) = (read(first)?, read(second)?);
    let differing = differing(&first, &second);
    ensure!(differing.is_empty(), "not reproducible: {}", differing.join(", "));
    Ok(first.lines().count())
}

/// The names whose checksums differ, or that one alone has.
fn differing(first: &str, second: &str) -> Vec<String> {
    fn rows(text: &str) -> BTreeMap<&str, &str> {
        text.lines().filter_map(|line| line.split_once("  ")).map(|(sum, name)| (name, sum)).collect()
    }
    let (first, second) = (rows(first), rows(second));
    let mut names: Vec<&str> = first.keys().chain(second.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| first.get(name) != second.get(name));
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_differing_name_is_listed_once() {
        let check = |first, second, expected: &[&str]| assert_eq!(differing(first, second), expected);
        check("1  a\n2  b\n", "2  b\n1  a\n", &[]);
        check("1  a\n2  b\n", "1  a\n3  b\n", &["b"]);
        check("1  a\n2  b\n", "1  a\n2  c\n", &["b", "c"]);
    }
}
