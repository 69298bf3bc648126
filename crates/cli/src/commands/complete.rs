//! `fathom __complete WORD...`: what may stand in the place of the last word, for the scripts of `fathom completions`.
//!
//! The scripts know no option: they pass on the words up to the cursor and offer what is printed here, so that volume types, runs
//! and tags complete like options. First a line with directives for the script (`paths`: file names fit as well; `nospace`: the
//! word goes on), then two lines for each candidate: the whole word, and its meaning, which may be empty. Nothing is an error: a
//! command line is judged when it is complete.
//!
//! A line is read by clap's description of the commands. clap_complete's own reader of lines is unstable, and offers options where operands
//! are meant.

mod values;

use std::ffi::OsString;

use clap::builder::{StyledStr, ValueHint};
use clap::{Arg, Command};
use fathom_model::text::is_hidden;

use crate::exit::Exit;
use crate::output;
use values::{Sources, ValueKind, value_kind};

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

/// A word that fits, and what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The whole word.
    pub value: String,
    /// One line; may be empty.
    pub help: String,
}

impl Candidate {
    /// A word and its meaning.
    pub fn new(value: impl Into<String>, help: impl Into<String>) -> Candidate {
        Candidate { value: value.into(), help: help.into() }
    }
}

/// What the last word may become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Whole words with the last one as their beginning.
    pub candidates: Vec<Candidate>,
    /// Names of files fit as well.
    pub paths: bool,
}

/// Where values are looked up.
pub trait Lookup {
    /// The values of `kind` that may become `begun`.
    fn values(&self, kind: ValueKind, begun: &str) -> Completion;
}

/// Completes the last of `words`, which stand behind the name of the program that `root` describes.
pub fn complete(mut root: Command, words: &[String], lookup: &dyn Lookup) -> Completion {
    root.build();
    let Some((current, before)) = words.split_last() else { return Completion::default() };
    let mut place = LinePlace { command: &root, path: Vec::new(), operands: 0, lookup };
    let (mut pending, mut is_closed) = (None, false);
    for word in before {
        if pending.take().is_some() {
            continue;
        }
        if !is_closed && word == "--" {
            is_closed = true;
        } else if !is_closed && word.len() > 1 && word.starts_with('-') {
            pending = awaiting(place.command, word);
        } else {
            place.pass(word);
        }
    }
    let mut found = match (pending, current.split_once('=')) {
        (Some(option), _) => place.value(option, "", current),
        (None, Some((name, value))) if !is_closed && name.starts_with("--") => {
            match options(place.command).find(|option| option.get_long() == Some(&name[2..])) {
                Some(option) => place.value(option, &format!("{name}="), value),
                None => Completion::default(),
            }
        }
        (None, _) if !is_closed && current.starts_with('-') => place.options(current),
        (None, _) => place.words(current),
    };
    found.candidates.retain(|candidate| candidate.value.starts_with(current.as_str()));
    found
}

/// The options of a command that are shown.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional())
}

/// The commands below one that are shown.
pub fn commands_of(command: &Command) -> Vec<Candidate> {
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    shown.map(|one| Candidate::new(one.get_name(), first_line(one.get_about()))).collect()
}

/// The option that `word` is, if the next word is its value.
fn awaiting<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let option = match word.strip_prefix("--") {
        Some(long) => options(command).find(|option| option.get_long() == Some(long))?,
        None => {
            // Of letters in one word the first that takes a value has the rest of the word, or else the next word.
            let letters = word.strip_prefix('-')?;
            let named = |letter| options(command).find(|option| option.get_short() == Some(letter));
            let at =
                letters.find(|letter| named(letter).is_none_or(|one| one.get_action().takes_values()))?;
            let mut rest = letters[at..].chars();
            named(rest.next()?).filter(|_| rest.as_str().is_empty())?
        }
    };
    let is_optional = option.get_num_args().is_some_and(|range| range.min_values() == 0);
    (option.get_action().takes_values() && !is_optional).then_some(option)
}

fn first_line(text: Option<&StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// The command that a line has come to.
struct LinePlace<'a> {
    command: &'a Command,
    path: Vec<&'a str>,
    operands: usize,
    lookup: &'a dyn Lookup,
}

