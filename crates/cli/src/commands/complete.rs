//! `fathom __complete WORD...`: what may stand in the place of the last word, for the scripts of `fathom completions`.
//!
//! The scripts know no option: they pass on the words up to the cursor and offer what is printed here, so that volume types, runs
//! and tags complete like options. First a line with directives for the script (`paths`: file names fit as well; `nospace`: the
//! word goes on), then two lines for each candidate: the whole word, and its meaning, which may be empty. Nothing is an error: a
//! command line is judged when it is complete.

mod line;
mod values;

use std::ffi::OsString;

use fathom_model::text::is_hidden;

use self::line::{Completion, complete};
use self::values::Sources;
use crate::exit::Exit;
use crate::output;

/// The word that calls it.
pub const NAME: &str = "__complete";

/// Candidates printed at most.
const MOST: usize = 500;

/// Completes the last of `words`, as they stand on a command line behind the program's name.
pub fn run(words: &[OsString]) -> Exit {
    let words: Vec<String> = words.iter().map(|word| unquoted(&word.to_string_lossy())).collect();
    let mut found = complete(super::command(), &words, &Sources::new(&words));
    // A name with such characters would be printed, and inserted, as another one.
    found.candidates.retain(|candidate| !candidate.value.chars().any(is_hidden));
    let _ = output::print(|out| {
        let mut out = out.verbatim();
        writeln!(out, "{}", directives(&found))?;
        found.candidates.iter().take(MOST).try_for_each(|candidate| {
            writeln!(out, "{}", candidate.value)?;
            writeln!(out, "{}", candidate.help)
        })
    });
    Exit::Done
}

fn directives(found: &Completion) -> String {
    let goes_on = |value: &str| value.ends_with(['=', '?', ':', '.', '&']);
    let continues = !found.candidates.is_empty() && found.candidates.iter().all(|one| goes_on(&one.value));
    let words = [(found.paths, "paths"), (continues, "nospace")];
    words.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

/// A word as the shell would pass it, without its quotes; one that is still open may lack the second.
fn unquoted(word: &str) -> String {
    let mut plain = String::new();
    let mut quote = None;
    let mut letters = word.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None | Some('"'), '\\') => plain.extend(letters.next()),
            _ => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::line::Candidate;
    use super::*;

    #[test]
    fn quotes_are_taken_off_as_a_shell_does() {
        let check = |word: &str, expected: &str| assert_eq!(unquoted(word), expected, "{word}");
        check("plain", "plain");
        check("'sim:aws-gp2?size=50GiB'", "sim:aws-gp2?size=50GiB");
        check("'sim:aws", "sim:aws");
        check("\"a\\\"b\"c", "a\"bc");
        check("a\\ b", "a b");
        check("'a\\b'", "a\\b");
        check("--x=\"a", "--x=a");
        check("\\", "");
    }

    #[test]
    fn directives_tell_whether_the_word_goes_on() {
        let found = |values: &[&str], paths| Completion {
            candidates: values.iter().map(|value| Candidate::new(*value, "")).collect(),
            paths,
        };
        assert_eq!(directives(&found(&["--size="], false)), "nospace");
        assert_eq!(directives(&found(&["sim:"], true)), "paths nospace");
        assert_eq!(directives(&found(&["a", "b="], false)), "");
        assert_eq!(directives(&found(&[], true)), "paths");
    }
}
