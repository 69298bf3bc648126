//! Exit codes, one per outcome, and how failures are reported.

use std::process::ExitCode;

use fathom_assess::{AssessError, ErrorKind};
use fathom_options::OptionError;
use fathom_runner::RunError;

use crate::output;

/// The outcome of the program for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything succeeded.
    Done,
    /// The run failed.
    Failed,
    /// The command line or a file that it names is not valid.
    Usage,
    /// A criterion is missed, or a comparison differs.
    Missed,
    /// With `--strict`: no criterion is missed, and one is inconclusive.
    Inconclusive,
    /// Some of what should be there is missing, and the rest is reported (EX_TEMPFAIL of sysexits.h).
    Partial,
    /// Interrupted by a signal.
    Interrupted,
    /// The code of the ranks of a job that a launcher started.
    Ranks(u8),
    /// ioping's own code.
    Ioping(u8),
    /// fio's own: a parse or set-up error.
    FioSetup,
    /// fio's own: so many jobs failed.
    FioJobs(usize),
    /// fio's own: interrupted by a signal.
    FioInterrupted,
}

impl Exit {
    /// The number that the shell sees.
    pub fn number(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed | Exit::FioSetup => 1,
            Exit::Usage => 2,
            Exit::Missed => 3,
            Exit::Inconclusive => 4,
            Exit::Partial => 75,
            Exit::Interrupted => 130,
            Exit::Ioping(code) | Exit::Ranks(code) => code,
            // Above 127 a shell reads a signal, and 256 would read as success.
            Exit::FioJobs(count) => count.min(127) as u8,
            Exit::FioInterrupted => 128,
        }
    }

    /// The exit of a command that has checked criteria and would otherwise end like this.
    pub fn with_criteria(self, is_missed: bool, is_inconclusive: bool) -> Exit {
        match self {
            Exit::Done if is_missed => Exit::Missed,
            Exit::Done if is_inconclusive => Exit::Inconclusive,
            other => other,
        }
    }

    /// The exit of a command of several runs, one of which was interrupted or has failed.
    pub const fn of_runs(is_interrupted: bool, has_failed: bool) -> Exit {
        match (is_interrupted, has_failed) {
            (true, _) => Exit::Interrupted,
            (false, true) => Exit::Failed,
            (false, false) => Exit::Done,
        }
    }

    /// The code for `main` to return.
    pub fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}

/// A failure to report to the user.
#[derive(Debug)]
pub struct Complaint {
    /// What was attempted on what, and what went wrong.
    pub message: String,
    /// The lines of a file that it concerns, if any, printed in full.
    pub excerpt: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// How the program ends.
    pub exit: Exit,
}

impl Complaint {
    /// A failure of the run.
    pub fn failed(message: impl Into<String>, hint: Option<String>) -> Complaint {
        Complaint { message: message.into(), excerpt: None, hint, exit: Exit::Failed }
    }

    /// An error on the command line.
    pub fn usage(message: impl Into<String>, hint: Option<String>) -> Complaint {
        Complaint { exit: Exit::Usage, ..Complaint::failed(message, hint) }
    }

    /// Writes it to standard error and returns the exit.
    pub fn report(self) -> Exit {
        output::warn(&format!("error: {}", self.message));
        if let Some(excerpt) = &self.excerpt {
            let _ = output::warn_by(|out| out.own_lines(excerpt));
        }
        if let Some(hint) = &self.hint {
            output::warn(&format!("hint: {hint}"));
        }
        self.exit
    }
}

impl From<AssessError> for Complaint {
    fn from(AssessError { message, excerpt, hint, kind }: AssessError) -> Complaint {
        let exit = match kind {
            ErrorKind::Usage => Exit::Usage,
            ErrorKind::Stopped => Exit::Interrupted,
            ErrorKind::Preparation | ErrorKind::Run | ErrorKind::Lost => Exit::Failed,
        };
        Complaint { message, excerpt, hint, exit }
    }
}

impl From<OptionError> for Complaint {
    fn from(error: OptionError) -> Complaint {
        AssessError::from(error).into()
    }
}

impl From<RunError> for Complaint {
    fn from(error: RunError) -> Complaint {
        Complaint::failed(error.to_string(), error.hint())
    }
}

impl From<fathom_history::Error> for Complaint {
    fn from(error: fathom_history::Error) -> Complaint {
        Complaint::failed(with_causes(&error), error.hint())
    }
}

/// What went wrong and why, on one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        message.push_str(&format!(": {source}"));
        cause = source.source();
    }
    message
}

impl From<std::io::Error> for Complaint {
    fn from(error: std::io::Error) -> Complaint {
        Complaint::failed(format!("cannot write to standard output: {}", output::plain(&error)), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_number() {
        for (exit, number) in [
            (Exit::Done, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::Missed, 3),
            (Exit::Inconclusive, 4),
            (Exit::Partial, 75),
            (Exit::Interrupted, 130),
            (Exit::Ranks(3), 3),
            (Exit::Ioping(4), 4),
            (Exit::FioSetup, 1),
            (Exit::FioJobs(0), 0),
            (Exit::FioJobs(2), 2),
            (Exit::FioJobs(256), 127),
            (Exit::FioInterrupted, 128),
        ] {
            assert_eq!(exit.number(), number, "{exit:?}");
        }
    }

    #[test]
    fn errors_keep_their_kind() {
        let unknown = fathom_assess::Suite::load("x", &[]).unwrap_err();
        let usage = Complaint::from(unknown);
        assert_eq!(usage.exit, Exit::Usage);
        assert!(usage.hint.is_some_and(|hint| hint.starts_with("use one of standard")));
        let stopped = AssessError::from(RunError::Stopped { reason: "signal 2".to_owned() });
        assert_eq!(Complaint::from(stopped).exit, Exit::Interrupted);
    }
}
