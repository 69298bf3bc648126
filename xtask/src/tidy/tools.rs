//! The programs that tests, the instruction counts and the fuzz targets use and the list that the gate installs are the same.

use std::collections::BTreeSet;

use super::TidyFinding;
use super::tree::RustFile;
use crate::packages::TOOLS;

const LIST: &str = "xtask/src/packages.rs";
/// Where the gate itself starts a program of the list.
const STEPS: [&str; 2] = ["xtask/src/instructions", "xtask/src/fuzz"];

/// Compares the two. A test asks for a program by `need!(tool "NAME")`, or names it as a string where it starts it.
pub fn check(files: &[RustFile]) -> Vec<TidyFinding> {
    let listed: BTreeSet<&str> = TOOLS.iter().map(|tool| tool.program).collect();
    let tests = || files.iter().filter(|file| file.path.split('/').any(|part| part == "tests"));
    let mut findings = Vec::new();
    for file in tests() {
        let unlisted = asked_for(&file.text).into_iter().filter(|(_, tool)| !listed.contains(tool.as_str()));
        findings.extend(
            unlisted
                .map(|(line, tool)| TidyFinding::new(&file.path, line, format!("{tool} is not in {LIST}"))),
        );
    }
    let users: Vec<&RustFile> = tests()
        .chain(files.iter().filter(|file| STEPS.iter().any(|step| file.path.starts_with(step))))
        .collect();
    let unused =
        listed.iter().filter(|tool| !users.iter().any(|file| file.text.contains(&format!("\"{tool}\""))));
    findings.extend(unused.map(|tool| TidyFinding::new(LIST, 0, format!("nothing uses {tool}"))));
    findings
}

/// The names in `tool "NAME"`, with their lines.
fn asked_for(text: &str) -> Vec<(usize, String)> {
    let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.flat_map(|(index, line)| {
        let parts = line.split("tool \"").skip(1);
        parts.filter_map(move |part| Some((index + 1, part.split('"').next()?.to_owned())))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_both_lists_are_reported() {
        let all: String =
            TOOLS.iter().map(|tool| format!("need!(root, tool \"{}\");\n", tool.program)).collect();
        let found = |text: &str| {
            let text = format!("fn f() {{\n{text}}}\n");
            let file = RustFile::parse("tests/suite/a.rs", &text).expect("the test's source parses");
            check(&[file]).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(found(&all), [""; 0]);
        assert_eq!(
            found(&format!("need!(tool \"sl\");\n{all}")),
            ["tests/suite/a.rs:2: sl is not in xtask/src/packages.rs"]
        );
        let without_fio = all.replace("need!(root, tool \"fio\");\n", "");
        assert_eq!(found(&without_fio), ["xtask/src/packages.rs: nothing uses fio"]);
    }
}
