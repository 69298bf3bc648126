//! `RunPlan`: the meaning of the options. Immutable once resolved; the runner keeps the state of a run.
//!
//! A plan names targets but never opens them, so sizes may still be relative (`SizeSpec`); the runner turns them
//! into byte ranges when it prepares the files.
//!
//! Records store the parts of a job's plan unchanged: fields have fio's names, sizes are in bytes, and a missing field
//! means its default.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Nanos, RatePlan, is_default};

mod access;
mod conditions;
mod figures;
mod io;
mod logs;
mod priorities;
mod replay;
mod threads;
mod verify;

pub use access::{AccessPlan, Distribution, FileOrder, StridedZones};
pub use conditions::{FlowPlan, LatencyTarget, LeastRates, SteadyFigure, SteadyStatePlan};
pub use figures::{FigureForm, UnifiedReporting};
pub use io::{
    Compressible, Dedupe, DedupeMode, IoPlan, Mix, OpenSync, Pattern, Payload, ShapedPayload, SizeSpec,
};
pub use logs::{LogPlan, WindowValues};
pub use priorities::{IoPriority, PriorityShare, RequestPriorities};
pub use replay::{RecordedFile, RecordedLoad, RecordedRequest, ReplayPlan};
pub use threads::{
    ControlGroupPlan, EndPlan, ExitScope, FileAdvice, FileLocking, FileUsage, HostPlan, MemoryMode,
    MemoryPolicy, RangeSync, ThreadPlan, WriteHint,
};
pub use verify::{FillPattern, VERIFY_HEADER_LEN, VerifyBacklog, VerifyMethod, VerifyPlan, VerifyTrim};

/// One whole invocation: jobs in the order given, run in phases that wait for each other (stonewall).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPlan {
    /// Jobs, in the order of the job file or command line.
    pub jobs: Vec<JobPlan>,
    /// The options given for all jobs (`[global]`, or before the first `--name`): canonical names, values as typed.
    pub global_options: Vec<(String, String)>,
}

/// One named job. Its clones (`numjobs`) differ only in the fields of `ClonePlan`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobPlan {
    /// Reported name.
    pub name: String,
    /// Free text, shown with the result.
    pub description: Option<String>,
    /// Reporting group (`group_reporting` merges within it); counts up with each stonewall or `new_group`.
    pub group: u32,
    /// Jobs of one phase run together; a phase starts when the one before has ended.
    pub phase: u32,
    /// Merge all workers of the group into one report entry.
    pub group_reporting: bool,
    /// Which engine moves the bytes.
    pub engine: EnginePlan,
    /// Operations, offsets and data.
    pub io: IoPlan,
    /// Queue depth and batch sizes.
    pub depth: DepthPlan,
    /// When to start, pause and stop.
    pub time: TimePlan,
    /// File layout, permission to write, and removal.
    pub files: FilePlan,
    /// The latencies to record and the percentiles to show.
    pub measure: MeasurePlan,
    /// The workers of this job, one per clone.
    pub clones: Vec<ClonePlan>,
    /// Properties of its threads.
    pub threads: ThreadPlan,
    /// What ends its workers early, and whose end that is.
    pub end: EndPlan,
    /// Recorded requests that replace those of `io`.
    pub replay: Option<ReplayPlan>,
    /// When the first worker of this job ends, the other jobs within `end.exit_scope` stop.
    pub exit_all: bool,
    /// Whether a failed request ends the worker.
    pub on_error: OnError,
    /// fio's reports name the workers of this job threads, not processes.
    pub thread_wording: bool,
    /// The job's options, for reports and for repeating the run: canonical names, values as typed.
    pub options: Vec<(String, String)>,
}

/// The part of a plan that differs between the clones of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct ClonePlan {
    /// The files of this clone, in order.
    pub paths: Vec<PathBuf>,
    /// The only source of randomness of this worker.
    pub seed: u64,
    /// CPUs this worker may run on; empty means all.
    pub cpus: Vec<usize>,
}

/// The engine and its private options as typed, already checked against the engine's rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnginePlan {
    /// Registered name of the engine.
    pub name: String,
    /// Private options, name and value.
    pub options: Vec<(String, String)>,
}

