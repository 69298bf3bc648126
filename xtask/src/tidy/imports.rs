//! Who may import whom. The table is the one ARCHITECTURE.md explains; a new edge is a decision, not a convenience.

use serde_json::Value;

use super::TidyFinding;

/// Each crate of the workspace, and the workspace crates that it may import, without the prefix of all crates. `fathom` (the command
/// line) may name them all.
const IMPORTS: &[(&str, &str)] = &[
    ("model", ""),
    ("stats", "model"),
    ("sys", ""),
    ("options", "model"),
    ("workload", "model"),
    ("volume", "model"),
    ("engine", "model sys volume"),
    ("runner", "engine model stats sys workload"),
    ("record", "model stats"),
    ("import", "model options record"),
    ("observed", "model workload"),
    ("predict", "model observed record stats volume"),
    ("catalog", "model predict volume"),
    ("analysis", "model predict record stats volume"),
    ("assess", "analysis catalog engine model observed options predict record runner stats sys volume"),
    ("report", "analysis catalog model observed predict record"),
    ("history", "analysis record sys"),
    (
        "fuzz",
        "analysis assess catalog import model observed options predict record report runner sys volume workload",
    ),
    ("tests", "sys"),
    ("xtask", "options tests"),
    ("lab", "model observed options tests xtask"),
];
/// The package that may name every other.
const TOP: &str = "fathom";
/// Crates that measure: what they run must be readable end to end, so of others' crates they use these alone. `serde` is for
/// the derives of `model` and `stats` ([`OWNED`]).
const MEASURING: &str = "model stats workload volume engine runner";
const MEASURING_MAY_USE: &str = "serde thiserror crc32c twox-hash md-5 sha1 sha2 sha3";
/// Third-party crates that only these workspace crates may use.
const OWNED: &[(&str, &str)] = &[
    ("clap", "fathom lab"),
    ("indicatif", "fathom"),
    ("io-uring", "sys"),
    ("libc", "sys"),
    ("rusqlite", "history"),
    ("serde", "analysis assess catalog history model observed predict record report stats tests lab"),
    ("serde_json", "fathom assess catalog history import observed record report tests xtask lab"),
    ("signal-hook", "fathom tests"),
];
/// Checks what `cargo metadata` says against the tables. Dependencies for tests alone are free.
pub fn check(metadata: &Value) -> Vec<TidyFinding> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut findings = Vec::new();
    let packages = list(&metadata["packages"]);
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let dependencies = list(&package["dependencies"]);
        let wanted = dependencies.iter().filter(|dependency| dependency["kind"].as_str() != Some("dev"));
        let messages = wanted.filter_map(|dependency| refuse(name, dependency["name"].as_str()?, &ours));
        findings.extend(messages.map(|message| TidyFinding::new(&manifest(metadata, package), 0, message)));
        if name != TOP && !IMPORTS.iter().any(|(known, _)| *known == short(name)) {
            findings.push(TidyFinding::new(
                &manifest(metadata, package),
                0,
                format!("{name} has no row in IMPORTS"),
            ));
        }
    }
    findings
}

/// A name without the prefix of all crates.
fn short(name: &str) -> &str {
    name.trim_start_matches("fathom-")
}

fn has(list: &str, name: &str) -> bool {
    list.split(' ').any(|word| word == short(name))
}

/// Why `name` may not depend on `dependency`; `None` if it may.
fn refuse(name: &str, dependency: &str, ours: &[&str]) -> Option<String> {
    if ours.contains(&dependency) {
        let row = IMPORTS.iter().find(|(known, _)| *known == short(name));
        let is_allowed = name == TOP || row.is_some_and(|(_, allowed)| has(allowed, dependency));
        return (!is_allowed).then(|| format!("{name} may not import {dependency}"));
    }
    if has(MEASURING, name) && !has(MEASURING_MAY_USE, dependency) {
        return Some(format!("{name} measures and may not use {dependency}"));
    }
    let (_, owners) = OWNED.iter().find(|(known, _)| *known == dependency)?;
    (!has(owners, name)).then(|| format!("{dependency} is for {owners} alone, not for {name}"))
}

fn manifest(metadata: &Value, package: &Value) -> String {
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let path = package["manifest_path"].as_str().unwrap_or_default();
    path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_listed_edges_pass() {
        let check = |name, dependency, expected: Option<&str>| {
            let ours = [
                "fathom", "fathom-model", "fathom-engine", "fathom-runner", "fathom-record", "fathom-report",
            ];
            assert_eq!(refuse(name, dependency, &ours).as_deref(), expected, "{name} -> {dependency}");
        };
        check("fathom-runner", "fathom-engine", None);
        check("fathom-engine", "fathom-runner", Some("fathom-engine may not import fathom-runner"));
        check("fathom-report", "fathom-runner", Some("fathom-report may not import fathom-runner"));
        check("fathom", "fathom-runner", None);
        check("fathom-runner", "thiserror", None);
        check("fathom-runner", "log", Some("fathom-runner measures and may not use log"));
        check("fathom-report", "rusqlite", Some("rusqlite is for history alone, not for fathom-report"));
        check("fathom-report", "comfy-table", None);
    }

    #[test]
    fn packages_without_a_row_and_wrong_edges_are_found_but_not_those_of_tests() {
        let dependency = |name: &str, kind: Option<&str>| json!({ "name": name, "kind": kind });
        let package = |name: &str, dependencies: Vec<Value>| {
            let path = format!("/root/crates/{name}/Cargo.toml");
            json!({ "name": name, "manifest_path": path, "dependencies": dependencies })
        };
        let metadata = json!({ "workspace_root": "/root", "packages": [
            package("fathom-model", vec![dependency("fathom-new", None), dependency("fathom-new", Some("dev"))]),
            package("fathom-new", vec![]),
        ]});
        let found: Vec<String> = check(&metadata).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/fathom-model/Cargo.toml: fathom-model may not import fathom-new",
                "crates/fathom-new/Cargo.toml: fathom-new has no row in IMPORTS",
            ]
        );
    }

    #[test]
    fn the_table_has_no_cycle() {
        // Every row names only rows that stand above it.
        for (index, (name, allowed)) in IMPORTS.iter().enumerate() {
            for dependency in allowed.split_whitespace() {
                let is_above = IMPORTS[..index].iter().any(|(above, _)| *above == dependency);
                assert!(is_above, "{name} -> {dependency}");
            }
        }
    }
}
