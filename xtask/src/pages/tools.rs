//! The programs that the campaign needs, and the checkers that it fetches from npm's registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use fathom_tests::Need;

use crate::process::output;

pub const CHROMIUM: &str = "chromium";
pub const JAVA: &str = "java";
pub const NODE: &str = "node";
const NPM: &str = "npm";
/// The programs with their Debian packages.
const PROGRAMS: [(&str, &str); 5] =
    [(CHROMIUM, "chromium"), (JAVA, "default-jre-headless"), (NODE, "nodejs"), (NPM, "npm"), ("tar", "tar")];
const AXE: &str = "axe-core@4.14.1";
const VNU: &str = "vnu-jar@26.9.27";
const PLAYWRIGHT: &str = "playwright-core@1.64.1";

/// Fails with the packages of the programs that are missing.
pub fn require_programs() -> anyhow::Result<()> {
    let absent = |name| fathom_tests::missing(&[Need::Tool(name)]).is_some();
    match message(absent) {
        Some(message) => bail!("{message}"),
        None => Ok(()),
    }
}

fn message(absent: impl Fn(&'static str) -> bool) -> Option<String> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|(program, _)| absent(program)).collect();
    let joined = |parts: Vec<&str>| parts.join(" ");
    let programs = joined(missing.iter().map(|(program, _)| *program).collect());
    let packages = joined(missing.iter().map(|(_, package)| *package).collect());
    (!missing.is_empty()).then(|| format!("missing: {programs} (on Debian: apt-get install {packages})"))
}

/// The files of the checkers.
pub struct Checkers {
    pub axe: PathBuf,
    pub vnu: PathBuf,
    /// A directory.
    pub playwright: PathBuf,
}

impl Checkers {
    /// Those in `directory`, fetched where they are not there yet.
    pub fn unpacked(directory: &Path) -> anyhow::Result<Checkers> {
        let axe = unpack(directory, AXE)?.join("axe.min.js");
        let vnu = unpack(directory, VNU)?.join("build/dist/vnu.jar");
        let playwright = unpack(directory, PLAYWRIGHT)?;
        for file in [&axe, &vnu] {
            ensure!(file.exists(), "{} is not in its package", file.display());
        }
        Ok(Checkers { axe, vnu, playwright })
    }
}

/// The directory of an npm package, whose scripts are not run.
fn unpack(directory: &Path, package: &str) -> anyhow::Result<PathBuf> {
    let place = directory.join(package);
    let unpacked = place.join("package");
    if unpacked.exists() {
        return Ok(unpacked);
    }
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let mut npm = Command::new(NPM);
    let archive = output(npm.args(["pack", "--silent", "--ignore-scripts", package]).current_dir(&place))?;
    let archive = archive.lines().last().context("npm names no archive")?.to_owned();
    output(Command::new("tar").args(["--extract", "--file", &archive]).current_dir(&place))?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_named_with_their_packages() {
        assert_eq!(message(|_| false), None);
        assert_eq!(
            message(|name| name == JAVA || name == NPM).unwrap(),
            "missing: java npm (on Debian: apt-get install default-jre-headless npm)"
        );
    }
}
