//! What may stand behind a command: subcommands, options and operands, from clap's description of it, or from the tables of the
//! two commands whose command lines are those of other programs.

use clap::builder::ValueHint;
use clap::{Arg, Command};
use fathom_options::{OptionSummary, command_summaries, job_summaries};

use super::values::{ValueKind, value_kind};
use crate::commands::ping;

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

/// The values of an option or operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// These words.
    Words(Vec<Candidate>),
    /// Names of files.
    Paths,
    /// What is looked up.
    Known(ValueKind),
    /// Anything.
    Free,
}

/// An option.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionWord {
    /// Its long name without dashes; empty where it has none.
    pub long: String,
    /// Its letter.
    pub short: Option<char>,
    /// What it does.
    pub help: String,
    /// Its values; `None` where it takes none.
    pub values: Option<Values>,
    /// Several values are separated by this.
    pub delimiter: Option<char>,
    /// The value is behind `=` or left out.
    pub needs_equals: bool,
}

/// What may stand behind a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grammar {
    /// Commands below it.
    pub commands: Vec<Candidate>,
    /// Its options.
    pub options: Vec<OptionWord>,
    /// Its operands by place; the last may be repeated.
    pub operands: Vec<Values>,
}

impl Grammar {
    /// That of `command`, which the words `path` lead to.
    pub fn of(path: &[&str], command: &Command) -> Grammar {
        match path {
            ["fio", ..] => Grammar::of_fio(),
            ["ping", ..] => Grammar::of_ping(),
            _ => Grammar::of_clap(path, command),
        }
    }

    fn of_clap(path: &[&str], command: &Command) -> Grammar {
        let visible = |arg: &&Arg| !arg.is_hide_set();
        let help = |text: Option<&clap::builder::StyledStr>| first_line(text.map(ToString::to_string));
        let commands = command.get_subcommands().filter(|one| !one.is_hide_set());
        let named = command.get_arguments().filter(visible).filter(|arg| !arg.is_positional());
        let option = |arg: &Arg| OptionWord {
            long: arg.get_long().unwrap_or_default().to_owned(),
            short: arg.get_short(),
            help: help(arg.get_help()),
            values: arg.get_action().takes_values().then(|| values(path, arg)),
            delimiter: arg.get_value_delimiter(),
            needs_equals: arg.is_require_equals_set(),
        };
        Grammar {
            commands: commands.map(|one| Candidate::new(one.get_name(), help(one.get_about()))).collect(),
            options: named.map(option).collect(),
            operands: command.get_positionals().map(|arg| values(path, arg)).collect(),
        }
    }

    fn of_fio() -> Grammar {
        let word = |row: OptionSummary| OptionWord {
            long: row.name.to_owned(),
            short: None,
            help: row.doc.to_owned(),
            values: (!row.value.is_empty()).then(|| match (value_kind(&["fio"], row.name), row.words) {
                (Some(kind), _) => kind,
                (None, []) => Values::Free,
                (None, words) => Values::Words(words.iter().map(|word| Candidate::new(*word, "")).collect()),
            }),
            delimiter: None,
            needs_equals: false,
        };
        let jobs = job_summaries().flat_map(|(_, rows)| rows);
        let options = command_summaries().chain(jobs).map(word).collect();
        Grammar { options, operands: vec![Values::Paths], ..Grammar::default() }
    }

    fn of_ping() -> Grammar {
        let word = |row: ping::PingOption| OptionWord {
            long: row.long.to_owned(),
            short: row.short,
            help: row.help.to_owned(),
            values: (row.takes == ping::ValueUse::Value)
                .then(|| value_kind(&["ping"], row.long).unwrap_or(Values::Free)),
            delimiter: None,
            needs_equals: false,
        };
        Grammar {
            options: ping::own_options().into_iter().map(word).collect(),
            operands: vec![Values::Known(ValueKind::Target)],
            ..Grammar::default()
        }
    }

    /// The option that `word` is, with or without a value of its own, if the next word is its value.
    pub fn awaiting(&self, word: &str) -> Option<&OptionWord> {
        let option = match word.strip_prefix("--") {
            Some(long) => self.options.iter().find(|option| option.long == long)?,
            None => self.awaiting_letter(word.strip_prefix('-')?)?,
        };
        (option.values.is_some() && !option.needs_equals).then_some(option)
    }

    /// The last of the letters, if it takes a value that is not glued on.
    fn awaiting_letter(&self, letters: &str) -> Option<&OptionWord> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            let option = self.options.iter().find(|option| option.short == Some(letter))?;
            if option.values.is_some() {
                return rest.as_str().is_empty().then_some(option);
            }
        }
        None
    }

    /// The option called `long`.
    pub fn named(&self, long: &str) -> Option<&OptionWord> {
        self.options.iter().find(|option| option.long == long)
    }
}

fn first_line(text: Option<String>) -> String {
    text.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// The values of an argument that takes some.
fn values(path: &[&str], arg: &Arg) -> Values {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let help =
            |value: &clap::builder::PossibleValue| first_line(value.get_help().map(ToString::to_string));
        return Values::Words(
            possible.iter().map(|value| Candidate::new(value.get_name(), help(value))).collect(),
        );
    }
    if let Some(kind) = value_kind(path, arg.get_id().as_str()) {
        return kind;
    }
    match arg.get_value_hint() {
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath | ValueHint::ExecutablePath => {
            Values::Paths
        }
        _ => Values::Free,
    }
}
