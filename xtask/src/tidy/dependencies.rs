//! Third-party crates: licences, sources, versions and use.
//!
//! The checks that `cargo deny` has for these, on what `cargo metadata` says: no Debian package brings cargo-deny, and building
//! it would add minutes to the gate. Advisories change without the source and are not part of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{SourceFile, TidyFinding, Tree, has_ident};

/// Licences compatible with this project's `MIT OR Apache-2.0`.
const LICENCES: &[&str] =
    &["Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "NCSA", "Unicode-3.0", "Zlib"];
/// The only place that crates may come from.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Dependencies that no source names, and why they are there.
const UNNAMED: &[(&str, &str, &str)] = &[("fathom-workload", "md-5", "sources call its library md5")];
/// Crates that may be there in several versions, and why.
const SEVERAL: &[(&str, &str)] =
    &[("miniz_oxide", "png is behind flate2, whose older versions take a cut stream for a whole one")];

/// Licences and sources of every crate in `metadata`, and crates in several versions.
pub fn check(manifest: &str, metadata: &Value) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let text = |key: &str| package[key].as_str();
        let (name, version) = (text("name").unwrap_or_default(), text("version").unwrap_or_default());
        versions.entry(name).or_default().push(version);
        let Some(source) = text("source") else { continue };
        let mut refuse =
            |why| findings.push(TidyFinding::new(manifest, 0, format!("{name} {version} {why}")));
        if source != SOURCE {
            refuse(format!("comes from {source}: use crates.io"));
        }
        match text("license") {
            None => refuse("names no licence: do without it".to_owned()),
            Some(licence) if !permits(licence) => {
                refuse(format!("has the licence {licence}: do without it, or add the licence to LICENCES"));
            }
            Some(_) => {}
        }
    }
    versions
        .retain(|name, versions| versions.len() > 1 && SEVERAL.iter().all(|(several, _)| several != name));
    for (name, versions) in &versions {
        let message = format!("{name} is there as {}: use one", versions.join(" and "));
        findings.push(TidyFinding::new(manifest, 0, message));
    }
    findings
}

/// True where every licence that `expression` demands is allowed. An exception (`WITH`) permits more, never less.
fn permits(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    any_of(&mut words) && words.next().is_none()
}

type LicenceWords<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut LicenceWords<'_>) -> bool {
    let mut is_allowed = all_of(words);
    while words.next_if_eq(&"OR").is_some() {
        is_allowed |= all_of(words);
    }
    is_allowed
}

fn all_of(words: &mut LicenceWords<'_>) -> bool {
    let mut is_allowed = one(words);
    while words.next_if_eq(&"AND").is_some() {
        is_allowed &= one(words);
    }
    is_allowed
}

fn one(words: &mut LicenceWords<'_>) -> bool {
    match words.next() {
        Some("(") => any_of(words) && words.next() == Some(")"),
        Some(licence) => {
            if words.next_if_eq(&"WITH").is_some() {
                words.next();
            }
            LICENCES.contains(&licence)
        }
        None => false,
    }
}

/// Dependencies of our packages that their sources do not name, and rows of the workspace's table that no package uses.
pub fn check_use(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for (path, text) in tree.manifests() {
        let Ok(manifest) = text.parse::<toml::Table>() else { continue };
        let directory = path.trim_end_matches("Cargo.toml");
        let package = manifest.get("package").and_then(|package| package.get("name")?.as_str());
        let tables = ["dependencies", "dev-dependencies", "build-dependencies"].map(|key| manifest.get(key));
        let tables = tables.into_iter().flatten().filter_map(toml::Value::as_table);
        for name in tables.flat_map(toml::Table::keys) {
            used.insert(name.clone());
            let is_known = UNNAMED.iter().any(|(of, known, _)| Some(*of) == package && known == name);
            let ident = name.replace('-', "_");
            let names =
                |file: SourceFile<'_>| file.path.starts_with(directory) && has_ident(file.text, &ident);
            if !is_known && !tree.rust().any(names) {
                findings.push(TidyFinding::new(path, 0, format!("no source names {name}: leave it out")));
            }
        }
    }
    let root = tree.texts.get("Cargo.toml").and_then(|text| text.parse::<toml::Table>().ok());
    let shared = root.as_ref().and_then(|root| root.get("workspace")?.get("dependencies")?.as_table());
    let unused = shared.into_iter().flat_map(toml::Table::keys).filter(|name| !used.contains(*name));
    findings.extend(unused.map(|name| {
        TidyFinding::new("Cargo.toml", 0, format!("no package uses {name}: take it out of the table"))
    }));
    findings
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(findings: Vec<TidyFinding>) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn licence_expressions_are_permitted_where_every_demand_is_in_the_list() {
        for expression in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "GPL-2.0-only WITH Classpath-exception-2.0 OR Zlib",
        ] {
            assert!(permits(expression), "{expression}");
        }
        for expression in
            ["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR Zlib) AND MPL-2.0", "MIT Zlib", "(MIT"]
        {
            assert!(!permits(expression), "{expression}");
        }
    }

    #[test]
    fn licences_sources_and_versions_are_checked() {
        let package = |name: &str, version: &str, source: Option<&str>, license: Option<&str>| json!({"name": name, "version": version, "source": source, "license": license});
        let metadata = json!({"packages": [
            package("ours", "0.1.0", None, None),
            package("fine", "1.0.0", Some(SOURCE), Some("MIT")),
            package("free", "1.0.0", Some(SOURCE), Some("GPL-3.0-only")),
            package("bare", "1.0.0", Some(SOURCE), None),
            package("forked", "2.0.0", Some("git+https://example.org/forked"), Some("MIT")),
            package("twice", "1.0.0", Some(SOURCE), Some("MIT")),
            package("twice", "2.0.0", Some(SOURCE), Some("MIT")),
        ]});
        assert_eq!(
            messages(check("Cargo.toml", &metadata)),
            [
                "Cargo.toml: free 1.0.0 has the licence GPL-3.0-only: do without it, or add the licence to LICENCES",
                "Cargo.toml: bare 1.0.0 names no licence: do without it",
                "Cargo.toml: forked 2.0.0 comes from git+https://example.org/forked: use crates.io",
                "Cargo.toml: twice is there as 1.0.0 and 2.0.0: use one",
            ]
        );
    }

    #[test]
    fn unused_dependencies_are_reported() {
        let root = "[workspace.dependencies]\nleft-over = \"1\"\nin-use = \"1\"\n";
        let member = "[package]\nname = \"a\"\n[dependencies]\nin-use.workspace = true\nforgotten = \"1\"\n";
        let source = ("crates/a/src/lib.rs", "use in_use::Thing;");
        let texts = [("Cargo.toml", root), ("crates/a/Cargo.toml", member), source];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let found: Vec<String> = messages(check_use(&Tree { texts, paths: Vec::new() }));
        assert_eq!(
            found,
            [
                "crates/a/Cargo.toml: no source names forgotten: leave it out",
                "Cargo.toml: no package uses left-over: take it out of the table",
            ]
        );
    }
}
