//! Building the targets: LLVM's SanitizerCoverage is a pass of the stable compiler too, so no nightly toolchain is needed.
//! There is no AddressSanitizer: what the targets reach forbids unsafe code.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::Places;
use crate::instructions::{Compiler, changes_code};

/// The flags for edge coverage, as in cargo-fuzz.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // Branches that are folded into one are edges no longer.
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
];
/// libFuzzer is C++.
const COMPILER: &str = "g++";
const MANIFEST: &str = "fuzz/targets/Cargo.toml";

/// Why the targets cannot be built here, where they cannot.
pub fn missing() -> Option<String> {
    let mut probe = Command::new(COMPILER);
    probe.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let works = probe.status().is_ok_and(|status| status.success());
    (!works).then(|| format!("the fuzz targets need a C++ compiler: install {COMPILER}"))
}

/// The targets, as the manifest names them.
pub fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let text =
        std::fs::read_to_string(root.join(MANIFEST)).with_context(|| format!("cannot read {MANIFEST}"))?;
    let names = names(&text).with_context(|| format!("{MANIFEST} is not a manifest with [[bin]] targets"))?;
    if names.is_empty() { bail!("{MANIFEST} has no targets") } else { Ok(names) }
}

fn names(manifest: &str) -> Option<Vec<String>> {
    let manifest: toml::Table = manifest.parse().ok()?;
    let name = |bin: &toml::Value| Some(bin.get("name")?.as_str()?.to_owned());
    manifest.get("bin")?.as_array()?.iter().map(name).collect()
}

/// Builds these targets. Returns each with its program.
pub fn build(places: &Places, targets: &[String]) -> anyhow::Result<Vec<(String, PathBuf)>> {
    // With a machine named, build scripts and procedural macros are built without the flags.
    let host = Compiler::in_use()?.host;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(&places.root).args(["build", "--quiet", "--release", "--locked", "--manifest-path"]);
    command.args([MANIFEST, "--target", &host, "--target-dir"]).arg(places.build());
    command.args(targets.iter().flat_map(|target| ["--bin", target]));
    for (name, _) in std::env::vars_os().filter(|(name, _)| changes_code(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command.env("RUSTFLAGS", FLAGS.join(" ")).stdin(Stdio::null());
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("the fuzz targets do not build: cargo's messages are above");
    }
    let programs = places.build().join(host).join("release");
    Ok(targets.iter().map(|target| (target.clone(), programs.join(target))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_the_manifest() {
        let manifest = "[package]\nname = 'f'\n[[bin]]\nname = 'a'\n[[bin]]\nname = 'b'\n";
        assert_eq!(names(manifest), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names("[package]\n"), None);
        assert_eq!(names("[[bin]]\npath = 'a.rs'\n"), None);
    }
}
