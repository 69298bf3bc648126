//! Requirements on each file: its header and length, no unsafe code, no disabled tests, the workspace's lints, the words of the field, and
//! nothing that work in progress left behind. Also that a test iterates over each registry, and that the gate installs what tests use.

use std::collections::BTreeSet;

use super::{SourceFile, TidyFinding, Tree, has_ident};
use crate::packages::TOOLS;

/// Longest file, without its tests: functions and parameter lists are clippy's.
const FILE_LINES: usize = 1000;
/// Lines inside the braces of an unsafe block.
const UNSAFE_LINES: usize = 5;
/// The one crate that may hold unsafe code.
const UNSAFE_CRATE: &str = "crates/sys/";
/// Module names that say nothing.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "manager", "misc"];
/// Leftovers, and directories of developers' machines. Written in halves, so that this table does not find itself.
const LEFTOVERS: &[(&str, &str)] = &[
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X"),
    ("db", "g!"),
    ("to", "do!"),
    ("unimple", "mented!"),
    ("HA", "CK"),
    ("/wo", "rk/"),
    ("/tmp/", "brief"),
    ("/ro", "ot/.cargo"),
];
/// Phrases that the glossary replaces by a term of the field, in the texts of the product.
const REPLACED: &[(&str, &str)] = &[
    ("broken off", "interrupted"),
    ("under way", "in flight"),
    ("ran dry", "exhausted"),
    ("what was promised", "expectation or published specification"),
    ("not judged", "inconclusive"),
    ("used up", "exhausted"),
    ("for ever", "sustained"),
    ("laying out", "file layout"),
    ("working file", "test file"),
    ("working files", "test files"),
    ("What it tells", "Findings"),
    ("What it is good for", "Workload suitability"),
    ("how sure", "95 % confidence interval"),
    ("modelled volume", "simulated volume"),
    ("modelled volumes", "simulated volumes"),
    ("a second of others", "foreign I/O"),
];
const TOOL_LIST: &str = "xtask/packages.txt";
/// Where programs of the list are started outside of tests.
const STARTED_BY: [&str; 3] = ["xtask/src/instructions", "lab/src/fuzz", "lab/src/versus"];

/// Checks every file.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings: Vec<TidyFinding> = tree.rust().flat_map(check_file).collect();
    for (path, text) in tree.manifests().filter(|(_, text)| !takes_lints(text)) {
        let message = if text.contains("[package]") { "no `[lints] workspace = true`" } else { continue };
        findings.push(TidyFinding::new(path, 0, message));
    }
    for (path, text) in &tree.texts {
        for (index, line) in text.lines().enumerate() {
            let found = LEFTOVERS.iter().map(|(first, second)| format!("{first}{second}"));
            let found = found.filter(|word| has_word(line, word));
            findings.extend(found.map(|word| TidyFinding::new(path, index + 1, format!("leftover: {word}"))));
        }
    }
    findings.extend(untested_registries(tree));
    findings.extend(unlisted_tools(tree));
    findings
}

fn check_file(file: SourceFile<'_>) -> Vec<TidyFinding> {
    let SourceFile { path, text } = file;
    let mut findings = Vec::new();
    let mut report = |line, message: String| findings.push(TidyFinding::new(path, line, message));
    if !file.is_test() && !text.starts_with("//!") {
        report(0, "no `//!` header that says what the module is for".to_owned());
    }
    let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
    if EMPTY_NAMES.contains(&stem) {
        report(0, format!("a module called {stem} says nothing of what is in it"));
    }
    if is_root(path) && !path.starts_with(UNSAFE_CRATE) && !text.contains("#![forbid(unsafe_code)]") {
        report(0, "no `#![forbid(unsafe_code)]`".to_owned());
    }
    let lines = file.product().count();
    if lines > FILE_LINES && !path.contains("/table/") {
        report(0, format!("{lines} lines before the tests, allowed are {FILE_LINES}"));
    }
    for (line, lines) in unsafe_blocks(file).into_iter().filter(|(_, lines)| *lines > UNSAFE_LINES) {
        report(line, format!("unsafe block of {lines} lines, allowed are {UNSAFE_LINES}"));
    }
    for (index, line) in text.lines().enumerate() {
        let is_off = ["#[ignore", "#[should_panic"].iter().any(|off| line.trim_start().starts_with(off));
        if is_off {
            report(index + 1, "a test runs, or is not there".to_owned());
        }
    }
    let is_product = path.starts_with("crates/") && path.contains("/src/");
    for (number, line) in file.product().filter(|_| is_product) {
        let code = if line.trim_start().starts_with("//") { "" } else { line };
        for (phrase, term) in REPLACED.iter().filter(|(phrase, _)| has_word(code, phrase)) {
            report(number, format!("'{phrase}': write '{term}'"));
        }
    }
    findings
}

