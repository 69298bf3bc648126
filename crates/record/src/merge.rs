//! Several workers as one: added up for our own outputs, and in fio's manner for its.

use std::collections::BTreeMap;

use fathom_model::Op;
use fathom_model::plan::OnError;
use serde::{Deserialize, Serialize};

use crate::{
    ErrorCount, JobRecord, LatencyClasses, Moments, PhaseOutcome, PlanRecord, TestRecord, VerifyOutcome,
};

/// All workers as one job. Counters and histograms are added; what cannot be added is taken from the first (name,
/// description, thread), from the last (options, depth, as fio does), or from the first that has it (error).
/// Window statistics are pooled; fio's sums over clones are in [`EntryOp`]. No jobs give an empty record.
pub fn merge_jobs(jobs: &[&JobRecord]) -> JobRecord {
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else { return JobRecord::default() };
    if jobs.len() == 1 {
        return (*first).clone();
    }
    let ramps: Vec<&PhaseOutcome> = jobs.iter().filter_map(|job| job.ramp.as_ref()).collect();
    let measured: Vec<&PhaseOutcome> = jobs.iter().map(|job| &job.measured).collect();
    let kept = jobs.iter().map(|job| job.slowest.len()).max().unwrap_or(0);
    let mut slowest: Vec<_> = jobs.iter().flat_map(|job| job.slowest.iter().cloned()).collect();
    slowest.sort_by_key(|slow| std::cmp::Reverse(slow.lat_ns));
    slowest.truncate(kept);
    let mut stalls: Vec<_> = jobs.iter().flat_map(|job| job.stalls.iter().cloned()).collect();
    stalls.sort_by_key(|stall| stall.start_ns);
    let on_error = OnError {
        continue_read: jobs.iter().any(|job| job.plan.on_error.continue_read),
        continue_write: jobs.iter().any(|job| job.plan.on_error.continue_write),
        continue_verify: jobs.iter().any(|job| job.plan.on_error.continue_verify),
    };
    let least = |known: u64, other: u64| if known == 0 { other } else { known.min(other) };
    JobRecord {
        name: first.name.clone(),
        description: first.description.clone(),
        group: first.group,
        phase: first.phase,
        group_reporting: last.group_reporting,
        host: first.host,
        job: first.job,
        clone: first.clone,
        thread_id: first.thread_id,
        thread_wording: first.thread_wording,
        started_unix_ms: jobs.iter().map(|job| job.started_unix_ms).fold(0, least),
        global_options: last.global_options.clone(),
        options: last.options.clone(),
        plan: PlanRecord { depth: last.plan.depth, on_error, ..first.plan.clone() },
        worker: first.worker.clone(),
        error: jobs.iter().find_map(|job| job.error.clone()),
        verified: merge_verified(jobs),
        steady: jobs.iter().find_map(|job| job.steady.clone()),
        latency: jobs.iter().find_map(|job| job.latency),
        stuck: jobs.iter().any(|job| job.stuck),
        ramp: (!ramps.is_empty()).then(|| merge_phases(&ramps)),
        measured: merge_phases(&measured),
        errors: merge_errors(jobs),
        slowest,
        // What one worker waited for says nothing of others.
        silences: Default::default(),
        stalls,
        workers: merge_sums(jobs),
    }
}

/// What the workers have in sum, where any of the jobs stands for several.
fn merge_sums(jobs: &[&JobRecord]) -> Option<Box<WorkerSums>> {
    jobs.iter().any(|job| job.workers.is_some()).then(|| {
        let mut sums = WorkerSums::default();
        jobs.iter().for_each(|job| sums.add(&job.sums()));
        Box::new(sums)
    })
}

fn merge_verified(jobs: &[&JobRecord]) -> Option<VerifyOutcome> {
    let mut all = jobs.iter().filter_map(|job| job.verified.as_ref());
    let first = all.next()?.clone();
    Some(all.fold(first, |sum, other| VerifyOutcome {
        checked: sum.checked + other.checked,
        unchecked: sum.unchecked + other.unchecked,
        bad: sum.bad + other.bad,
        unsaved: sum.unsaved.or(other.unsaved.clone()),
        first_bad: sum.first_bad.into_iter().chain(other.first_bad.iter().cloned()).collect(),
    }))
}

fn merge_errors(jobs: &[&JobRecord]) -> Vec<ErrorCount> {
    let mut counts: BTreeMap<(Op, i32), u64> = BTreeMap::new();
    for error in jobs.iter().flat_map(|job| &job.errors) {
        *counts.entry((error.op, error.errno)).or_default() += error.count;
    }
    counts.into_iter().map(|((op, errno), count)| ErrorCount { op, errno, count }).collect()
}

/// Phases of several workers as one.
fn merge_phases(phases: &[&PhaseOutcome]) -> PhaseOutcome {
    let mut phases = phases.iter().copied();
    let Some(mut sum) = phases.next().cloned() else { return PhaseOutcome::default() };
    phases.for_each(|phase| sum.merge(phase));
    sum
}

/// Window statistics of one report entry. Over several workers they are sums, as fio gives them: of the least, the
/// greatest and the mean values, and of the squared deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Windows {
    /// Windows of all workers.
    pub samples: u64,
    /// Sum of each worker's least window.
    pub min: u64,
    /// Sum of each worker's greatest window.
    pub max: u64,
    /// Sum of each worker's mean.
    pub mean: f64,
    /// Sum of the squared deviations of each worker's windows from its mean.
    pub squares: f64,
}