/// Queue depth and batching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DepthPlan {
    /// Requests to keep in flight.
    pub iodepth: u32,
    /// Most requests per submission; never 0.
    #[serde(rename = "iodepth_batch")]
    pub batch_submit: u32,
    /// As `batch_submit`, while requests complete during their submission; never below it.
    #[serde(rename = "iodepth_batch_inline")]
    pub batch_submit_inline: u32,
    /// Completions to wait for in one call; 0 = poll.
    #[serde(rename = "iodepth_batch_complete_min")]
    pub batch_complete_min: u32,
    /// Most completions per call; never 0.
    #[serde(rename = "iodepth_batch_complete_max")]
    pub batch_complete_max: u32,
    /// Refill the queue once no more than this many requests are in flight.
    #[serde(rename = "iodepth_low")]
    pub low: u32,
}

impl Default for DepthPlan {
    fn default() -> Self {
        DepthPlan::new(1)
    }
}

impl DepthPlan {
    /// Default limit on the requests of a call. Larger batches save little more CPU time per request, but lower the
    /// queue depth at a fast device while a batch is assembled, and that time counts as submission latency.
    pub const BATCH: u32 = 8;
    /// Default limit on the bytes of a call, for the same reason: the submission of large blocks takes long.
    pub const BATCH_BYTES: u64 = 32 << 10;

    /// Default limit on the requests of a call that completes everything it submits: no device is idle meanwhile, and
    /// no request waits for others.
    pub const INLINE_BATCH: u32 = 32;
    /// Default limit on the bytes of such a call: they stay in the processor's cache.
    pub const INLINE_BATCH_BYTES: u64 = 128 << 10;

    /// `iodepth` requests in flight, submitted one by one.
    pub fn new(iodepth: u32) -> Self {
        DepthPlan {
            iodepth,
            batch_submit: 1,
            batch_submit_inline: 1,
            batch_complete_min: 1,
            batch_complete_max: 1,
            low: iodepth,
        }
    }

    /// `iodepth` requests of at most `block_size` bytes in flight, in default batches: an eighth of the depth within
    /// the limits above. Sequential requests are submitted one by one: the kernel merges adjacent ones that are
    /// submitted together, and the device would be measured at another block size. One call takes all completions:
    /// those left in the queue would wait for the worker, and their wait would count as device time.
    pub fn batched(iodepth: u32, random: bool, block_size: u64) -> Self {
        let limited = |most: u32, bytes: u64| (bytes / block_size.max(1)).min(u64::from(most)) as u32;
        let by_bytes = limited(Self::BATCH, Self::BATCH_BYTES);
        let batch = if random { by_bytes.min(iodepth / 8).max(1) } else { 1 };
        let inline = limited(Self::INLINE_BATCH, Self::INLINE_BATCH_BYTES).min(iodepth / 2).max(batch);
        DepthPlan {
            batch_submit: batch,
            batch_submit_inline: inline,
            batch_complete_max: iodepth.max(1),
            ..DepthPlan::new(iodepth)
        }
    }
}

/// When to start, pause and stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimePlan {
    /// Stop after this long; `None` = when the bytes are done.
    #[serde(rename = "runtime_ns")]
    pub runtime: Option<Nanos>,
    /// Repeat the same range until `runtime` ends.
    pub time_based: bool,
    /// Run this long before the measured part.
    #[serde(rename = "ramp_time_ns")]
    pub ramp: Nanos,
    /// Move this many bytes before the measured part; 0 = none.
    #[serde(rename = "ramp_size", skip_serializing_if = "is_default")]
    pub ramp_bytes: u64,
    /// Wait before the first request; drawn uniformly from the range by the worker's seed.
    #[serde(rename = "startdelay_ns")]
    pub start_delay: (Nanos, Nanos),
    /// Pauses between requests.
    #[serde(rename = "thinktime")]
    pub think_time: ThinkTime,
    /// The rates at which requests are due; without one, the queue depth alone limits them.
    pub rate: RatePlan,
}

/// Pauses between blocks of requests. A `pause` of 0 means no pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThinkTime {
    /// Length of a pause.
    #[serde(rename = "pause_ns")]
    pub pause: Nanos,
    /// Requests between two pauses, if given.
    pub blocks: Option<u32>,
    /// Time of issuing between two pauses; 0 = no limit.
    #[serde(rename = "iotime_ns")]
    pub io_time: Nanos,
    /// Part of a pause that keeps the CPU busy.
    #[serde(rename = "spin_ns", skip_serializing_if = "is_default")]
    pub spin: Nanos,
    /// CPU cycles between two requests, in which the CPU is busy.
    #[serde(skip_serializing_if = "is_default")]
    pub cycles: u64,
    /// A pause delays the schedule of a rate, which is not caught up with.
    #[serde(rename = "rate_ignore_thinktime", skip_serializing_if = "is_default")]
    pub delays_rate: bool,
}

