//! Words that are left over from work in progress, and paths of the machines it was done on.

use super::TidyFinding;

/// Leftovers. Written in halves, so that this table does not find itself.
const LEFTOVERS: &[(&str, &str)] = &[
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X"),
    ("db", "g!"),
    ("to", "do!"),
    ("unimple", "mented!"),
    ("HA", "CK"),
];
/// Directories of developers' machines.
const MACHINE_PATHS: &[(&str, &str)] = &[("/wo", "rk/"), ("/tmp/", "brief"), ("/ro", "ot/.cargo")];

/// Looks for each of them in one text.
pub fn check(path: &str, text: &str) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (first, second) in LEFTOVERS {
            let word = format!("{first}{second}");
            if has_word(line, &word) {
                findings.push(TidyFinding::new(path, index + 1, format!("leftover word {word}")));
            }
        }
        for (first, second) in MACHINE_PATHS {
            let prefix = format!("{first}{second}");
            if has_word(line, &prefix) {
                findings.push(TidyFinding::new(path, index + 1, format!("a path of one machine: {prefix}")));
            }
        }
    }
    findings
}

/// True where `word` stands in `line` with no letter, digit or underscore directly before or, for words that end in a
/// letter, after it.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let ends_in_letter = word.ends_with(is_part);
    line.match_indices(word).any(|(at, _)| {
        let starts_inside = line[..at].ends_with(is_part);
        let goes_on = ends_in_letter && line[at + word.len()..].starts_with(is_part);
        !starts_inside && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_found() {
        let check =
            |line: &str, word: &str, expected| assert_eq!(has_word(line, word), expected, "{word} in {line}");
        check("// XYZ: later", "XYZ", true);
        check("mktemp /tmp/fXYZ", "XYZ", false);
        check("XYZA", "XYZ", false);
        check("a XYZ_b", "XYZ", false);
        check("(abc!(x))", "abc!", true);
        check("xabc!(x)", "abc!", false);
        check("in \"/dir/file\"", "/dir/", true);
        check("my/dir/file", "/dir/", false);
    }

    #[test]
    fn each_leftover_and_machine_path_is_reported_with_its_line() {
        for (first, second) in LEFTOVERS.iter().chain(MACHINE_PATHS) {
            let text = format!("fine\n{first}{second}\n");
            let found = super::check("a.rs", &text);
            assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2], "{text}");
        }
        assert_eq!(super::check("a.rs", "nothing of the kind\n"), []);
    }
}
