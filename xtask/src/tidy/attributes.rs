//! Requirements on each file: a header, no unsafe code, the workspace's lints, no disabled tests.

use syn::visit::{self, Visit};

use super::TidyFinding;
use super::tree::RustFile;

/// The one crate that may hold unsafe code.
const UNSAFE_CRATE: &str = "crates/sys/";
/// Module names that say nothing.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "manager", "misc"];

/// Checks one file.
pub fn check(file: &RustFile) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut report = |message: String| findings.push(TidyFinding::new(&file.path, 0, message));
    if !file.is_test() && !file.text.starts_with("//!") {
        report("no `//!` header that says what the module is for".to_owned());
    }
    let stem = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
    if EMPTY_NAMES.contains(&stem) {
        report(format!("a module called {stem} says nothing of what is in it"));
    }
    if is_root(&file.path) && !file.path.starts_with(UNSAFE_CRATE) && !forbids_unsafe(&file.syntax) {
        report("no `#![forbid(unsafe_code)]`".to_owned());
    }
    let mut switched_off = SwitchedOff::default();
    switched_off.visit_file(&file.syntax);
    for (name, attribute) in switched_off.seen {
        report(format!("{name} has #[{attribute}]: a test runs, or is not there"));
    }
    findings
}

/// Checks the manifest of one of our packages.
pub fn check_manifest(path: &str, text: &str) -> Vec<TidyFinding> {
    let takes_lints =
        text.split("[lints]").nth(1).is_some_and(|rest| rest.trim_start().starts_with("workspace = true"));
    if takes_lints { Vec::new() } else { vec![TidyFinding::new(path, 0, "no `[lints] workspace = true`")] }
}

/// True for the file that is the root of a crate.
fn is_root(path: &str) -> bool {
    ["src/lib.rs", "src/main.rs", "tests/harness/lib.rs", "tests/suite/main.rs"]
        .iter()
        .any(|root| path.ends_with(root))
        || path.contains("/src/bin/")
}

fn forbids_unsafe(file: &syn::File) -> bool {
    file.attrs.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            list.path.is_ident("forbid") && list.tokens.to_string().contains("unsafe_code")
        }
        _ => false,
    })
}

#[derive(Default)]
struct SwitchedOff {
    seen: Vec<(String, &'static str)>,
}

impl<'a> Visit<'a> for SwitchedOff {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        for name in ["ignore", "should_panic"] {
            if function.attrs.iter().any(|attribute| attribute.path().is_ident(name)) {
                self.seen.push((function.sig.ident.to_string(), name));
            }
        }
        visit::visit_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_attributes_are_checked() {
        let check = |path: &str, text: &str, expected: &[&str]| {
            let file = RustFile::parse(path, text).expect("the test's source parses");
            let messages: Vec<String> =
                super::check(&file).into_iter().map(|finding| finding.message).collect();
            assert_eq!(messages, expected, "{path}");
        };
        let good = "//! Header.\n#![forbid(unsafe_code)]\n";
        let no_forbid = "no `#![forbid(unsafe_code)]`";
        check("crates/a/src/lib.rs", good, &[]);
        check("crates/a/src/lib.rs", "//! Header.\n", &[no_forbid]);
        check("crates/a/src/main.rs", "//! Header.\n#![deny(unsafe_code)]\n", &[no_forbid]);
        check("crates/a/src/bin/b.rs", "//! Header.\n", &[no_forbid]);
        check("crates/sys/src/lib.rs", "//! Header.\n", &[]);
        check("crates/a/src/b.rs", "//! Header.\n", &[]);
        check("crates/a/src/b.rs", "fn f() {}\n", &["no `//!` header that says what the module is for"]);
        check(
            "crates/a/src/utils.rs",
            "//! Header.\n",
            &["a module called utils says nothing of what is in it"],
        );
        let off = "//! Header.\nmod tests {\n    #[test]\n    #[ignore]\n    fn f() {}\n}\n";
        check("crates/a/src/b.rs", off, &["f has #[ignore]: a test runs, or is not there"]);
    }

    #[test]
    fn manifests_inherit_the_lints() {
        assert_eq!(check_manifest("a", "[package]\n[lints]\nworkspace = true\n"), []);
        assert_eq!(check_manifest("a", "[package]\n").len(), 1);
        assert_eq!(check_manifest("a", "[lints]\n[dependencies]\nworkspace = true\n").len(), 1);
    }
}
