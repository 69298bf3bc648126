//! What readers may change: tags, notes, and whether a run is kept. The functions are those of `fathom history`.

use fathom_history::{History, PATIENCE, RunId};
use fathom_report::html::site::{FormValues, run_path};
use fathom_sys::clock::unix_ms;
use hyper::StatusCode;

use super::places::HistoryServer;
use super::reply::{Failure, Reply};

impl HistoryServer {
    /// Does to `run` what a form asks for.
    ///
    /// # Errors
    /// There is no such run or action, or the history cannot be changed.
    pub fn change(&self, run: RunId, action: &str, values: &FormValues) -> Result<Reply, Failure> {
        let mut history = History::open_existing(&self.history, PATIENCE)?;
        match action {
            "tag" => history.tag(run, values.get("tag"))?,
            "untag" => drop(history.untag(run, values.get("tag"))?),
            "note" => history.add_note(run, values.get("text"), unix_ms())?,
            "remove-notes" => drop(history.remove_notes(run)?),
            "remove" if self.goes_on(run) => {
                let message = "The run is not over: stop it first.";
                return Err(Failure::new(StatusCode::CONFLICT, message));
            }
            "remove" => {
                history.remove(&[run])?;
                return Ok(Reply::See("/".to_owned(), None));
            }
            _ => return Err(Failure::no_page()),
        }
        Ok(Reply::See(run_path(u64::try_from(run.0).unwrap_or_default()), None))
    }
}
