//! `--fleet` of `fathom fio`: one rank of a job that a launcher started.

use std::io;
use std::path::Path;

use fathom_assess::fleet::{Fleet, FleetEnd, FleetFiles, FleetJob, FleetPlace};
use fathom_assess::{TestKeeper, engine_rows, host_facts};
use fathom_model::{Nanos, RunPlan};
use fathom_options::{
    EngineRow, FleetOptions, Invocation, OptionError, ParseEnvironment, parse_command_line,
};
use fathom_record::{RunHeader, RunRecord, TestMeta, TestRecord, TestStatus, test_record};
use fathom_report::fio::idleness::CpuIdleness;
use fathom_runner::RunControl;
use fathom_stats::RunOutcome;

use super::sink::Sink;
use super::{machine_numbers, named, refusal};
use crate::exit::{Complaint, Exit};
use crate::ranks;
use crate::ranks::fio_jobs::{CapturedFiles, fit, only_prints, take_role};
use crate::store::{self, HistoryKeeper};

/// How often a rank keeps its record so far.
const PARTIAL_EVERY: Nanos = Nanos::from_secs(10);

/// What came of the words about other ranks.
pub enum Joined {
    /// There are none.
    Alone,
    /// The ranks have met.
    Rank(Box<FioRank>),
    /// They have not, and the user was told.
    Parted(Exit),
}

/// This process as a rank.
pub struct FioRank {
    fleet: Fleet,
    files: FleetFiles,
}

/// What a rank has measured.
pub struct RankRun {
    pub record: RunRecord,
    /// Why nothing was measured.
    pub failure: Option<String>,
    /// Why it ended before its time.
    pub interrupted: Option<String>,
    pub sink: Sink,
    pub idleness: Option<CpuIdleness>,
    /// `--keep` was given.
    pub keeps: bool,
}

/// Joins and meets the other ranks where the words ask for it.
///
/// # Errors
/// No launcher started this process, or the job files of rank 0 cannot be used.
pub fn join(words: &[String]) -> Result<Joined, Complaint> {
    let options = FleetOptions::scan(words)?;
    if !ranks::is_asked(&options).map_err(named)? || only_prints(words) {
        return Ok(Joined::Alone);
    }
    let job = ranks::join(options.clone()).map_err(named)?;
    let read = if job.rank() == 0 { read_files(words, &job, &options) } else { Ok(FleetFiles::default()) };
    let (files, refusal) = match read {
        Ok(files) => (Ok(files), None),
        Err(refusal) => (Err(refusal.message.clone()), Some(refusal)),
    };
    match (ranks::meet(job, words, files), refusal) {
        // Rank 0 says it with its place and its hint.
        (Err(_), Some(refusal)) => Err(refusal),
        (Err(exit), None) => Ok(Joined::Parted(exit)),
        (Ok((fleet, files)), _) => Ok(Joined::Rank(Box::new(FioRank { fleet, files }))),
    }
}

/// The files that rank 0 reads for all ranks.
fn read_files(words: &[String], job: &FleetJob, options: &FleetOptions) -> Result<FleetFiles, Complaint> {
    let (captured, place) = (CapturedFiles::default(), job.place());
    parse_command_line(
        &expand(words, &place),
        &ParseEnvironment {
            engines: &engine_rows(),
            read_file: &|path| captured.read(path, super::read_job_file),
            variable: &|name| place.variable(name).or_else(|| std::env::var(name).ok()),
            machine: machine_numbers(host_facts().cpus),
        },
    )?;
    captured.finish(options).map_err(|error| refusal(format!("fio: {error}"), None))
}

fn expand(words: &[String], place: &FleetPlace) -> Vec<String> {
    words.iter().map(|word| place.expand(word)).collect()
}

/// The words with the values of the variables that tell the place of a rank.
pub fn expanded(words: &[String], rank: Option<&FioRank>) -> Vec<String> {
    rank.map_or_else(|| words.to_vec(), |rank| expand(words, rank.fleet.place()))
}

/// The value of a variable in a job file.
pub fn variable(name: &str, rank: Option<&FioRank>) -> Option<String> {
    let of_rank = rank.and_then(|rank| rank.fleet.place().variable(name));
    of_rank.or_else(|| std::env::var(name).ok())
}

/// Reads a job file: that of rank 0, where it has read it.
///
/// # Errors
/// It cannot be read.
pub fn read_job_file(path: &Path, rank: Option<&FioRank>) -> io::Result<Vec<u8>> {
    match rank.and_then(|rank| rank.files.jobs.get(&path.display().to_string())) {
        Some(text) => Ok(text.clone().into_bytes()),
        None => super::read_job_file(path),
    }
}

