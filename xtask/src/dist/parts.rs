//! What is in a binary: its crates as cargo resolves them for the target, the C code that one of them brings, and the libraries of the
//! toolchain; the bill of materials, in CycloneDX 1.6; and the licences as their authors wrote them: most demand that their text goes with
//! the binary.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::build::{Build, Place};
use super::release::{PACKAGE, Release};
use crate::process::{output, sha256};

/// The crate that brings SQLite, and where it says which.
const SQLITE: (&str, &str) = ("libsqlite3-sys", "sqlite3/sqlite3.h");

/// A part of a binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
    /// The part as a package URL without its version; none for crates of the workspace.
    pub kind: Option<&'static str>,
    pub repository: Option<String>,
    /// The SHA-256 of what was fetched.
    pub checksum: Option<String>,
    /// Where its source and its licences are.
    pub directory: Option<PathBuf>,
    /// Names and versions of the parts that it uses.
    pub uses: BTreeSet<PartId>,
}

/// A name and a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartId {
    pub name: String,
    pub version: String,
}

impl PartId {
    fn new(name: &str, version: &str) -> PartId {
        PartId { name: name.to_owned(), version: version.to_owned() }
    }
}

impl Part {
    /// Its name and version.
    pub fn id(&self) -> PartId {
        PartId::new(&self.name, &self.version)
    }

    fn of_c(name: &str, version: String, licence: &str) -> Part {
        let (name, licence) = (name.to_owned(), licence.to_owned());
        Part { name, version, licence, kind: Some("generic"), ..Part::default() }
    }
}

/// Every part of `build`, sorted; the program is among them.
pub fn parts_of(place: &Place, release: &Release, build: &Build) -> anyhow::Result<Vec<Part>> {
    let cargo = |arguments: &[&str]| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&place.root).env("CARGO_HOME", &place.cargo_home);
        output(cargo.args(arguments).args(["--all-features", "--locked", "--offline"]))
    };
    let triple = build.triple;
    let metadata = cargo(&["metadata", "--format-version=1", "--filter-platform", triple])?;
    let metadata = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    // The metadata have the features that all packages of the workspace together ask for; the tree those of the program.
    let edges = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"];
    let tree = cargo(&[&["tree", "--package", PACKAGE, "--target", triple], &edges[..]].concat())?;
    let lock = fs::read_to_string(place.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let mut parts = crates(&metadata, &tree, &checksums(&lock)?)?;
    add_c_code(&mut parts)?;
    let standard = release.rustc.split_whitespace().nth(1).context("rustc names no version")?;
    parts.push(Part::of_c("rust-std", standard.to_owned(), "MIT OR Apache-2.0"));
    if build.is_static {
        parts.push(Part::of_c("glibc", glibc(build.cross_compiler.unwrap_or("cc"))?, "LGPL-2.1-or-later"));
    }
    parts.sort_by_key(Part::id);
    Ok(parts)
}

/// The checksums of Cargo.lock.
fn checksums(lock: &str) -> anyhow::Result<BTreeMap<PartId, String>> {
    let lock: toml::Table = lock.parse().context("Cargo.lock does not parse")?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let rows = packages.filter_map(|package| {
        let text = |key| package.get(key).and_then(toml::Value::as_str);
        Some((PartId::new(text("name")?, text("version")?), text("checksum")?.to_owned()))
    });
    Ok(rows.collect())
}

