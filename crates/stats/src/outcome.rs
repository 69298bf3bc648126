//! The outcome of a run: plain data, one entry per worker, to be merged or stored.

use std::collections::BTreeMap;

use fathom_model::Op;
use serde::{Deserialize, Serialize};

use crate::{
    DATA_OPS, DiskCounters, DiskOutcome, HostInterval, LatencyOutcome, PhaseOutcome, Silences, Stall,
    SteadyOutcome,
};

/// Number of failures of one operation with one errno.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorCount {
    /// The operation.
    pub op: Op,
    /// Positive errno.
    pub errno: i32,
    /// Failed requests.
    pub count: u64,
}

/// One of the slowest requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowRequest {
    /// Start, ns since the start of the run.
    pub start_ns: u64,
    /// Total latency, ns.
    pub lat_ns: u64,
    /// The operation.
    pub op: Op,
    /// Offset in bytes.
    pub offset: u64,
    /// Requests in flight when it completed, itself included.
    pub depth: u32,
}

/// Why a worker ended early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerFailure {
    /// Positive errno, or 0 where the failure has none.
    pub errno: i32,
    /// The failed action, its object and the cause.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// What failed, where reports tell causes apart.
    #[serde(skip_serializing_if = "FailureCause::is_other")]
    pub cause: FailureCause,
}

impl WorkerFailure {
    /// A failure of something else than a request.
    pub fn new(errno: i32, message: impl Into<String>, hint: Option<&str>) -> WorkerFailure {
        let (message, hint) = (message.into(), hint.map(str::to_owned));
        WorkerFailure { errno, message, hint, cause: FailureCause::Other }
    }
}

/// What failed when a worker ended early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The message says it all.
    #[default]
    Other,
    /// A request returned an error.
    Request(FailedRequest),
    /// A request moved no data.
    NoData(FailedRequest),
    /// A request took longer than a job allows.
    MaxLatency {
        /// The request.
        request: FailedRequest,
        /// Its latency, ns.
        lat_ns: u64,
        /// The limit, ns.
        limit_ns: u64,
    },
    /// A rate was too low.
    LeastRate,
}

impl FailureCause {
    /// Whether the cause has no form of its own.
    pub fn is_other(&self) -> bool {
        *self == FailureCause::Other
    }
}

/// The request that ended a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedRequest {
    /// The operation.
    pub op: Op,
    /// Number of the worker's file.
    pub file: u32,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

/// A block that was read and does not have the data that was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BadBlock {
    /// The file.
    pub file: String,
    /// Start of the bad part in the file: the block, or an interval of it.
    pub offset: u64,
    /// Bytes of the bad part.
    pub len: u32,
    /// Start of the block.
    pub block_offset: u64,
    /// Bytes of the block.
    pub block_len: u32,
    /// What is wrong, in fio's words.
    pub problem: Vec<String>,
    /// The files with the bad block and the expected one.
    pub dumps: Vec<String>,
}

/// The result of checking the data of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyOutcome {
    /// Blocks that were checked.
    pub checked: u64,
    /// Blocks that were read and could not be checked, because the engine keeps no data.
    pub unchecked: u64,
    /// Parts of blocks that are bad.
    pub bad: u64,
    /// The first of them.
    pub first_bad: Vec<BadBlock>,
    /// Why the state of the job was not saved.
    pub unsaved: Option<String>,
}

/// The outcome of one worker.
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
    /// The ramp, if there was one.
    pub ramp: Option<PhaseOutcome>,
    /// The measured part.
    pub measured: PhaseOutcome,
    /// Failed requests per operation and errno, over both phases.
    pub errors: Vec<ErrorCount>,
    /// The slowest requests of the measured part, slowest first.
    pub slowest: Vec<SlowRequest>,
    /// Times without a completion in the measured part.
    pub silences: Silences,
    /// Why it ended early; `None` if it ended as planned.
    pub failure: Option<WorkerFailure>,
    /// The check of its data, if there was one.
    pub verified: Option<VerifyOutcome>,
    /// The steady state that was to end it, if there was one.
    pub steady: Option<SteadyOutcome>,
    /// The queue depth for a latency, if one was searched for.
    pub latency: Option<LatencyOutcome>,
    /// The worker was blocked in the kernel when the run ended; its numbers are the last that it published.
    pub stuck: bool,
    /// Stalls, over both phases.
    pub stalls: Vec<Stall>,
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
    /// CPU and pressure counters of the machine over the measured part, per interval.
    pub host_load: Vec<HostInterval>,
    /// The signal or other reason that interrupted the run.
    pub interrupted: Option<String>,
    /// Notes for the reader (a reduced queue depth, a shortened file), in order.
    pub notes: Vec<String>,
}

/// The state of a run at one moment, for progress displays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Time since the start of the run, ns.
    pub elapsed_ns: u64,
    /// Time until the expected end, ns; `None` if unknown.
    pub remaining_ns: Option<u64>,
    /// Requests per second over the last tick: read, write, trim.
    pub iops: [f64; DATA_OPS],
    /// Bytes per second over the last tick: read, write, trim.
    pub bytes_per_second: [f64; DATA_OPS],
    /// Mean completion latency over the last tick, ns; `None` without completions.
    pub clat_mean_ns: Option<u64>,
    /// Workers that are running.
    pub running: u32,
    /// Workers of the whole plan.
    pub workers: u32,
    /// State letter of each worker as fio shows them (`P` not started, `r`/`w`/`m`… running, `/` ramping, `_` done).
    pub states: String,
    /// Time without a completion although requests are in flight, ns; 0 without a stall.
    pub stalled_ns: u64,
    /// Requests in flight of the worker with the longest stall; 0 without a stall.
    pub stalled_in_flight: u64,
    /// True while every running worker is still in its ramp.
    pub ramping: bool,
    /// Length of the last tick, ns.
    pub tick_ns: u64,
    /// Requests completed in the last tick: read, write, trim.
    pub ios: [u64; DATA_OPS],
    /// Bytes completed in the last tick: read, write, trim.
    pub bytes: [u64; DATA_OPS],
    /// Sum of the completion latencies of the last tick, ns.
    pub clat_sum_ns: u64,
    /// Requests in flight at this moment, of all workers.
    pub in_flight: u64,
    /// Completion latencies of the last tick in measured parts: bins of a [`Histogram`](crate::Histogram) and their counts, in
    /// ascending order.
    pub clat_bins: Vec<(u16, u64)>,
    /// The same in ramps.
    pub ramp_clat_bins: Vec<(u16, u64)>,
    /// The kernel's counters of the target's devices and those beneath them over the last tick; none in virtual time.
    pub devices: Vec<DeviceTick>,
    /// Counters of the machine over the last tick; none in virtual time.
    pub host: Option<HostInterval>,
}

/// The kernel's counters of one device over one tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceTick {
    /// Kernel name (`nvme0n1`).
    pub name: String,
    /// Length of the tick, ns.
    pub span_ns: u64,
    /// Counts of the tick.
    pub counters: DiskCounters,
}

impl WorkerOutcome {
    /// Sets the errors from counts by `(op, errno)`.
    pub fn set_errors(&mut self, counts: &BTreeMap<(Op, i32), u64>) {
        self.errors = counts.iter().map(|(&(op, errno), &count)| ErrorCount { op, errno, count }).collect();
    }
}
