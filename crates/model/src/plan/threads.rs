//! Properties of a job's threads, files and end, which do not change its requests.

use serde::{Deserialize, Serialize};

use super::{FlowPlan, IoPriority, LatencyTarget, LeastRates, RequestPriorities, SteadyStatePlan};
use crate::{Nanos, PerOp, is_default};

/// Properties of the threads of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadPlan {
    /// CPU priority, -20 to 19; `None` = that of the process.
    pub nice: Option<i8>,
    /// Priority of all its requests.
    pub io_priority: Option<IoPriority>,
    /// NUMA nodes whose CPUs it may run on; empty = all.
    pub cpu_nodes: Vec<u32>,
    /// Where its memory is allocated; `None` = as the kernel decides.
    pub memory: Option<MemoryPolicy>,
    /// Memory that each clone locks, in bytes.
    pub locked_memory: u64,
    /// Shell command before the first request, and after the last one.
    pub prerun: Option<String>,
    /// As `prerun`, at the end.
    pub postrun: Option<String>,
    /// Start once all workers of this job, by its index, have ended.
    pub wait_for: Option<usize>,
    /// What they act as, and change on the machine.
    pub host: HostPlan,
    /// Share of the requests of several jobs.
    pub flow: FlowPlan,
    /// Requests that have another priority than `io_priority`.
    pub request_priorities: RequestPriorities,
    /// Threads of their own execute the requests of a synchronous engine, one per request in flight.
    pub offload: bool,
}

/// As whom the threads of a job act, and what they change on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPlan {
    /// Their user.
    pub user: Option<u32>,
    /// Their group.
    pub group: Option<u32>,
    /// Their control group for I/O.
    pub control_group: Option<ControlGroupPlan>,
    /// The I/O scheduler of the devices under their files.
    pub scheduler: Option<String>,
    /// The clock that tells when they started; `None` = the time of day.
    pub start_clock: Option<u32>,
}

/// A control group of Linux.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlGroupPlan {
    /// Its path below the mount of the hierarchy.
    pub name: String,
    /// Its weight for I/O, 100 to 1000; `None` = the kernel's default.
    pub weight: Option<u32>,
    /// It is not removed at the end of the run.
    pub is_kept: bool,
}

/// The NUMA nodes on which memory is allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPolicy {
    /// How the nodes are used.
    pub mode: MemoryMode,
    /// The nodes; empty for `Default` and `Local`.
    pub nodes: Vec<u32>,
}

/// How the nodes of a policy are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMode {
    /// The policy of the process.
    Default,
    /// The first node, and others if it is full.
    Prefer,
    /// These nodes only.
    Bind,
    /// These nodes in turn.
    Interleave,
    /// The node of the CPU that allocates.
    Local,
}

/// What ends a worker early, and the other jobs that its end ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndPlan {
    /// errno values of reads after which the worker continues.
    pub ignored_of_reads: Vec<i32>,
    /// As `ignored_of_reads`, of writes, trims and syncs.
    pub ignored_of_writes: Vec<i32>,
    /// A request that takes longer ends the worker with an error.
    pub max_latency: PerOp<Option<Nanos>>,
    /// A failed worker ends the other jobs within `exit_scope`.
    pub exit_on_error: bool,
    /// The jobs that `exitall` and `exitall_on_error` end.
    pub exit_scope: ExitScope,
    /// Rates below which the worker fails.
    pub least_rates: LeastRates,
    /// The steady state that ends the worker, or all workers of a group that is reported as one.
    pub steady_state: SteadyStatePlan,
    /// The latency that the queue depth is chosen for; a target of 0 = none.
    pub latency_target: LatencyTarget,
}

/// How files are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileUsage {
    /// Files are created empty when they are opened, and grow as they are written.
    #[serde(skip_serializing_if = "is_default")]
    pub create_on_open: bool,
    /// The range begins at the end of the file.
    #[serde(rename = "file_append", skip_serializing_if = "is_default")]
    pub append: bool,
    /// Write until the file system is full.
    #[serde(skip_serializing_if = "is_default")]
    pub fill_device: bool,
    /// Read the range into the page cache before the start.
    #[serde(skip_serializing_if = "is_default")]
    pub pre_read: bool,
    /// fsync every file when it is closed.
    #[serde(skip_serializing_if = "is_default")]
    pub fsync_on_close: bool,
    /// Sync the file systems at the end.
    #[serde(skip_serializing_if = "is_default")]
    pub end_syncfs: bool,
    /// Advice to the kernel on the use of files.
    #[serde(rename = "fadvise_hint", skip_serializing_if = "is_default")]
    pub advice: FileAdvice,
    /// Life time of written data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_hint: Option<WriteHint>,
    /// Locks that each request takes.
    #[serde(rename = "lockfile", skip_serializing_if = "is_default")]
    pub locking: FileLocking,
    /// Writes are atomic (RWF_ATOMIC).
    #[serde(skip_serializing_if = "is_default")]
    pub atomic: bool,
    /// Write back ranges of the page cache.
    #[serde(rename = "sync_file_range", skip_serializing_if = "Option::is_none")]
    pub range_sync: Option<RangeSync>,
}

/// The lock on its file that each request holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileLocking {
    /// None.
    #[default]
    None,
    /// One request at a time.
    Exclusive,
    /// Several reads, or one other request.
    ReadWrite,
}

/// sync_file_range(2) on what was written since the last sync of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RangeSync {
    /// Writes between two; never 0.
    pub every: u32,
    /// Wait for earlier write-back.
    pub wait_before: bool,
    /// Begin the write-back.
    pub write: bool,
    /// Wait for its end.
    pub wait_after: bool,
}

/// Advice to the kernel on the use of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileAdvice {
    /// Nothing.
    None,
    /// What the offsets are.
    #[default]
    ByOffsets,
    /// Random accesses.
    Random,
    /// Sequential accesses.
    Sequential,
    /// Data that is used once.
    NoReuse,
}

/// The life time of written data, as a hint to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteHint {
    /// No life time.
    None,
    /// Short.
    Short,
    /// Medium.
    Medium,
    /// Long.
    Long,
    /// Extremely long.
    Extreme,
}

/// The other jobs that the end of a job ends, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitScope {
    /// Those of its reporting group.
    #[default]
    Group,
    /// All that run; the next phase follows.
    Stonewall,
    /// All of the run.
    All,
}
