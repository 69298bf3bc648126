//! The licences of the libraries in a binary, as their authors wrote them: most demand that their text goes with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::dependencies::Part;

/// How the files begin, in capitals.
const NAMES: [&str; 5] = ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE"];
const LINE: &str = "------------------------------------------------------------------------";

/// The texts for a binary of `parts`: each once, under the names of those that have it.
pub fn text(parts: &[Part]) -> anyhow::Result<String> {
    let others = || parts.iter().filter(|part| part.kind.is_some());
    let mut list = "fathom contains these libraries:\n\n".to_owned();
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in others() {
        let _ = writeln!(list, "  {} {}: {}", part.name, part.version, part.licence);
        for file in part.directory.iter().flat_map(|directory| files(directory)) {
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
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_licence(path)).collect();
    files.sort_unstable();
    files
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
    path.is_file() && NAMES.iter().any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let text = text(&parts).unwrap();
        assert!(text.contains("  a 1: MIT\n  b 1: MIT\n"), "{text}");
        assert_eq!(text.matches("MIT of Ann").count(), 1, "{text}");
        assert!(text.contains("\na, b\n") && text.contains("\nb\n") && !text.contains("none"), "{text}");
        assert!(!text.contains("glibc"), "{text}");
    }
}
