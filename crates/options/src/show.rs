//! Options as a command line again, quoted for a shell, so that a run can be repeated by hand.

use std::borrow::Cow;

use crate::cli::Invocation;
use crate::section::Said;

/// `--name=value` for each pair, quoted; the name first, and the engine before its private options.
pub fn command_line(said: &Said) -> String {
    let mut pairs: Vec<&(String, String)> = said.iter().collect();
    pairs.sort_by_key(|(name, _)| match name.as_str() {
        "name" => 0,
        "ioengine" => 1,
        _ => 2,
    });
    let words: Vec<String> = pairs.into_iter().map(word).collect();
    words.join(" ")
}

/// The whole invocation as one fio command line: what was said for all jobs, then each job.
pub fn show_command(invocation: &Invocation) -> String {
    let mut words = vec!["fio".to_owned(), command_line(&invocation.global_said)];
    for section in &invocation.sections {
        let mut said = section.said.clone();
        said.retain(|(name, _)| name != "name");
        // Files are named after the section, so its name stands, and a later file waits for those before.
        said.insert(0, ("name".to_owned(), section.name.clone()));
        if section.starts_file && !said.iter().any(|(name, _)| name == "stonewall") {
            said.push(("stonewall".to_owned(), String::new()));
        }
        words.push(command_line(&said));
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn word((name, value): &(String, String)) -> String {
    if value.is_empty() { format!("--{name}") } else { format!("--{name}={}", shell_quoted(value)) }
}

/// `text` as one word of a POSIX shell.
pub fn shell_quoted(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:,=+%@-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Section;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (text, expected) in [
            ("4k", "4k"),
            ("/dev/disk/by-id/x:y", "/dev/disk/by-id/x:y"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("~/x", "'~/x'"),
            ("", "''"),
        ] {
            assert_eq!(shell_quoted(text), expected);
        }
    }

    #[test]
    fn a_section_prints_the_command_that_says_the_same() {
        let pairs = [("rw", "randread"), ("blocksize", "4k"), ("time_based", ""), ("ioengine", "libaio")];
        let section = Section::from_pairs("lat-read", &pairs, &[]).unwrap();
        assert_eq!(
            section.command_line(),
            "fio --name=lat-read --ioengine=libaio --rw=randread --bs=4k --time_based"
        );
    }
}