impl LinePlace<'_> {
    /// Goes past a word that is no option: to a command below, or to the next operand.
    fn pass(&mut self, word: &str) {
        match self.command.find_subcommand(word).filter(|_| self.operands == 0) {
            Some(command) => {
                self.path.push(command.get_name());
                self.command = command;
            }
            None => self.operands += 1,
        }
    }

    fn options(&self, current: &str) -> Completion {
        let long = |option: &Arg| {
            let end = if option.is_require_equals_set() { "=" } else { "" };
            Some(Candidate::new(format!("--{}{end}", option.get_long()?), first_line(option.get_help())))
        };
        let mut candidates: Vec<Candidate> = options(self.command).filter_map(long).collect();
        if current == "-" && candidates.is_empty() {
            let short = |option: &Arg| {
                Some(Candidate::new(format!("-{}", option.get_short()?), first_line(option.get_help())))
            };
            candidates.extend(options(self.command).filter_map(short));
        }
        Completion { candidates, paths: false }
    }

    fn words(&self, current: &str) -> Completion {
        let operands: Vec<&Arg> = self.command.get_positionals().collect();
        let place = operands.get(self.operands).or(operands.last());
        let mut found = place.map(|arg| self.values(arg, current)).unwrap_or_default();
        if self.operands == 0 {
            found.candidates.splice(0..0, commands_of(self.command));
        }
        found
    }

    /// The values of an option behind `prefix`; of several the last one is completed.
    fn value(&self, option: &Arg, prefix: &str, current: &str) -> Completion {
        if !option.get_action().takes_values() {
            return Completion::default();
        }
        let last = option.get_value_delimiter().and_then(|delimiter| current.rfind(delimiter));
        let (kept, begun) = current.split_at(last.map_or(0, |at| at + 1));
        let mut found = self.values(option, begun);
        for candidate in &mut found.candidates {
            candidate.value = format!("{prefix}{kept}{}", candidate.value);
        }
        found
    }

    /// What may stand for an argument: its own words, else what is looked up, else files where they are meant.
    fn values(&self, arg: &Arg, begun: &str) -> Completion {
        let possible = arg.get_possible_values();
        let known = value_kind(&self.path, arg.get_id().as_str());
        match known {
            _ if !possible.is_empty() => {
                let word = |value: &clap::builder::PossibleValue| {
                    Candidate::new(value.get_name(), first_line(value.get_help()))
                };
                Completion { candidates: possible.iter().map(word).collect(), paths: false }
            }
            Some(ValueKind::File) => Completion { candidates: Vec::new(), paths: true },
            Some(kind) => self.lookup.values(kind, begun),
            None => {
                use ValueHint::{AnyPath, DirPath, ExecutablePath, FilePath};
                let paths = matches!(arg.get_value_hint(), AnyPath | FilePath | DirPath | ExecutablePath);
                Completion { candidates: Vec::new(), paths }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Candidate;
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

    /// Answers with the kind itself.
    struct NamedKind;

    impl Lookup for NamedKind {
        fn values(&self, kind: ValueKind, begun: &str) -> Completion {
            let value = format!("{begun}<{kind:?}>");
            Completion { candidates: vec![Candidate::new(value, "")], paths: kind == ValueKind::Target }
        }
    }

    fn completed(line: &str) -> (Vec<String>, bool) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let found = complete(crate::commands::command(), &words, &NamedKind);
        (found.candidates.into_iter().map(|candidate| candidate.value).collect(), found.paths)
    }

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        assert_eq!(completed(line).0, expected, "{line}");
    }

    #[test]
    fn commands_and_their_commands_complete() {
        check("ben", &["bench"]);
        check("catalog s", &["show"]);
        check("history t", &["trend", "tag"]);
        check("nonsense x", &[]);
        assert!(completed("").0.contains(&"doctor".to_owned()));
        assert!(!completed("").0.contains(&crate::commands::complete::NAME.to_owned()));
    }

    #[test]
    fn options_complete_with_their_values_joined_or_apart() {
        check("bench --sui", &["--suite"]);
        check("bench --suite s", &["s<Suite>"]);
        check("bench --suite=s", &["--suite=s<Suite>"]);
        check("bench --only rand-read,l", &["rand-read,l<Test>"]);
        check("surface --only transfer,b", &["transfer,burst"]);
        check("bench --suite standard --quick --engine i", &["i<Engine>"]);
        check("bench --size 1", &[]);
        check("bench --no-such=x", &[]);
        check("prepare --precond", &["--precondition="]);
        assert_eq!(completed("bench --destroy-data /d"), (Vec::new(), true));
        assert_eq!(completed("bench --expect-file=/d"), (Vec::new(), true));
    }

    #[test]
    fn operands_complete_by_their_place() {
        assert_eq!(completed("bench /m"), (vec!["/m<Target>".to_owned()], true));
        check("bench -- --x", &["--x<Target>"]);
        check("history show 1", &["1<Run>"]);
        check("history tag a 1 2", &["2<Run>"]);
        check("history tag b", &["b<Tag>"]);
        check("compare last~1 l", &["l<Source>"]);
        check("simulate aws", &["aws<VolumeType>"]);
        check("history --history h.db show 1", &["1<Run>"]);
    }

    #[test]
    fn the_grammars_of_fio_and_ioping_complete_like_others() {
        assert!(completed("fio --iodep").0.contains(&"--iodepth=".to_owned()));
        assert!(completed("fio --rw=randr").0.contains(&"--rw=randread".to_owned()));
        check("fio --ioengine=li", &["--ioengine=li<Engine>"]);
        assert_eq!(completed("fio jobs"), (Vec::new(), true));
        check("ping --engi", &["--engine"]);
        check("ping -c 5 --engine p", &["p<Engine>"]);
        check("ping -c 5 /d", &["/d<Target>"]);
        check("ping -c5 /d", &["/d<Target>"]);
    }
}
