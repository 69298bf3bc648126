//! Failures of a job of many ranks, planted for sure in a phase of it, and what must be true of the job afterwards.
//!
//! A job has two ranks on each of three hosts. One rank fails, another one is held so that the phase lasts until then; which ones
//! depends on the number of the repeat, rank 0 among them.

mod verdict;

use std::time::Duration;

use fathom_sys::clock::monotonic_ns;
use rustix::process::{Signal, kill_process};

use crate::cluster::{Cluster, Launcher};
use crate::fathom::{fathom, other_version_path};
use crate::program::{Ended, Program};
use crate::staged_job::{Stage, StagedJob, is_measuring};
use crate::wait::{pause, wait_patiently};

pub use verdict::FailureOutcome;

/// Longest wait for a job to come to the phase in which it is to fail.
const STAGING: Duration = Duration::from_secs(30);
/// The deadline that a failure runs into, those of other phases, and the grace, s.
const DEADLINE_S: u64 = 5;
const FAR_DEADLINE_S: u64 = 40;
const GRACE_S: u64 = 3;
/// Runtime of a job, and of one that fails after its ranks have kept the records so far, s.
const RUNTIME_S: u64 = 3;
const LONG_RUNTIME_S: u64 = 13;
/// From a deadline to the end of the job by ranks other than 0, s.
const WITHOUT_RANK_0_S: u64 = 6;
/// What launchers and a busy machine take beyond that, s.
const LAUNCHER_S: u64 = 10;
/// What Slurm waits for a host that it cannot reach, s.
const SLURM_S: u64 = 60;
/// How much later each repeat fails where the phase lasts.
const STEP: Duration = Duration::from_millis(100);
/// Room for another repeat where the records of a job do not fit, bytes: their marks have about one, a record several pages.
const ROOM_STEP: usize = 9 * 4096;

/// A phase of a job of many ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankPhase {
    /// The ranks get to know each other.
    Join,
    /// A rank prepares its files.
    Prepare,
    /// A rank is ready, and waits for the start.
    Start,
    /// All ranks measure.
    Measuring,
    /// The runs have ended, and rank 0 collects the records.
    Collect,
}

impl RankPhase {
    /// All of them, in order.
    pub const ALL: [RankPhase; 5] =
        [RankPhase::Join, RankPhase::Prepare, RankPhase::Start, RankPhase::Measuring, RankPhase::Collect];

    /// A word for it.
    pub const fn name(self) -> &'static str {
        match self {
            RankPhase::Join => "join",
            RankPhase::Prepare => "prepare",
            RankPhase::Start => "start",
            RankPhase::Measuring => "measuring",
            RankPhase::Collect => "collect",
        }
    }
}

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetFailure {
    /// A rank is killed in this phase.
    Killed(RankPhase),
    /// A rank is stopped.
    Stopped,
    /// The host of a rank is cut off.
    CableCut,
    /// The file system of `--fleet-out` is full.
    FullDisk,
    /// A rank has another version.
    OtherVersion,
}

impl FleetFailure {
    /// All of them.
    pub const ALL: [FleetFailure; 9] = [
        FleetFailure::Killed(RankPhase::Join),
        FleetFailure::Killed(RankPhase::Prepare),
        FleetFailure::Killed(RankPhase::Start),
        FleetFailure::Killed(RankPhase::Measuring),
        FleetFailure::Killed(RankPhase::Collect),
        FleetFailure::Stopped,
        FleetFailure::CableCut,
        FleetFailure::FullDisk,
        FleetFailure::OtherVersion,
    ];

    /// Words for it.
    pub const fn name(self) -> &'static str {
        match self {
            FleetFailure::Killed(RankPhase::Join) => "killed-join",
            FleetFailure::Killed(RankPhase::Prepare) => "killed-prepare",
            FleetFailure::Killed(RankPhase::Start) => "killed-start",
            FleetFailure::Killed(RankPhase::Measuring) => "killed-measuring",
            FleetFailure::Killed(RankPhase::Collect) => "killed-collect",
            FleetFailure::Stopped => "stopped",
            FleetFailure::CableCut => "cable-cut",
            FleetFailure::FullDisk => "full-disk",
            FleetFailure::OtherVersion => "other-version",
        }
    }
}

/// One failure of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedFailure {
    /// How the ranks are started.
    pub launcher: Launcher,
    /// What fails.
    pub failure: FleetFailure,
    /// The place depends on it.
    pub repeat: usize,
}

