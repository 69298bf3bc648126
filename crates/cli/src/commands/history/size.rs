//! `fathom history size`: where the history is and how large.

use clap::Args;
use fathom_history::{History, HistorySize, Location, PATIENCE};
use fathom_report::document;
use fathom_report::history::size_view;
use serde::Serialize;

use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};

/// What `fathom history size` takes.
#[derive(Args)]
pub struct SizeArguments {
    #[command(flatten)]
    form: FormatArguments,
}

#[derive(Serialize)]
struct SizeDocument<'a> {
    schema: &'static str,
    /// A path, or the URI of a server without its password.
    location: &'a str,
    bytes: u64,
    /// Of these, bytes that no run uses.
    /// Null where that is unknown.
    free_bytes: Option<u64>,
    runs: u64,
    tests: u64,
    format: u32,
}

/// Shows the size.
///
/// # Errors
/// The history cannot be read.
pub fn run(arguments: &SizeArguments, location: &Location) -> Result<Exit, Complaint> {
    let HistorySize { bytes, free_bytes, runs, tests, format } =
        History::open_existing(location, PATIENCE)?.size()?;
    let shown = location.to_string();
    let schema = "fathom.history-size/1";
    let written = SizeDocument { schema, location: &shown, bytes, free_bytes, runs, tests, format };
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
