//! `fathom history`: list, show, search, annotate, compare, import, export and remove past runs.

mod diff;
mod examples;
mod export;
pub mod filter;
mod import;
mod list;
mod prune;
mod run_name;
mod size;
pub mod trend;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fathom_history::{ErrorKind, Filter, History, Location, PATIENCE, RunId};
use fathom_record::RunRecord;
use fathom_report::Style;
use fathom_sys::clock::unix_ms;

use self::run_name::RunName;
use super::format_arguments::FormatArguments;
use super::run_arguments::location;
use super::shown;
use crate::exit::{Complaint, Exit};
use crate::{output, store};

/// What `fathom history` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct HistoryArguments {
    /// History to read: a file, or postgres://... [default: FATHOM_HISTORY, else the user's own file]
    #[arg(long, global = true, value_name = "FILE|URI", value_parser = location)]
    history: Option<Location>,
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  fathom history list --newest 10
  fathom history show                 the newest run
  fathom history show 17 --show-fio   run 17, with the fio command of each test
  fathom history list --host web1 --since 7d --text kernel
  fathom history trend rand-read.read.iops --by device
  fathom history trend rand-read.p99 --by hour --since 2026-11-01
  fathom history note 17 'after the kernel update'
  fathom history diff last~1 last
  fathom history tag before 12 14 16  `fathom compare tag:before tag:after` compares them
  fathom history export 17 > run17.json
  fathom history export --since 30d --format csv -o figures.csv
  fathom history export --format openmetrics -o /var/lib/node_exporter/fathom.prom
  fathom history import fio.json ioping.txt
  xclip -o | fathom history import -
  fathom history rm 3 4 5
  fathom history prune --older-than 90d --dry-run
  fathom history prune --keep 100 --yes";

