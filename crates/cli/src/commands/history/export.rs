//! `fathom history export`: stored runs for other programs and other histories.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fathom_history::{Error, ErrorKind, Filter, History, Location, PATIENCE, RunId};
use fathom_report::TextWriter;
use fathom_report::export::{ExportedRun, figure_view, hlog, openmetrics};
use fathom_report::formats::csv;
use fathom_sys::files::{PathRefusal, replace_output};

use super::RunName;
use super::filter::FilterArguments;
use crate::exit::{Complaint, Exit};
use crate::{output, store};

/// What `fathom history export` takes.
#[derive(Args)]
pub struct ExportArguments {
    /// Run numbers, last or last~N [default: all runs that the filters admit]
    runs: Vec<RunName>,
    /// Format of the export
    #[arg(long, value_enum, default_value_t)]
    format: ExportFormat,
    /// Write to a file, which is replaced as a whole [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Filters")]
    filter: FilterArguments,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// Whole records, one per line, for `history import` and `compare`
    #[default]
    Jsonl,
    /// A row for each figure of each test
    Csv,
    /// OpenMetrics text for node_exporter's textfile collector; of runs of the same test the newest
    Openmetrics,
    /// HdrHistogram log of the completion latencies, ns
    Hlog,
}

/// Mode of a new file, less the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// Exports the runs.
///
/// # Errors
/// A named run does not exist or cannot be read; the file cannot be written.
pub fn run(arguments: &ExportArguments, location: &Location) -> Result<Exit, Complaint> {
    let filter = arguments.filter.filter(None);
    let is_all = arguments.runs.is_empty();
    if !is_all && filter != Filter::default() {
        return Err(Complaint::usage("runs are named by number or by filters", None));
    }
    let history = History::open_existing(location, PATIENCE)?;
    let listing = history.list(&filter)?;
    let mut unreadable = if is_all { listing.unreadable } else { Vec::new() };
    let runs: Vec<RunId> = match is_all {
        true => listing.rows.iter().map(|row| RunId(row.id as i64)).collect(),
        false => RunName::ids(&arguments.runs, &history)?,
    };
    let mut keep = |error: Error| match error.kind {
        ErrorKind::Unreadable if is_all => {
            unreadable.push(error);
            Ok(())
        }
        _ => Err(error),
    };
    // All are read before the first is written: half an export is worse than none.
    let mut records = Vec::new();
    let mut exported = Vec::new();
    for run in runs {
        if arguments.format == ExportFormat::Jsonl {
            match history.export(run) {
                Ok(record) => records.push(record),
                Err(error) => keep(error)?,
            }
            continue;
        }
        match history.load(run) {
            Ok(record) => {
                let row = listing.rows.iter().find(|row| row.id as i64 == run.0).cloned().unwrap_or_default();
                exported.push(ExportedRun { row, record });
            }
            Err(error) => keep(error)?,
        }
    }
    store::tell_of_unreadable(&unreadable);
    let write: Export<'_> = match arguments.format {
        ExportFormat::Jsonl => {
            Box::new(|out| records.iter().try_for_each(|record| writeln!(out.json(), "{record}")))
        }
        ExportFormat::Csv => Box::new(|out| csv::render(&figure_view(&exported), out)),
        ExportFormat::Openmetrics => Box::new(|out| openmetrics(&exported, &mut out.json())),
        ExportFormat::Hlog => Box::new(|out| hlog(&exported, &mut out.json())),
    };
    match &arguments.output {
        None => output::print(write)?,
        Some(file) => replace_output(file, NEW_FILE_MODE, |out| output::write_to(out, write))
            .map_err(|error| unwritable(file, &error))?,
    }
    // The exit code shows that an export is incomplete.
    Ok(if unreadable.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Writes an export.
type Export<'a> = Box<dyn FnOnce(&mut TextWriter) -> io::Result<()> + 'a>;

fn unwritable(file: &Path, error: &io::Error) -> Complaint {
    let hint = PathRefusal::of(error).map(|refusal| refusal.hint().to_owned());
    Complaint::failed(format!("cannot write {}: {}", file.display(), output::plain(error)), hint)
}
