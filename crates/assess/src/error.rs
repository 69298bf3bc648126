//! Why an assessment could not be made: a sentence, what to do about it, and how the program ends. The failure of a single test
//! is a result, not one of these.

use std::io;
use std::path::Path;

use fathom_catalog::CatalogError;
use fathom_engine::EngineError;
use fathom_model::text::{defused, shown};
use fathom_options::{JobFilePosition, OptionError};
use fathom_runner::RunError;
use fathom_sys::files::InputError;

/// A command that could not begin or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", excerpt.as_ref().map(|lines| format!("\n{lines}")).unwrap_or_default())]
pub struct AssessError {
    /// What it concerns, and what is wrong with it, on one line.
    pub message: String,
    /// The lines of a file that it concerns. They hide nothing, as nothing else of an error can be said to.
    pub excerpt: Option<String>,
    /// What to do about it, where something can be done.
    pub hint: Option<String>,
    /// How the program ends.
    pub kind: ErrorKind,
}

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line, or a file that it names, is wrong.
    Usage,
    /// The target cannot be used.
    Preparation,
    /// The run itself failed.
    Run,
    /// It was asked to end before it had begun.
    Stopped,
    /// Other ranks of its job did not come.
    Lost,
}

impl AssessError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, hint: Option<String>) -> AssessError {
        AssessError { message: message.into(), excerpt: None, hint, kind }
    }

    /// The command line, or a file that it names, is wrong.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> AssessError {
        AssessError::new(ErrorKind::Usage, message, Some(hint.into()))
    }

    pub(crate) fn preparation(message: impl Into<String>, hint: impl Into<String>) -> AssessError {
        AssessError::new(ErrorKind::Preparation, message, Some(hint.into()))
    }

    pub(crate) fn run(message: impl Into<String>, hint: Option<String>) -> AssessError {
        AssessError::new(ErrorKind::Run, message, hint)
    }

    /// A target that cannot be used, with a remedy.
    pub(crate) fn target(path: &Path, reason: impl Into<String>, hint: impl Into<String>) -> AssessError {
        AssessError::preparation(format!("{}: {}", path.display(), reason.into()), hint)
    }

    /// No `kind` is called `name`; `known` are the names, `more` what else may be given.
    pub(crate) fn unknown<'a>(
        kind: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str>,
        more: &str,
    ) -> AssessError {
        let known: Vec<&str> = known.collect();
        AssessError::usage(
            format!("unknown {kind} '{name}'"),
            format!("use one of {}{more}", known.join(", ")),
        )
    }

    /// A size that can never be used.
    pub(crate) fn too_small(size: u64) -> AssessError {
        let message = format!("{} is too small for the tests", fathom_model::units::bytes(size));
        AssessError::usage(message, "use at least --size 16m")
    }

    /// Options in the file `name` that fio would refuse.
    pub(crate) fn options_in(name: &str, error: &OptionError) -> AssessError {
        let text = AssessError::from(error);
        AssessError { message: format!("{name}: {}", text.message), kind: ErrorKind::Usage, ..text }
    }

    /// A file of a suite that is not TOML, or has other fields than a suite.
    pub(crate) fn malformed(suite: &str, error: &toml::de::Error) -> AssessError {
        // What is wrong may quote a name, which may have an end of line in it.
        let text = error.to_string().replacen(error.message(), &shown(error.message()), 1);
        let mut lines = text.trim_end().lines().map(defused);
        let message = format!("suite {suite}: {}", lines.next().unwrap_or_default());
        let lines: Vec<_> = lines.collect();
        let excerpt = Some(lines.join("\n")).filter(|lines| !lines.is_empty());
        AssessError { excerpt, ..AssessError::usage(message, SUITE_FORMAT) }
    }

    /// The reason without the path of its target, which stands elsewhere.
    pub(crate) fn reason(&self, path: &Path) -> &str {
        self.message.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&self.message)
    }
}

/// Where the format of suites is to be seen.
pub(crate) const SUITE_FORMAT: &str =
    "see the suites in the source of the program (suites/*.toml) for the format";

impl From<InputError> for AssessError {
    fn from(error: InputError) -> AssessError {
        AssessError::usage(error.to_string(), error.hint())
    }
}

impl From<CatalogError> for AssessError {
    fn from(error: CatalogError) -> AssessError {
        AssessError::new(ErrorKind::Usage, error.to_string(), error.hint().map(str::to_owned))
    }
}

/// Options of a test that contradict each other or the machine.
impl From<&OptionError> for AssessError {
    fn from(error: &OptionError) -> AssessError {
        let (text, excerpt) = (error.to_string(), error.place().map(JobFilePosition::to_string));
        let ending = excerpt.as_ref().map(|lines| format!("\n{lines}")).unwrap_or_default();
        let message = text.strip_suffix(&ending).unwrap_or(&text);
        AssessError { excerpt, ..AssessError::new(ErrorKind::Preparation, message, error.hint()) }
    }
}

impl From<OptionError> for AssessError {
    fn from(error: OptionError) -> AssessError {
        AssessError::from(&error)
    }
}

impl From<RunError> for AssessError {
    fn from(error: RunError) -> AssessError {
        match &error {
            RunError::Stopped { reason } => {
                let message = format!(
                    "interrupted by {reason} during file layout: nothing was measured, the test file was removed"
                );
                AssessError::new(ErrorKind::Stopped, message, None)
            }
            other => AssessError::run(other.to_string(), other.hint()),
        }
    }
}

impl From<EngineError> for AssessError {
    fn from(error: EngineError) -> AssessError {
        AssessError::run(error.to_string(), error.hint().map(str::to_owned))
    }
}

/// The system's answer without its number, which means nothing to a user.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
