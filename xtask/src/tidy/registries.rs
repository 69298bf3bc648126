//! A registry is a `pub const` slice that things are added to by one line. A test must iterate over each, so that what
//! is added is tested without anyone remembering to.

use syn::visit::{self, Visit};

use super::TidyFinding;
use super::tree::RustFile;

/// Registries that no test names.
pub fn check(files: &[RustFile]) -> Vec<TidyFinding> {
    let tests: Vec<String> = files.iter().map(RustFile::test_text).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with("crates/") && !file.is_test()) {
        let mut registries = Registries::default();
        registries.visit_file(&file.syntax);
        let untested = registries.seen.iter().filter(|(_, name)| !tests.iter().any(|text| names(text, name)));
        findings.extend(untested.map(|(line, name)| {
            TidyFinding::new(&file.path, *line, format!("no test walks over the registry {name}"))
        }));
    }
    findings
}

/// True where `text` holds `name` as a whole word.
fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

#[derive(Default)]
struct Registries {
    seen: Vec<(usize, String)>,
}

impl<'a> Visit<'a> for Registries {
    fn visit_item_const(&mut self, constant: &'a syn::ItemConst) {
        if matches!(constant.vis, syn::Visibility::Public(_)) && is_slice_of_entries(&constant.ty) {
            self.seen.push((constant.ident.span().start().line, constant.ident.to_string()));
        }
        visit::visit_item_const(self, constant);
    }
}

/// True for `&[T]` where `T` is a struct or a tuple: lists of words and numbers are values, not registries.
fn is_slice_of_entries(kind: &syn::Type) -> bool {
    let syn::Type::Reference(reference) = kind else { return false };
    let syn::Type::Slice(slice) = &*reference.elem else { return false };
    match &*slice.elem {
        syn::Type::Tuple(_) => true,
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let name = last.ident.to_string();
            name.starts_with(char::is_uppercase) && name != "String"
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_without_a_test_are_found() {
        let file = |path, text| RustFile::parse(path, text).expect("the test's source parses");
        let registry = "pub const THINGS: &[Thing] = &[];\npub const WORDS: &[&str] = &[];\nconst OWN: &[Thing] = &[];\n";
        let pairs =
            "pub const PAIRS: &[(&str, u8)] = &[];\n#[cfg(test)]\nmod tests { fn f() { PAIRS.len(); } }\n";
        let found = |files: &[RustFile]| check(files).iter().map(ToString::to_string).collect::<Vec<_>>();
        let (a, b) = (file("crates/a/src/a.rs", registry), file("crates/a/src/b.rs", pairs));
        let missing = "crates/a/src/a.rs:1: no test walks over the registry THINGS";
        let other = "fn f() { for thing in a::THINGS_TOO {} }";
        let walk = "fn f() { for thing in a::THINGS {} }";
        let (other, walk) = (file("crates/a/tests/other.rs", other), file("crates/a/tests/walk.rs", walk));
        assert_eq!(found(&[a, b, other]), [missing]);
        let (a, b) = (file("crates/a/src/a.rs", registry), file("crates/a/src/b.rs", pairs));
        assert_eq!(found(&[a, b, walk]), [""; 0]);
    }
}