/// The packages of `metadata` that `tree` lists.
fn crates(metadata: &Value, tree: &str, checksums: &BTreeMap<PartId, String>) -> anyhow::Result<Vec<Part>> {
    let listed: BTreeSet<PartId> = tree.lines().filter_map(listed).collect();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]);
    let ids: BTreeMap<&str, PartId> =
        packages.iter().filter_map(|package| Some((package["id"].as_str()?, id(package)?))).collect();
    let mut parts = Vec::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let Some(own) = node["id"].as_str().and_then(|id| ids.get(id)).filter(|id| listed.contains(*id))
        else {
            continue;
        };
        let uses = list(&node["deps"]).into_iter().filter(is_linked);
        let uses = uses.filter_map(|dependency| ids.get(dependency["pkg"].as_str()?).cloned());
        let package = packages.iter().find(|package| id(package).as_ref() == Some(own));
        let package = package.context("a node is a package")?;
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let manifest = PathBuf::from(text("manifest_path").context("a package has a manifest")?);
        parts.push(Part {
            name: own.name.clone(),
            version: own.version.clone(),
            licence: text("license").unwrap_or_default().replace('/', " OR "),
            kind: package["source"].as_str().map(|_| "cargo"),
            repository: text("repository"),
            checksum: checksums.get(own).cloned(),
            directory: manifest.parent().map(Path::to_owned),
            uses: uses.filter(|id| listed.contains(id)).collect(),
        });
    }
    let missing: Vec<_> = listed.iter().filter(|id| !parts.iter().any(|part| part.id() == **id)).collect();
    anyhow::ensure!(missing.is_empty(), "cargo metadata does not list {missing:?} of cargo tree");
    Ok(parts)
}

/// Name and version of a line of `cargo tree`, such as `serde v1.0.229 (*)`.
fn listed(line: &str) -> Option<PartId> {
    let mut words = line.split_whitespace();
    Some(PartId::new(words.next()?, words.next()?.strip_prefix('v')?))
}

fn id(package: &Value) -> Option<PartId> {
    Some(PartId::new(package["name"].as_str()?, package["version"].as_str()?))
}

/// True for dependencies of the code itself, not of its tests or its build.
fn is_linked(dependency: &Value) -> bool {
    dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
}

fn add_c_code(parts: &mut Vec<Part>) -> anyhow::Result<()> {
    let (name, header) = SQLITE;
    let Some(part) = parts.iter_mut().find(|part| part.name == name) else { return Ok(()) };
    let header = part.directory.clone().context("a crate has a directory")?.join(header);
    let text = fs::read(&header).with_context(|| format!("cannot read {}", header.display()))?;
    let version = sqlite_version(&String::from_utf8_lossy(&text)).context("SQLite names no version")?;
    let sqlite = Part::of_c("sqlite", version, "blessing");
    part.uses.insert(sqlite.id());
    parts.push(sqlite);
    Ok(())
}

fn sqlite_version(header: &str) -> Option<String> {
    let line = header.lines().find_map(|line| line.strip_prefix("#define SQLITE_VERSION "))?;
    Some(line.trim().trim_matches('"').to_owned())
}

/// The version of the glibc that `compiler` links.
fn glibc(compiler: &str) -> anyhow::Result<String> {
    let mut command = Command::new(compiler);
    let defined = output(command.args(["-dM", "-E", "-include", "features.h", "-x", "c", "/dev/null"]))?;
    let number = |name: &str| {
        let prefix = format!("#define {name} ");
        defined.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::trim)
    };
    let (major, minor) = (number("__GLIBC__"), number("__GLIBC_MINOR__"));
    Ok(format!("{}.{}", major.context("not glibc")?, minor.context("not glibc")?))
}

/// The document of the parts of a binary.
pub fn bill_of_materials(release: &Release, parts: &[Part]) -> anyhow::Result<String> {
    let is_program = |part: &&Part| part.name == PACKAGE;
    let mut program: Value = parts.iter().find(is_program).map(component).unwrap_or_default();
    program["type"] = json!("application");
    let components: Vec<Value> = parts.iter().filter(|part| !is_program(part)).map(component).collect();
    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": release.timestamp()?,
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": [{"type": "application", "name": "cargo xtask dist"}]},
            "component": program,
        },
        "components": components,
        "dependencies": parts.iter().map(|part| dependency(part, parts)).collect::<Vec<_>>(),
    });
    document["serialNumber"] = json!(serial_number(&sha256(document.to_string().as_bytes())));
    Ok(format!("{document:#}\n"))
}

/// The name of a part within the document.
fn reference(id: &PartId) -> String {
    format!("{}@{}", id.name, id.version)
}

fn component(part: &Part) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(&part.id()),
        "name": part.name,
        "version": part.version,
        "licenses": [{"expression": part.licence}],
    });
    if let Some(kind) = part.kind {
        let version = part.version.replace('+', "%2B");
        component["purl"] = json!(format!("pkg:{kind}/{}@{version}", part.name));
    }
    if let Some(checksum) = &part.checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if let Some(repository) = &part.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// What a part uses. The program is linked with the libraries of the toolchain, which no crate names.
