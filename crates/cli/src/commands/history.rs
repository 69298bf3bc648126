//! `fathom history`: list, show, search, annotate, compare, import, export and remove past runs.

mod examples;
mod export;
pub mod filter;
mod import;
pub mod trend;

use std::io::{self, IsTerminal};
use std::str::FromStr;

use clap::{Args, Subcommand};
use fathom_analysis::compare::{CompareSettings, compare};
use fathom_history::{ErrorKind, Filter, History, HistorySize, Listing, Location, PATIENCE, RunId};
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_record::{HistoryRow, RunRecord};
use fathom_report::formats::Format;
use fathom_report::history::diff::{render_json, view};
use fathom_report::history::{self, size_view};
use fathom_report::view::Block;
use fathom_report::{Style, document};
use fathom_sys::clock::unix_ms;
use serde_json::json;

use super::compare::sources::of_runs;
use super::format_arguments::FormatArguments;
use super::run_arguments::location;
use super::shown;
use super::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::{output, store};
use filter::FilterArguments;

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
  fathom history rm --older-than 90d --dry-run
  fathom history rm --newest 100 --yes";

#[derive(Subcommand)]
enum Action {
    /// List past runs, oldest first
    #[command(after_long_help = examples::LIST)]
    List(ListArguments),
    /// Show the report of a run
    #[command(after_long_help = examples::SHOW)]
    Show {
        /// Run number, last or last~N [default: last]
        run: Option<RunName>,
        #[command(flatten, next_help_heading = "Output")]
        form: FormatArguments,
        /// Print the exact fio command of each test
        #[arg(long)]
        show_fio: bool,
    },
    /// Show a metric over the stored runs: since when, by how much, and how it varies
    #[command(after_long_help = examples::TREND)]
    Trend(trend::TrendArguments),
    /// Give runs a tag, by which list, trend and compare find them
    #[command(after_long_help = examples::TAG)]
    Tag {
        /// A word, not a number, without , ~ and :
        tag: String,
        /// Run numbers, last or last~N
        #[arg(required = true)]
        runs: Vec<RunName>,
        /// Take the tag from the runs
        #[arg(long)]
        remove: bool,
    },
    /// Note something about a run; search finds it
    #[command(after_long_help = examples::NOTE)]
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
    #[command(after_long_help = examples::DIFF)]
    Diff(DiffArguments),
    /// Show the size of the history
    #[command(after_long_help = examples::SIZE)]
    Size(SizeArguments),
    /// Remove runs permanently: those named, or old ones
    #[command(alias = "prune", after_long_help = examples::RM)]
    Rm(RemoveArguments),
    /// Import runs: records, outputs of other programs, pages with tables
    #[command(after_long_help = examples::IMPORT)]
    Import(import::ImportArguments),
    /// Export runs: whole records, tables, OpenMetrics or histograms
    #[command(after_long_help = examples::EXPORT)]
    Export(export::ExportArguments),
}

