//! `--fleet` of `fathom fio`: one rank of a job that a launcher started.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use fathom_assess::fleet::{Fleet, FleetEnd, FleetFiles, FleetJob, FleetPlace, FleetRole, FleetRoles};
use fathom_assess::{AssessError, engine_rows, host_facts};
use fathom_model::plan::SizeSpec;
use fathom_model::{JobPlan, Nanos, RunPlan};
use fathom_options::{
    EngineRow, FleetOptions, Invocation, OptionError, ParseEnvironment, parse_command_line,
};
use fathom_record::{RunHeader, RunRecord, TestMeta, TestRecord, TestStatus, test_record};
use fathom_report::fio::idleness::CpuIdleness;
use fathom_runner::RunControl;
use fathom_stats::RunOutcome;
use fathom_sys::files::JOB_FILE;

use super::sink::Sink;
use super::{machine_numbers, named, refusal};
use crate::exit::{Complaint, Exit};
use crate::ranks;
use crate::store::{self, HistoryKeeper};

/// How often a rank keeps its record so far.
const PARTIAL_EVERY: Nanos = Nanos::from_secs(10);

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

/// Joins and meets the other ranks where the words ask for it. The inner error is how the program ends where they have parted.
///
/// # Errors
/// No launcher started this process, or the job files of rank 0 cannot be used.
pub fn join(words: &[String]) -> Result<Result<Option<FioRank>, Exit>, Complaint> {
    let options = FleetOptions::scan(words)?;
    if !ranks::is_asked(&options).map_err(named)? || only_prints(words) {
        return Ok(Ok(None));
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
        (Err(exit), None) => Ok(Err(exit)),
        (Ok((fleet, files)), _) => Ok(Ok(Some(FioRank { fleet, files }))),
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
        let stopped = interrupted.is_some();
        let measured = failure.filter(|_| !stopped).map_or(Ok(record), Err);
        ranks::end(self.fleet, measured, interrupted, false, |record| {
            if keeps {
                HistoryKeeper::new(store::place(None, true), None).keep_whole(&record).finish(&record);
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

/// Options of fio that only print, or check what was written: nothing is measured, and no other rank is needed.
const NO_RUN: [&str; 8] =
    ["help", "version", "cmdhelp", "enghelp", "parse-only", "showcmd", "idle-prof", "crctest"];

/// True where the words ask for something to be printed, and for no run.
pub fn only_prints(words: &[String]) -> bool {
    words.iter().any(|word| {
        let Some(name) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { return false };
        let (name, value) = name.split_once('=').unwrap_or((name, ""));
        match name {
            "h" | "v" => true,
            "idle-prof" => value == "calibrate",
            name => NO_RUN.contains(&name),
        }
    })
}

/// The files that are read through it.
#[derive(Default)]
pub struct CapturedFiles(RefCell<BTreeMap<String, String>>);

impl CapturedFiles {
    /// Reads a file by `read` and keeps its text.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read(&self, path: &Path, read: impl FnOnce(&Path) -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
        let bytes = read(path)?;
        if let Ok(text) = String::from_utf8(bytes.clone()) {
            self.0.borrow_mut().insert(path.display().to_string(), text);
        }
        Ok(bytes)
    }

    /// The files, and the roles of a job with these options.
    ///
    /// # Errors
    /// The file of roles cannot be read or used.
    pub fn finish(self, options: &FleetOptions) -> Result<FleetFiles, String> {
        let roles = options.plan.as_deref().map(|path| {
            let text = JOB_FILE.read_text(path).map_err(|error| error.to_string())?;
            let name = path.display().to_string();
            FleetRoles::parse(&name, &text).map_err(|error| error.to_string())?;
            Ok::<_, String>(text)
        });
        Ok(FleetFiles { jobs: self.0.into_inner(), roles: roles.transpose()? })
    }
}

/// The jobs of a role, with its options.
///
/// # Errors
/// An option is not valid, or the role names a job that does not exist.
pub fn take_role(
    invocation: &mut Invocation,
    role: &FleetRole,
    engines: &[EngineRow],
) -> Result<(), OptionError> {
    if let Some(unknown) =
        role.jobs.iter().find(|name| invocation.sections.iter().all(|section| section.name != **name))
    {
        let problem = format!("does not exist, and role '{}' runs it", role.name);
        return Err(OptionError::job(unknown, &problem, "name jobs of the job file in the role"));
    }
    if !role.jobs.is_empty() {
        invocation.sections.retain(|section| role.jobs.contains(&section.name));
    }
    let options: Vec<(&str, String)> = role.options().collect();
    let pairs: Vec<(&str, &str)> = options.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for section in &mut invocation.sections {
        *section = section.with_pairs(&pairs, engines)?;
    }
    Ok(())
}

/// Fits the plan to the place of this rank: jobs are named after its role, and use its share of their target.
///
/// # Errors
/// A job has no size that can be divided, or something else decides its range.
pub fn fit(plan: &mut RunPlan, place: &FleetPlace, options: &FleetOptions) -> Result<(), AssessError> {
    for job in &mut plan.jobs {
        if let Some(role) = &place.role {
            job.name = format!("{role}/{}", job.name);
        }
        if options.splits_by_offset {
            take_share(job, place)?;
        }
    }
    Ok(())
}

/// Fits a job to the share of this rank of each of its files.
fn take_share(job: &mut JobPlan, place: &FleetPlace) -> Result<(), AssessError> {
    let problem = |text: &str| {
        AssessError::usage(
            format!("--fleet-split=offset: job '{}' has {text}", job.name),
            "give each job a size in bytes: size=100g",
        )
    };
    if job.io.file_size.is_some() {
        return Err(problem("a filesize, which decides its range"));
    }
    if job.files.usage.append {
        return Err(problem("file_append, which decides its range"));
    }
    let Some(SizeSpec::Bytes(size)) = job.io.size else {
        return Err(problem("no size in bytes"));
    };
    let SizeSpec::Bytes(offset) = job.io.offset else {
        return Err(problem("an offset in percent"));
    };
    let sizes = &job.io.block_size;
    let block = sizes.read.largest().max(sizes.write.largest()).max(sizes.trim.largest()).max(1);
    // The files of a job share its size.
    let files = job.clones.iter().map(|clone| clone.paths.len() as u64).max().unwrap_or(1).max(1);
    let share = size / files / u64::from(place.ranks.max(1)) / block * block;
    if share == 0 {
        return Err(problem("less than a block for each rank"));
    }
    job.io.size = Some(SizeSpec::Bytes(share * files));
    job.io.offset = SizeSpec::Bytes(offset + share * u64::from(place.rank));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::plan::ClonePlan;

    #[test]
    fn what_only_prints_needs_no_other_rank() {
        let check = |line: &str| only_prints(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(check("--fleet --help") && check("-v") && check("--fleet --cmdhelp=all"));
        assert!(!check("--fleet --name=help --rw=read job.fio") && !check("--idle-prof=system"));
    }

    #[test]
    fn shares_follow_one_another() {
        let mut job = JobPlan { name: "a".to_owned(), ..Default::default() };
        job.io.size = Some(SizeSpec::Bytes(1 << 30));
        let fleet = FleetOptions { splits_by_offset: true, ..FleetOptions::default() };
        let fitted = |rank: u32| {
            let mut plan = RunPlan { jobs: vec![job.clone()], ..RunPlan::default() };
            let role = Some("w".to_owned());
            let place = FleetPlace { rank, ranks: 4, role, ..FleetPlace::default() };
            fit(&mut plan, &place, &fleet).unwrap();
            let job = plan.jobs.remove(0);
            (job.name, job.io.offset, job.io.size)
        };
        let share = Some(SizeSpec::Bytes(1 << 28));
        assert_eq!(fitted(0), ("w/a".to_owned(), SizeSpec::Bytes(0), share));
        assert_eq!(fitted(3), ("w/a".to_owned(), SizeSpec::Bytes(3 << 28), share));
        job.io.size = None;
        let mut plan = RunPlan { jobs: vec![job], ..RunPlan::default() };
        let error = fit(&mut plan, &FleetPlace::default(), &fleet).unwrap_err();
        assert_eq!(error.to_string(), "--fleet-split=offset: job 'a' has no size in bytes");
    }

    #[test]
    fn each_file_is_divided() {
        let paths = vec!["/d/a".into(), "/d/b".into()];
        let clones = vec![ClonePlan { paths, seed: 0, cpus: Vec::new() }];
        let mut job = JobPlan { name: "a".to_owned(), clones, ..Default::default() };
        job.io.size = Some(SizeSpec::Bytes(1 << 30));
        let place = FleetPlace { rank: 3, ranks: 4, ..FleetPlace::default() };
        let mut fitted = job.clone();
        take_share(&mut fitted, &place).unwrap();
        // Each file has 512 MiB, of which a rank uses 128 MiB.
        assert_eq!(fitted.io.size, Some(SizeSpec::Bytes(2 << 27)));
        assert_eq!(fitted.io.offset, SizeSpec::Bytes(3 << 27));
        job.io.file_size = Some(1 << 29);
        let error = take_share(&mut job, &place).unwrap_err();
        assert!(error.to_string().ends_with("a filesize, which decides its range"), "{error}");
    }
}
