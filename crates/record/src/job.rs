//! One worker of one job: what it was told, and what it did.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;
use crate::{CloneRecord, PhaseRecord, PlanRecord};

/// One worker (a clone of a job).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobRecord {
    /// Reported name.
    pub name: String,
    /// Free text shown with the result.
    #[serde(skip_serializing_if = "is_default")]
    pub description: Option<String>,
    /// Reporting group.
    pub group: u32,
    /// Phase of the run it belonged to.
    pub phase: u32,
    /// All workers of the group are reported as one.
    pub group_reporting: bool,
    /// Index of the job in the plan.
    pub job: u32,
    /// Clone number within the job, from 0.
    pub clone: u32,
    /// Kernel thread id; 0 in virtual time.
    pub thread_id: u32,
    /// Called a thread, not a process, in fio's wording.
    pub said_thread: bool,
    /// When it began, ms since the epoch; 0 in virtual time.
    pub started_unix_ms: u64,
    /// The engine.
    pub engine: String,
    /// Requests kept in flight.
    pub iodepth: u32,
    /// fio's word for the pattern (`randrw`).
    pub rw: String,
    /// Bytes per request, the largest where sizes are mixed.
    pub block_sizes: BlockSizes,
    /// Bytes of the smallest request, where the sizes of an operation are mixed.
    #[serde(skip_serializing_if = "is_default")]
    pub smallest_block_sizes: Option<BlockSizes>,
    /// The global options as said, canonical names, in order.
    #[serde(skip_serializing_if = "is_default")]
    pub global_options: Vec<(String, String)>,
    /// The job's own options as said, canonical names, in order.
    pub options: Vec<(String, String)>,
    /// The plan that all clones of the job share.
    pub plan: PlanRecord,
    /// What this clone has for itself.
    pub worker: CloneRecord,
    /// Which percentiles fio's outputs show.
    pub percentiles: PercentileRecord,
    /// Failed requests did not end the worker.
    #[serde(skip_serializing_if = "is_default")]
    pub continue_on_error: bool,
    /// Why it ended early.
    #[serde(skip_serializing_if = "is_default")]
    pub error: Option<FailureRecord>,
    /// It was still inside the kernel when the run was given up.
    #[serde(skip_serializing_if = "is_default")]
    pub stuck: bool,
    /// The ramp, where there was one.
    #[serde(skip_serializing_if = "is_default")]
    pub ramp: Option<PhaseRecord>,
    /// The measured part.
    pub measured: PhaseRecord,
    /// Failed requests per operation and errno, over both phases.
    #[serde(skip_serializing_if = "is_default")]
    pub errors: Vec<ErrorCountRecord>,
    /// The slowest requests of the measured part, slowest first.
    #[serde(skip_serializing_if = "is_default")]
    pub slowest: Vec<SlowRecord>,
    /// Times in which nothing completed although requests were in flight, over both phases.
    #[serde(skip_serializing_if = "is_default")]
    pub stalls: Vec<StallRecord>,
}

impl JobRecord {
    /// Bytes of the smallest request of each operation.
    pub fn smallest_blocks(&self) -> BlockSizes {
        self.smallest_block_sizes.unwrap_or(self.block_sizes)
    }
}

/// Bytes per request, per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockSizes {
    /// Reads.
    pub read: u64,
    /// Writes.
    pub write: u64,
    /// Trims.
    pub trim: u64,
}

/// Which percentiles fio's outputs show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PercentileRecord {
    /// Percentages, ascending.
    pub list: Vec<f64>,
    /// Of slat.
    pub slat: bool,
    /// Of clat.
    pub clat: bool,
    /// Of lat.
    pub lat: bool,
}

/// Why a worker ended early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureRecord {
    /// Positive errno, or 0 where the failure has none.
    pub errno: i32,
    /// What was attempted, on what, and what went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// How often one errno was met with one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorCountRecord {
    /// `read`, `write`, `trim`, `sync` or `datasync`.
    pub op: String,
    /// Positive errno.
    pub errno: i32,
    /// How often.
    pub count: u64,
}

/// One of the slowest requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowRecord {
    /// `read`, `write`, `trim` or `sync`.
    pub op: String,
    /// Start, ns since the start of the run.
    pub start_ns: u64,
    /// Total latency, ns.
    pub lat_ns: u64,
    /// Offset, bytes.
    pub offset: u64,
    /// Requests in flight when it completed, itself included.
    pub depth: u32,
}

/// A time in which nothing completed although requests were in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StallRecord {
    /// When the last request before it completed, or the first of it began, ns since the start of the run.
    pub start_ns: u64,
    /// How long nothing completed, ns; as far as it was seen where it was not over when the run ended.
    pub length_ns: u64,
    /// Requests in flight when it was noticed.
    pub depth: u32,
    /// Offsets of requests in flight, bytes: some of them, as far as they are known.
    #[serde(skip_serializing_if = "is_default")]
    pub offsets: Vec<u64>,
    /// Requests completed again, or the run left none in flight.
    pub over: bool,
}