fn takes_lints(manifest: &str) -> bool {
    let lints = manifest.split("[lints]").nth(1);
    lints.is_some_and(|rest| rest.trim_start().starts_with("workspace = true"))
}

/// True for the file that is the root of a crate.
fn is_root(path: &str) -> bool {
    ["src/lib.rs", "src/main.rs", "tests/harness/lib.rs", "tests/suite/main.rs"]
        .iter()
        .any(|root| path.ends_with(root))
        || path.contains("/src/bin/")
}

/// The first line of each block and the number of those inside it: rustfmt puts its end under its beginning.
fn unsafe_blocks(file: SourceFile<'_>) -> Vec<(usize, usize)> {
    let lines: Vec<(usize, &str)> = file.product().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let opens = |line: &str| line.ends_with("unsafe {") && !line.trim_start().starts_with("//");
    let begins = lines.iter().enumerate().filter(|(_, (_, line))| opens(line));
    begins
        .map(|(index, (number, begin))| {
            let is_end = |line: &str| line.trim_start().starts_with('}') && indent(line) == indent(begin);
            let inside = lines[index + 1..].iter().take_while(|(_, line)| !is_end(line)).count();
            (*number, inside)
        })
        .collect()
}

/// True if `word` stands in `line` with no letter, digit or underscore directly before or, for words that end in a letter, after it.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let ends_in_letter = word.ends_with(is_part);
    line.match_indices(word).any(|(at, _)| {
        let starts_inside = line[..at].ends_with(is_part);
        let goes_on = ends_in_letter && line[at + word.len()..].starts_with(is_part);
        !starts_inside && !goes_on
    })
}

/// A registry is a `pub const` slice of structs or tuples that things are added to by one line: a test that iterates over it covers what
/// is added without anyone remembering to.
fn untested_registries(tree: &Tree) -> Vec<TidyFinding> {
    let tests: Vec<&str> = tree.rust().map(SourceFile::tests).collect();
    let crates = tree.rust().filter(|file| file.path.starts_with("crates/"));
    let registries = crates.flat_map(|file| {
        let found = file.product().filter_map(|(number, line)| Some((number, registry(line)?)));
        found.map(move |(number, name)| (file.path, number, name))
    });
    let untested = registries.filter(|(_, _, name)| !tests.iter().any(|text| has_ident(text, name)));
    untested
        .map(|(path, number, name)| {
            TidyFinding::new(path, number, format!("no test walks over the registry {name}"))
        })
        .collect()
}

fn registry(line: &str) -> Option<&str> {
    let (name, kind) = line.trim_start().strip_prefix("pub const ")?.split_once(": &[")?;
    let kind = kind.trim_start_matches("&'static ");
    let path = kind.split([']', '<']).next()?.rsplit("::").next()?;
    let is_entry = path.starts_with(char::is_uppercase) && path != "String";
    (kind.starts_with('(') || is_entry).then_some(name)
}

