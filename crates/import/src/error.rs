//! Why a text could not be imported.

/// A text that could not be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", at(*line))]
pub struct ImportError {
    /// Line of the text, from 1; 0 where it is about the whole.
    pub line: u64,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

fn at(line: u64) -> String {
    if line > 0 { format!("line {line}: ") } else { String::new() }
}

impl ImportError {
    pub(crate) fn new(line: u64, problem: impl Into<String>, hint: impl Into<String>) -> ImportError {
        ImportError { line, problem: problem.into(), hint: hint.into() }
    }

    /// A text of no known format.
    pub(crate) fn unknown(text: &str) -> ImportError {
        let problem = match text.trim().is_empty() {
            true => "the source is empty",
            false => "the source has no figures of a known format",
        };
        ImportError::new(
            u64::from(!text.trim().is_empty()),
            problem,
            "import fathom records, the output of fio, ioping, dd, sysbench, a disk tester or iostat, or a page with tables \
             whose heads name units",
        )
    }
}
