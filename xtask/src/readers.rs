//! The Python packages that read exports and notebooks, and drive `fio`, in the device tests: Debian has none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

/// Packages with their versions.
const PACKAGES: &[&str] =
    &["duckdb==2.0.0", "pandas==3.1.1", "pyarrow==26.0.1", "fio-plot==1.1.21", "nbformat==5.10.4"];

/// Where the tests look for them.
fn directory(root: &Path) -> PathBuf {
    root.join("target/python-readers")
}

/// Installs them below `target`, or says what is skipped without them.
pub fn install(root: &Path) -> anyhow::Result<String> {
    let directory = directory(root);
    let (mark, wanted) = (directory.join("installed.txt"), PACKAGES.join("\n"));
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok("all there".to_owned());
    }
    if directory.exists() {
        std::fs::remove_dir_all(&directory).context("cannot remove old readers")?;
    }
    let output = Command::new("pip3")
        .args(["install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--target"])
        .arg(&directory)
        .args(PACKAGES)
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            std::fs::write(&mark, &wanted).context("cannot mark the readers as installed")?;
            Ok(format!("installed {}", PACKAGES.join(" ")))
        }
        failed => {
            let why = failed.map_or_else(
                |error| error.to_string(),
                |output| String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            );
            Ok(format!("missing: {}; what needs them is skipped ({why})", PACKAGES.join(" ")))
        }
    }
}