#[derive(Subcommand)]
enum Action {
    /// List past runs, oldest first
    #[command(after_help = examples::LIST)]
    List(list::ListArguments),
    /// Show the report of a run
    #[command(after_help = examples::SHOW)]
    Show {
        /// Run number, last or last~N [default: last]
        run: Option<RunName>,
        #[command(flatten)]
        form: FormatArguments,
        /// Print the exact fio command of each test
        #[arg(long)]
        show_fio: bool,
    },
    /// Show a metric over the stored runs: since when, by how much, and how it varies
    #[command(after_help = examples::TREND)]
    Trend(trend::TrendArguments),
    /// Give runs a tag, by which list, trend and compare find them
    #[command(after_help = examples::TAG)]
    Tag {
        /// A word that is no number, without , ~ and :
        tag: String,
        /// Run numbers, last or last~N
        #[arg(required = true)]
        runs: Vec<RunName>,
        /// Take the tag from the runs
        #[arg(long)]
        remove: bool,
    },
    /// Note something about a run; search finds it
    #[command(after_help = examples::NOTE)]
    Note {
        /// Run number, last or last~N
        run: RunName,
        /// The note
        #[arg(required_unless_present = "remove")]
        text: Option<String>,
        /// Remove all notes of the run
        #[arg(long, conflicts_with = "text")]
        remove: bool,
    },
    /// Show the conditions and figures that differ between two runs
    #[command(after_help = examples::DIFF)]
    Diff(diff::DiffArguments),
    /// Show the size of the history
    #[command(after_help = examples::SIZE)]
    Size(size::SizeArguments),
    /// Remove old runs permanently, by age or count
    #[command(after_help = examples::PRUNE)]
    Prune(prune::PruneArguments),
    /// Remove runs permanently
    #[command(after_help = examples::RM)]
    Rm {
        /// Run numbers, last or last~N
        #[arg(required = true)]
        runs: Vec<RunName>,
    },
    /// Import runs: fathom records, output of fio or ioping, tables of figures
    #[command(after_help = examples::IMPORT)]
    Import {
        /// Files to read; - for the standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Export runs: whole records, tables, OpenMetrics or histograms
    #[command(after_help = examples::EXPORT)]
    Export(export::ExportArguments),
}

/// Does what was asked.
///
/// # Errors
/// There is no history, or no such run in it, or it cannot be read.
pub fn run(arguments: HistoryArguments) -> Result<Exit, Complaint> {
    let path = store::existing(arguments.history)?;
    match arguments.action {
        Action::List(list) => list::run(&list, &path),
        Action::Import { files } => import::run(&files, &path),
        Action::Prune(prune) => prune::run(&prune, &path),
        Action::Show { run, form, show_fio } => {
            let history = History::open_existing(&path, PATIENCE)?;
            let run = run.map(|run| run.id(&history)).transpose()?;
            show(&history, run, &form, show_fio)
        }
        Action::Trend(trend) => trend::run(&trend, &path),
        Action::Tag { tag, runs, remove } => tag_runs(&path, &tag, &runs, remove),
        Action::Note { run, text, remove: _ } => note(&path, run, text.as_deref()),
        Action::Diff(diff) => diff::run(&diff, path),
        Action::Size(size) => size::run(&size, &path),
        Action::Rm { runs } => {
            let mut history = History::open_existing(&path, PATIENCE)?;
            let runs = RunName::ids(&runs, &history)?;
            history.remove(&runs)?;
            output::print(|out| writeln!(out, "Removed {}.", named(&runs)))?;
            Ok(Exit::Done)
        }
        Action::Export(arguments) => export::run(&arguments, &path),
    }
}

fn tag_runs(path: &Location, tag: &str, runs: &[RunName], remove: bool) -> Result<Exit, Complaint> {
    let mut history = History::open_existing(path, PATIENCE)?;
    let runs = RunName::ids(runs, &history)?;
    for &run in &runs {
        if remove {
            history.untag(run, tag)?;
        } else {
            history.tag(run, tag)?;
        }
    }
    let what = if remove { "Untagged" } else { "Tagged" };
    output::print(|out| writeln!(out, "{what} {}: {tag}.", named(&runs)))?;
    Ok(Exit::Done)
}

/// Adds a note, or removes all where there is no text.
fn note(path: &Location, run: RunName, text: Option<&str>) -> Result<Exit, Complaint> {
    let mut history = History::open_existing(path, PATIENCE)?;
    let run = run.id(&history)?;
    let done = match text {
        Some(text) => {
            history.add_note(run, text, unix_ms())?;
            format!("Noted on run {run}.")
        }
        None => match history.remove_notes(run)? {
            1 => format!("Removed 1 note of run {run}."),
            count => format!("Removed {count} notes of run {run}."),
        },
    };
    output::print(|out| writeln!(out, "{done}"))?;
    Ok(Exit::Done)
}

/// `run 3`, `runs 3, 4`.
fn named(runs: &[RunId]) -> String {
    let what = if runs.len() == 1 { "run" } else { "runs" };
    let numbers: Vec<String> = runs.iter().map(RunId::to_string).collect();
    format!("{what} {}", numbers.join(", "))
}

fn show(
    history: &History,
    run: Option<RunId>,
    form: &FormatArguments,
    show_fio: bool,
) -> Result<Exit, Complaint> {
    let (run, record) = match run {
        Some(run) => (run, store::load_run(history, run)?),
        None => newest(history)?,
    };
    let style = Style { run_id: u64::try_from(run.0).ok(), show_fio, ..form.style() };
    let format = form.format();
    output::print(|out| shown::show(&record, &style, format, out))?;
    Ok(Exit::Done)
}

/// The newest run that can be read.
fn newest(history: &History) -> Result<(RunId, RunRecord), Complaint> {
    let listing = history.list(&Filter::default())?;
    let mut unreadable = listing.unreadable;
    let mut found = None;
    for row in listing.rows.iter().rev() {
        let run = RunId(row.id as i64);
        match store::load_run(history, run) {
            Ok(record) => {
                found = Some((run, record));
                break;
            }
            Err(error) if error.kind == ErrorKind::Unreadable => unreadable.push(error),
            Err(error) => return Err(error.into()),
        }
    }
    store::tell_of_unreadable(&unreadable);
    found.ok_or_else(|| {
        Complaint::failed("the history is empty", Some("`fathom bench` keeps its runs".to_owned()))
    })
}
