//! The record of a test from its plan and its outcome, whose counts are stored as they are.

use fathom_model::plan::IoPriority;
use fathom_model::{JobPlan, RunPlan};
use fathom_stats::{PhaseOutcome, PriorityLatency, RunOutcome, WorkerOutcome};

use crate::*;

/// Id and title of a test; everything else comes from the plan and the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestMeta {
    /// Name of the test, unique within the run.
    pub id: String,
    /// The same for people.
    pub title: String,
    /// The fio command line that does the same.
    pub fio: String,
}

/// The record of one test that ran.
///
/// The status follows from the outcome: `failed` where a worker failed, `incomplete` where the run was interrupted or
/// a worker got stuck, `complete` otherwise. Workers of jobs that are not in `plan` are left out.
pub fn test_record(meta: TestMeta, plan: &RunPlan, outcome: RunOutcome) -> TestRecord {
    let jobs: Vec<JobRecord> =
        outcome.workers.into_iter().filter_map(|worker| job_record(plan, worker)).collect();
    let failure = jobs.iter().find_map(|job| job.error.as_ref());
    let stuck = jobs.iter().any(|job| job.stuck);
    let (status, reason) = match (failure, &outcome.interrupted) {
        (Some(failure), _) => (TestStatus::Failed, Some(failure.message.clone())),
        (None, Some(why)) => (TestStatus::Incomplete, Some(why.clone())),
        (None, None) if stuck => (TestStatus::Incomplete, Some(STUCK.to_owned())),
        (None, None) => (TestStatus::Complete, None),
    };
    TestRecord {
        id: meta.id,
        title: meta.title,
        status,
        reason,
        fio: meta.fio,
        started_unix_ms: outcome.started_unix_ms,
        elapsed_ns: outcome.elapsed_ns,
        jobs,
        disks: outcome.disks,
        host_load: outcome.host_load,
        notes: outcome.notes,
        interrupted: outcome.interrupted,
        ..TestRecord::default()
    }
}

const STUCK: &str = "a request did not come back from the kernel";

impl TestRecord {
    /// The record of a test that was not run, and why.
    pub fn skipped(meta: TestMeta, reason: impl Into<String>) -> TestRecord {
        TestRecord::without_jobs(meta, TestStatus::Skipped, reason.into())
    }

    /// The record of a test that could not be started, and why.
    pub fn failed(meta: TestMeta, reason: impl Into<String>) -> TestRecord {
        TestRecord::without_jobs(meta, TestStatus::Failed, reason.into())
    }

    fn without_jobs(meta: TestMeta, status: TestStatus, reason: String) -> TestRecord {
        TestRecord {
            id: meta.id,
            title: meta.title,
            fio: meta.fio,
            status,
            reason: Some(reason),
            ..TestRecord::default()
        }
    }
}

/// Where jobs that may be reported together differ in priority, the requests of one without priorities of their own have that of the
/// job, as in fio: so the counts of all priorities add up to those of the operation.
fn by_priority(run: &RunPlan, plan: &JobPlan, phase: &mut PhaseOutcome) {
    let threads = &plan.threads;
    let differs = |other: &JobPlan| {
        let has_own = !other.threads.request_priorities.is_empty();
        other.group == plan.group && (has_own || other.threads.io_priority != threads.io_priority)
    };
    if !run.jobs.iter().any(differs) {
        return;
    }
    let priority = threads.io_priority.map_or(0, IoPriority::value);
    for op in phase.ops_mut() {
        let latency = if plan.measure.lat_percentiles { &op.lat } else { &op.clat };
        if op.priorities.is_empty() && latency.moments.count > 0 {
            op.priorities.push(PriorityLatency { priority, latency: latency.clone() });
        }
    }
}

fn job_record(run: &RunPlan, mut worker: WorkerOutcome) -> Option<JobRecord> {
    let plan = run.jobs.get(worker.job)?;
    worker.ramp.iter_mut().chain([&mut worker.measured]).for_each(|phase| by_priority(run, plan, phase));
    Some(JobRecord {
        name: plan.name.clone(),
        description: plan.description.clone(),
        group: plan.group,
        phase: plan.phase,
        group_reporting: plan.group_reporting,
        job: worker.job as u32,
        clone: worker.clone as u32,
        thread_id: worker.thread_id,
        thread_wording: plan.thread_wording,
        started_unix_ms: worker.started_unix_ms,
        global_options: run.global_options.clone(),
        options: plan.options.clone(),
        plan: PlanRecord::of(plan),
        worker: plan.clones.get(worker.clone).map(CloneRecord::of).unwrap_or_default(),
        error: worker.failure,
        verified: worker.verified,
        steady: worker.steady,
        latency: worker.latency,
        stuck: worker.stuck,
        ramp: worker.ramp,
        measured: worker.measured,
        errors: worker.errors,
        slowest: worker.slowest,
        silences: worker.silences,
        stalls: worker.stalls,
        ..JobRecord::default()
    })
}