impl FioRank {
    /// True for the rank that reports.
    pub fn reports(&self) -> bool {
        self.fleet.reports()
    }

    /// Controls a run whose phases start on all ranks together.
    pub fn control(&self) -> RunControl {
        self.fleet.control(RunControl::default())
    }

    /// What keeps the record so far; `None` without a directory for it.
    pub fn partial(&self) -> Option<PartialRecords<'_>> {
        let fleet = &self.fleet;
        fleet.keeps_partial().then_some(PartialRecords { fleet, next: PARTIAL_EVERY, is_asked: false })
    }

    /// The jobs of the role of this rank.
    ///
    /// # Errors
    /// The roles, or the options of this one, cannot be used.
    pub fn take_role(&self, invocation: &mut Invocation, engines: &[EngineRow]) -> Result<(), Complaint> {
        let role = self.files.role(self.fleet.place()).map_err(named)?;
        role.map_or(Ok(()), |role| take_role(invocation, &role, engines))
            .map_err(|error: OptionError| error.into())
    }

    /// Fits the plan to the place of this rank.
    ///
    /// # Errors
    /// The jobs cannot share their target.
    pub fn fit(&self, plan: &mut RunPlan) -> Result<(), Complaint> {
        fit(plan, self.fleet.place(), self.fleet.options()).map_err(named)
    }

    /// Leaves the job without having measured.
    pub fn fail(self, reason: &str) {
        let (ranks, reports) = (self.fleet.place().ranks, self.reports());
        let end = self.fleet.fail(reason);
        // This rank says why by itself.
        let is_own = |end: &FleetEnd| matches!(end, FleetEnd::Refused(said) if said.ends_with(reason));
        let is_reporter = reports && !is_own(&end);
        let _ = ranks::leave(end, ranks, is_reporter, |_, _| Ok(Exit::FioSetup));
    }

    /// Leaves the job with what this rank has measured; rank 0 reports on all.
    ///
    /// # Errors
    /// The report cannot be written.
    pub fn leave(self, run: RankRun) -> Result<Exit, Complaint> {
        let RankRun { record, failure, interrupted, mut sink, idleness, keeps } = run;
        let (ranks, reports) = (self.fleet.place().ranks, self.reports());
        let stopped = interrupted.is_some();
        let end = match failure.filter(|_| !stopped) {
            Some(reason) => self.fleet.fail(&reason),
            None => self.fleet.end(record, interrupted),
        };
        ranks::leave(end, ranks, reports, |mut record, notes| {
            record.header.notes.extend(notes);
            if keeps {
                keep(&record);
            }
            sink.report(&record, idleness)?;
            let failed = record.tests.iter().flat_map(|test| &test.jobs).filter(|job| job.error.is_some());
            Ok(if stopped { Exit::FioInterrupted } else { Exit::FioJobs(failed.count()) })
        })
    }
}

impl RankRun {
    /// Of a run whose thread is stuck: there is nothing.
    pub fn stuck(sink: Sink) -> RankRun {
        let failure = Some("the device does not respond".to_owned());
        RankRun {
            record: RunRecord::default(),
            failure,
            interrupted: None,
            sink,
            idleness: None,
            keeps: false,
        }
    }
}

/// Keeps the merged run in the history.
fn keep(record: &RunRecord) {
    let mut keeper = HistoryKeeper::new(store::place(None, true), None);
    keeper.begin(&record.header);
    record.tests.iter().for_each(|test| keeper.append(test));
    keeper.finish(record);
}

/// Keeps the record so far of a rank, every ten seconds.
pub struct PartialRecords<'a> {
    fleet: &'a Fleet,
    next: Nanos,
    /// The outcome so far was asked for.
    is_asked: bool,
}

impl PartialRecords<'_> {
    /// True when the next record is due.
    pub fn is_due(&mut self, elapsed: Nanos) -> bool {
        let is_due = elapsed >= self.next;
        if is_due {
            self.next = elapsed.plus(PARTIAL_EVERY);
            self.is_asked = true;
        }
        is_due
    }

    /// True where an outcome so far is for it, once.
    pub fn takes(&mut self) -> bool {
        std::mem::take(&mut self.is_asked)
    }

    /// Keeps the record of what ran so far.
    pub fn keep(&self, header: &RunHeader, meta: &TestMeta, plan: &RunPlan, outcome: &RunOutcome) {
        let status = TestStatus::Incomplete;
        let reason = Some("record so far of a rank that did not end its run".to_owned());
        let test = test_record(meta.clone(), plan, outcome.clone());
        let test = TestRecord { status, interrupted: reason.clone(), reason, ..test };
        let header = header.clone();
        self.fleet.keep_partial(RunRecord { status, header, tests: vec![test], ..RunRecord::default() });
    }
}
