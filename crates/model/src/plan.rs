//! `RunPlan`: what the options mean. Immutable once resolved; running state lives in the runner.
//!
//! A plan names targets but never opens them, so sizes may still be relative (`SizeSpec`); the runner turns them
//! into byte ranges when it prepares the files.
//!
//! The parts of a job's plan are stored in records as they are: fields bear fio's names there, sizes are in bytes, and
//! the default of a part is what a missing field means.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Nanos, RatePlan};

mod io;

pub use io::{IoPlan, Mix, OpenSync, Pattern, Payload, SizeSpec};

/// One whole invocation: jobs in the order given, run in phases that wait for each other (stonewall).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPlan {
    /// Jobs, in the order of the job file or command line.
    pub jobs: Vec<JobPlan>,
    /// The options said for all jobs (`[global]`, or before the first `--name`), canonical names, as typed.
    pub global_said: Vec<(String, String)>,
}

/// One named job. Its clones (`numjobs`) differ only in what `ClonePlan` holds.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPlan {
    /// Reported name.
    pub name: String,
    /// Free text shown with the result.
    pub description: Option<String>,
    /// Reporting group (`group_reporting` merges within it); counts up with each stonewall or `new_group`.
    pub group: u32,
    /// Jobs of one phase run together; a phase starts when the one before has ended.
    pub phase: u32,
    /// Merge all workers of the group into one report entry.
    pub group_reporting: bool,
    /// Which engine moves the bytes.
    pub engine: EnginePlan,
    /// What is done to the target.
    pub io: IoPlan,
    /// How many requests are kept in flight, and in which batches.
    pub depth: DepthPlan,
    /// When to start, pause and stop.
    pub time: TimePlan,
    /// How files are opened, laid out and left behind.
    pub files: FilePlan,
    /// What is measured and which percentiles are shown.
    pub measure: MeasurePlan,
    /// The workers of this job, one per clone.
    pub clones: Vec<ClonePlan>,
    /// The first worker of this job to end stops the other jobs of the phase.
    pub exit_all: bool,
    /// Whether a failed request ends the worker.
    pub on_error: OnError,
    /// Run workers as threads in fio's report wording ("thread") instead of "process".
    pub said_thread: bool,
    /// The options as typed, canonical names, for reports and for repeating the run.
    pub said: Vec<(String, String)>,
}

/// What differs between the clones of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct ClonePlan {
    /// The files of this clone, in order.
    pub paths: Vec<PathBuf>,
    /// Sole source of randomness of this worker.
    pub seed: u64,
    /// CPUs this worker may run on; empty means all.
    pub cpus: Vec<usize>,
}

/// The engine and its private options as typed (checked against the engine's own rows beforehand).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnginePlan {
    /// Registered name of the engine.
    pub name: String,
    /// Private options, name and value.
    pub options: Vec<(String, String)>,
}

/// Depth and batching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DepthPlan {
    /// Requests kept in flight.
    pub iodepth: u32,
    /// Most requests handed over per submission; never 0.
    #[serde(rename = "iodepth_batch")]
    pub batch_submit: u32,
    /// As `batch_submit`, while requests complete as they are handed over; never below it.
    #[serde(rename = "iodepth_batch_inline")]
    pub batch_submit_inline: u32,
    /// Completions waited for at once; 0 = poll.
    #[serde(rename = "iodepth_batch_complete_min")]
    pub batch_complete_min: u32,
    /// Most completions taken at once; never 0.
    #[serde(rename = "iodepth_batch_complete_max")]
    pub batch_complete_max: u32,
    /// Refill once no more than this many are in flight.
    #[serde(rename = "iodepth_low")]
    pub low: u32,
}

impl Default for DepthPlan {
    fn default() -> Self {
        DepthPlan::new(1)
    }
}

impl DepthPlan {
    /// Most requests moved per call where nothing is said. Larger batches save little more CPU time per request, but
    /// let the depth at a fast device sag while a batch is put together, and count that time as submission latency.
    pub const BATCH: u32 = 8;
    /// Most bytes moved per call where nothing is said, for the same reason: submitting large blocks takes long.
    pub const BATCH_BYTES: u64 = 32 << 10;

