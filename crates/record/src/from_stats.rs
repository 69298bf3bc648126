//! From what was planned and counted to what is stored. Nothing is rounded or dropped on the way.

use fathom_model::plan::IoPlan;
use fathom_model::{BlockSize, Op, RunPlan};
use fathom_stats::{
    CpuUsage, DiskCounters, DiskOutcome, ErrorCount, Interval, IntervalOp, KernelThreads, Latency, Moments,
    OpOutcome, OpenLoop, PhaseOutcome, RunOutcome, SlowRequest, Stall, WorkerFailure, WorkerOutcome,
};

use crate::*;

/// What a test is called and said to be; everything else comes from the plan and the outcome.
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
/// The status follows from the outcome: `failed` where a worker failed, `incomplete` where the run was broken off or
/// a worker got stuck, `complete` otherwise. Workers of jobs that are not in `plan` are left out.
pub fn test_record(meta: TestMeta, plan: &RunPlan, outcome: &RunOutcome) -> TestRecord {
    let jobs: Vec<JobRecord> = outcome.workers.iter().filter_map(|worker| job_record(plan, worker)).collect();
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
        disks: outcome.disks.iter().map(DiskRecord::from_stats).collect(),
        host_load: outcome.host_load.iter().map(HostIntervalRecord::from_stats).collect(),
        rounds: None,
        purpose: String::new(),
        needs: Vec::new(),
        content: None,
        scan: None,
        notes: outcome.notes.clone(),
        interrupted: outcome.interrupted.clone(),
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

fn job_record(run: &RunPlan, worker: &WorkerOutcome) -> Option<JobRecord> {
    let plan = run.jobs.get(worker.job)?;
    let measure = &plan.measure;
    let is_mixed = plan.io.block_size.iter().any(|(_, size)| size.split().is_some());
    Some(JobRecord {
        name: plan.name.clone(),
        description: plan.description.clone(),
        group: plan.group,
        phase: plan.phase,
        group_reporting: plan.group_reporting,
        job: worker.job as u32,
        clone: worker.clone as u32,
        thread_id: worker.thread_id,
        said_thread: plan.said_thread,
        started_unix_ms: worker.started_unix_ms,
        engine: plan.engine.name.clone(),
        iodepth: plan.depth.iodepth,
        rw: plan.io.pattern.name().to_owned(),
        block_sizes: block_sizes(&plan.io, BlockSize::largest),
        smallest_block_sizes: is_mixed.then(|| block_sizes(&plan.io, BlockSize::smallest)),
        global_options: run.global_said.clone(),
        options: plan.said.clone(),
        plan: PlanRecord::of(plan),
        worker: plan.clones.get(worker.clone).map(CloneRecord::of).unwrap_or_default(),
        percentiles: PercentileRecord {
            list: measure.percentiles.clone(),
            slat: measure.slat && measure.slat_percentiles,
            clat: measure.clat && measure.clat_percentiles,
            lat: measure.lat && measure.lat_percentiles,
        },
        continue_on_error: plan.on_error.continue_read || plan.on_error.continue_write,
        error: worker.failure.as_ref().map(FailureRecord::from_stats),
        stuck: worker.stuck,
        ramp: worker.ramp.as_ref().map(PhaseRecord::from_stats),
        measured: PhaseRecord::from_stats(&worker.measured),
        errors: worker.errors.iter().map(ErrorCountRecord::from_stats).collect(),
        slowest: worker.slowest.iter().map(SlowRecord::from_stats).collect(),
        stalls: worker.stalls.iter().map(StallRecord::from_stats).collect(),
    })
}

fn block_sizes(io: &IoPlan, of: fn(&BlockSize) -> u64) -> BlockSizes {
    let sizes = &io.block_size;
    BlockSizes { read: of(&sizes.read), write: of(&sizes.write), trim: of(&sizes.trim) }
}

impl MomentsRecord {
    /// Stores moments.
    pub fn from_stats(moments: &Moments) -> Self {
        let Moments { count, sum, sum_squares, max, .. } = *moments;
        MomentsRecord { count, sum, sum_squares, min: moments.min_or_zero(), max }
    }
}

impl LatencyRecord {
    /// Stores a latency.
    pub fn from_stats(latency: &Latency) -> Self {
        LatencyRecord {
            moments: MomentsRecord::from_stats(&latency.moments),
            bins: latency.histogram.sparse().map(|(bin, count)| (bin as u16, count)).collect(),
        }
    }
}

impl OpRecord {
    /// Stores the counters of one operation.
    pub fn from_stats(op: &OpOutcome) -> Self {
        OpRecord {
            issued: op.issued,
            ios: op.ios,
            bytes: op.bytes,
            short: op.short,
            failed: op.failed,
            slat: LatencyRecord::from_stats(&op.slat),
            clat: LatencyRecord::from_stats(&op.clat),
            lat: LatencyRecord::from_stats(&op.lat),
            bandwidth_windows: MomentsRecord::from_stats(&op.bandwidth_windows),
            iops_windows: MomentsRecord::from_stats(&op.iops_windows),
            open_loop: OpenLoopRecord::from_stats(&op.open_loop),
        }
    }
}

impl OpenLoopRecord {
    /// Stores what a schedule added.
    pub fn from_stats(open_loop: &OpenLoop) -> Self {
        OpenLoopRecord {
            response: LatencyRecord::from_stats(&open_loop.response),
            late: LatencyRecord::from_stats(&open_loop.late),
            latest_ns: open_loop.latest_ns,
            backlog: open_loop.backlog,
        }
    }
}

impl CpuRecord {
    /// Stores processor use.
    pub fn from_stats(cpu: &CpuUsage) -> Self {
        CpuRecord {
            user_ns: cpu.user_ns,
            system_ns: cpu.system_ns,
            voluntary_switches: cpu.voluntary_switches,
            involuntary_switches: cpu.involuntary_switches,
            major_faults: cpu.major_faults,
            minor_faults: cpu.minor_faults,
        }
    }
}

impl KernelThreadsRecord {
    /// Stores what threads of the kernel did.
    pub fn from_stats(threads: &KernelThreads) -> Self {
        let KernelThreads { workers, workers_ns, submitter_ns } = *threads;
        KernelThreadsRecord { workers, workers_ns, submitter_ns }
    }
}

impl PhaseRecord {
    /// Stores one phase.
    pub fn from_stats(phase: &PhaseOutcome) -> Self {
        let [read, write, trim] = phase.ops.each_ref().map(OpRecord::from_stats);
        PhaseRecord {
            start_ns: phase.start_ns,
            end_ns: phase.end_ns,
            schedule_end_ns: phase.schedule_end_ns,
            read,
            write,
            trim,
            syncs: phase.syncs,
            sync_lat: LatencyRecord::from_stats(&phase.sync_lat),
            syncs_failed: phase.syncs_failed,
            depth: DepthRecord(phase.depth.0),
            submit: BatchRecord(phase.submit.0),
            complete: BatchRecord(phase.complete.0),
            cpu: CpuRecord::from_stats(&phase.cpu),
            kernel_threads: KernelThreadsRecord::from_stats(&phase.kernel_threads),
            series: phase.series.intervals.iter().map(IntervalRecord::from_stats).collect(),
        }
    }
}

impl IntervalRecord {
    /// Stores one interval.
    pub fn from_stats(interval: &Interval) -> Self {
        let [read, write, trim] = interval.ops.each_ref().map(IntervalOpRecord::from_stats);
        IntervalRecord {
            tick: interval.tick,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            read,
            write,
            trim,
        }
    }
}

impl IntervalOpRecord {
    /// Stores the counts of one operation in one interval.
    pub fn from_stats(op: &IntervalOp) -> Self {
        IntervalOpRecord {
            ios: op.ios,
            bytes: op.bytes,
            clat_sum_ns: op.clat_sum_ns,
            clat_bins: op.clat_bins.clone(),
        }
    }
}

impl FailureRecord {
    /// Stores a failure.
    pub fn from_stats(failure: &WorkerFailure) -> Self {
        FailureRecord { errno: failure.errno, message: failure.message.clone(), hint: failure.hint.clone() }
    }
}

impl ErrorCountRecord {
    /// Stores a count of errors.
    pub fn from_stats(error: &ErrorCount) -> Self {
        ErrorCountRecord { op: error.op.to_owned(), errno: error.errno, count: error.count }
    }
}

impl StallRecord {
    /// Stores a stall.
    pub fn from_stats(stall: &Stall) -> Self {
        let Stall { start_ns, length_ns, depth, ref offsets, over } = *stall;
        StallRecord { start_ns, length_ns, depth, offsets: offsets.clone(), over }
    }
}

impl SlowRecord {
    /// Stores a slow request.
    pub fn from_stats(slow: &SlowRequest) -> Self {
        SlowRecord {
            op: Op::DATA.get(slow.op as usize).map_or("sync", |op| op.name()).to_owned(),
            start_ns: slow.start_ns,
            lat_ns: slow.lat_ns,
            offset: slow.offset,
            depth: slow.depth,
        }
    }
}

macro_rules! copy_counters {
    ($from:expr, $to:ident) => {
        $to {
            read_ios: $from.read_ios,
            read_merges: $from.read_merges,
            read_sectors: $from.read_sectors,
            read_ticks_ms: $from.read_ticks_ms,
            write_ios: $from.write_ios,
            write_merges: $from.write_merges,
            write_sectors: $from.write_sectors,
            write_ticks_ms: $from.write_ticks_ms,
            busy_ms: $from.busy_ms,
            queue_ms: $from.queue_ms,
            discard_ios: $from.discard_ios,
            discard_sectors: $from.discard_sectors,
            flush_ios: $from.flush_ios,
            flush_ticks_ms: $from.flush_ticks_ms,
        }
    };
}
pub(crate) use copy_counters;

impl DiskCountersRecord {
    /// Stores the kernel's counters.
    pub fn from_stats(counters: &DiskCounters) -> Self {
        copy_counters!(counters, DiskCountersRecord)
    }
}

impl DiskRecord {
    /// Stores what the kernel counted for one device.
    pub fn from_stats(disk: &DiskOutcome) -> Self {
        let interval = |&(tick, start_ns, end_ns, ref counters): &(u32, u64, u64, DiskCounters)| {
            let counters = DiskCountersRecord::from_stats(counters);
            DiskIntervalRecord { tick, start_ns, end_ns, counters }
        };
        DiskRecord {
            name: disk.name.clone(),
            under: disk.under.clone(),
            counters: DiskCountersRecord::from_stats(&disk.counters),
            elapsed_ns: disk.elapsed_ns,
            intervals: disk.intervals.iter().map(interval).collect(),
        }
    }
}
