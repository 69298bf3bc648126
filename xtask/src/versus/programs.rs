//! The programs that are measured: what cargo builds of this tree, and Debian's fio.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::packages;

/// The bench targets and their packages.
const BENCHES: [(&str, &str); 3] =
    [("fathom-sys", "bare_ring"), ("fathom-sys", "bare_pread"), ("fathom-workload", "next_offset")];

/// Where each lies.
#[derive(Debug)]
pub struct Programs {
    /// fathom, as released, or what `FATHOM_BIN` names.
    pub fathom: PathBuf,
    /// fio.
    pub fio: PathBuf,
    /// The bare ring; empty where no row runs it, like those that follow.
    pub bare_ring: PathBuf,
    /// The bare loop over pread.
    pub bare_pread: PathBuf,
    /// The bench of the next offset.
    pub next_offset: PathBuf,
}

impl Programs {
    /// Builds fathom's programs, the bare ones and benches where `has_benches`, and installs fio if it is missing.
    pub fn prepare(root: &Path, has_benches: bool) -> anyhow::Result<Programs> {
        packages::require("fio")?;
        // One by one: built together, the benches' wishes for their dependencies would reach the program.
        let fathom = match std::env::var_os("FATHOM_BIN") {
            Some(path) => PathBuf::from(path),
            None => named(&build(root, &["--package", "fathom", "--bin", "fathom"])?, "fathom")?,
        };
        let mut arguments = Vec::new();
        for (package, bench) in BENCHES {
            arguments.extend(["--package", package, "--bench", bench]);
        }
        let benches = if has_benches { build(root, &arguments)? } else { Vec::new() };
        let bench = |name| if has_benches { named(&benches, name) } else { Ok(PathBuf::new()) };
        Ok(Programs {
            fathom,
            fio: find_fio()?,
            bare_ring: bench("bare_ring")?,
            bare_pread: bench("bare_pread")?,
            next_offset: bench("next_offset")?,
        })
    }
}

/// Builds targets as they are released; answers their names and executables.
fn build(root: &Path, targets: &[&str]) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args([
        "build",
        "--profile",
        "dist",
        "--message-format=json-render-diagnostics",
    ]);
    command.args(targets).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("cargo build --profile dist {} failed: its messages are above", targets.join(" "));
    }
    Ok(executables(&String::from_utf8_lossy(&output.stdout)))
}

/// Names and executables in cargo's messages.
fn executables(messages: &str) -> Vec<(String, PathBuf)> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter_map(|message| {
            let executable = PathBuf::from(message["executable"].as_str()?);
            Some((message["target"]["name"].as_str()?.to_owned(), executable))
        })
        .collect()
}

fn named(built: &[(String, PathBuf)], name: &str) -> anyhow::Result<PathBuf> {
    let found = built.iter().find(|(target, _)| target == name);
    found.map(|(_, path)| path.clone()).with_context(|| format!("cargo has built no {name}"))
}

/// Debian's fio, not a link of that name, which may be fathom.
fn find_fio() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = [PathBuf::from("/usr/bin")].into_iter().chain(std::env::split_paths(&path));
    let found = places.map(|place| place.join("fio")).find(|place| place.is_file());
    let found = found.context("fio is not on the search path")?;
    let real = found.canonicalize().with_context(|| format!("cannot follow {}", found.display()))?;
    if real.file_name().is_some_and(|name| name.to_string_lossy().contains("fathom")) {
        bail!("{} is fathom under fio's name", found.display());
    }
    Ok(found)
}

/// The output of `program --version`.
pub fn version(program: &Path) -> anyhow::Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_in_cargo_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"libc"},"executable":null}
not JSON
{"reason":"compiler-artifact","target":{"name":"bare_ring"},"executable":"/t/bare_ring-1"}
{"reason":"build-finished","success":true}"#;
        let found = executables(messages);
        assert_eq!(found, [("bare_ring".to_owned(), PathBuf::from("/t/bare_ring-1"))]);
        assert_eq!(named(&found, "bare_ring").unwrap(), PathBuf::from("/t/bare_ring-1"));
        assert!(named(&found, "bare_pread").is_err());
    }
}