fn dependency(part: &Part, parts: &[Part]) -> Value {
    let toolchain = parts.iter().filter(|other| {
        part.name == PACKAGE
            && other.kind == Some("generic")
            && !parts.iter().any(|user| user.uses.contains(&other.id()))
    });
    let uses: Vec<String> =
        part.uses.iter().map(reference).chain(toolchain.map(|other| reference(&other.id()))).collect();
    json!({"ref": reference(&part.id()), "dependsOn": uses})
}

/// A UUID of the bits of `digest`, in the form for own definitions (version 8): the same document has the same.
fn serial_number(digest: &str) -> String {
    let part = |from: usize, to: usize| &digest[from..to];
    format!("urn:uuid:{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

/// How the files begin, in capitals.
const LICENCE_FILES: [&str; 5] = ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE"];
const LINE: &str = "------------------------------------------------------------------------";

/// The texts for a binary of `parts`: each once, under the names of those that have it.
pub fn licence_texts(parts: &[Part]) -> anyhow::Result<String> {
    let others = || parts.iter().filter(|part| part.kind.is_some());
    let mut list = "fathom contains these libraries:\n\n".to_owned();
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in others() {
        let _ = writeln!(list, "  {} {}: {}", part.name, part.version, part.licence);
        for file in part.directory.iter().flat_map(|directory| licence_files(directory)) {
            let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            users.entry(text.trim_end().to_owned()).or_default().push(part.name.clone());
        }
    }
    for note in notes(parts) {
        let _ = write!(list, "\n{note}\n");
    }
    let mut texts: Vec<_> = users.into_iter().collect();
    texts.sort_by(|one, other| (&one.1, &one.0).cmp(&(&other.1, &other.0)));
    for (text, mut names) in texts {
        names.dedup();
        let _ = write!(list, "\n{LINE}\n{}\n{LINE}\n\n{text}\n", names.join(", "));
    }
    Ok(list)
}

/// What is to be known of libraries that are no crates.
fn notes(parts: &[Part]) -> Vec<&'static str> {
    let of = |name: &str| parts.iter().any(|part| part.name == name);
    let notes = [
        ("sqlite", "SQLite is in the public domain."),
        (
            "rust-std",
            "rust-std is the standard library of Rust, https://github.com/rust-lang/rust, whose source has its licences.",
        ),
        (
            "glibc",
            "glibc is under the GNU Lesser General Public License, version 2.1 or later (https://www.gnu.org/licenses/). It is\n\
             linked as Debian distributes it, where its source is. The source of fathom is free: `cargo xtask dist` links it with\n\
             another glibc.",
        ),
    ];
    notes.into_iter().filter(|(name, _)| of(name)).map(|(_, note)| note).collect()
}

/// The files with licences in `directory`, sorted.
fn licence_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_licence(path)).collect();
    files.sort_unstable();
    files
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
    path.is_file() && LICENCE_FILES.iter().any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::super::release::tests::release;
    use super::*;

    #[test]
    fn only_linked_crates_are_parts() {
        let package = |name: &str, source: Value| {
            json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source,
                   "manifest_path": format!("/c/{name}/Cargo.toml")})
        };
        let uses =
            |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind, "target": null}]});
        let metadata = json!({
            "packages": [package("fathom", json!(null)), package("used", json!("registry")), package("cc", json!("registry"))],
            "resolve": {"nodes": [
                {"id": "fathom", "deps": [uses("used", json!(null)), uses("cc", json!("build"))]},
                {"id": "used", "deps": []},
                {"id": "cc", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let checksums = checksums(lock).unwrap();
        let tree = "fathom v1.0.0 (/somewhere)\nused v1.0.0\nused v1.0.0 (*)\n\n";
        let parts = crates(&metadata, tree, &checksums).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!((parts[0].kind, parts[1].kind), (None, Some("cargo")));
        assert_eq!(parts[0].uses.iter().collect::<Vec<_>>(), [&parts[1].id()]);
        assert_eq!(
            (parts[1].licence.as_str(), parts[1].checksum.as_deref()),
            ("MIT OR Apache-2.0", Some("abc"))
        );
        assert_eq!(parts[1].directory.as_deref(), Some(Path::new("/c/used")));
        let message = crates(&metadata, "gone v2.0.0", &checksums).unwrap_err().to_string();
        assert!(message.contains("gone"), "{message}");
    }

    #[test]
    fn sqlite_names_its_version() {
        let header = "/*\n#define SQLITE_VERSION_NUMBER 3051001\n#define SQLITE_VERSION        \"3.51.1\"\n";
        assert_eq!(sqlite_version(header).as_deref(), Some("3.51.1"));
        assert_eq!(sqlite_version(""), None);
    }

    fn part(name: &str, version: &str, kind: Option<&'static str>, uses: &[&Part]) -> Part {
        Part {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: "MIT OR Apache-2.0".to_owned(),
            kind,
            uses: uses.iter().map(|part| part.id()).collect(),
            ..Part::default()
        }
    }

    #[test]
    fn the_document_names_every_part_and_what_it_uses() {
        let sqlite = part("sqlite", "3.51.1", Some("generic"), &[]);
        let crate_with_c = part("libsqlite3-sys", "0.39.1+a", Some("cargo"), &[&sqlite]);
        let glibc = part("glibc", "2.36", Some("generic"), &[]);
        let program = part("fathom", "1.2.3", None, &[&crate_with_c]);
        let parts = [program, glibc, crate_with_c, sqlite];
        let text = bill_of_materials(&release(), &parts).unwrap();
        assert_eq!(text, bill_of_materials(&release(), &parts).unwrap());
        let bill: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(bill["metadata"]["component"]["name"], "fathom");
        assert_eq!(bill["metadata"]["component"]["type"], "application");
        assert_eq!(bill["metadata"]["timestamp"], "2026-09-21T14:13:20Z");
        assert_eq!(bill["components"].as_array().unwrap().len(), 3);
        assert_eq!(bill["components"][1]["purl"], "pkg:cargo/libsqlite3-sys@0.39.1%2Ba");
        assert_eq!(bill["dependencies"][0]["dependsOn"], json!(["libsqlite3-sys@0.39.1+a", "glibc@2.36"]));
        assert_eq!(bill["dependencies"][2]["dependsOn"], json!(["sqlite@3.51.1"]));
    }

    #[test]
    fn serial_numbers_have_the_form_of_a_uuid() {
        let digest = sha256(b"a document");
        let number = serial_number(&digest);
        let uuid = number.strip_prefix("urn:uuid:").unwrap();
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!((&uuid[14..15], &uuid[19..20]), ("8", "8"));
        assert_ne!(number, serial_number(&sha256(b"another")));
    }

    #[test]
    fn a_text_stands_once_with_all_who_have_it() {
        let scratch = tempfile::tempdir().unwrap();
        let part = |name: &str, files: &[(&str, &str)]| {
            let directory = scratch.path().join(name);
            fs::create_dir(&directory).unwrap();
            for (file, text) in files {
                fs::write(directory.join(file), text).unwrap();
            }
            let (kind, directory) = (Some("cargo"), Some(directory));
            Part {
                name: name.to_owned(),
                version: "1".to_owned(),
                licence: "MIT".to_owned(),
                kind,
                directory,
                ..Part::default()
            }
        };
        let parts = [
            part("a", &[("LICENSE-MIT", "MIT of Ann\n"), ("README", "none")]),
            part("b", &[("LICENSE", "MIT of Ann\r\n"), ("NOTICE", "noticed")]),
            Part { name: "fathom".to_owned(), ..Part::default() },
        ];
        let text = licence_texts(&parts).unwrap();
        assert!(text.contains("  a 1: MIT\n  b 1: MIT\n"), "{text}");
        assert_eq!(text.matches("MIT of Ann").count(), 1, "{text}");
        assert!(text.contains("\na, b\n") && text.contains("\nb\n") && !text.contains("none"), "{text}");
        assert!(!text.contains("glibc"), "{text}");
    }
}