impl PlantedFailure {
    /// The phase in which it happens; `None` where it is there from the beginning.
    pub fn phase(&self) -> Option<RankPhase> {
        match self.failure {
            FleetFailure::Killed(phase) => Some(phase),
            FleetFailure::Stopped | FleetFailure::CableCut => Some(RankPhase::ALL[self.repeat % 5]),
            FleetFailure::FullDisk | FleetFailure::OtherVersion => None,
        }
    }

    /// The rank that fails, or whose host does.
    pub const fn victim(&self) -> usize {
        self.repeat % StagedJob::RANKS
    }

    /// The second way of two to fail in a phase.
    const fn is_other_way(&self) -> bool {
        match self.failure {
            FleetFailure::Killed(_) => (self.repeat / 2) % 2 == 1,
            _ => self.repeat >= 5,
        }
    }

    /// True where the failure comes after the first records so far.
    fn is_late(&self) -> bool {
        self.phase() == Some(RankPhase::Measuring) && self.repeat >= 8
    }

    /// The rank that is held so that the phase lasts, and where. In some phases that is the one which fails: it has not come as far as
    /// the others then.
    fn held(&self) -> Option<(Stage, usize)> {
        let other = (self.victim() + 1 + self.repeat % (StagedJob::RANKS - 1)) % StagedJob::RANKS;
        let either = if self.is_other_way() { self.victim() } else { other };
        match self.phase()? {
            RankPhase::Join => Some((Stage::Begin, either)),
            RankPhase::Prepare => Some((Stage::Prepare, self.victim())),
            RankPhase::Start => Some((Stage::Prepare, other)),
            RankPhase::Measuring => None,
            RankPhase::Collect => Some((Stage::End, either)),
        }
    }

    /// Runs the job on a cluster, which serves for nothing else meanwhile.
    ///
    /// # Panics
    /// When the job does not come to the phase.
    pub fn run(&self, cluster: &Cluster) -> FailureOutcome {
        let mut job = StagedJob::new(cluster, self.launcher);
        match self.failure {
            FleetFailure::FullDisk => job.keep_in_small_directory(self.repeat * ROOM_STEP),
            FleetFailure::OtherVersion => job.replace(self.victim(), other_version_path(), "0.0.0"),
            _ => {}
        }
        let held = self.held();
        if let Some((stage, rank)) = held {
            job.hold(stage, rank);
        }
        job.start(&self.options());
        let came = wait_patiently(STAGING, || self.has_come(&job));
        assert!(came, "{self:?}: the job has not come to its phase:\n{}", job.printed());
        let had_ended = (0..StagedJob::RANKS).filter(|rank| has_ended_its_run(&job, *rank)).collect();
        let begun_ns = monotonic_ns();
        self.plant(cluster, &job, held);
        let ended = job.ended_within(self.limit());
        let seconds = (monotonic_ns() - begun_ns) as f64 / 1e9;
        let are_gone = || job.ranks().is_empty();
        let left =
            if wait_patiently(Duration::from_secs(LAUNCHER_S), are_gone) { Vec::new() } else { job.ranks() };
        let left = left.into_iter().map(|(rank, _)| rank).collect();
        if self.failure == FleetFailure::CableCut {
            cluster.mend(job.host_of(self.victim()));
        }
        let (kept, merged) = merge(&job);
        let host = job.host_of(self.victim());
        FailureOutcome { planted: *self, host, ended, seconds, had_ended, left, kept, merged }
    }

    fn options(&self) -> Vec<String> {
        let deadline = |phases: &[RankPhase]| {
            let is_near = self.phase().is_some_and(|phase| phases.contains(&phase));
            if is_near { DEADLINE_S } else { FAR_DEADLINE_S }
        };
        let runtime = if self.is_late() { LONG_RUNTIME_S } else { RUNTIME_S };
        vec![
            format!("--runtime={runtime}"),
            format!("--fleet-join={}s", deadline(&[RankPhase::Join])),
            format!("--fleet-prepare={}s", deadline(&[RankPhase::Prepare, RankPhase::Start])),
            format!("--fleet-grace={GRACE_S}s"),
        ]
    }

