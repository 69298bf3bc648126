//! Errors that nobody distinguishes but by their exit code: a sentence, and what to do about it.

use fathom_engine::EngineError;

use crate::AssessError;

/// A command that could not begin or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The problem.
    pub message: String,
    /// What to do about it, where something can be done.
    pub hint: Option<String>,
    /// How the program ends.
    pub kind: FailureKind,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The command line asked for what is not to be had.
    Usage,
    /// The target cannot be prepared.
    Preparation,
    /// The run itself failed.
    Run,
    /// It was asked to end before it had begun.
    Stopped,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: Some(hint.into()), kind: FailureKind::Usage }
    }

    pub(crate) fn preparation(message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Preparation, ..Failure::usage(message, hint) }
    }

    pub(crate) fn run(message: impl Into<String>, hint: Option<String>) -> Failure {
        Failure { message: message.into(), hint, kind: FailureKind::Run }
    }

    pub(crate) fn of(kind: FailureKind, error: &AssessError) -> Failure {
        Failure { message: error.to_string(), hint: error.hint(), kind }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Failure::run(error.to_string(), error.hint().map(str::to_owned))
    }
}
