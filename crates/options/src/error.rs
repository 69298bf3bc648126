//! What can be wrong with a command line, a job file or the jobs they describe.
//!
//! The first words are fio's own wherever scripts look for them (`unrecognized option`, `Bad option`,
//! `failed parsing`); the remedy is apart, in [`OptionError::hint`].

use std::fmt;
use std::io;

/// Where in a job file something stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named; `-` for standard input.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line itself.
    pub text: String,
}

/// Longest piece of a line that is shown, in characters.
const SHOWN: usize = 100;

impl fmt::Display for Place {
    /// The line with a caret under the column; long lines are cut around it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column.max(1);
        let first = column.saturating_sub(SHOWN / 2).max(1);
        let shown: String = self.text.chars().skip(first - 1).take(SHOWN).map(printable).collect();
        let margin = self.line.to_string();
        write!(f, "  --> {}:{}:{}", self.file, self.line, column)?;
        write!(f, "\n  {margin} | {}", shown.trim_end())?;
        write!(f, "\n  {:width$} | {:>caret$}", "", "^", width = margin.len(), caret = column - first + 1)
    }
}

/// What was typed, without what a terminal would take for orders.
fn shown(text: &str) -> String {
    text.chars().map(printable).collect()
}

fn printable(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// Why a command line or job file was refused.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// A word of the command line is no option.
    #[error("fio: unrecognized option '{}'", shown(word))]
    Unrecognized {
        /// As typed.
        word: String,
        /// The nearest name, or why it is not known here.
        remedy: Option<String>,
    },
    /// A shortened option fits several.
    #[error("fio: option '{word}' is ambiguous; possibilities: {}", quoted(candidates))]
    Ambiguous {
        /// As typed.
        word: String,
        /// The options it fits.
        candidates: Vec<String>,
    },
    /// An option that needs a value has none.
    #[error("fio: option '{option}' requires an argument{}", at(place))]
    MissingValue {
        /// Its name.
        option: String,
        /// Where, in a job file.
        place: Option<Box<Place>>,
    },
    /// An option that takes no value was given one.
    #[error("fio: option '--{option}' doesn't allow an argument")]
    UnexpectedValue {
        /// Its name.
        option: String,
    },
    /// A line of a job file is no option.
    #[error("Bad option <{}>{}", shown(text), at(place))]
    BadOption {
        /// The line.
        text: String,
        /// What to do instead: the nearest name, or the engine it belongs to.
        remedy: Option<String>,
        /// Where.
        place: Option<Box<Place>>,
    },
    /// A value cannot be read or is out of range.
    #[error("fio: failed parsing {option}={value}: {reason}{}", at(place))]
    BadValue {
        /// The option, canonical.
        option: String,
        /// As typed.
        value: String,
        /// What is wrong with it.
        reason: String,
        /// Where, in a job file.
        place: Option<Box<Place>>,
    },
    /// fio has it and we do not.
    #[error("fio's option {option} is not supported yet{}", at(place))]
    NotSupported {
        /// The option, canonical.
        option: String,
        /// What to do instead.
        instead: String,
        /// Where, in a job file.
        place: Option<Box<Place>>,
    },
    /// No such engine.
    #[error("fio: engine {engine} not loadable: {reason}{}", at(place))]
    Engine {
        /// As typed.
        engine: String,
        /// Unknown, or known and not supported.
        reason: String,
        /// What to do instead.
        remedy: String,
        /// Where, in a job file.
        place: Option<Box<Place>>,
    },
    /// A job file cannot be read.
    #[error("fio: unable to open '{file}' job file")]
    OpenJobFile {
        /// As named.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A job file is not text, too large, or not made of sections and options.
    #[error("fio: job file {file}: {reason}{}", at(place))]
    JobFile {
        /// As named.
        file: String,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        remedy: String,
        /// Where.
        place: Option<Box<Place>>,
    },
    /// A job's options contradict each other or the machine.
    #[error("fio: job <{job}> {problem}")]
    Job {
        /// Its name.
        job: String,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// There is nothing to run.
    #[error("No job(s) defined")]
    NoJobs,
}

impl OptionError {
    /// What to do about it, where something can be done.
    pub fn hint(&self) -> Option<String> {
        match self {
            OptionError::Unrecognized { remedy, .. } | OptionError::BadOption { remedy, .. } => {
                remedy.clone()
            }
            OptionError::Ambiguous { .. } => Some("write the name in full".to_owned()),
            OptionError::MissingValue { option, .. } => Some(format!("write {option}=VALUE")),
            OptionError::UnexpectedValue { option } => Some(format!("write --{option} alone")),
            OptionError::BadValue { option, .. } => {
                let row = crate::doc::one_line(option);
                Some(row.unwrap_or_else(|| format!("--cmdhelp={option} describes it")))
            }
            OptionError::NotSupported { instead, .. } => (!instead.is_empty()).then(|| instead.clone()),
            OptionError::Engine { remedy, .. }
            | OptionError::JobFile { remedy, .. }
            | OptionError::Job { remedy, .. } => Some(remedy.clone()),
            OptionError::OpenJobFile { source, .. } => Some(match source.kind() {
                io::ErrorKind::NotFound => {
                    "words that are not options name job files: check the path".to_owned()
                }
                _ => source.to_string(),
            }),
            OptionError::NoJobs => {
                Some("start a job with --name=NAME, or name a job file that has a [section]".to_owned())
            }
        }
    }
}

fn at(place: &Option<Box<Place>>) -> String {
    place.as_ref().map(|place| format!("\n{place}")).unwrap_or_default()
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("'--{name}'")).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_show_the_line_and_a_caret() {
        let place = Place { file: "a.fio".into(), line: 12, column: 4, text: "rw=foo".into() };
        assert_eq!(place.to_string(), "  --> a.fio:12:4\n  12 | rw=foo\n     |    ^");
    }

    #[test]
    fn long_and_odd_lines_are_cut_around_the_caret() {
        let place = Place { file: "a".into(), line: 1, column: 300, text: "x\ty".repeat(200) };
        for line in place.to_string().lines() {
            assert!(line.chars().count() <= SHOWN + 10, "{line}");
        }
        let empty = Place { column: 9, ..Place::default() };
        assert!(empty.to_string().ends_with('^'));
    }
}
