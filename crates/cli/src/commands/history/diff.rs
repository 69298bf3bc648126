//! `fathom history diff`: what differs between two runs, by the comparison of `fathom compare`.

use clap::Args;
use fathom_history::{History, Location, PATIENCE};
use fathom_report::history::diff::{render_json, view};

use super::run_name::RunName;
use crate::commands::compare::of_runs;
use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};

/// What `fathom history diff` takes.
#[derive(Args)]
pub struct DiffArguments {
    /// Run number, last or last~N: A
    a: RunName,
    /// Run number, last or last~N: B
    b: RunName,
    #[command(flatten)]
    form: FormatArguments,
}

/// Shows the conditions and figures that differ.
///
/// # Errors
/// A run cannot be read.
pub fn run(arguments: &DiffArguments, history: Location) -> Result<Exit, Complaint> {
    let stored = History::open_existing(&history, PATIENCE)?;
    let [a, b] = [arguments.a.id(&stored)?, arguments.b.id(&stored)?].map(|run| run.to_string());
    drop(stored);
    let comparison = of_runs([&a, &b], Some(history))?;
    let names = [format!("Run {a}"), format!("run {b}")];
    let names = names.each_ref().map(String::as_str);
    arguments.form.print(|| view(&comparison, names), |out| render_json(&comparison, [&a, &b], out))?;
    Ok(Exit::Done)
}