impl Windows {
    /// Adds the windows of one worker.
    pub fn add(&mut self, moments: &Moments) {
        if moments.count == 0 {
            return;
        }
        self.samples += moments.count;
        self.min += moments.min;
        self.max += moments.max;
        self.mean += moments.mean();
        self.squares += moments.stdev().powi(2) * (moments.count - 1) as f64;
    }

    /// Adds the windows of other workers.
    pub fn merge(&mut self, other: &Windows) {
        self.samples += other.samples;
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.squares += other.squares;
    }

    /// Standard deviation over all samples; 0 below two.
    pub fn stdev(&self) -> f64 {
        if self.samples < 2 { 0.0 } else { (self.squares / (self.samples - 1) as f64).sqrt() }
    }
}

/// What one entry of fio's report says of one operation beyond its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryOp {
    /// Running time, ms, at least 1; 0 where the operation moved nothing.
    pub runtime_ms: u64,
    /// KiB/s per window.
    pub bandwidth: Windows,
    /// IOPS per window.
    pub iops: Windows,
}

impl EntryOp {
    /// What a worker says of one operation.
    fn of(worker: &JobRecord, op: Op) -> EntryOp {
        let counted = worker.measured.op(op);
        let mut entry = EntryOp::default();
        entry.bandwidth.add(&counted.bandwidth_windows);
        entry.iops.add(&counted.iops_windows);
        if counted.bytes > 0 || counted.issued > 0 {
            let least = u64::from(!worker.is_of_earlier_run(op));
            entry.runtime_ms = (worker.runtime_ns(op) / 1_000_000).max(least);
        }
        entry
    }

    /// Adds what other workers say: the longest running time, and the windows of all.
    fn merge(&mut self, other: &EntryOp) {
        self.runtime_ms = self.runtime_ms.max(other.runtime_ms);
        self.bandwidth.merge(&other.bandwidth);
        self.iops.merge(&other.iops);
    }
}

/// What several workers have in sum and their merged counters do not show, in fio's manner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerSums {
    /// Workers.
    pub workers: u32,
    /// Sum of their measured times, ns.
    pub job_runtime_ns: u64,
    /// Read, write, trim.
    pub ops: [EntryOp; 3],
}

impl WorkerSums {
    /// Those of one worker.
    pub(crate) fn of(worker: &JobRecord) -> WorkerSums {
        WorkerSums {
            workers: 1,
            job_runtime_ns: worker.measured.elapsed_ns(),
            ops: Op::DATA.map(|op| EntryOp::of(worker, op)),
        }
    }

    /// Adds those of other workers.
    pub(crate) fn add(&mut self, other: &WorkerSums) {
        self.workers = self.workers.saturating_add(other.workers);
        self.job_runtime_ns = self.job_runtime_ns.saturating_add(other.job_runtime_ns);
        self.ops.iter_mut().zip(&other.ops).for_each(|(mine, theirs)| mine.merge(theirs));
    }
}

/// One entry of fio's report: a worker, or the workers of a group merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportEntry {
    /// The worker, or all of them merged.
    pub job: JobRecord,
    /// Workers in it.
    pub workers: u32,
    /// Read, write, trim.
    pub ops: [EntryOp; 3],
    /// Sum of the workers' measured times, ns.
    pub job_runtime_ns: u64,
    /// Completion latencies of all operations by fio's classes.
    pub classes: LatencyClasses,
    /// From the start of the test to its end, ns.
    pub elapsed_ns: u64,
}

impl ReportEntry {
    /// Builds the entry of these workers. At least one is expected.
    pub fn new(jobs: &[&JobRecord], elapsed_ns: u64) -> ReportEntry {
        let job = merge_jobs(jobs);
        let mut sums = WorkerSums::default();
        jobs.iter().for_each(|worker| sums.add(&worker.sums()));
        let mut classes = LatencyClasses::default();
        Op::DATA.into_iter().for_each(|op| classes.add(&job.measured.op(op).clat));
        let WorkerSums { workers, job_runtime_ns, ops } = sums;
        ReportEntry { job, workers, ops, job_runtime_ns, classes, elapsed_ns }
    }

    /// What it says of a data operation. Panics for a sync operation, which has none.
    pub fn op(&self, op: Op) -> &EntryOp {
        assert!(!op.is_sync(), "sync operations have no entry");
        &self.ops[op as usize]
    }
}

/// The entries of fio's report, in its order: one per worker, except that a worker of a job with `group_reporting`
/// joins the entry before it where that is of the same group. Jobs with `stats=0` have none.
pub fn entries(test: &TestRecord) -> Vec<ReportEntry> {
    let mut members: Vec<Vec<&JobRecord>> = Vec::new();
    for job in test.jobs.iter().filter(|job| job.plan.measure.stats) {
        match members.last_mut() {
            Some(group) if job.group_reporting && group[0].group == job.group => group.push(job),
            _ => members.push(vec![job]),
        }
    }
    members.iter().map(|group| ReportEntry::new(group, test.elapsed_ns)).collect()
}
