//! What the commands that measure share where a launcher started many processes of them: joining the job, leaving it, and the
//! report of rank 0.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fathom_assess::TestKeeper;
use fathom_assess::fleet::{Fleet, FleetEnd, FleetFiles, FleetJob, FleetReport, FleetStop};
use fathom_history::{HistoryPath, Kept};
use fathom_model::Nanos;
use fathom_options::FleetOptions;
use fathom_record::{RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_report::formats::Format;
use fathom_report::{Style, TextWriter};

use crate::commands::format_arguments::FormatArguments;
use crate::commands::report;
use crate::commands::words::positive_duration;
use crate::exit::{Complaint, Exit};
use crate::output;
use crate::store::HistoryKeeper;

/// Joins the job that a launcher started this process for.
///
/// # Errors
/// No launcher did, or it cannot be asked.
pub fn join(options: FleetOptions) -> Result<FleetJob, Complaint> {
    let variable = |name: &str| std::env::var(name).ok();
    FleetJob::join(options, &variable).map_err(|error| Complaint::usage(error.message, error.hint))
}

/// Refuses options that contradict `--fleet`, by whether they are given.
///
/// # Errors
/// One of them is given.
pub fn refuse(arguments: &FleetArguments, options: &[(&str, bool)]) -> Result<(), Complaint> {
    match options.iter().find(|(_, is_given)| arguments.fleet && *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            let message = format!("{option} cannot be used with --fleet");
            let hint = format!(
                "omit {option}, or measure on one host; every rank runs the same tests for the same time"
            );
            Err(Complaint::usage(message, Some(hint)))
        }
    }
}

/// Joins the job that `arguments` ask for, and meets the ranks that were started with `command`; none without `--fleet`. The inner error
/// is how the program ends where the ranks have parted. `page` is the file that rank 0 writes its report to as well.
///
/// # Errors
/// As for [`join`]; the page cannot be written.
pub fn joined(
    arguments: &FleetArguments,
    page: Option<&Path>,
    command: &[OsString],
) -> Result<Result<Option<Fleet>, Exit>, Complaint> {
    let Some(options) = arguments.options() else { return Ok(Ok(None)) };
    page.map_or(Ok(()), report::check_report_name)?;
    let job = join(options)?;
    // Other hosts need no such directory.
    let unwritable = page.filter(|_| job.rank() == 0).and_then(|page| report::check_report(page).err());
    let files = match &unwritable {
        None => Ok(FleetFiles::default()),
        Some(complaint) => Err(complaint.message.clone()),
    };
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let met = meet(job, &words, files);
    if let (Err(_), Some(hint)) = (&met, unwritable.and_then(|complaint| complaint.hint)) {
        output::warn(&format!("hint: {hint}"));
    }
    Ok(met.map(|(fleet, _)| Some(fleet)))
}

/// Leaves the job, of which this rank could not begin its part; returns the complaint about that.
pub fn failed(complaint: Complaint, fleet: Option<Fleet>) -> Complaint {
    if let Some(fleet) = fleet {
        let _ = end(fleet, Err(complaint.message.clone()), None, true, |_| Ok(Exit::Failed));
    }
    complaint
}

/// Replaces the variables in `path` that tell the place of a rank.
pub fn expand(path: &mut PathBuf, fleet: Option<&Fleet>) {
    if let Some((fleet, text)) = fleet.zip(path.to_str()) {
        *path = PathBuf::from(fleet.place().expand(text));
    }
}

/// Meets the other ranks, all of which were started with `command`; they get the files of rank 0.
///
/// # Errors
/// How the program ends where they do not come, or cannot measure together; the user has been told.
pub fn meet(
    job: FleetJob,
    command: &[String],
    files: Result<FleetFiles, String>,
) -> Result<(Fleet, FleetFiles), Exit> {
    let rank = job.rank();
    job.meet(command, files, output::warn).map_err(|stop| explain(*stop, rank))
}

