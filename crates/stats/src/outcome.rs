//! What a run amounted to: plain data, one entry per worker, ready to be merged or written down.

use std::collections::BTreeMap;

use crate::{BatchCounts, DATA_OPS, DepthCounts, HostInterval, Latency, Moments, OpenLoop, Series, Stall};

/// One operation of one worker over one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpOutcome {
    /// Requests handed to the engine.
    pub issued: u64,
    /// Requests that completed without error.
    pub ios: u64,
    /// Bytes that completed.
    pub bytes: u64,
    /// Requests that were cut short by the device and continued.
    pub short: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Start to issued.
    pub slat: Latency,
    /// Issued to completed.
    pub clat: Latency,
    /// Start to completed.
    pub lat: Latency,
    /// Bandwidth per full 500 ms window, KiB/s.
    pub bandwidth_windows: Moments,
    /// IOPS per full 500 ms window.
    pub iops_windows: Moments,
    /// What a schedule adds; empty where there is none.
    pub open_loop: OpenLoop,
}

/// Processor use of one worker, or of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    /// User time, ns.
    pub user_ns: u64,
    /// System time, ns.
    pub system_ns: u64,
    /// Switches because the thread waited.
    pub voluntary_switches: u64,
    /// Switches because the scheduler took the CPU away.
    pub involuntary_switches: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
}

impl CpuUsage {
    /// What was used since `earlier`.
    pub fn since(&self, earlier: &CpuUsage) -> CpuUsage {
        CpuUsage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
        }
    }

    /// Adds the use of another worker.
    pub fn merge(&mut self, other: &CpuUsage) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
    }
}

/// What threads of the kernel did on behalf of one worker. Their CPU time is in no [`CpuUsage`] of the worker's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelThreads {
    /// Most threads seen at once that carry out requests which would have made the submitter wait.
    pub workers: u32,
    /// CPU time of those, ns.
    pub workers_ns: u64,
    /// CPU time of the thread that submits in the worker's place, ns; 0 where the worker does so itself.
    pub submitter_ns: u64,
}

impl KernelThreads {
    /// Adds what served another worker.
    pub fn merge(&mut self, other: &KernelThreads) {
        self.workers += other.workers;
        self.workers_ns += other.workers_ns;
        self.submitter_ns += other.submitter_ns;
    }
}

/// One phase (ramp or measured) of one worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseOutcome {
    /// Start, ns on the session's clock since the start of the run.
    pub start_ns: u64,
    /// End, ns on the session's clock since the start of the run; includes draining what was in flight.
    pub end_ns: u64,
    /// When a schedule ended and only what was in flight went on, ns since the start of the run; 0 where there is none.
    pub schedule_end_ns: u64,
    /// Read, write, trim.
    pub ops: [OpOutcome; DATA_OPS],
    /// fsync and fdatasync: count and latency.
    pub syncs: u64,
    /// Latency of fsync and fdatasync.
    pub sync_lat: Latency,
    /// fsync and fdatasync that failed.
    pub syncs_failed: u64,
    /// Depth at which requests were issued, syncs included.
    pub depth: DepthCounts,
    /// Batch sizes of submissions.
    pub submit: BatchCounts,
    /// Batch sizes of completions.
    pub complete: BatchCounts,
    /// Processor use.
    pub cpu: CpuUsage,
    /// What threads of the kernel did on the worker's behalf.
    pub kernel_threads: KernelThreads,
    /// Per interval.
    pub series: Series,
}

/// How often one errno was met with one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// `read`, `write`, `trim`, `sync` or `datasync`.
    pub op: &'static str,
    /// Positive errno.
    pub errno: i32,
    /// How often.
    pub count: u64,
}

/// One of the slowest requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowRequest {
    /// Start, ns since the start of the run.
    pub start_ns: u64,
    /// Total latency, ns.
    pub lat_ns: u64,
    /// Index into `Op::DATA`, or 3 for a sync.
    pub op: u8,
    /// Offset in bytes.
    pub offset: u64,
    /// Requests in flight when it completed, itself included.
    pub depth: u32,
}

/// Why a worker ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerFailure {
    /// Positive errno, or 0 where the failure has none.
    pub errno: i32,
    /// What was attempted, on what, and what went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Everything one worker did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerOutcome {
    /// Index of the job in the plan.
    pub job: usize,
    /// Clone number within the job.
    pub clone: usize,
    /// Kernel thread id; 0 in virtual time.
    pub thread_id: u32,
    /// When the worker's job began, ms since the epoch; 0 in virtual time.
    pub started_unix_ms: u64,
    /// The ramp, where there was one.
    pub ramp: Option<PhaseOutcome>,
    /// The measured part.
    pub measured: PhaseOutcome,
    /// Failed requests per operation and errno, over both phases.
    pub errors: Vec<ErrorCount>,
    /// The slowest requests of the measured part, slowest first.
    pub slowest: Vec<SlowRequest>,
    /// Why it ended early; `None` where it ended as planned.
    pub failure: Option<WorkerFailure>,
    /// The worker was still inside the kernel when the run was given up; the numbers are what it had reported.
    pub stuck: bool,
    /// Times in which nothing completed, over both phases.
    pub stalls: Vec<Stall>,
}

/// The kernel's counters of one block device (`/proc/diskstats`); sectors are 512 bytes, ticks are ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Reads completed.
    pub read_ios: u64,
    /// Reads merged into others.
    pub read_merges: u64,
    /// Sectors read.
    pub read_sectors: u64,
    /// Time spent reading.
    pub read_ticks_ms: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Writes merged into others.
    pub write_merges: u64,
    /// Sectors written.
    pub write_sectors: u64,
    /// Time spent writing.
    pub write_ticks_ms: u64,
    /// Time with any request in flight.
    pub busy_ms: u64,
    /// Time weighted by requests in flight.
    pub queue_ms: u64,
    /// Discards completed.
    pub discard_ios: u64,
    /// Sectors discarded.
    pub discard_sectors: u64,
    /// Flushes completed.
    pub flush_ios: u64,
    /// Time spent flushing.
    pub flush_ticks_ms: u64,
}

