//! A command line up to the cursor: which command it has come to, and what its last word may become. Pure but for the values
//! that are looked up.

use clap::Command;

use super::grammar::{Candidate, Grammar, OptionWord, Values};
use super::values::ValueKind;

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
    let mut place =
        LinePlace { command: &root, path: Vec::new(), grammar: Grammar::of(&[], &root), operands: 0 };
    let (mut pending, mut is_closed) = (None, false);
    for word in before {
        if pending.take().is_some() {
            continue;
        }
        if !is_closed && word == "--" {
            is_closed = true;
        } else if !is_closed && word.len() > 1 && word.starts_with('-') {
            pending = place.grammar.awaiting(word).cloned();
        } else {
            place.pass(word);
        }
    }
    let mut found = match (pending, current.split_once('=')) {
        (Some(option), _) => of_option(&option, "", current, lookup),
        (None, Some((name, value))) if !is_closed && name.starts_with("--") => {
            match place.grammar.named(&name[2..]) {
                Some(option) => of_option(option, &format!("{name}="), value, lookup),
                None => Completion::default(),
            }
        }
        (None, _) if !is_closed && current.starts_with('-') => place.options(current),
        (None, _) => place.words(current, lookup),
    };
    found.candidates.retain(|candidate| candidate.value.starts_with(current.as_str()));
    found
}

/// The command that a line has come to.
struct LinePlace<'a> {
    command: &'a Command,
    path: Vec<&'a str>,
    grammar: Grammar,
    operands: usize,
}

impl LinePlace<'_> {
    /// Goes past a word that is no option: to a command below, or to the next operand.
    fn pass(&mut self, word: &str) {
        match self.command.find_subcommand(word).filter(|_| self.operands == 0) {
            Some(command) => {
                self.path.push(command.get_name());
                self.command = command;
                self.grammar = Grammar::of(&self.path, command);
            }
            None => self.operands += 1,
        }
    }

    fn options(&self, current: &str) -> Completion {
        // fio's options are joined with their values.
        let joins = self.path == ["fio"];
        let long = |option: &OptionWord| {
            let end = if option.needs_equals || joins && option.values.is_some() { "=" } else { "" };
            Candidate::new(format!("--{}{end}", option.long), option.help.as_str())
        };
        let named = self.grammar.options.iter().filter(|option| !option.long.is_empty());
        let mut candidates: Vec<Candidate> = named.map(long).collect();
        if current == "-" && candidates.is_empty() {
            let short = |option: &OptionWord| {
                Some(Candidate::new(format!("-{}", option.short?), option.help.as_str()))
            };
            candidates.extend(self.grammar.options.iter().filter_map(short));
        }
        Completion { candidates, paths: false }
    }

    fn words(&self, current: &str, lookup: &dyn Lookup) -> Completion {
        let place = self.grammar.operands.get(self.operands).or(self.grammar.operands.last());
        let mut found = place.map(|values| of_values(values, current, lookup)).unwrap_or_default();
        if self.operands == 0 {
            found.candidates.splice(0..0, self.grammar.commands.iter().cloned());
        }
        found
    }
}

/// The values of an option behind `prefix`; of several the last one is completed.
fn of_option(option: &OptionWord, prefix: &str, current: &str, lookup: &dyn Lookup) -> Completion {
    let Some(values) = &option.values else { return Completion::default() };
    let last = option.delimiter.and_then(|delimiter| current.rfind(delimiter));
    let (kept, begun) = current.split_at(last.map_or(0, |at| at + 1));
    let mut found = of_values(values, begun, lookup);
    for candidate in &mut found.candidates {
        candidate.value = format!("{prefix}{kept}{}", candidate.value);
    }
    found
}

fn of_values(values: &Values, begun: &str, lookup: &dyn Lookup) -> Completion {
    match values {
        Values::Words(words) => Completion { candidates: words.clone(), paths: false },
        Values::Paths => Completion { candidates: Vec::new(), paths: true },
        Values::Known(kind) => lookup.values(*kind, begun),
        Values::Free => Completion::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(!completed("").0.contains(&super::super::NAME.to_owned()));
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
