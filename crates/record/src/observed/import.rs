//! A test that another program ran, as far as its output says: what it did, and each figure with its resolution.
//!
//! Nothing is filled in: what a source does not say is `None`, and what it should have said is in `missing`.

mod figure;
mod list;
mod op;
mod summary;

use std::collections::BTreeMap;

use fathom_model::{Op, PerOp};
use serde::{Deserialize, Serialize};

pub use figure::{
    Figure, FigureBound, FigureNumber, FigureOrigin, FigurePlace, MissingFigure, MissingReason, StatedFigure,
    StatedKind,
};
pub use list::NamedFigure;
pub use op::{ImportedLatency, ImportedOp, ImportedPercentile, LatencyBin, PacedLoad, RateWindows};

use crate::wire::is_default;

/// Jobs of one name that ran together, and what was printed of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedTest {
    /// The program that made the measurement: `fio`, `ioping`, `HD Tune`; empty where the source does not say.
    pub tool: String,
    /// Its version, as printed without the program's name (`2.1.3`); empty where the source does not say.
    pub tool_version: String,
    /// The load.
    pub load: ImportedLoad,
    /// What the program reported on: several entries where clones are listed one by one.
    pub entries: Vec<ImportedEntry>,
    /// Figures of the whole group that these jobs belong to, which may have other jobs too.
    #[serde(skip_serializing_if = "is_default")]
    pub group: Option<ImportedGroup>,
    /// Other jobs that ran at the same time.
    #[serde(skip_serializing_if = "is_default")]
    pub beside: Vec<String>,
    /// Block devices over the whole run of the program.
    #[serde(skip_serializing_if = "is_default")]
    pub disks: Vec<ImportedDisk>,
    /// Figures that should be there and are not, or cannot be read.
    #[serde(skip_serializing_if = "is_default")]
    pub missing: Vec<MissingFigure>,
    /// Where the figures stand in the source.
    #[serde(skip_serializing_if = "is_default")]
    pub places: Vec<FigurePlace>,
    /// What the source states of figures beside measuring them.
    #[serde(skip_serializing_if = "is_default")]
    pub stated: Vec<StatedFigure>,
}

/// What was run; `None` where the source does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedLoad {
    /// Pattern by fio's name (`randread`).
    #[serde(skip_serializing_if = "is_default")]
    pub rw: Option<String>,
    /// Percentage of reads in a mixed pattern.
    #[serde(skip_serializing_if = "is_default")]
    pub read_percent: Option<u8>,
    /// Bytes per request.
    #[serde(skip_serializing_if = "is_default")]
    pub block_size: PerOp<Option<BlockRange>>,
    /// Queue depth of each job.
    #[serde(skip_serializing_if = "is_default")]
    pub queue_depth: Option<u32>,
    /// Number of jobs of this name.
    #[serde(skip_serializing_if = "is_default")]
    pub jobs: Option<u32>,
    /// Past the page cache.
    #[serde(skip_serializing_if = "is_default")]
    pub direct: Option<bool>,
    /// Options that make writes durable, as fio writes them: `fsync=1`, `sync=dsync`.
    #[serde(skip_serializing_if = "is_default")]
    pub sync: Vec<String>,
    /// Name of the engine.
    #[serde(skip_serializing_if = "is_default")]
    pub engine: Option<String>,
    /// Limit of I/Os per second of each job.
    #[serde(skip_serializing_if = "is_default")]
    pub rate_iops: PerOp<Option<u64>>,
    /// Limit of bytes per second of each job.
    #[serde(skip_serializing_if = "is_default")]
    pub rate_bytes_per_second: PerOp<Option<u64>>,
    /// Size of the file or range, bytes.
    #[serde(skip_serializing_if = "is_default")]
    pub size_bytes: Option<u64>,
    /// Time limit, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub runtime_ns: Option<u64>,
    /// File or device, as the source names it.
    #[serde(skip_serializing_if = "is_default")]
    pub target: Option<String>,
    /// Options as the source has them.
    #[serde(skip_serializing_if = "is_default")]
    pub options: BTreeMap<String, String>,
}

impl ImportedLoad {
    /// Writes after which the job waited until they were on the medium, by its options.
    pub fn synced_after(&self) -> Option<u32> {
        let of = |option: &String| {
            let (name, value) = option.split_once('=').unwrap_or((option, "1"));
            match name {
                "fsync" | "fdatasync" => value.parse().ok(),
                "sync" => Some(1),
                _ => None,
            }
        };
        self.sync.iter().filter_map(of).min()
    }
}

/// Smallest and largest request, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRange {
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
}

/// One entry of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedEntry {
    /// Name of the job.
    pub name: String,
    /// Jobs that it adds up.
    #[serde(skip_serializing_if = "is_default")]
    pub jobs: Option<u32>,
    /// Description by the user.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Error number that ended it; 0 = none.
    #[serde(skip_serializing_if = "is_default")]
    pub error: Option<i32>,
    /// When it was reported, as printed: in the time zone of the machine, which is not printed.
    #[serde(skip_serializing_if = "is_default")]
    pub reported: String,
    /// Reads.
    #[serde(skip_serializing_if = "is_default")]
    pub read: Option<ImportedOp>,
    /// Writes.
    #[serde(skip_serializing_if = "is_default")]
    pub write: Option<ImportedOp>,
    /// Trims.
    #[serde(skip_serializing_if = "is_default")]
    pub trim: Option<ImportedOp>,
    /// All of them, where the source adds them up.
    #[serde(skip_serializing_if = "is_default")]
    pub total: Option<ImportedOp>,
    /// Calls of fsync and fdatasync.
    #[serde(skip_serializing_if = "is_default")]
    pub sync: Option<ImportedOp>,
    /// Runtimes of its jobs added up, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub job_runtime_ns: Option<Figure<u64>>,
    /// I/Os that failed, where it went on after errors.
    #[serde(skip_serializing_if = "is_default")]
    pub failed: Option<Figure<u64>>,
    /// Processor time and faults.
    #[serde(skip_serializing_if = "is_default")]
    pub cpu: ImportedCpu,
    /// Share of the I/Os by the queue depth at their submission.
    #[serde(skip_serializing_if = "is_default")]
    pub depths: Vec<DepthShare>,
    /// Share of the I/Os by latency.
    #[serde(skip_serializing_if = "is_default")]
    pub latencies: Vec<LatencyShare>,
    /// The load beside the requests that count, where the program waits between requests.
    #[serde(skip_serializing_if = "is_default")]
    pub paced: Option<PacedLoad>,
}

