//! `fathom history size`: where the history is and how large.

use clap::Args;
use fathom_history::{History, HistorySize, Location, PATIENCE};
use fathom_report::document;
use fathom_report::history::size_view;
use serde_json::json;

use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};

/// What `fathom history size` takes.
#[derive(Args)]
pub struct SizeArguments {
    #[command(flatten)]
    form: FormatArguments,
}

/// Shows the size.
///
/// # Errors
/// The history cannot be read.
pub fn run(arguments: &SizeArguments, location: &Location) -> Result<Exit, Complaint> {
    let HistorySize { bytes, free_bytes, runs, tests, format } =
        History::open_existing(location, PATIENCE)?.size()?;
    let shown = location.to_string();
    let written = json!({
        "schema": "fathom.history-size/1",
        "location": shown,
        "bytes": bytes,
        "free_bytes": free_bytes,
        "runs": runs,
        "tests": tests,
        "format": format,
    });
    let sizes: Vec<(&str, u64)> =
        [("size", Some(bytes)), ("unused", free_bytes)].into_iter().filter_map(known).collect();
    arguments.form.print(
        || size_view(&shown, &sizes, &[("runs", runs), ("tests", tests)]),
        |out| document::write(&written, out),
    )?;
    Ok(Exit::Done)
}

fn known((name, bytes): (&'static str, Option<u64>)) -> Option<(&'static str, u64)> {
    Some((name, bytes?))
}
