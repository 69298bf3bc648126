//! The software bill of materials, in CycloneDX 1.6.

use serde_json::{Value, json};

use super::dependencies::{Part, PartId};
use super::release::{PACKAGE, Release};
use crate::process::sha256;

/// The document of the parts of a binary.
pub fn document(release: &Release, parts: &[Part]) -> anyhow::Result<String> {
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

#[cfg(test)]
mod tests {
    use super::super::release::tests::release;
    use super::*;

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
        let text = document(&release(), &parts).unwrap();
        assert_eq!(text, document(&release(), &parts).unwrap());
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
}
