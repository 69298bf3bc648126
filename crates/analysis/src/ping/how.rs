//! A whole ping as reports see it: on what, how, and what came of it. Plain data.

use serde::Serialize;

use crate::criterion::ObjectiveVerdict;
use crate::ping::PingResult;

/// The target in the words that ioping has for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceCounts {
    /// Its kernel name.
    pub name: String,
    /// Reads it completed, whoever asked for them.
    pub reads: u64,
    /// Writes it completed.
    pub writes: u64,
    /// Flushes it completed.
    pub flushes: u64,
}

/// How a ping was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PingHow {
    /// The target.
    pub target: PingTarget,
    /// `read`, `write` or `mixed`.
    pub operation: &'static str,
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

/// A whole ping: how it was made and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ping {
    /// How it was made.
    #[serde(flatten)]
    pub how: PingHow,
    /// What came of it.
    #[serde(flatten)]
    pub result: PingResult,
    /// When it began, us since the epoch; documents have it in ms.
    #[serde(skip)]
    pub started_unix_us: u64,
    /// How long it took, ns.
    pub elapsed_ns: u64,
    /// What ended it before its time.
    pub interrupted: Option<String>,
    /// What the kernel counted; `None` where the target has no block device.
    pub device_counts: Option<DeviceCounts>,
    /// The kernel's id of the thread that waits for an answer that did not come.
    pub stuck_thread: Option<u32>,
    /// What became of the objectives.
    pub slo: Vec<ObjectiveVerdict>,
}
