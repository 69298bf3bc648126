//! A ping: on what target and how it was made, and what its requests add up to.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use fathom_stats::Latency;
use fathom_stats::series::{self, Interval};
use serde::{Deserialize, Serialize};

use crate::wire::is_default;
use crate::{OpSummary, TestSummary};

/// A whole ping: how it was made and the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ping {
    /// How it was made.
    pub how: PingHow,
    /// How long it took, ns.
    pub elapsed_ns: u64,
    /// How many requests had which result.
    pub counts: PingCounts,
    /// The requests that were answered.
    pub load: PingLoad,
    /// Times of the requests that count: without warm-up and those that are too fast or too slow.
    pub lat_ns: Latency,
    /// The same from the moments they were due; `None` where no schedule was kept.
    pub response_ns: Option<Latency>,
    /// The requests that count by the time of their answers, in intervals of one length.
    #[serde(skip_serializing_if = "is_default")]
    pub series: Vec<Interval>,
    /// What the kernel counted; `None` where the target has no block device.
    pub device_counts: Option<DeviceCounts>,
    /// The kernel's id of the thread that waits for an answer that did not come.
    pub stuck_thread: Option<u32>,
}

/// How a ping was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PingHow {
    /// The target.
    pub target: PingTarget,
    /// `read`, `write` or `mixed`.
    pub operation: String,
    /// Bytes per request.
    pub block_size_bytes: u64,
    /// Bytes over which requests spread.
    pub range_bytes: u64,
    /// Past the page cache.
    pub direct: bool,
    /// Each write is made durable before it counts as answered.
    pub flushed: bool,
    /// Name of the engine.
    pub engine: String,
    /// Requests are due at fixed times.
    pub fixed_schedule: bool,
    /// From one request to the next, ns.
    pub interval_ns: u64,
    /// Things a reader of the results should know.
    pub notes: Vec<String>,
}

impl PingHow {
    /// What it does, for people.
    pub fn title(&self) -> String {
        format!("{}, one I/O at a time", self.operation)
    }
}

/// The target in the words that ioping has for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PingTarget {
    /// As typed.
    pub path: String,
    /// Type of the file system, `block` for a block device itself.
    pub fs_type: String,
    /// Node of the device beneath, or what was mounted where there is none.
    pub device: String,
    /// Bytes of the file system, or of the device itself; 0 where it is not known.
    pub device_size_bytes: u64,
    /// It is a block device.
    pub is_block_device: bool,
    /// It is a character device.
    pub is_char_device: bool,
}

/// What the kernel counted at the target's device meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceCounts {
    /// Its kernel name.
    pub name: String,
    /// Reads it completed, of any process.
    pub reads: u64,
    /// Writes it completed.
    pub writes: u64,
    /// Flushes it completed.
    pub flushes: u64,
}

/// The requests that were answered in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PingLoad {
    /// Bytes moved by those that count.
    pub counted_bytes: u64,
    /// Requests that had an answer, whether they count or not.
    pub answered: u64,
    /// Bytes they moved.
    pub answered_bytes: u64,
    /// Requests that were too fast to count.
    pub too_fast: u64,
    /// Requests that were too slow to count.
    pub too_slow: u64,
    /// Where it begins, ns since the ping began.
    pub begin_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
}

/// A request that took long enough to be reported on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PingStall {
    /// When the request was made, ns since the ping began.
    pub begin_ns: u64,
    /// How long it took, or has taken so far, ns.
    pub length_ns: u64,
    /// Where it went, bytes.
    pub offset_bytes: u64,
    /// It was never answered.
    pub unanswered: bool,
}

/// How many requests were answered where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServedCounts {
    /// By the device.
    pub device: u64,
    /// By this machine's memory.
    pub cache: u64,
    /// By the file system out of a hole.
    pub hole: u64,
}

/// How many requests had which result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PingCounts {
    /// Requests made.
    pub requests: u64,
    /// Failed requests.
    pub errors: u64,
    /// Failed requests by errno.
    pub errors_by_errno: BTreeMap<i32, u64>,
    /// Requests that would have had to wait.
    pub again: u64,
    /// Requests that moved less than was asked for.
    pub short: u64,
    /// Requests that took longer than the time-out, or were never answered.
    pub timeouts: u64,
    /// Where requests were answered.
    pub served: ServedCounts,
    /// Time of the first request that was answered, ns.
    pub first_ns: Option<u64>,
    /// The first stalls.
    pub stalls: Vec<PingStall>,
    /// All stalls.
    pub stall_count: u64,
}

