//! `fathom history prune`: removes old runs, after asking.

use std::io::{self, IsTerminal};

use clap::Args;
use fathom_history::{History, Location, PATIENCE, RunId};
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_record::HistoryRow;
use fathom_report::formats::Format;
use fathom_report::{document, history};
use fathom_sys::clock::unix_ms;
use serde_json::json;

use super::filter::FilterArguments;
use crate::commands::format_arguments::FormatArguments;
use crate::commands::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::{output, store};

/// What `fathom history prune` takes.
#[derive(Args)]
pub struct PruneArguments {
    /// Remove runs that are older than this: 90d, 12h
    #[arg(long, value_parser = positive_duration, value_name = "TIME", required_unless_present = "keep")]
    older_than: Option<Nanos>,
    /// Keep the newest COUNT runs; with --older-than, remove only older runs beyond them
    #[arg(long, value_name = "COUNT")]
    keep: Option<usize>,
    #[command(flatten)]
    filter: FilterArguments,
    /// List the runs without removing them
    #[arg(long)]
    dry_run: bool,
    /// Remove without asking
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten)]
    form: FormatArguments,
}

/// The runs to remove at `now_ms`: of all but the newest `keep`, those older than `older_than`. A run without a date has no age.
fn prunable(
    rows: &[HistoryRow],
    now_ms: u64,
    older_than: Option<Nanos>,
    keep: Option<usize>,
) -> Vec<HistoryRow> {
    let is_old = |row: &HistoryRow| match (older_than, row.dated_unix_ms()) {
        (None, _) => true,
        (Some(_), 0) => false,
        (Some(age), dated) => now_ms.saturating_sub(dated) > age.as_millis(),
    };
    let beyond = rows.len().saturating_sub(keep.unwrap_or(0));
    rows[..beyond].iter().filter(|row| is_old(row)).cloned().collect()
}

/// Removes the runs, or lists them.
///
/// # Errors
/// The history cannot be read or written, or nobody can be asked.
pub fn run(arguments: &PruneArguments, location: &Location) -> Result<Exit, Complaint> {
    let (form, older_than) = (&arguments.form, arguments.older_than);
    let rows = match History::open_if_there(location, PATIENCE)? {
        Some(history) => {
            let listing = history.list(&arguments.filter.filter(None))?;
            store::tell_of_unreadable(&listing.unreadable);
            listing.rows
        }
        // A user who never kept a run has nothing to remove.
        None => Vec::new(),
    };
    let runs = prunable(&rows, unix_ms(), older_than, arguments.keep);
    let is_text = form.format() == Format::Text;
    let dry_run = arguments.dry_run;
    let asks = !runs.is_empty() && !dry_run && !arguments.yes;
    if asks && (!is_text || !io::stdin().is_terminal()) {
        return Err(Complaint::usage(
            format!("cannot ask whether to remove {}", count(&runs)),
            Some("add --yes to remove them, or --dry-run to list them".to_owned()),
        ));
    }
    let none = match older_than {
        Some(age) => format!("No run is older than {}.", duration(age)),
        None => format!("No more than {} runs are stored.", arguments.keep.unwrap_or(0)),
    };
    let listed = json!({ "schema": "fathom.prune/1", "dry_run": dry_run, "runs": runs });
    if is_text {
        form.print(|| history::view(&runs, &none, &form.style()), |out| document::write(&listed, out))?;
    }
    if asks && !is_confirmed(&runs)? {
        output::print(|out| writeln!(out, "Removed nothing."))?;
        return Ok(Exit::Done);
    }
    if !dry_run && !runs.is_empty() {
        let ids: Vec<RunId> = runs.iter().map(|row| RunId(row.id as i64)).collect();
        History::open_existing(location, PATIENCE)?.remove(&ids)?;
    }
    if !is_text {
        form.print(|| history::view(&runs, &none, &form.style()), |out| document::write(&listed, out))?;
    } else if !runs.is_empty() {
        let what = if dry_run { "Would remove" } else { "Removed" };
        output::print(|out| writeln!(out, "{what} {}.", count(&runs)))?;
    }
    Ok(Exit::Done)
}

fn count(runs: &[HistoryRow]) -> String {
    if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) }
}

fn is_confirmed(runs: &[HistoryRow]) -> Result<bool, Complaint> {
    output::print(|out| writeln!(out, "Remove {} permanently? Type yes to confirm:", count(runs)))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_and_count_limit_each_other() {
        const DAY_MS: u64 = 86_400_000;
        let row = |id: u64, started_unix_ms: u64, stored_unix_ms: u64| HistoryRow {
            id,
            started_unix_ms,
            stored_unix_ms,
            ..HistoryRow::default()
        };
        // The second is simulated, and of the third nothing is known.
        let rows = [row(1, DAY_MS, 0), row(2, 0, 2 * DAY_MS), row(3, 0, 0), row(4, 9 * DAY_MS, 0)];
        let check = |older_days: Option<u64>, keep: Option<usize>, expected: &[u64]| {
            let age = older_days.map(|days| Nanos::from_secs(days * 86_400));
            let found: Vec<u64> = prunable(&rows, 10 * DAY_MS, age, keep).iter().map(|row| row.id).collect();
            assert_eq!(found, expected, "{older_days:?} {keep:?}");
        };
        check(Some(5), None, &[1, 2]);
        check(Some(9), None, &[]);
        check(None, Some(1), &[1, 2, 3]);
        check(None, Some(9), &[]);
        check(Some(5), Some(3), &[1]);
        check(Some(0), None, &[1, 2, 4]);
    }
}
