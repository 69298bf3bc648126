//! Errors of command lines, job files and the jobs that they define.
//!
//! Messages begin with fio's words where scripts look for them (`unrecognized option`, `Bad option`, `failed parsing`);
//! the remedy is separate, in [`OptionError::hint`]. Input is quoted unchanged and escaped when it is printed, except
//! in a [`JobFilePosition`], which has several lines and escapes its text itself.

use std::fmt;
use std::io;

use fathom_model::text::shown;

/// A position in a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilePosition {
    /// The file as given; `-` for standard input.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line itself.
    pub text: String,
}

/// Longest part of a line that is shown, in characters.
const SHOWN: usize = 100;

impl fmt::Display for JobFilePosition {
    /// Three lines without hidden characters: the position, the line, and a caret under the column; long lines are cut
    /// around the column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column.max(1);
        let first = column.saturating_sub(SHOWN / 2).max(1);
        let piece = |length: usize| -> String {
            let chars = self.text.chars().skip(first - 1).take(length);
            chars.map(|c| if c == '\t' { ' ' } else { c }).collect()
        };
        let (line, before) = (piece(SHOWN), piece(column - first));
        // The column may be past the end of the line.
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
    /// A word of the command line is not an option.
    #[error("fio: unrecognized option '{word}'")]
    Unrecognized {
        /// As typed.
        word: String,
        /// The closest name, or why the option is not known here.
        remedy: Option<String>,
    },
    /// A shortened option is ambiguous.
    #[error("fio: option '{word}' is ambiguous; possibilities: {}", quoted(candidates))]
    Ambiguous {
        /// As typed.
        word: String,
        /// The options with this prefix.
        candidates: Vec<String>,
    },
    /// A required value is missing.
    #[error("fio: option '{option}' requires an argument{}", at(place))]
    MissingValue {
        /// Its name.
        option: String,
        /// Its position in a job file.
        place: Option<Box<JobFilePosition>>,
    },
    /// An option without a value has one.
    #[error("fio: option '--{option}' doesn't allow an argument")]
    UnexpectedValue {
        /// Its name.
        option: String,
    },
    /// A line of a job file is not an option.
    #[error("Bad option <{text}>{}", at(place))]
    BadOption {
        /// The line.
        text: String,
        /// The remedy: the closest name, or the engine of the option.
        remedy: Option<String>,
        /// Its position.
        place: Option<Box<JobFilePosition>>,
    },
    /// A value is invalid or out of range.
    #[error("fio: failed parsing {option}={value}: {reason}{}", at(place))]
    BadValue {
        /// The option, canonical.
        option: String,
        /// As typed.
        value: String,
        /// The reason.
        reason: String,
        /// Its position in a job file.
        place: Option<Box<JobFilePosition>>,
    },
    /// An option of fio that is not supported.
    #[error("fio's option {option} is not supported yet{}", at(place))]
    NotSupported {
        /// The option, canonical.
        option: String,
        /// The remedy.
        instead: String,
        /// Its position in a job file.
        place: Option<Box<JobFilePosition>>,
    },
    /// No such engine.
    #[error("fio: engine {engine} not loadable: {reason}{}", at(place))]
    Engine {
        /// As typed.
        engine: String,
        /// Unknown, or known and not supported.
        reason: String,
        /// The remedy.
        remedy: String,
        /// Its position in a job file.
        place: Option<Box<JobFilePosition>>,
    },
    /// A job file cannot be read.
    #[error("fio: unable to open '{file}' job file")]
    OpenJobFile {
        /// As given.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// A job file is not text, is too large, or does not consist of sections and options.
    #[error("fio: job file {file}: {reason}{}", at(place))]
    JobFile {
        /// As given.
        file: String,
        /// The reason.
        reason: String,
        /// The remedy.
        remedy: String,
        /// Its position.
        place: Option<Box<JobFilePosition>>,
    },
    /// A job's options contradict each other or the machine.
    #[error("fio: job <{job}> {problem}")]
    Job {
        /// Its name.
        job: String,
        /// The reason.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// There is no job.
    #[error("No job(s) defined")]
    NoJobs,
}

impl OptionError {
    /// The position in a job file, with which the message ends.
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

    /// The remedy, if there is one.
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
                _ => crate::listed::without_number(source),
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
        fn positions_are_three_lines_without_hidden_characters(file in ".{0,9}\\PC?", text in "(?s:.{0,150})", column in 0..200usize) {
            let place = JobFilePosition { file, line: 7, column, text };
            let shown = place.to_string();
            prop_assert_eq!(shown.matches('\n').count(), 2, "{}", shown);
            prop_assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{:?}", shown);
            // The message and the lines after it are separable.
            let error = OptionError::BadOption { text: "a\nb".into(), remedy: None, place: Some(Box::new(place)) };
            prop_assert_eq!(error.to_string(), format!("Bad option <a\nb>\n{}", shown));
        }
    }

    #[test]
    fn positions_show_the_line_and_a_caret() {
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
