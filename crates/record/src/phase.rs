//! What one worker did in one phase: the counters of `fathom-stats` in a form that can be stored.

use serde::{Deserialize, Serialize};

use fathom_model::Op;

use crate::IntervalRecord;
use crate::wire::{is_default, wide};

/// Exact moments of integer samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MomentsRecord {
    /// Number of samples.
    pub count: u64,
    /// Sum of the samples.
    #[serde(with = "wide")]
    pub sum: u128,
    /// Sum of the squared samples.
    #[serde(with = "wide")]
    pub sum_squares: u128,
    /// Least sample; 0 without samples.
    pub min: u64,
    /// Greatest sample; 0 without samples.
    pub max: u64,
}

/// Latencies of one kind, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyRecord {
    /// Exact count, sums, least and greatest.
    pub moments: MomentsRecord,
    /// Sparse histogram: `[bin, count]` ascending, bins as in `fathom_stats::histogram`.
    pub bins: Vec<(u16, u64)>,
}

/// What a schedule of requests adds to one operation: times that count from when each was due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenLoopRecord {
    /// Due to completed.
    pub response: LatencyRecord,
    /// Due, or since when there was room for it, to start: what the driver itself was late.
    pub late: LatencyRecord,
    /// Longest time from due to start, whatever the reason, ns.
    pub latest_ns: u64,
    /// Requests that were due and had found no room when issuing ended.
    pub backlog: u64,
}

/// One operation over one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpRecord {
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
    #[serde(skip_serializing_if = "is_default")]
    pub slat: LatencyRecord,
    /// Issued to completed.
    #[serde(skip_serializing_if = "is_default")]
    pub clat: LatencyRecord,
    /// Start to completed.
    #[serde(skip_serializing_if = "is_default")]
    pub lat: LatencyRecord,
    /// Bandwidth per full 500 ms window, KiB/s.
    #[serde(skip_serializing_if = "is_default")]
    pub bandwidth_windows: MomentsRecord,
    /// IOPS per full 500 ms window.
    #[serde(skip_serializing_if = "is_default")]
    pub iops_windows: MomentsRecord,
    /// What a schedule adds; left out where there is none.
    #[serde(skip_serializing_if = "is_default")]
    pub open_loop: OpenLoopRecord,
}

/// Processor use of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuRecord {
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

/// What threads of the kernel did on behalf of one worker; none of it is in its [`CpuRecord`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelThreadsRecord {
    /// Most threads seen at once that carry out requests which would have made the submitter wait.
    pub workers: u32,
    /// CPU time of those, ns.
    pub workers_ns: u64,
    /// CPU time of the thread that submits in the worker's place, ns.
    pub submitter_ns: u64,
}

/// Requests by the depth at which they were issued: 1, 2-3, 4-7, 8-15, 16-31, 32-63, 64 and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DepthRecord(pub [u64; 7]);

/// Calls by the number of requests they moved: 0, 1-4, 5-8, 9-16, 17-32, 33-64, more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BatchRecord(pub [u64; 7]);

/// One phase (ramp or measured) of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseRecord {
    /// Start, ns since the start of the run.
    pub start_ns: u64,
    /// End, ns since the start of the run; includes draining what was in flight.
    pub end_ns: u64,
    /// When a schedule ended and only what was in flight went on, ns since the start of the run; 0 where there is none.
    #[serde(skip_serializing_if = "is_default")]
    pub schedule_end_ns: u64,
    /// Reads.
    #[serde(skip_serializing_if = "is_default")]
    pub read: OpRecord,
    /// Writes.
    #[serde(skip_serializing_if = "is_default")]
    pub write: OpRecord,
    /// Trims.
    #[serde(skip_serializing_if = "is_default")]
    pub trim: OpRecord,
    /// fsync and fdatasync that completed.
    #[serde(skip_serializing_if = "is_default")]
    pub syncs: u64,
    /// Latency of fsync and fdatasync.
    #[serde(skip_serializing_if = "is_default")]
    pub sync_lat: LatencyRecord,
    /// fsync and fdatasync that failed.
    #[serde(skip_serializing_if = "is_default")]
    pub syncs_failed: u64,
    /// Depth at which requests were issued, syncs included.
    pub depth: DepthRecord,
    /// Batch sizes of submissions.
    pub submit: BatchRecord,
    /// Batch sizes of completions.
    pub complete: BatchRecord,
    /// Processor use.
    pub cpu: CpuRecord,
    /// What threads of the kernel did on the worker's behalf.
    #[serde(skip_serializing_if = "is_default")]
    pub kernel_threads: KernelThreadsRecord,
    /// Counts per interval, ascending; those in which nothing completed are kept.
    #[serde(skip_serializing_if = "is_default")]
    pub series: Vec<IntervalRecord>,
}

impl PhaseRecord {
    /// The record of a data operation. Panics for a sync operation, which has none.
    pub fn op(&self, op: Op) -> &OpRecord {
        match op {
            Op::Read => &self.read,
            Op::Write => &self.write,
            Op::Trim => &self.trim,
            Op::Sync | Op::Datasync => panic!("sync operations have no data record"),
        }
    }

    /// Length of the phase, ns.
    pub fn elapsed_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}
