//! Options pasted from a web page or a word processor, where dashes, quotes and blanks have become typographical ones.

use crate::engines::{self, EngineRow};
use crate::table;

/// Dashes and minus signs that stand for `-` or `--`.
const DASHES: [char; 6] = ['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}'];
/// Blanks that no shell separates words at.
const BLANKS: [char; 3] = ['\u{a0}', '\u{2007}', '\u{202f}'];
/// Characters without a width.
const INVISIBLE: [char; 3] = ['\u{200b}', '\u{2060}', '\u{feff}'];
/// Double and single quotes, opening and closing.
const QUOTES: [char; 8] =
    ['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];

/// Command-line words as they were meant, and a note for each that was read otherwise than it stands there.
pub(crate) fn meant(args: &[String], engines: &[EngineRow]) -> (Vec<String>, Vec<String>) {
    // An option ends a value whose quote nothing has closed.
    let is_closed = |rest: &[String]| {
        let words = rest.iter().take_while(|word| !is_known_option(word, engines));
        words.map(|word| word.trim_end_matches(is_unseen)).any(|word| word.ends_with(QUOTES))
    };
    let (mut words, mut notes) = (Vec::new(), Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut written = arg.clone();
        // The shell has split what such quotes enclose.
        while opens_only(&written) && is_closed(rest.as_slice()) {
            let Some(next) = rest.next() else { break };
            written = format!("{written} {next}");
        }
        let read = options(&written);
        if read != [arg.as_str()] {
            let quoted: Vec<String> = read.iter().map(|word| format!("'{word}'")).collect();
            notes.push(as_meant(&format!("'{written}'"), &quoted.join(" ")));
        }
        words.extend(read);
    }
    (words, notes)
}

/// A value of a job file as it was meant.
pub(crate) fn meant_value(value: &str) -> &str {
    stripped(value, |c| BLANKS.contains(&c))
}

/// The name of a section as it was meant: the name that `--name=` with the same text gives.
pub(crate) fn meant_name(name: &str) -> String {
    stripped(&name.replace(BLANKS, " "), char::is_whitespace).to_owned()
}

/// The note that `written` is read as `meant`.
pub(crate) fn as_meant(written: &str, meant: &str) -> String {
    format!("note: {written} is read as {meant}: it has characters of a web page")
}

/// An opening quote begins the value, and none closes it.
fn opens_only(word: &str) -> bool {
    let option = word.split_once('=').filter(|_| word.starts_with(is_dash));
    let value = option.map_or(word, |(_, value)| value).trim_matches(is_unseen);
    value.starts_with(QUOTES) && !(value.chars().count() > 1 && value.ends_with(QUOTES))
}

/// One of the options of jobs or engines, with or without a value.
fn is_known_option(word: &str, engines: &[EngineRow]) -> bool {
    let body = word.trim_start_matches(is_dash);
    let name = body.split_once('=').map_or(body, |(name, _)| name);
    let of_engine = |engine| engines::find_option(engine, name).is_some();
    body.len() < word.len() && (table::find(name).is_some() || engines.iter().any(of_engine))
}

fn is_unseen(c: char) -> bool {
    BLANKS.contains(&c) || INVISIBLE.contains(&c)
}

fn is_dash(c: char) -> bool {
    c == '-' || DASHES.contains(&c)
}

/// The options in a word: a blank before a dash separates two. Others are part of a value, as in the name of a file. A word
/// without a dash is a value too, or the name of a job file.
fn options(word: &str) -> Vec<String> {
    if !word.trim_start_matches(INVISIBLE).starts_with(is_dash) {
        return vec![meant_value(word).to_owned()];
    }
    let after_blanks = word.match_indices(BLANKS).map(|(at, blank)| at + blank.len());
    let starts = after_blanks.filter(|at| word[*at..].starts_with(is_dash));
    let (mut parts, mut start) = (Vec::new(), 0);
    for end in starts.chain([word.len()]) {
        parts.push(option(&word[start..end]));
        start = end;
    }
    parts
}

fn option(word: &str) -> String {
    let word = word.trim_matches(is_unseen);
    let name = word.trim_start_matches(is_dash);
    let dashes = &word[..word.len() - name.len()];
    let is_pasted = dashes.contains(DASHES) && name.starts_with(|c: char| c.is_ascii_alphabetic());
    let dashes = if is_pasted { "--" } else { dashes };
    match name.split_once('=') {
        Some((name, value)) => format!("{dashes}{name}={}", meant_value(value)),
        None => format!("{dashes}{name}"),
    }
}

/// A value without the blanks, invisible characters and quotes around it, however often they are nested: to read the result again
/// changes nothing.
fn stripped(value: &str, is_blank: fn(char) -> bool) -> &str {
    let mut rest = value;
    loop {
        let trimmed = rest.trim_matches(|c| is_blank(c) || INVISIBLE.contains(&c));
        let inner = trimmed.strip_prefix(QUOTES).and_then(|inner| inner.strip_suffix(QUOTES));
        match inner {
            Some(inner) => rest = inner,
            None => return trimmed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> (Vec<String>, usize) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let (meant, notes) = meant(&words, &[]);
        (meant, notes.len())
    }

    #[test]
    fn dashes_quotes_and_blanks_of_a_web_page_are_read_as_meant() {
        for (words, expected) in [
            (
                &["\u{2013}name=a", "\u{2014}direct=1", "\u{2212}-rw=read"][..],
                &["--name=a", "--direct=1", "--rw=read"][..],
            ),
            (&["\u{2013}\u{2013}name=a"], &["--name=a"]),
            (&["--name=\u{201c}a\u{201d}", "--rw=\u{2018}read\u{2019}"], &["--name=a", "--rw=read"]),
            (&["--name=\u{201c}my", "job\u{201d}", "--bs=4k"], &["--name=my job", "--bs=4k"]),
            (&["--name", "\u{a0}\u{201c}my", "job\u{201d}\u{a0}"], &["--name", "my job"]),
            (&["\u{201c}my", "job.fio\u{201d}"], &["my job.fio"]),
            (&["--exec_prerun=\u{201c}rm", "--force", "a\u{201d}"], &["--exec_prerun=rm --force a"]),
            (&["--name=a\u{a0}--bs=4k\u{a0}\u{2013}direct=1"], &["--name=a", "--bs=4k", "--direct=1"]),
            (&["--name=a\u{202f}\u{a0}--direct\u{a0}\u{200b}"], &["--name=a", "--direct"]),
            (&["\u{200b}--name=a\u{feff}"], &["--name=a"]),
            (&["--name=\u{feff}\u{201c}\u{201c}a\u{201d}\u{201d}"], &["--name=a"]),
        ] {
            let (meant, notes) = read(words);
            assert_eq!(meant, expected);
            assert!(notes > 0, "{words:?}");
        }
    }

    #[test]
    fn names_of_sections_are_read_as_on_a_command_line() {
        for (name, expected) in [
            ("a\u{feff}", "a"),
            ("\u{201c}my job\u{201d}", "my job"),
            ("\u{201c}\u{200b}\u{2018}a\u{2019}\u{201d}", "a"),
            ("a\u{a0}-b", "a -b"),
            ("a\u{200b}b", "a\u{200b}b"),
            ("\u{feff}", ""),
        ] {
            let name = meant_name(name);
            assert_eq!(name, expected);
            let words = [format!("--name={name}")];
            assert_eq!(meant(&words, &[]).0, words);
        }
    }

    #[test]
    fn other_words_stay_as_they_are() {
        for word in [
            "--name=a",
            "-",
            "\u{2013}",
            "--",
            "--bs=4k,8k",
            "--filename=/mnt/a\u{a0}b",
            "--filename=/mnt/3.41\u{202f}PM\u{2007}\u{a0}\u{a0}c",
            "--name=\u{201c}",
            "\u{2013}5",
            "job\u{2013}file.fio",
        ] {
            assert_eq!(read(&[word]), (vec![word.to_owned()], 0), "{word}");
        }
    }

    #[test]
    fn a_quote_that_nothing_closes_takes_no_other_option() {
        for words in [
            ["--filename=\u{201c}a", "--size=1m", "--description=b\u{201d}"],
            ["--filename=\u{201c}", "--time_based", "--description=\u{201d}"],
        ] {
            assert_eq!(read(&words), (words.map(str::to_owned).to_vec(), 0));
        }
    }

    #[test]
    fn values_of_job_files_lose_their_quotes() {
        assert_eq!(meant_value("\u{201c}a b\u{201d}"), "a b");
        assert_eq!(meant_value("\u{a0}4k\u{200b}"), "4k");
        assert_eq!(meant_value("\u{201c}\u{200b}\u{2018}a\u{2019}\u{201d}"), "a");
        assert_eq!(meant_value("4k"), "4k");
    }
}