/// Processor time and faults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedCpu {
    /// User time, percent of the runtime.
    #[serde(skip_serializing_if = "is_default")]
    pub user_percent: Option<Figure<f64>>,
    /// System time, percent of the runtime.
    #[serde(skip_serializing_if = "is_default")]
    pub system_percent: Option<Figure<f64>>,
    /// Of the whole machine, percent, where a program tells no more.
    #[serde(skip_serializing_if = "is_default")]
    pub machine_percent: Option<Figure<f64>>,
    /// Context switches.
    #[serde(skip_serializing_if = "is_default")]
    pub context_switches: Option<Figure<u64>>,
    /// Major page faults.
    #[serde(skip_serializing_if = "is_default")]
    pub major_faults: Option<Figure<u64>>,
    /// Minor page faults.
    #[serde(skip_serializing_if = "is_default")]
    pub minor_faults: Option<Figure<u64>>,
}

/// Share of the I/Os by queue depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DepthShare {
    /// This depth, up to the next that is listed.
    pub from: u32,
    /// Percent of the I/Os.
    pub percent: Figure<f64>,
}

/// Share of the I/Os by latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyShare {
    /// Below this and not below the previous that fio lists, ns; 0 = 2 s or more.
    pub below_ns: u64,
    /// Percent of the I/Os.
    pub percent: Figure<f64>,
}

/// Figures of a group of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedGroup {
    /// Its number.
    pub id: u32,
    /// Reads.
    #[serde(skip_serializing_if = "is_default")]
    pub read: Option<GroupFigures>,
    /// Writes.
    #[serde(skip_serializing_if = "is_default")]
    pub write: Option<GroupFigures>,
    /// Trims.
    #[serde(skip_serializing_if = "is_default")]
    pub trim: Option<GroupFigures>,
    /// All of them, where the source adds them up.
    #[serde(skip_serializing_if = "is_default")]
    pub total: Option<GroupFigures>,
}

/// One operation of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupFigures {
    /// All bytes over the longest runtime, a second.
    #[serde(skip_serializing_if = "is_default")]
    pub bytes_per_second: Option<Figure<f64>>,
    /// The same of the slowest entry.
    #[serde(skip_serializing_if = "is_default")]
    pub min_bytes_per_second: Option<Figure<f64>>,
    /// The same of the fastest entry.
    #[serde(skip_serializing_if = "is_default")]
    pub max_bytes_per_second: Option<Figure<f64>>,
    /// Bytes moved.
    #[serde(skip_serializing_if = "is_default")]
    pub bytes: Option<Figure<u64>>,
    /// Shortest runtime, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub min_runtime_ns: Option<Figure<u64>>,
    /// Longest runtime, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub max_runtime_ns: Option<Figure<u64>>,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedDisk {
    /// Kernel name.
    pub name: String,
    /// It lies under another device of the list.
    #[serde(skip_serializing_if = "is_default")]
    pub is_below: bool,
    /// Requests completed.
    pub ios: PerOp<Option<Figure<u64>>>,
    /// Sectors of 512 bytes.
    #[serde(skip_serializing_if = "is_default")]
    pub sectors: PerOp<Option<Figure<u64>>>,
    /// Requests merged into others.
    pub merges: PerOp<Option<Figure<u64>>>,
    /// Time of the requests, ms.
    pub ticks_ms: PerOp<Option<Figure<u64>>>,
    /// Time in the queue, weighted by the requests in it, ms.
    #[serde(skip_serializing_if = "is_default")]
    pub in_queue_ms: Option<Figure<u64>>,
    /// Share of time with at least one request, percent.
    #[serde(skip_serializing_if = "is_default")]
    pub util_percent: Option<Figure<f64>>,
}

impl ImportedEntry {
    /// The figures of an operation; those of fdatasync are those of fsync.
    pub fn op(&self, op: Op) -> Option<&ImportedOp> {
        match op {
            Op::Read => self.read.as_ref(),
            Op::Write => self.write.as_ref(),
            Op::Trim => self.trim.as_ref(),
            Op::Sync | Op::Datasync => self.sync.as_ref(),
        }
    }

    /// The figures of an operation, empty ones where there were none.
    pub fn op_mut(&mut self, op: Op) -> &mut ImportedOp {
        let slot = match op {
            Op::Read => &mut self.read,
            Op::Write => &mut self.write,
            Op::Trim => &mut self.trim,
            Op::Sync | Op::Datasync => &mut self.sync,
        };
        slot.get_or_insert_default()
    }
}

impl ImportedTest {
    /// Where the figure of this name stands in the source.
    pub fn place(&self, figure: &str) -> Option<&FigurePlace> {
        let places = self.places.iter().filter(|place| figure.starts_with(&place.figures));
        places.max_by_key(|place| place.figures.len())
    }
}