impl ThinkTime {
    /// Requests between two pauses, never 0; `None` if only a time is given, which then alone decides.
    pub fn block_limit(&self) -> Option<u32> {
        let unless_given = if self.io_time == Nanos::ZERO { Some(1) } else { None };
        self.blocks.or(unless_given).map(|blocks| blocks.max(1))
    }
}

/// Method of preallocating missing files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fallocate {
    /// No preallocation.
    None,
    /// fallocate(2), or nothing if the file system does not support it.
    #[default]
    Native,
    /// fallocate(2), or writing if the file system does not support it.
    Posix,
    /// fallocate(2) without changing the apparent size.
    Keep,
    /// ftruncate(2).
    Truncate,
}

/// File layout, permission to write, and removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePlan {
    /// Method of preallocating missing files.
    pub fallocate: Fallocate,
    /// Lay out files before a write job as well.
    pub overwrite: bool,
    /// Lay out files and issue no I/O.
    pub create_only: bool,
    /// Missing files may be created.
    #[serde(rename = "allow_file_create")]
    pub allow_create: bool,
    /// Remove the files afterwards.
    pub unlink: bool,
    /// Write to a device although it is mounted.
    pub allow_mounted_write: bool,
    /// How files are used.
    #[serde(flatten)]
    pub usage: FileUsage,
}

impl Default for FilePlan {
    fn default() -> Self {
        FilePlan {
            fallocate: Fallocate::Native,
            overwrite: false,
            create_only: false,
            allow_create: true,
            unlink: false,
            allow_mounted_write: false,
            usage: FileUsage::default(),
        }
    }
}

/// The latencies to record and the percentiles to show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasurePlan {
    /// Record submission latency.
    pub slat: bool,
    /// Record completion latency.
    pub clat: bool,
    /// Record total latency.
    pub lat: bool,
    /// Record the windowed bandwidth and IOPS samples.
    pub bandwidth: bool,
    /// Show percentiles of slat.
    pub slat_percentiles: bool,
    /// Show percentiles of clat.
    pub clat_percentiles: bool,
    /// Show percentiles of lat.
    pub lat_percentiles: bool,
    /// The percentiles, ascending, in percent.
    #[serde(rename = "percentile_list")]
    pub percentiles: Vec<f64>,
    /// Whether operations are reported together.
    #[serde(rename = "unified_rw_reporting")]
    pub unified: UnifiedReporting,
    /// The form of figures.
    pub figures: FigureForm,
    /// Report the devices under the targets.
    pub disk_util: bool,
    /// Report the job.
    pub stats: bool,
    /// Log files; not stored, because the options of the job are.
    #[serde(skip)]
    pub logs: LogPlan,
}

/// fio's default percentile list, in percent.
pub const DEFAULT_PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

impl MeasurePlan {
    /// Whether fio's outputs show percentiles of slat, clat and lat; only recorded latencies have any.
    pub fn shown_percentiles(&self) -> [bool; 3] {
        [
            self.slat && self.slat_percentiles,
            self.clat && self.clat_percentiles,
            self.lat && self.lat_percentiles,
        ]
    }
}

impl Default for MeasurePlan {
    fn default() -> Self {
        MeasurePlan {
            slat: true,
            clat: true,
            lat: true,
            bandwidth: true,
            slat_percentiles: false,
            clat_percentiles: true,
            lat_percentiles: false,
            percentiles: DEFAULT_PERCENTILES.to_vec(),
            unified: UnifiedReporting::None,
            figures: FigureForm::default(),
            disk_util: true,
            stats: true,
            logs: LogPlan::default(),
        }
    }
}

/// The failed requests that do not end the worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnError {
    /// Continue after a failed read.
    pub continue_read: bool,
    /// Continue after a failed write, trim or sync.
    pub continue_write: bool,
    /// Continue after a block with wrong data.
    pub continue_verify: bool,
}