impl DiskCounters {
    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &DiskCounters) -> DiskCounters {
        self.with(earlier, u64::wrapping_sub)
    }

    /// What was counted in both spans together.
    pub fn plus(&self, other: &DiskCounters) -> DiskCounters {
        self.with(other, u64::wrapping_add)
    }

    fn with(&self, other: &DiskCounters, combine: fn(u64, u64) -> u64) -> DiskCounters {
        macro_rules! each {
            ($($field:ident),*) => { DiskCounters { $($field: combine(self.$field, other.$field)),* } };
        }
        each!(
            read_ios,
            read_merges,
            read_sectors,
            read_ticks_ms,
            write_ios,
            write_merges,
            write_sectors,
            write_ticks_ms,
            busy_ms,
            queue_ms,
            discard_ios,
            discard_sectors,
            flush_ios,
            flush_ticks_ms
        )
    }
}

/// What the kernel counted for one device while the run went on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskOutcome {
    /// Kernel name (`nvme0n1`).
    pub name: String,
    /// Name of the device stacked on top of this one, where this is not the target itself.
    pub under: Option<String>,
    /// Differences over the measured part (from the first worker's measured start to the last one's end).
    pub counters: DiskCounters,
    /// Length of that part, ns.
    pub elapsed_ns: u64,
    /// Differences per observer tick, aligned with the workers' series: `(tick, start_ns, end_ns, counters)`.
    pub intervals: Vec<(u32, u64, u64, DiskCounters)>,
}

impl DiskOutcome {
    /// Appends an interval, or adds it to the last one where that has the same tick.
    pub fn push_interval(&mut self, interval: (u32, u64, u64, DiskCounters)) {
        match self.intervals.last_mut() {
            Some(last) if last.0 == interval.0 => {
                last.2 = interval.2;
                last.3 = last.3.plus(&interval.3);
            }
            _ => self.intervals.push(interval),
        }
    }

    /// Halves the number of intervals by adding up those with the same `tick / 2`.
    pub fn halve_intervals(&mut self) {
        for (tick, start, end, counters) in std::mem::take(&mut self.intervals) {
            self.push_interval((tick / 2, start, end, counters));
        }
    }
}

/// The outcome of one run of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOutcome {
    /// When the run began, ms since the epoch; 0 in virtual time.
    pub started_unix_ms: u64,
    /// From the start gate to the end of the last worker, ns.
    pub elapsed_ns: u64,
    /// One entry per worker, in plan order. Jobs that never started have none.
    pub workers: Vec<WorkerOutcome>,
    /// The devices under the targets.
    pub disks: Vec<DiskOutcome>,
    /// What the machine did over the measured part, interval by interval.
    pub host_load: Vec<HostInterval>,
    /// The signal or other reason that ended the run before its time.
    pub interrupted: Option<String>,
    /// Things a reader should know (a depth that was reduced, a file that was shortened), in order.
    pub notes: Vec<String>,
}

/// The state of a run at one moment, for progress displays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Since the start of the run, ns.
    pub elapsed_ns: u64,
    /// Until the expected end, ns, where one can be told.
    pub remaining_ns: Option<u64>,
    /// Requests per second over the last tick: read, write, trim.
    pub iops: [f64; DATA_OPS],
    /// Bytes per second over the last tick: read, write, trim.
    pub bytes_per_second: [f64; DATA_OPS],
    /// Mean completion latency over the last tick, ns; `None` where nothing completed.
    pub clat_mean_ns: Option<u64>,
    /// Workers running, and workers in all.
    pub running: u32,
    /// Workers of the whole plan.
    pub workers: u32,
    /// State letter of each worker as fio shows them (`P` not started, `r`/`w`/`m`… running, `/` ramping, `_` done).
    pub states: String,
    /// Nothing has completed for this long although requests are in flight, ns; 0 where all is well.
    pub stalled_ns: u64,
    /// Requests in flight of the worker that has been waiting longest; 0 where all is well.
    pub stalled_in_flight: u64,
    /// True while every running worker is still in its ramp.
    pub ramping: bool,
}

impl WorkerOutcome {
    /// Adds up errors that were counted by `(op, errno)`.
    pub fn set_errors(&mut self, counts: &BTreeMap<(&'static str, i32), u64>) {
        self.errors = counts.iter().map(|(&(op, errno), &count)| ErrorCount { op, errno, count }).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_a_disks_intervals_keeps_every_count() {
        let counters = |reads| DiskCounters { read_ios: reads, busy_ms: 10, ..DiskCounters::default() };
        let mut disk = DiskOutcome::default();
        (0..5u32).for_each(|tick| {
            disk.push_interval((
                tick,
                u64::from(tick) * 5,
                u64::from(tick) * 5 + 5,
                counters(u64::from(tick)),
            ));
        });
        disk.halve_intervals();
        let found: Vec<_> =
            disk.intervals.iter().map(|i| (i.0, i.1, i.2, i.3.read_ios, i.3.busy_ms)).collect();
        assert_eq!(found, [(0, 0, 10, 1, 20), (1, 10, 20, 5, 20), (2, 20, 25, 4, 10)]);
        assert_eq!(counters(7).since(&counters(3)), DiskCounters { read_ios: 4, ..DiskCounters::default() });
    }
}
