//! `fathom history size`: where the history is and how large.

use std::path::Path;

use clap::Args;
use fathom_history::{History, HistorySize, PATIENCE};
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
    path: &'a str,
    bytes: u64,
    /// Of these, bytes that no run uses.
    free_bytes: u64,
    runs: u64,
    tests: u64,
    format: u32,
}

/// Shows the size.
///
/// # Errors
/// The history cannot be read.
pub fn run(arguments: &SizeArguments, path: &Path) -> Result<Exit, Complaint> {
    let HistorySize { bytes, free_bytes, runs, tests, format } =
        History::open_existing(path, PATIENCE)?.size()?;
    let path = path.to_string_lossy();
    let written =
        SizeDocument { schema: "fathom.history-size/1", path: &path, bytes, free_bytes, runs, tests, format };
    arguments.form.print(
        || size_view(&path, &[("size", bytes), ("unused", free_bytes)], &[("runs", runs), ("tests", tests)]),
        |out| document::write(&written, out),
    )?;
    Ok(Exit::Done)
}
