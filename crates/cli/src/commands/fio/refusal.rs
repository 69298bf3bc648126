//! Why a command line of fio is not run.

use std::io;

use fathom_assess::AssessError;
use fathom_options::OptionError;
use fathom_runner::RunError;

use crate::exit::without_excerpt;
use crate::output;

/// Why nothing is run.
pub(super) struct FioRefusal {
    pub message: String,
    /// The lines of a job file that it is about.
    pub excerpt: Option<String>,
    pub hint: Option<String>,
}

impl FioRefusal {
    pub fn new(message: String, hint: Option<String>) -> FioRefusal {
        FioRefusal { message, excerpt: None, hint }
    }
}

impl From<OptionError> for FioRefusal {
    fn from(error: OptionError) -> FioRefusal {
        let excerpt = error.place().map(ToString::to_string);
        let (message, excerpt) = without_excerpt(error.to_string(), excerpt);
        FioRefusal { message, excerpt, hint: error.hint() }
    }
}

impl From<AssessError> for FioRefusal {
    fn from(error: AssessError) -> FioRefusal {
        let (message, excerpt) = without_excerpt(format!("fio: {error}"), error.excerpt());
        FioRefusal { message, excerpt, hint: error.hint() }
    }
}

impl From<RunError> for FioRefusal {
    fn from(error: RunError) -> FioRefusal {
        FioRefusal::new(format!("fio: {error}"), error.hint())
    }
}

impl From<io::Error> for FioRefusal {
    fn from(error: io::Error) -> FioRefusal {
        FioRefusal::new(format!("fio: cannot write to standard output: {}", output::plain(&error)), None)
    }
}
