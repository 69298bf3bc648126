//! How runs are named on the command line of `fathom history`: by number, or from the newest back.

use std::str::FromStr;

use fathom_history::{Filter, History, RunId};

use crate::exit::Complaint;

/// A run as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunName {
    /// By its number.
    Number(RunId),
    /// So many before the newest.
    Newest(usize),
}

impl FromStr for RunName {
    type Err = String;

    fn from_str(text: &str) -> Result<RunName, String> {
        let before = match text.strip_prefix("last") {
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix('~').and_then(|count| count.parse().ok()),
            None => return text.parse().map(RunName::Number).map_err(|_| refusal()),
        };
        before.map(RunName::Newest).ok_or_else(refusal)
    }
}

fn refusal() -> String {
    "expected a run number, as shown by `fathom history list`, or last, last~1, ...".to_owned()
}

impl RunName {
    /// The number of the run.
    ///
    /// # Errors
    /// The history cannot be read, or has fewer runs.
    pub fn id(self, history: &History) -> Result<RunId, Complaint> {
        let before = match self {
            RunName::Number(run) => return Ok(run),
            RunName::Newest(before) => before,
        };
        let filter = Filter { newest: Some(before.saturating_add(1)), ..Filter::default() };
        let listing = history.list(&filter)?;
        let row = listing.rows.first().filter(|_| listing.rows.len() > before);
        row.map(|row| RunId(row.id as i64)).ok_or_else(|| {
            let count = listing.rows.len();
            let runs = if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
            Complaint::failed(format!("the history has no run last~{before}: it has {runs}"), None)
        })
    }

    /// The numbers of several runs.
    ///
    /// # Errors
    /// Those of [`RunName::id`].
    pub fn ids(names: &[RunName], history: &History) -> Result<Vec<RunId>, Complaint> {
        names.iter().map(|name| name.id(history)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_by_number_or_from_the_newest_back() {
        let check = |text: &str, expected| assert_eq!(text.parse().ok(), expected, "{text}");
        check("17", Some(RunName::Number(RunId(17))));
        check("last", Some(RunName::Newest(0)));
        check("last~2", Some(RunName::Newest(2)));
        for text in ["last~", "last~x", "last2", "lasting", "", "last~-1"] {
            check(text, None);
        }
    }
}