    /// Longest time from the failure to the end of the job, by the deadlines.
    fn limit(&self) -> Duration {
        let runtime = if self.is_late() { LONG_RUNTIME_S } else { RUNTIME_S };
        let waiting_s = match self.phase() {
            Some(RankPhase::Join | RankPhase::Prepare) => DEADLINE_S,
            // Some of these ranks may still begin to measure.
            Some(RankPhase::Start) => DEADLINE_S + runtime + GRACE_S,
            Some(RankPhase::Measuring) => runtime + GRACE_S,
            Some(RankPhase::Collect) => 2 * GRACE_S,
            None => FAR_DEADLINE_S,
        };
        let slurm_s = match (self.failure, self.launcher) {
            (FleetFailure::CableCut, Launcher::SrunPmi2 | Launcher::SrunPmix) => SLURM_S,
            _ => 0,
        };
        Duration::from_secs(waiting_s + WITHOUT_RANK_0_S + LAUNCHER_S + slurm_s)
    }

    /// True once the job is in the phase in which it is to fail.
    fn has_come(&self, job: &StagedJob<'_>) -> bool {
        let mut all = 0..StagedJob::RANKS;
        let held = self.held().map_or(usize::MAX, |(_, rank)| rank);
        let victim = self.victim();
        match self.phase() {
            None => true,
            Some(RankPhase::Join) => {
                all.all(|rank| job.is_at(Stage::Begin, rank)) && (held == victim || job.has_begun(victim))
            }
            Some(RankPhase::Prepare) => {
                let mut are_ready = || all.all(|rank| rank == victim || job.is_at(Stage::Prepare, rank));
                job.is_at(Stage::Prepare, victim) && (self.is_other_way() || are_ready())
            }
            Some(RankPhase::Start) => is_ready(job, victim) && job.is_at(Stage::Prepare, held),
            Some(RankPhase::Measuring) if self.is_late() => all.all(|rank| job.record(rank).is_some()),
            Some(RankPhase::Measuring) => {
                job.is_at(Stage::Prepare, victim) && {
                    let ranks = job.ranks();
                    ranks.len() == StagedJob::RANKS
                        && ranks.into_iter().all(|(_, process)| is_measuring(process))
                }
            }
            Some(RankPhase::Collect) => {
                job.is_at(Stage::End, held) && all.all(|rank| rank == held || has_ended_its_run(job, rank))
            }
        }
    }

    /// Lets it fail, and whoever is held go on.
    fn plant(&self, cluster: &Cluster, job: &StagedJob<'_>, held: Option<(Stage, usize)>) {
        let release = || held.into_iter().for_each(|(stage, rank)| job.release(stage, rank));
        if matches!(self.phase(), Some(RankPhase::Join | RankPhase::Measuring)) {
            pause(STEP * self.repeat as u32);
        }
        let signal = match self.failure {
            FleetFailure::Killed(_) => Signal::KILL,
            FleetFailure::Stopped => Signal::STOP,
            FleetFailure::CableCut => {
                cluster.cut(job.host_of(self.victim()));
                return release();
            }
            FleetFailure::FullDisk | FleetFailure::OtherVersion => return,
        };
        let process = job.process(self.victim()).expect("the victim runs");
        if self.phase() == Some(RankPhase::Start) && self.is_other_way() {
            release();
        }
        // Where it has ended meanwhile the outcome shows it.
        let _ = kill_process(process, signal);
        release();
    }
}

/// True where a rank waits for the start of the first phase.
fn is_ready(job: &StagedJob<'_>, rank: usize) -> bool {
    job.mark(rank).is_some_and(|mark| mark["meeting"] == 1)
}

/// True where a rank has written its record and waits for the end of all.
fn has_ended_its_run(job: &StagedJob<'_>, rank: usize) -> bool {
    job.mark(rank).is_some_and(|mark| mark["phase"] == "the end of all runs")
}

/// The ranks that have a record, and what `fathom merge` makes of them.
fn merge(job: &StagedJob<'_>) -> (Vec<usize>, Option<Ended>) {
    let records: Vec<_> = (0..StagedJob::RANKS).filter_map(|rank| Some((rank, job.record(rank)?))).collect();
    let kept = records.iter().map(|(rank, _)| *rank).collect();
    if records.is_empty() {
        return (kept, None);
    }
    let mut command = fathom(job.home());
    command.args(["merge", "--no-history", "--json", &format!("--ranks={}", StagedJob::RANKS)]);
    command.args(records.iter().map(|(_, file)| file));
    let merged = Program::start(&mut command).ended_within(STAGING);
    (kept, merged)
}