/// Does what was asked.
///
/// # Errors
/// There is no history, or no such run in it, or it cannot be read.
pub fn run(arguments: HistoryArguments) -> Result<Exit, Complaint> {
    let path = store::existing(arguments.history)?;
    match arguments.action {
        Action::List(list) => list_runs(&list, &path),
        Action::Import(arguments) => import::run(&arguments, &path),
        Action::Show { run, form, show_fio } => {
            let history = History::open_existing(&path, PATIENCE)?;
            let run = run.map(|run| run.id(&history)).transpose()?;
            show(&history, run, &form, show_fio)
        }
        Action::Trend(trend) => trend::run(&trend, &path),
        Action::Tag { tag, runs, remove } => tag_runs(&path, &tag, &runs, remove),
        Action::Note { run, text, remove: _ } => note(&path, run, text.as_deref()),
        Action::Diff(diff) => diff_runs(&diff, &path),
        Action::Size(size) => show_size(&size, &path),
        Action::Rm(arguments) if arguments.runs.is_empty() => remove_old(&arguments, &path),
        Action::Rm(arguments) => remove_named(&arguments, &path),
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

/// What `fathom history diff` takes.
#[derive(Args)]
pub struct DiffArguments {
    /// Run number, last or last~N: A
    a: RunName,
    /// Run number, last or last~N: B
    b: RunName,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

/// Shows the conditions and figures that differ.
///
/// # Errors
/// A run cannot be read.
pub fn diff_runs(arguments: &DiffArguments, history: &Location) -> Result<Exit, Complaint> {
    let stored = History::open_existing(history, PATIENCE)?;
    let runs = [arguments.a.id(&stored)?, arguments.b.id(&stored)?];
    let comparison = compare(&of_runs(&stored, &runs)?, &CompareSettings::default());
    let comparison = comparison.map_err(|error| Complaint::usage(error, None))?;
    let [a, b] = runs.map(|run| run.to_string());
    let names = [format!("Run {a}"), format!("run {b}")];
    let names = names.each_ref().map(String::as_str);
    arguments.form.print(|| view(&comparison, names), |out| render_json(&comparison, [&a, &b], out))?;
    Ok(Exit::Done)
}

/// Runs that a text lists unless it is asked for more.
const USUAL: usize = 100;

/// What `fathom history list` takes.
#[derive(Args)]
pub struct ListArguments {
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
    /// List only the newest COUNT runs [default: 100 in text and Markdown, all in CSV and JSON]
    #[arg(long, value_name = "COUNT")]
    newest: Option<usize>,
    /// List all runs
    #[arg(long, conflicts_with = "newest")]
    all: bool,
    #[command(flatten, next_help_heading = "Filters")]
    filter: FilterArguments,
}

impl ListArguments {
    /// How many of the newest runs are listed.
    fn most(&self) -> Option<usize> {
        let is_for_people = matches!(self.form.format(), Format::Text | Format::Markdown);
        self.newest.or((is_for_people && !self.all).then_some(USUAL))
    }
}

/// Lists the runs.
///
/// # Errors
/// The history cannot be read.
pub fn list_runs(list: &ListArguments, location: &Location) -> Result<Exit, Complaint> {
    // A user who never kept a run has an empty list, not an error.
    let Some(history) = History::open_if_there(location, PATIENCE)? else {
        return write_list(list, &[], &list.filter.none(&Listing::default()), false);
    };
    // One more tells whether there are older ones.
    let most = list.most();
    let listing = history.list(&list.filter.filter(most.map(|most| most.saturating_add(1))))?;
    store::tell_of_unreadable(&listing.unreadable);
    let none = match listing.rows.is_empty() {
        true => list.filter.none(&history.list(&Filter::default())?),
        false => String::new(),
    };
    let beyond = most.map_or(0, |most| listing.rows.len().saturating_sub(most));
    write_list(list, &listing.rows[beyond..], &none, beyond > 0 && list.newest.is_none())
}

fn write_list(
    list: &ListArguments,
    rows: &[HistoryRow],
    none: &str,
    is_cut: bool,
) -> Result<Exit, Complaint> {
    let rest = is_cut.then(|| format!("The newest {USUAL} runs; --all lists the older ones too."));
    list.form.print(
        || {
            let mut view = history::view(rows, none, &list.form.style());
            view.push("", [Block::Notes(rest.into_iter().collect())]);
            view
        },
        |out| history::render_json(rows, out),
    )?;
    Ok(Exit::Done)
}

/// What `fathom history size` takes.
#[derive(Args)]
pub struct SizeArguments {
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

/// Shows the size.
///
/// # Errors
/// The history cannot be read.
pub fn show_size(arguments: &SizeArguments, location: &Location) -> Result<Exit, Complaint> {
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

/// What `fathom history rm` takes.
#[derive(Args)]
pub struct RemoveArguments {
    /// Run numbers, last or last~N
    #[arg(required_unless_present_any = ["older_than", "newest"], conflicts_with_all = ["older_than", "newest"])]
    runs: Vec<RunName>,
    /// Remove runs that are older than this: 90d, 12h
    #[arg(long, value_parser = positive_duration, value_name = "TIME")]
    older_than: Option<Nanos>,
    /// Keep the newest COUNT runs; with --older-than, remove only older runs beyond them
    #[arg(long, value_name = "COUNT", alias = "keep")]
    newest: Option<usize>,
    #[command(flatten, next_help_heading = "Filters")]
    filter: FilterArguments,
    /// List the runs without removing them
    #[arg(long)]
    dry_run: bool,
    /// Remove without asking
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
}

/// Removes the runs of these names, or tells which they are. A run that cannot be read is one as well.
fn remove_named(arguments: &RemoveArguments, location: &Location) -> Result<Exit, Complaint> {
    if let Some(filter) = arguments.filter.words().first() {
        let hint = "omit the filter, or the numbers and add --older-than or --newest";
        return Err(Complaint::usage(
            format!("{filter} has no effect on runs that are named"),
            Some(hint.to_owned()),
        ));
    }
    let mut history = History::open_existing(location, PATIENCE)?;
    let ids = RunName::ids(&arguments.runs, &history)?;
    let form = &arguments.form;
    let mut rows = history.list(&arguments.filter.filter(None))?.rows;
    rows.retain(|row| ids.contains(&RunId(row.id as i64)));
    let dry_run = arguments.dry_run;
    if !dry_run {
        history.remove(&ids)?;
    }
    if form.format() != Format::Text {
        let listed = removal(dry_run, &rows);
        form.print(|| history::view(&rows, "", &form.style()), |out| document::write(&listed, out))?;
    } else {
        let what = if dry_run { "Would remove" } else { "Removed" };
        output::print(|out| writeln!(out, "{what} {}.", named(&ids)))?;
    }
    Ok(Exit::Done)
}

fn removal(dry_run: bool, runs: &[HistoryRow]) -> serde_json::Value {
    json!({ "schema": "fathom.prune/1", "dry_run": dry_run, "runs": runs })
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

/// Removes the runs that are too old or too many, or lists them.
fn remove_old(arguments: &RemoveArguments, location: &Location) -> Result<Exit, Complaint> {
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
    let runs = prunable(&rows, unix_ms(), older_than, arguments.newest);
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
        None => format!("No more than {} runs are stored.", arguments.newest.unwrap_or(0)),
    };
    let listed = removal(dry_run, &runs);
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
