//! Why an assessment could not be made.

use std::io;
use std::path::{Path, PathBuf};

use fathom_catalog::CatalogError;
use fathom_model::Nanos;
use fathom_model::text::{defused, shown};
use fathom_model::units::{bytes, duration};
use fathom_observed::LoadError;
use fathom_options::{JobFilePosition, OptionError};
use fathom_runner::RunError;
use fathom_sys::files::InputError;

/// An assessment that could not begin or go on. The failure of a single test is a result, not one of these.
#[derive(Debug, thiserror::Error)]
pub enum AssessError {
    /// No suite, profile or engine of this name.
    #[error("unknown {kind} '{name}'")]
    Unknown {
        /// `suite`, `profile` or `engine`.
        kind: &'static str,
        /// As typed.
        name: String,
        /// The names that exist.
        hint: String,
    },
    /// A file that was named cannot be read.
    #[error("{0}")]
    Input(#[from] InputError),
    /// A suite file is not TOML, or has other fields than a suite.
    #[error("suite {suite}: {}", toml_text(source))]
    MalformedSuite {
        /// Its name or path.
        suite: String,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
    /// Something in a suite makes no sense.
    #[error("suite {suite}: {}{field}: {reason}", test.as_ref().map(|test| format!("test '{test}': ")).unwrap_or_default())]
    Suite {
        /// Its name or path.
        suite: String,
        /// The test.
        test: Option<String>,
        /// The field.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A test of a suite has an option that fio would refuse.
    #[error("suite {suite}: test '{test}': {source}")]
    SuiteOption {
        /// Its name or path.
        suite: String,
        /// The test.
        test: String,
        /// The grammar's own account.
        source: Box<OptionError>,
    },
    /// `--only` names a test that the suite has not.
    #[error("suite {suite} has no test '{id}'")]
    UnknownTest {
        /// The suite.
        suite: String,
        /// As typed.
        id: String,
        /// Those it has.
        known: Vec<String>,
    },
    /// The target is nothing that can be measured.
    #[error("{}: {reason}", path.display())]
    Target {
        /// As typed.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// What is asked of a volume makes no sense.
    #[error("{reason}")]
    Need {
        /// Why.
        reason: String,
        /// What to say instead.
        hint: String,
    },
    /// An entry of the user's own catalogue cannot be.
    #[error("{0}")]
    Catalogue(#[from] CatalogError),
    /// A simulated volume that cannot be.
    #[error("{target}: {reason}")]
    Simulated {
        /// As typed.
        target: String,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A job file that fio would refuse.
    #[error("{name}: {source}")]
    JobFile {
        /// Its name.
        name: String,
        /// The grammar's own account.
        source: Box<OptionError>,
    },
    /// An observed load that cannot be read or used.
    #[error("{name}{}", load_place(error))]
    ObservedLoad {
        /// The name of its file.
        name: String,
        /// What is wrong with it, and where.
        error: Box<LoadError>,
    },
    /// A price list or imported prices that cannot be used.
    #[error("{name}: {problem}")]
    Prices {
        /// The name of the file, and the line where there is one.
        name: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// A twin that cannot be read, stored or made.
    #[error("twin {name}: {problem}")]
    Twin {
        /// Its name as typed.
        name: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// An expectation that is not valid, or names something unknown.
    #[error("{given}: {reason}")]
    Expectation {
        /// As typed.
        given: String,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The size asked for can never be used.
    #[error("{} is too small for the tests", bytes(*size))]
    TooSmall {
        /// Bytes.
        size: u64,
    },
    /// The time for rounds is over before enough of them can agree.
    #[error("{rounds} rounds of {} exceed the budget of {}", duration(*round), duration(*budget))]
    Budget {
        /// What was asked for.
        budget: Nanos,
        /// One round.
        round: Nanos,
        /// Rounds that have to agree.
        rounds: u32,
    },
    /// Settings of a bench that contradict each other.
    #[error("{reason}")]
    Contradiction {
        /// Which, and why.
        reason: String,
        /// What to do instead.
        hint: String,
    },
    /// The options of a test contradict each other or the machine.
    #[error("{0}")]
    Options(#[source] OptionError),
    /// The working file could not be made, or nothing could be prepared.
    #[error("{0}")]
    Run(#[source] RunError),
}

impl AssessError {
    /// A target that cannot be used, with a remedy.
    pub(crate) fn target(path: &Path, reason: impl Into<String>, hint: impl Into<String>) -> AssessError {
        AssessError::Target { path: path.to_owned(), reason: reason.into(), hint: Some(hint.into()) }
    }

    /// No `kind` is called `name`; `known` are the names, `more` what else may be given.
    pub(crate) fn unknown<'a>(
        kind: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str>,
        more: &str,
    ) -> AssessError {
        let known: Vec<&str> = known.collect();
        AssessError::Unknown {
            kind,
            name: name.to_owned(),
            hint: format!("use one of {}{more}", known.join(", ")),
        }
    }

    /// What to do about it, where something can be done.
    pub fn hint(&self) -> Option<String> {
        match self {
            AssessError::Input(error) => Some(error.hint()),
            AssessError::Unknown { hint, .. }
            | AssessError::Prices { hint, .. }
            | AssessError::Twin { hint, .. }
            | AssessError::Need { hint, .. }
            | AssessError::Contradiction { hint, .. } => Some(hint.clone()),
            AssessError::Catalogue(error) => error.hint().map(str::to_owned),
            AssessError::MalformedSuite { .. } | AssessError::Suite { .. } => {
                Some("see the suites in the source of the program (suites/*.toml) for the format".to_owned())
            }
            AssessError::SuiteOption { source, .. } | AssessError::JobFile { source, .. } => source.hint(),
            AssessError::ObservedLoad { error, .. } => Some(error.hint.clone()),
            AssessError::UnknownTest { known, .. } => Some(format!("use one of {}", known.join(", "))),
            AssessError::Target { hint, .. }
            | AssessError::Simulated { hint, .. }
            | AssessError::Expectation { hint, .. } => hint.clone(),
            AssessError::TooSmall { .. } => Some("use at least --size 16m".to_owned()),
            AssessError::Budget { round, rounds, .. } => {
                let least = duration(Nanos(round.0 * u64::from(*rounds)));
                Some(format!("use a budget of at least {least}, or shorter rounds"))
            }
            AssessError::Options(source) => source.hint(),
            AssessError::Run(source) => source.hint(),
        }
    }

    /// The lines of a file that the message ends with, after an end of line. They hide nothing, as nothing else of an error can
    /// be said to.
    pub fn excerpt(&self) -> Option<String> {
        match self {
            AssessError::SuiteOption { source, .. } | AssessError::JobFile { source, .. } => {
                source.place().map(JobFilePosition::to_string)
            }
            AssessError::Options(source) => source.place().map(JobFilePosition::to_string),
            AssessError::MalformedSuite { source, .. } => {
                toml_text(source).split_once('\n').map(|(_, lines)| lines.to_owned())
            }
            _ => None,
        }
    }

    /// True where the command line, or a file that it names, is wrong: a matter of usage, not of the run.
    pub fn is_usage(&self) -> bool {
        !matches!(self, AssessError::Target { .. } | AssessError::Options(_) | AssessError::Run(_))
    }
}

/// What is wrong with an observed load behind its name: `:LINE: FIELD: PROBLEM`.
fn load_place(LoadError { line, field, problem, .. }: &LoadError) -> String {
    let line = if *line > 0 { format!(":{line}") } else { String::new() };
    let field = if field.is_empty() { String::new() } else { format!(" {field}:") };
    format!("{line}:{field} {problem}")
}

/// What is wrong with a file, where, and the line itself; each line hides nothing.
fn toml_text(error: &toml::de::Error) -> String {
    // What is wrong may quote a name, which may have an end of line in it.
    let text = error.to_string().replacen(error.message(), &shown(error.message()), 1);
    let lines: Vec<_> = text.trim_end().lines().map(defused).collect();
    lines.join("\n")
}

/// The system's answer without its number, which means nothing to a user.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
