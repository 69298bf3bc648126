//! The programs that are counted: built as the release binary is, with nothing from the developer's environment that
//! would change their code.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Packages with a bench target called `instructions`.
const PACKAGES: [&str; 4] = ["fathom-workload", "fathom-stats", "fathom-runner", "fathom-volume"];

/// The compiler and the target machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// Version and commit, as rustc shows them.
    pub rustc: String,
    /// The machine's triple.
    pub host: String,
}

impl Compiler {
    /// The compiler that cargo uses here.
    pub fn in_use() -> anyhow::Result<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc).arg("-vV").output().context("cannot run rustc")?;
        let text = String::from_utf8_lossy(&output.stdout);
        Self::parse(&text).with_context(|| format!("rustc -vV says neither version nor host: {text}"))
    }

    /// Reads the answer to `rustc -vV`.
    fn parse(text: &str) -> Option<Self> {
        let rustc = text.lines().find_map(|line| line.strip_prefix("rustc "))?;
        let host = text.lines().find_map(|line| line.strip_prefix("host: "))?;
        Some(Compiler { rustc: rustc.to_owned(), host: host.to_owned() })
    }
}

/// A case of one of the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchCase {
    /// `CRATE/CASE`, without the prefix that all crates share.
    pub name: String,
    /// The program that runs it.
    pub program: PathBuf,
    /// Its name there.
    pub argument: String,
    /// How many operations are counted; never 0.
    pub operations: u64,
}

/// Builds the programs and asks each for its cases.
pub fn cases(root: &Path) -> anyhow::Result<Vec<BenchCase>> {
    let mut cases = Vec::new();
    let programs = programs(root)?;
    for package in PACKAGES {
        let Some((_, program)) = programs.iter().find(|(built, _)| built == package) else {
            bail!("{package} has no bench target called instructions");
        };
        let output =
            Command::new(program).output().with_context(|| format!("cannot run {}", program.display()))?;
        let list = String::from_utf8_lossy(&output.stdout);
        let crate_name = package.trim_start_matches("fathom-");
        cases.extend(listed(crate_name, program, &list).with_context(|| {
            format!("{} does not list its cases as \"NAME OPERATIONS\":\n{list}", program.display())
        })?);
    }
    Ok(cases)
}

/// The cases in a program's list, one on each line; `None` if it is empty or has another line.
fn listed(crate_name: &str, program: &Path, list: &str) -> Option<Vec<BenchCase>> {
    let case = |line: &str| {
        let (name, operations) = line.split_once(' ')?;
        let operations = operations.parse().ok().filter(|&operations| operations > 0)?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (!name.is_empty() && name.chars().all(plain)).then(|| BenchCase {
            name: format!("{crate_name}/{name}"),
            program: program.to_owned(),
            argument: name.to_owned(),
            operations,
        })
    };
    let cases = list.lines().map(case).collect::<Option<Vec<_>>>()?;
    (!cases.is_empty()).then_some(cases)
}

/// The programs with the packages they belong to.
fn programs(root: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // Of the whole workspace, so that cargo chooses the features that the tests were built with.
    command.current_dir(root).args([
        "build",
        "--quiet",
        "--release",
        "--workspace",
        "--all-features",
        "--bench",
        "instructions",
    ]);
    command.arg("--message-format=json-render-diagnostics").stdin(Stdio::null()).stderr(Stdio::inherit());
    for (name, _) in std::env::vars_os().filter(|(name, _)| changes_code(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("the bench targets do not build: cargo's messages are above");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(program).collect())
}

/// True for variables of the environment that make rustc write other code.
pub fn changes_code(name: &str) -> bool {
    const NAMES: [&str; 6] = [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_INCREMENTAL",
        "CARGO_BUILD_INCREMENTAL",
    ];
    NAMES.contains(&name)
        || name.starts_with("CARGO_PROFILE_")
        || (name.starts_with("CARGO_TARGET_") && name.ends_with("_RUSTFLAGS"))
}

/// The package and path of the bench target in a message of cargo.
fn program(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let target = &message["target"];
    if message["reason"] != "compiler-artifact" || target["kind"][0] != "bench" {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let directory = manifest.parent()?.file_name()?.to_str()?;
    Some((format!("fathom-{directory}"), message["executable"].as_str()?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_has_a_version_and_a_host() {
        let text = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
        let compiler = Compiler::parse(text).expect("both are there");
        assert_eq!(compiler.rustc, "1.95.0 (59807616e 2026-04-14)");
        assert_eq!(compiler.host, "x86_64-unknown-linux-gnu");
        assert_eq!(Compiler::parse("rustc 1.95.0\n"), None);
        assert_eq!(Compiler::parse(""), None);
    }

    #[test]
    fn an_incomplete_list_is_refused() {
        let check = |list: &str, expected: Option<&[(&str, u64)]>| {
            let cases = listed("stats", Path::new("program"), list);
            let seen = cases.as_ref().map(|cases| {
                cases.iter().map(|case| (case.name.as_str(), case.operations)).collect::<Vec<_>>()
            });
            assert_eq!(seen.as_deref(), expected, "{list:?}");
        };
        check("latency 100\nrun-4k 7\n", Some(&[("stats/latency", 100), ("stats/run-4k", 7)]));
        check("", None);
        check("latency\n", None);
        check("latency 0\n", None);
        check("latency many\n", None);
        check("a.b 1\n", None);
        check("latency 1\nwarning: something\n", None);
    }

    #[test]
    fn only_bench_targets_are_programs() {
        let message = |kind: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/a/crates/stats/Cargo.toml",
                "target":{{"kind":["{kind}"]}},"executable":"/a/target/i-1"}}"#
            )
        };
        let expected = Some(("fathom-stats".to_owned(), PathBuf::from("/a/target/i-1")));
        assert_eq!(program(&message("bench")), expected);
        assert_eq!(program(&message("lib")), None);
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(program("no JSON"), None);
    }

    #[test]
    fn compiler_flags_are_removed() {
        let check = |name: &str, expected| assert_eq!(changes_code(name), expected, "{name}");
        check("RUSTFLAGS", true);
        check("CARGO_PROFILE_RELEASE_LTO", true);
        check("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", true);
        check("CARGO_TARGET_DIR", false);
        check("CARGO_HOME", false);
    }
}
