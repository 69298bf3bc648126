//! What can be wrong with a command line, a job file or the jobs they describe.
//!
//! The first words are fio's own wherever scripts look for them (`unrecognized option`, `Bad option`,
//! `failed parsing`); the remedy is apart, in [`OptionError::hint`]. What was typed is quoted as it came; who prints it makes it
//! fit for a terminal, but for a [`JobFilePosition`], which is several lines and sees to that itself.

use std::fmt;
use std::io;

use fathom_model::text::shown;

/// Where in a job file something stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilePosition {
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

impl fmt::Display for JobFilePosition {
    /// Three lines that hide nothing: where it is, the line, and a caret under the column; long lines are cut around it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column.max(1);
        let first = column.saturating_sub(SHOWN / 2).max(1);
        let piece = |length: usize| -> String {
            let chars = self.text.chars().skip(first - 1).take(length);
            chars.map(|c| if c == '\t' { ' ' } else { c }).collect()
        };
        let (line, before) = (piece(SHOWN), piece(column - first));
        // A column may lie behind the end of the line.
        let behind = column - first - before.chars().count();
        let caret = shown(&before).chars().count() + behind + 1;
        let margin = self.line.to_string();
        write!(f, "  --> {}:{}:{}", shown(&self.file), self.line, column)?;
        write!(f, "\n  {margin} | {}", shown(line.trim_end()))?;
        write!(f, "\n  {:width$} | {:>caret$}", "", "^", width = margin.len())
    }
}

/// Why a command line or job file was refused.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// A word of the command line is no option.
    #[error("fio: unrecognized option '{word}'")]
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
        place: Option<Box<JobFilePosition>>,
    },
    /// An option that takes no value was given one.
    #[error("fio: option '--{option}' doesn't allow an argument")]
    UnexpectedValue {
        /// Its name.
        option: String,
    },
    /// A line of a job file is no option.
    #[error("Bad option <{text}>{}", at(place))]
    BadOption {
        /// The line.
        text: String,
        /// What to do instead: the nearest name, or the engine it belongs to.
        remedy: Option<String>,
        /// Where.
        place: Option<Box<JobFilePosition>>,
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
        place: Option<Box<JobFilePosition>>,
    },
    /// fio has it and we do not.
    #[error("fio's option {option} is not supported yet{}", at(place))]
    NotSupported {
        /// The option, canonical.
        option: String,
        /// What to do instead.
        instead: String,
        /// Where, in a job file.
        place: Option<Box<JobFilePosition>>,
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
        place: Option<Box<JobFilePosition>>,
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
        place: Option<Box<JobFilePosition>>,
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
    /// Where in a job file it is, which is what the message ends with.
    pub fn place(&self) -> Option<&JobFilePosition> {
        match self {
            OptionError::MissingValue { place, .. }
            | OptionError::BadOption { place, .. }
            | OptionError::BadValue { place, .. }
            | OptionError::NotSupported { place, .. }
            | OptionError::Engine { place, .. }
            | OptionError::JobFile { place, .. } => place.as_deref(),
            OptionError::Unrecognized { .. }
            | OptionError::Ambiguous { .. }
            | OptionError::UnexpectedValue { .. }
            | OptionError::OpenJobFile { .. }
            | OptionError::Job { .. }
            | OptionError::NoJobs => None,
        }
    }

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

fn at(place: &Option<Box<JobFilePosition>>) -> String {
    place.as_ref().map(|place| format!("\n{place}")).unwrap_or_default()
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("'--{name}'")).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use fathom_model::text::is_hidden;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_are_three_lines_that_hide_nothing(file in ".{0,9}\\PC?", text in "(?s:.{0,150})", column in 0..200usize) {
            let place = JobFilePosition { file, line: 7, column, text };
            let shown = place.to_string();
            prop_assert_eq!(shown.matches('\n').count(), 2, "{}", shown);
            prop_assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{:?}", shown);
            // Which is how a message is told from the lines behind it.
            let error = OptionError::BadOption { text: "a\nb".into(), remedy: None, place: Some(Box::new(place)) };
            prop_assert_eq!(error.to_string(), format!("Bad option <a\nb>\n{}", shown));
        }
    }

    #[test]
    fn places_show_the_line_and_a_caret() {
        let place = JobFilePosition { file: "a.fio".into(), line: 12, column: 4, text: "rw=foo".into() };
        assert_eq!(place.to_string(), "  --> a.fio:12:4\n  12 | rw=foo\n     |    ^");
    }

    #[test]
    fn long_and_odd_lines_are_cut_around_the_caret() {
        let place = JobFilePosition { file: "a".into(), line: 1, column: 300, text: "x\ty".repeat(200) };
        for line in place.to_string().lines() {
            assert!(line.chars().count() <= SHOWN + 10, "{line}");
        }
        let empty = JobFilePosition { column: 9, ..JobFilePosition::default() };
        assert!(empty.to_string().ends_with('^'));
        let odd =
            JobFilePosition { file: "a\nb".into(), line: 1, column: 3, text: "\x1bcx=\u{202e}1".into() };
        assert_eq!(odd.to_string(), "  --> a\\x0ab:1:3\n  1 | \\x1bcx=\\u{202e}1\n    |      ^");
    }
}
