//! Back from what is stored to what was counted: the inverse of [`crate::from_stats`], value by value.

use fathom_model::Op;
use fathom_stats::{
    BatchCounts, CpuUsage, DepthCounts, DiskCounters, DiskOutcome, ErrorCount, Histogram, Interval,
    IntervalOp, KernelThreads, Latency, Moments, OpOutcome, OpenLoop, PhaseOutcome, Series, SlowRequest,
    Stall, WorkerFailure, WorkerOutcome,
};

use crate::from_stats::copy_counters;
use crate::*;

impl MomentsRecord {
    /// The moments that were stored.
    pub fn to_stats(&self) -> Moments {
        let MomentsRecord { count, sum, sum_squares, max, .. } = *self;
        let min = if count == 0 { Moments::default().min } else { self.min };
        Moments { count, sum, sum_squares, min, max }
    }
}

impl LatencyRecord {
    /// The latency that was stored.
    pub fn to_stats(&self) -> Latency {
        Latency { histogram: self.histogram(), moments: self.moments.to_stats() }
    }

    /// Its histogram alone.
    pub(crate) fn histogram(&self) -> Histogram {
        Histogram::from_sparse(self.bins.iter().map(|&(bin, count)| (usize::from(bin), count)))
    }
}

impl OpRecord {
    /// The counters that were stored.
    pub fn to_stats(&self) -> OpOutcome {
        OpOutcome {
            issued: self.issued,
            ios: self.ios,
            bytes: self.bytes,
            short: self.short,
            failed: self.failed,
            slat: self.slat.to_stats(),
            clat: self.clat.to_stats(),
            lat: self.lat.to_stats(),
            bandwidth_windows: self.bandwidth_windows.to_stats(),
            iops_windows: self.iops_windows.to_stats(),
            open_loop: self.open_loop.to_stats(),
        }
    }
}

impl OpenLoopRecord {
    /// What a schedule added, as it was stored.
    pub fn to_stats(&self) -> OpenLoop {
        OpenLoop {
            response: self.response.to_stats(),
            late: self.late.to_stats(),
            latest_ns: self.latest_ns,
            backlog: self.backlog,
        }
    }
}

impl CpuRecord {
    /// The processor use that was stored.
    pub fn to_stats(&self) -> CpuUsage {
        CpuUsage {
            user_ns: self.user_ns,
            system_ns: self.system_ns,
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            major_faults: self.major_faults,
            minor_faults: self.minor_faults,
        }
    }
}

impl KernelThreadsRecord {
    /// What threads of the kernel did, as it was stored.
    pub fn to_stats(&self) -> KernelThreads {
        let KernelThreadsRecord { workers, workers_ns, submitter_ns } = *self;
        KernelThreads { workers, workers_ns, submitter_ns }
    }
}

impl IntervalOpRecord {
    /// The counts that were stored.
    pub fn to_stats(&self) -> IntervalOp {
        IntervalOp {
            ios: self.ios,
            bytes: self.bytes,
            clat_sum_ns: self.clat_sum_ns,
            clat_bins: self.clat_bins.clone(),
        }
    }
}

impl IntervalRecord {
    /// The interval that was stored.
    pub fn to_stats(&self) -> Interval {
        Interval {
            tick: self.tick,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            ops: [self.read.to_stats(), self.write.to_stats(), self.trim.to_stats()],
        }
    }
}

impl PhaseRecord {
    /// The phase that was stored.
    pub fn to_stats(&self) -> PhaseOutcome {
        PhaseOutcome {
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            schedule_end_ns: self.schedule_end_ns,
            ops: [self.read.to_stats(), self.write.to_stats(), self.trim.to_stats()],
            syncs: self.syncs,
            sync_lat: self.sync_lat.to_stats(),
            syncs_failed: self.syncs_failed,
            depth: DepthCounts(self.depth.0),
            submit: BatchCounts(self.submit.0),
            complete: BatchCounts(self.complete.0),
            cpu: self.cpu.to_stats(),
            kernel_threads: self.kernel_threads.to_stats(),
            series: Series { intervals: self.series.iter().map(IntervalRecord::to_stats).collect() },
        }
    }
}

impl FailureRecord {
    /// The failure that was stored.
    pub fn to_stats(&self) -> WorkerFailure {
        WorkerFailure { errno: self.errno, message: self.message.clone(), hint: self.hint.clone() }
    }
}

/// The operation of that name; a name no version knows counts as `sync`.
fn op_name(name: &str) -> &'static str {
    let known = [Op::Read, Op::Write, Op::Trim, Op::Sync, Op::Datasync];
    known.iter().map(|op| op.name()).find(|&known| known == name).unwrap_or(Op::Sync.name())
}

impl ErrorCountRecord {
    /// The count that was stored.
    pub fn to_stats(&self) -> ErrorCount {
        ErrorCount { op: op_name(&self.op), errno: self.errno, count: self.count }
    }
}

impl StallRecord {
    /// The stall that was stored.
    pub fn to_stats(&self) -> Stall {
        let StallRecord { start_ns, length_ns, depth, ref offsets, over } = *self;
        Stall { start_ns, length_ns, depth, offsets: offsets.clone(), over }
    }
}

impl SlowRecord {
    /// The request that was stored.
    pub fn to_stats(&self) -> SlowRequest {
        let data = Op::DATA.iter().position(|op| op.name() == self.op);
        SlowRequest {
            start_ns: self.start_ns,
            lat_ns: self.lat_ns,
            op: data.unwrap_or(Op::DATA.len()) as u8,
            offset: self.offset,
            depth: self.depth,
        }
    }
}

impl JobRecord {
    /// What the worker did, as it was stored.
    pub fn to_stats(&self) -> WorkerOutcome {
        WorkerOutcome {
            job: self.job as usize,
            clone: self.clone as usize,
            thread_id: self.thread_id,
            started_unix_ms: self.started_unix_ms,
            ramp: self.ramp.as_ref().map(PhaseRecord::to_stats),
            measured: self.measured.to_stats(),
            errors: self.errors.iter().map(ErrorCountRecord::to_stats).collect(),
            slowest: self.slowest.iter().map(SlowRecord::to_stats).collect(),
            failure: self.error.as_ref().map(FailureRecord::to_stats),
            stuck: self.stuck,
            stalls: self.stalls.iter().map(StallRecord::to_stats).collect(),
        }
    }
}

impl DiskCountersRecord {
    /// The counters that were stored.
    pub fn to_stats(&self) -> DiskCounters {
        copy_counters!(self, DiskCounters)
    }
}

impl DiskRecord {
    /// What the kernel counted, as it was stored.
    pub fn to_stats(&self) -> DiskOutcome {
        let interval = |i: &DiskIntervalRecord| (i.tick, i.start_ns, i.end_ns, i.counters.to_stats());
        DiskOutcome {
            name: self.name.clone(),
            under: self.under.clone(),
            counters: self.counters.to_stats(),
            elapsed_ns: self.elapsed_ns,
            intervals: self.intervals.iter().map(interval).collect(),
        }
    }
}