    /// Most requests moved per call where nothing is said and each call finds everything completed: no device waits
    /// then, and no request is kept waiting for others.
    pub const INLINE_BATCH: u32 = 32;
    /// Most bytes moved per call then: they stay in the processor's cache.
    pub const INLINE_BATCH_BYTES: u64 = 128 << 10;

    /// `iodepth` in flight, moved one by one.
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

    /// `iodepth` requests of at most `block_size` bytes in flight, in the batches of a job where nothing is said: an eighth
    /// of the depth within the limits above. Sequential requests go one by one: the kernel merges neighbours that are
    /// submitted together, and the device would be measured at another block size. All that has completed is taken at
    /// once: what lies in the queue would wait for us, and its time count as the device's.
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
    /// Go on over the same range until `runtime` is over.
    pub time_based: bool,
    /// Run this long before measuring.
    #[serde(rename = "ramp_time_ns")]
    pub ramp: Nanos,
    /// Wait this long before the first request; drawn evenly from the range by the worker's seed.
    #[serde(rename = "startdelay_ns")]
    pub start_delay: (Nanos, Nanos),
    /// Pauses between requests.
    #[serde(rename = "thinktime")]
    pub think_time: ThinkTime,
    /// When requests are offered, where not as fast as the depth lets them.
    pub rate: RatePlan,
}

/// Pauses between blocks of requests. None where the pause is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThinkTime {
    /// Length of a pause.
    #[serde(rename = "pause_ns")]
    pub pause: Nanos,
    /// Requests between two pauses, where that is given.
    pub blocks: Option<u32>,
    /// How long requests are issued between two pauses; 0 = no limit.
    #[serde(rename = "iotime_ns")]
    pub io_time: Nanos,
}

impl ThinkTime {
    /// Requests between two pauses, never 0; `None` where time alone decides, which is where only a time is given.
    pub fn block_limit(&self) -> Option<u32> {
        let unless_given = if self.io_time == Nanos::ZERO { Some(1) } else { None };
        self.blocks.or(unless_given).map(|blocks| blocks.max(1))
    }
}

/// How missing files are given their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fallocate {
    /// Not at all before they are written.
    None,
    /// fallocate(2), and nothing where the file system has none.
    #[default]
    Native,
    /// fallocate(2), or writing where the file system has none.
    Posix,
    /// fallocate(2) that keeps the apparent size.
    Keep,
    /// ftruncate(2).
    Truncate,
}

/// How files are opened, laid out and left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePlan {
    /// How missing files are given their size.
    pub fallocate: Fallocate,
    /// Lay out before a write job as well.
    pub overwrite: bool,
    /// Only lay out, do no I/O.
    pub create_only: bool,
    /// A missing file may be made.
    #[serde(rename = "allow_file_create")]
    pub allow_create: bool,
    /// Remove the files afterwards.
    pub unlink: bool,
    /// Write to a device although it is mounted.
    pub allow_mounted_write: bool,
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
        }
    }
}

/// What is measured and which percentiles are shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasurePlan {
    /// Record submission latency.
    pub slat: bool,
    /// Record completion latency.
    pub clat: bool,
    /// Record total latency.
    pub lat: bool,
    /// Keep the windowed bandwidth and IOPS samples.
    pub bandwidth: bool,
    /// Show percentiles of slat.
    pub slat_percentiles: bool,
    /// Show percentiles of clat.
    pub clat_percentiles: bool,
    /// Show percentiles of lat.
    pub lat_percentiles: bool,
    /// Which percentiles, ascending, in percent.
    #[serde(rename = "percentile_list")]
    pub percentiles: Vec<f64>,
}

/// fio's default percentile list, in percent.
pub const DEFAULT_PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

impl MeasurePlan {
    /// Whether fio's outputs show percentiles of slat, clat and lat: of those that are recorded.
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
        }
    }
}

/// Which failed requests do not end the worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnError {
    /// Go on after a failed read.
    pub continue_read: bool,
    /// Go on after a failed write, trim or sync.
    pub continue_write: bool,
}
