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

/// A command line, a job file or a job that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{problem}{}", place.as_ref().map(|place| format!("\n{place}")).unwrap_or_default())]
pub struct OptionError {
    problem: String,
    /// The remedy, if there is one.
    hint: Option<String>,
    place: Option<Box<JobFilePosition>>,
    is_no_jobs: bool,
    /// The job file that cannot be opened, and why.
    file: String,
    source: Option<io::Error>,
}

impl OptionError {
    fn new(problem: String, hint: impl Into<Option<String>>) -> OptionError {
        let (file, source) = (String::new(), None);
        OptionError { problem, hint: hint.into(), place: None, is_no_jobs: false, file, source }
    }

    /// The same, at a place of a job file.
    pub(crate) fn at(self, place: Option<Box<JobFilePosition>>) -> OptionError {
        OptionError { place, ..self }
    }

    pub(crate) fn unrecognized(word: &str, remedy: Option<String>) -> OptionError {
        OptionError::new(format!("fio: unrecognized option '{word}'"), remedy)
    }

    /// A shortened word that begins several names.
    pub(crate) fn ambiguous(word: &str, candidates: &[&str]) -> OptionError {
        let names: Vec<String> = candidates.iter().map(|name| format!("'--{name}'")).collect();
        let problem = format!("fio: option '{word}' is ambiguous; possibilities: {}", names.join(" "));
        OptionError::new(problem, "write the name in full".to_owned())
    }

    pub(crate) fn missing_value(option: &str) -> OptionError {
        let problem = format!("fio: option '{option}' requires an argument");
        OptionError::new(problem, format!("write {option}=VALUE"))
    }

    pub(crate) fn unexpected_value(option: &str) -> OptionError {
        let problem = format!("fio: option '--{option}' doesn't allow an argument");
        OptionError::new(problem, format!("write --{option} alone"))
    }

    /// A word of a section that is no option.
    pub(crate) fn bad_option(text: &str, remedy: Option<String>) -> OptionError {
        OptionError::new(format!("Bad option <{text}>"), remedy)
    }

    pub(crate) fn bad_value(option: &str, value: &str, reason: &str) -> OptionError {
        let row = crate::doc::one_line(option);
        let hint = row.unwrap_or_else(|| format!("--cmdhelp={option} describes it"));
        OptionError::new(format!("fio: failed parsing {option}={value}: {reason}"), hint)
    }

    pub(crate) fn not_supported(option: &str, instead: &str) -> OptionError {
        let hint = (!instead.is_empty()).then(|| instead.to_owned());
        OptionError::new(format!("fio's option {option} is not supported yet"), hint)
    }

    pub(crate) fn engine(engine: &str, reason: &str, remedy: String) -> OptionError {
        OptionError::new(format!("fio: engine {engine} not loadable: {reason}"), remedy)
    }

    pub(crate) fn open_job_file(file: String, error: io::Error) -> OptionError {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => "words that are not options name job files: check the path".to_owned(),
            _ => crate::listed::without_number(&error),
        };
        let problem = format!("fio: unable to open '{file}' job file");
        OptionError { file, source: Some(error), ..OptionError::new(problem, hint) }
    }

    pub(crate) fn job_file(file: &str, reason: &str, remedy: &str) -> OptionError {
        OptionError::new(format!("fio: job file {file}: {reason}"), remedy.to_owned())
    }

    /// A job whose options do not fit together.
    pub fn job(job: &str, problem: &str, remedy: impl Into<String>) -> OptionError {
        OptionError::new(format!("fio: job <{job}> {problem}"), remedy.into())
    }

    pub fn no_jobs() -> OptionError {
        let hint = "start a job with --name=NAME, or name a job file that has a [section]".to_owned();
        OptionError { is_no_jobs: true, ..OptionError::new("No job(s) defined".to_owned(), hint) }
    }

    pub fn is_no_jobs(&self) -> bool {
        self.is_no_jobs
    }

    /// The name of the job file, if it is a directory.
    pub(crate) fn directory(&self) -> Option<&str> {
        let is_directory = self.source.as_ref()?.kind() == io::ErrorKind::IsADirectory;
        is_directory.then_some(&self.file)
    }

    /// Where the error is, if it is in a file.
    pub fn place(&self) -> Option<&JobFilePosition> {
        self.place.as_deref()
    }

    /// The remedy, if there is one.
    pub fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
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
            let error = OptionError::bad_option("a\nb", None).at(Some(Box::new(place)));
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