/// Stalls kept one by one; those beyond are only counted.
const STALLS_KEPT: usize = 1000;

impl PingCounts {
    /// Counts a stall, and keeps it where it is among the first.
    pub fn stalled(&mut self, stall: PingStall) {
        self.stall_count += 1;
        if self.stalls.len() < STALLS_KEPT {
            self.stalls.push(stall);
        }
    }

    fn merge(&mut self, other: PingCounts) {
        self.requests += other.requests;
        self.errors += other.errors;
        for (errno, count) in other.errors_by_errno {
            *self.errors_by_errno.entry(errno).or_default() += count;
        }
        self.again += other.again;
        self.short += other.short;
        self.timeouts += other.timeouts;
        self.served.device += other.served.device;
        self.served.cache += other.served.cache;
        self.served.hole += other.served.hole;
        self.first_ns = self.first_ns.or(other.first_ns);
        self.stall_count += other.stall_count;
        self.stalls.extend(other.stalls);
        self.stalls.truncate(STALLS_KEPT);
    }
}

impl PingLoad {
    /// From its begin to its end, ns.
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// `count` per second of that time.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.wall_ns() > 0 { count as f64 * 1e9 / self.wall_ns() as f64 } else { 0.0 }
    }

    fn merge(&mut self, other: &PingLoad) {
        self.counted_bytes += other.counted_bytes;
        self.answered += other.answered;
        self.answered_bytes += other.answered_bytes;
        self.too_fast += other.too_fast;
        self.too_slow += other.too_slow;
        self.begin_ns = self.begin_ns.min(other.begin_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
    }
}

impl Ping {
    /// Adds the ping of another host that was made at the same time.
    pub(crate) fn merge(&mut self, other: Ping) {
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.counts.merge(other.counts);
        self.load.merge(&other.load);
        self.lat_ns.merge(&other.lat_ns);
        match (&mut self.response_ns, other.response_ns) {
            (Some(mine), Some(theirs)) => mine.merge(&theirs),
            (mine, theirs) => *mine = mine.take().or(theirs),
        }
        match (&mut self.device_counts, other.device_counts) {
            (Some(mine), Some(theirs)) => {
                mine.reads += theirs.reads;
                mine.writes += theirs.writes;
                mine.flushes += theirs.flushes;
            }
            (mine, theirs) => *mine = mine.take().or(theirs),
        }
        self.stuck_thread = self.stuck_thread.or(other.stuck_thread);
        self.merge_series(other.series);
    }

    /// Adds intervals to those of the same time, once both have the same length: a second, doubled so many times.
    fn merge_series(&mut self, mut theirs: Vec<Interval>) {
        let length = |series: &[Interval]| series.first().map_or(0, Interval::elapsed_ns);
        for _ in 0..u32::BITS {
            match length(&self.series).cmp(&length(&theirs)) {
                Ordering::Less => series::halve_grid(&mut self.series),
                Ordering::Greater => series::halve_grid(&mut theirs),
                Ordering::Equal => break,
            }
        }
        series::merge(&mut self.series, &theirs);
    }

    /// The headline numbers.
    pub(crate) fn summary(&self) -> TestSummary {
        let load = &self.load;
        let total = (load.answered > 0).then(|| OpSummary {
            ios: load.answered,
            bytes: load.answered_bytes,
            iops: load.per_second(load.answered),
            bytes_per_second: load.per_second(load.answered_bytes),
            lat_ns: self.lat_ns.summary(),
            response_ns: self.response_ns.as_ref().map(Latency::summary),
            ..OpSummary::default()
        });
        let of = |operation: &str| total.clone().filter(|_| self.how.operation == operation);
        let (read, write) = (of("read"), of("write"));
        let (elapsed_ns, measured_ns) = (self.elapsed_ns, load.wall_ns());
        TestSummary { read, write, total, elapsed_ns, measured_ns, ..TestSummary::default() }
    }
}
