//! Who may import whom. The table is the one ARCHITECTURE.md explains; a new edge is a decision, not a convenience.

use serde_json::Value;

use super::TidyFinding;

/// Each crate of the workspace, and the workspace crates that it may import. `fathom` (the command line) may name them
/// all.
const IMPORTS: &[(&str, &[&str])] = &[
    ("fathom-model", &[]),
    ("fathom-stats", &["fathom-model"]),
    ("fathom-sys", &[]),
    ("fathom-options", &["fathom-model"]),
    ("fathom-workload", &["fathom-model"]),
    ("fathom-volume", &["fathom-model"]),
    ("fathom-catalog", &["fathom-model", "fathom-predict", "fathom-volume"]),
    ("fathom-engine", &["fathom-model", "fathom-sys", "fathom-volume"]),
    ("fathom-runner", &["fathom-engine", "fathom-model", "fathom-stats", "fathom-sys", "fathom-workload"]),
    ("fathom-record", &["fathom-model", "fathom-stats"]),
    ("fathom-import", &["fathom-model", "fathom-options", "fathom-record"]),
    ("fathom-observed", &["fathom-model", "fathom-workload"]),
    (
        "fathom-predict",
        &["fathom-model", "fathom-observed", "fathom-record", "fathom-stats", "fathom-volume"],
    ),
    (
        "fathom-analysis",
        &["fathom-model", "fathom-predict", "fathom-record", "fathom-stats", "fathom-volume"],
    ),
    (
        "fathom-assess",
        &[
            "fathom-analysis",
            "fathom-catalog",
            "fathom-engine",
            "fathom-model",
            "fathom-observed",
            "fathom-options",
            "fathom-predict",
            "fathom-record",
            "fathom-runner",
            "fathom-stats",
            "fathom-sys",
            "fathom-volume",
        ],
    ),
    (
        "fathom-report",
        &[
            "fathom-analysis",
            "fathom-catalog",
            "fathom-model",
            "fathom-observed",
            "fathom-predict",
            "fathom-record",
        ],
    ),
    ("fathom-history", &["fathom-analysis", "fathom-record", "fathom-sys"]),
    (
        "fathom-fuzz",
        &[
            "fathom-analysis",
            "fathom-assess",
            "fathom-catalog",
            "fathom-import",
            "fathom-model",
            "fathom-observed",
            "fathom-options",
            "fathom-predict",
            "fathom-record",
            "fathom-report",
            "fathom-runner",
            "fathom-sys",
            "fathom-volume",
            "fathom-workload",
        ],
    ),
    ("fathom-tests", &["fathom-sys"]),
    ("xtask", &["fathom-model", "fathom-observed", "fathom-options", "fathom-tests"]),
];

/// The package that may name every other.
const TOP: &str = "fathom";

/// Crates that measure: what they run must be readable end to end, so of others' crates they use these alone. `serde` is for
/// the derives of `model` and `stats` ([`OWNED`]).
const MEASURING: &[&str] =
    &["fathom-model", "fathom-stats", "fathom-workload", "fathom-volume", "fathom-engine", "fathom-runner"];
const MEASURING_MAY_USE: &[&str] =
    &["serde", "thiserror", "crc32c", "twox-hash", "md-5", "sha1", "sha2", "sha3"];

/// Third-party crates that only these workspace crates may use.
const OWNED: &[(&str, &[&str])] = &[
    ("clap", &["fathom"]),
    ("indicatif", &["fathom"]),
    ("io-uring", &["fathom-sys"]),
    ("libc", &["fathom-sys"]),
    ("rusqlite", &["fathom-history"]),
    (
        "serde",
        &[
            "fathom",
            "fathom-analysis",
            "fathom-assess",
            "fathom-catalog",
            "fathom-history",
            "fathom-model",
            "fathom-predict",
            "fathom-record",
            "fathom-report",
            "fathom-stats",
            "fathom-tests",
            "xtask",
        ],
    ),
    (
        "serde_json",
        &[
            "fathom",
            "fathom-assess",
            "fathom-catalog",
            "fathom-history",
            "fathom-import",
            "fathom-observed",
            "fathom-record",
            "fathom-report",
            "fathom-tests",
            "xtask",
        ],
    ),
    ("signal-hook", &["fathom", "fathom-tests"]),
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
        if name != TOP && !IMPORTS.iter().any(|(known, _)| *known == name) {
            findings.push(TidyFinding::new(
                &manifest(metadata, package),
                0,
                format!("{name} has no row in IMPORTS"),
            ));
        }
    }
    findings
}

/// Why `name` may not depend on `dependency`; `None` where it may.
fn refuse(name: &str, dependency: &str, ours: &[&str]) -> Option<String> {
    if ours.contains(&dependency) {
        let allowed =
            IMPORTS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, allowed)| allowed);
        let is_allowed = name == TOP || allowed.contains(&dependency);
        return (!is_allowed).then(|| format!("{name} may not import {dependency}"));
    }
    if MEASURING.contains(&name) && !MEASURING_MAY_USE.contains(&dependency) {
        return Some(format!("{name} measures and may not use {dependency}"));
    }
    let owners = OWNED.iter().find(|(known, _)| *known == dependency).map(|(_, owners)| *owners)?;
    (!owners.contains(&name))
        .then(|| format!("{dependency} is for {} alone, not for {name}", owners.join(", ")))
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
                "fathom",
                "fathom-model",
                "fathom-engine",
                "fathom-runner",
                "fathom-record",
                "fathom-report",
            ];
            assert_eq!(refuse(name, dependency, &ours).as_deref(), expected, "{name} -> {dependency}");
        };
        check("fathom-runner", "fathom-engine", None);
        check("fathom-engine", "fathom-runner", Some("fathom-engine may not import fathom-runner"));
        check("fathom-report", "fathom-runner", Some("fathom-report may not import fathom-runner"));
        check("fathom", "fathom-runner", None);
        check("fathom-runner", "thiserror", None);
        check("fathom-runner", "log", Some("fathom-runner measures and may not use log"));
        check(
            "fathom-report",
            "rusqlite",
            Some("rusqlite is for fathom-history alone, not for fathom-report"),
        );
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
            for dependency in *allowed {
                assert!(
                    IMPORTS[..index].iter().any(|(above, _)| above == dependency),
                    "{name} -> {dependency}"
                );
            }
        }
    }
}