/// Tells why the ranks did not meet, and ends the job where some are missing.
fn explain(stop: FleetStop, rank: u32) -> Exit {
    if rank == 0 || !stop.is_of_all {
        let who = if stop.is_of_all { String::new() } else { format!("{}: ", stop.name) };
        output::warn(&format!("error: {who}{}", stop.error));
        if let Some(hint) = &stop.error.hint {
            output::warn(&format!("hint: {hint}"));
        }
    }
    let exit = if stop.is_of_all { Exit::Failed } else { Exit::Partial };
    stop.abort();
    exit
}

/// Leaves the job with what this rank has measured, or why it has measured nothing; rank 0 reports on all by `report`, which says how
/// its run ended. A rank that `says_why` itself leaves it to that.
///
/// # Errors
/// Those of `report`.
pub fn end(
    fleet: Fleet,
    measured: Result<RunRecord, String>,
    interrupted: Option<String>,
    says_why: bool,
    report: impl FnOnce(RunRecord) -> Result<Exit, Complaint>,
) -> Result<Exit, Complaint> {
    let (ranks, reports) = (fleet.place().ranks, fleet.reports());
    let end = match measured {
        Ok(record) => fleet.end(record, interrupted),
        Err(reason) => fleet.fail(&reason),
    };
    leave(end, ranks, reports && !says_why, |mut record, notes| {
        record.header.notes.extend(notes);
        report(record)
    })
}

/// Leaves the job: `report` shows what rank 0 has of all ranks and says how its run ended.
///
/// # Errors
/// Those of `report`.
pub fn leave(
    end: FleetEnd,
    ranks: u32,
    is_reporter: bool,
    report: impl FnOnce(RunRecord, Vec<String>) -> Result<Exit, Complaint>,
) -> Result<Exit, Complaint> {
    match end {
        // Rank 0 alone reports, and has one in any case.
        FleetEnd::Met(None) => Ok(if is_reporter { Exit::Partial } else { Exit::Done }),
        FleetEnd::Met(Some(found)) => tell(*found, ranks, report),
        FleetEnd::Refused(reason) => {
            if is_reporter {
                output::warn(&format!("error: no rank has measured: {reason}"));
            }
            Ok(Exit::Failed)
        }
        FleetEnd::Lost(found, abort) => {
            let told = found.map_or(Ok(Exit::Partial), |found| tell(*found, ranks, report));
            abort.abort();
            told.map(|_| Exit::Partial)
        }
    }
}

fn tell(
    found: FleetReport,
    ranks: u32,
    report: impl FnOnce(RunRecord, Vec<String>) -> Result<Exit, Complaint>,
) -> Result<Exit, Complaint> {
    let missing = found.missing_line(ranks);
    let FleetReport { record, notes, .. } = found;
    for note in &notes {
        output::warn(&format!("warning: {note}"));
    }
    let told = record.map_or(Ok(Exit::Partial), |record| report(record, notes));
    let Some(line) = missing else { return told };
    output::warn(&format!("fathom: {line}"));
    // That ranks are missing comes before a report that cannot be written.
    if let Err(error) = told {
        error.report();
    }
    Ok(Exit::Partial)
}

/// How a command of fathom's own ends whose ranks measured `record`.
pub fn exit_of(record: &RunRecord) -> Exit {
    match record.status {
        _ if record.header.interrupted.is_some() => Exit::Interrupted,
        TestStatus::Failed | TestStatus::Incomplete => Exit::Failed,
        TestStatus::Complete | TestStatus::Skipped => Exit::Done,
    }
}

/// The options of commands that many processes can run as one job.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Many hosts")]
pub struct FleetArguments {
    /// Join the job that a launcher (srun, mpiexec, mpirun) started; rank 0 reports on all ranks
    #[arg(long)]
    pub fleet: bool,
    /// Write the record of each rank to DIR/rank-NNNNN.json, for `fathom fleet merge`
    #[arg(long, value_name = "DIR", requires = "fleet")]
    fleet_out: Option<PathBuf>,
    /// Longest wait for all ranks to come [default: 60s]
    #[arg(long, value_parser = positive_duration, value_name = "TIME", requires = "fleet")]
    fleet_join: Option<Nanos>,
    /// Longest wait for all ranks to be ready to measure [default: 30m]
    #[arg(long, value_parser = positive_duration, value_name = "TIME", requires = "fleet")]
    fleet_prepare: Option<Nanos>,
    /// Longest wait for other ranks beyond the runtime of a test [default: 30s]
    #[arg(long, value_parser = positive_duration, value_name = "TIME", requires = "fleet")]
    fleet_grace: Option<Nanos>,
    /// How tests start on all ranks [default: barrier]
    #[arg(long, value_enum, value_name = "HOW", requires = "fleet")]
    fleet_start: Option<StartWord>,
}

