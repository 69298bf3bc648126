//! The Python packages that drive `fio` in the device tests: Debian has none.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::process::output;

/// Packages with their versions.
const PACKAGES: &[&str] = &["fio-plot==1.1.21", "six==1.17.0"];

/// Where the tests look for them.
fn directory(root: &Path) -> PathBuf {
    root.join("target/python-readers")
}

/// Installs them below `target`, or says what is skipped without them.
pub fn install(root: &Path) -> anyhow::Result<String> {
    match install_into(&directory(root), PACKAGES) {
        Ok(note) => Ok(note),
        Err(why) => Ok(format!("missing: {}; what needs them is skipped ({why:#})", PACKAGES.join(" "))),
    }
}

/// Installs `packages`, named with their versions, into a directory of their own, unless they are there.
pub fn install_into(directory: &Path, packages: &[&str]) -> anyhow::Result<String> {
    let (mark, wanted) = (directory.join("installed.txt"), packages.join("\n"));
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok("all there".to_owned());
    }
    if directory.exists() {
        std::fs::remove_dir_all(directory)
            .with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    let mut pip = Command::new("pip3");
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--target"]);
    output(pip.arg(directory).args(packages))?;
    std::fs::write(&mark, &wanted).context("cannot mark the packages as installed")?;
    Ok(format!("installed {}", packages.join(" ")))
}