/// A test asks for a program by `need!(tool "NAME")`, or names it as a string where it starts it; the gate installs those of the list.
fn unlisted_tools(tree: &Tree) -> Vec<TidyFinding> {
    let listed: BTreeSet<&str> = TOOLS.iter().map(|tool| tool.program).collect();
    let tests = || tree.rust().filter(|file| file.path.split('/').any(|part| part == "tests"));
    let mut findings = Vec::new();
    for file in tests() {
        let code = file.text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        for (index, line) in code {
            let asked = line.split("tool \"").skip(1).filter_map(|part| part.split('"').next());
            let unlisted = asked.filter(|tool| !listed.contains(tool));
            let message = |tool| format!("{tool} is not in {TOOL_LIST}");
            findings.extend(unlisted.map(|tool| TidyFinding::new(file.path, index + 1, message(tool))));
        }
    }
    let others = tree.rust().filter(|file| STARTED_BY.iter().any(|step| file.path.starts_with(step)));
    let users: Vec<SourceFile<'_>> = tests().chain(others).collect();
    let is_used = |tool: &str| users.iter().any(|file| file.text.contains(&format!("\"{tool}\"")));
    let unused = listed.into_iter().filter(|tool| !is_used(tool));
    findings.extend(unused.map(|tool| TidyFinding::new(TOOL_LIST, 0, format!("nothing uses {tool}"))));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = check_file(SourceFile { path, text });
        let messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, expected, "{path}");
    }

    #[test]
    fn required_attributes_are_checked() {
        let no_forbid = "no `#![forbid(unsafe_code)]`";
        check("crates/a/src/lib.rs", "//! Header.\n#![forbid(unsafe_code)]\n", &[]);
        check("crates/a/src/lib.rs", "//! Header.\n", &[no_forbid]);
        check("crates/a/src/main.rs", "//! Header.\n#![deny(unsafe_code)]\n", &[no_forbid]);
        check("crates/a/src/bin/b.rs", "//! Header.\n", &[no_forbid]);
        check("crates/sys/src/lib.rs", "//! Header.\n", &[]);
        check("crates/a/src/b.rs", "fn f() {}\n", &["no `//!` header that says what the module is for"]);
        let empty = "a module called utils says nothing of what is in it";
        check("crates/a/src/utils.rs", "//! Header.\n", &[empty]);
        let off = "//! Header.\nmod tests {\n    #[test]\n    #[ignore]\n    fn f() {}\n}\n";
        check("crates/a/src/b.rs", off, &["a test runs, or is not there"]);
        assert!(takes_lints("[package]\n[lints]\nworkspace = true\n"));
        assert!(!takes_lints("[package]\n") && !takes_lints("[lints]\n[dependencies]\nworkspace = true\n"));
    }

    #[test]
    fn files_and_unsafe_blocks_have_a_length() {
        let long = format!("//! Header.\n{}", "const A: u8 = 1;\n".repeat(FILE_LINES));
        let message = "1001 lines before the tests, allowed are 1000";
        check("crates/a/src/b.rs", &long, &[message]);
        check("crates/a/src/table/b.rs", &long, &[]);
        let tests = "//! Header.\n#[cfg(test)]\n".to_owned() + &long;
        check("crates/a/src/b.rs", &tests, &[]);
        check("crates/a/tests/b.rs", &long, &[]);
        let block = |lines: usize| {
            format!(
                "//! Header.\nfn f() {{\n    let a = unsafe {{\n{}    }};\n}}\n",
                "        g();\n".repeat(lines)
            )
        };
        check("crates/sys/src/b.rs", &block(5), &[]);
        check("crates/sys/src/b.rs", &block(6), &["unsafe block of 6 lines, allowed are 5"]);
    }

    #[test]
    fn phrases_are_replaced_in_texts_of_the_product_only() {
        let text = "//! What it tells.\nconst A: &str = \"a run was broken off\"; // Used up.\n";
        check("crates/a/src/b.rs", text, &["'broken off': write 'interrupted'"]);
        check("xtask/src/b.rs", text, &[]);
        check("crates/a/src/b.rs", "//! Header.\nconst A: &str = \"unbroken off-line\";\n", &[]);
    }

    #[test]
    fn words_are_whole() {
        for (line, word, expected) in [
            ("a /wo/rk/x", "/wo/", true),
            ("x = db.g!(1)", "db.g!", true),
            ("a_word", "word", false),
            ("words", "word", false),
            ("(word)", "word", true),
        ] {
            assert_eq!(has_word(line, word), expected, "{line}");
        }
    }

    #[test]
    fn registries_are_slices_of_entries() {
        assert_eq!(registry("pub const ALL: &[Engine] = &["), Some("ALL"));
        assert_eq!(registry("    pub const ALL: &[crate::Engine] ="), Some("ALL"));
        assert_eq!(registry("pub const ROWS: &[(&str, Option<u8>)] = &["), Some("ROWS"));
        assert_eq!(registry("pub const WORDS: &[&str] = &["), None);
        assert_eq!(registry("const ALL: &[Engine] = &["), None);
    }

    #[test]
    fn registries_have_tests_and_tools_are_listed() {
        let text = |text: &str| text.to_owned();
        let file = text("//! Header.\npub const ALL: &[Engine] = &[];\n");
        let texts =
            [(text("crates/a/src/b.rs"), file), (text("tests/suite/c.rs"), text("need!(tool \"nvme9\")"))];
        let mut tree = Tree { texts: texts.into(), paths: Vec::new() };
        assert_eq!(untested_registries(&tree).len(), 1);
        let missing = unlisted_tools(&tree).into_iter().find(|finding| finding.path == "tests/suite/c.rs");
        assert_eq!(missing.unwrap().message, "nvme9 is not in xtask/packages.txt");
        tree.texts.insert(text("crates/a/tests/d.rs"), text("for engine in ALL {}"));
        assert_eq!(untested_registries(&tree), []);
    }
}