/// How tests start on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StartWord {
    /// At a barrier of the launcher
    Barrier,
    /// At an instant of the wall clock, where clocks are known to 1 ms
    Clock,
}

impl FleetArguments {
    /// What is asked for; `None` without `--fleet`.
    pub fn options(&self) -> Option<FleetOptions> {
        self.fleet.then(|| FleetOptions {
            is_asked_for: true,
            out: self.fleet_out.clone(),
            join: self.fleet_join,
            prepare: self.fleet_prepare,
            grace: self.fleet_grace,
            starts_by_clock: self.fleet_start == Some(StartWord::Clock),
            ..FleetOptions::default()
        })
    }
}

/// True where a command line asks for a job of many processes.
///
/// # Errors
/// Its options are given without `--fleet`.
pub fn is_asked(options: &FleetOptions) -> Result<bool, Complaint> {
    if !options.is_asked_for && options.is_given() {
        let hint = "add --fleet, and start it with srun, mpiexec or mpirun".to_owned();
        return Err(Complaint::usage("options of --fleet are given without it", Some(hint)));
    }
    Ok(options.is_asked_for)
}

/// Keeps the record so far of a rank in the directory of its job.
pub struct RankKeeper<'a> {
    fleet: &'a Fleet,
    record: RunRecord,
}

impl<'a> RankKeeper<'a> {
    /// Keeps what this rank of `fleet` has measured.
    pub fn new(fleet: &'a Fleet) -> RankKeeper<'a> {
        let record = RunRecord { status: TestStatus::Incomplete, ..RunRecord::default() };
        RankKeeper { fleet, record }
    }
}

impl TestKeeper for RankKeeper<'_> {
    fn begin(&mut self, header: &RunHeader) {
        self.record.header = header.clone();
    }

    fn append(&mut self, test: &TestRecord) {
        if self.fleet.keeps_partial() {
            self.record.tests.push(test.clone());
            self.fleet.keep_partial(self.record.clone());
        }
    }
}

/// Keeps a merged record in `place`, if it `keeps`, and prints its report by `show`.
///
/// # Errors
/// Standard output cannot be written to.
pub fn keep_and_print(
    record: &RunRecord,
    place: HistoryPath,
    keeps: bool,
    form: &FormatArguments,
    show: impl FnOnce(&RunRecord, &Style, Format, &mut TextWriter) -> io::Result<()>,
) -> io::Result<Kept> {
    let keeper = HistoryKeeper::new(place, None);
    let mut keeper = if keeps { keeper.keep_whole(record) } else { keeper };
    keeper.finish_and_print(record, form, show)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_assess::fleet::MissingRank;

    #[test]
    fn missing_ranks_come_before_a_report_that_cannot_be_written() {
        let of = |missing: Vec<MissingRank>| {
            let found = FleetReport { record: Some(RunRecord::default()), missing, ..FleetReport::default() };
            tell(found, 2, |_, _| Err(Complaint::failed("cannot write", None)))
        };
        let missing = MissingRank { rank: 1, host: String::new(), reason: String::new() };
        assert_eq!(of(vec![missing]).ok(), Some(Exit::Partial));
        assert_eq!(of(Vec::new()).unwrap_err().exit, Exit::Failed);
    }

    #[test]
    fn rank_0_without_a_report_has_not_succeeded() {
        let left = |is_reporter| leave(FleetEnd::Met(None), 2, is_reporter, |_, _| Ok(Exit::Done));
        assert_eq!(left(true).ok(), Some(Exit::Partial));
        assert_eq!(left(false).ok(), Some(Exit::Done));
    }
}
