//! The kernel's own counters of the devices under the target.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// What the kernel counted for one device while a test ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskRecord {
    /// Kernel name (`nvme0n1`).
    pub name: String,
    /// Name of the device stacked on top of this one; `None` for the target's own device.
    #[serde(skip_serializing_if = "is_default")]
    pub under: Option<String>,
    /// Counted over the measured part.
    pub counters: DiskCountersRecord,
    /// Length of that part, ns.
    pub elapsed_ns: u64,
    /// Counted per interval, aligned by tick with the workers' series.
    #[serde(skip_serializing_if = "is_default")]
    pub intervals: Vec<DiskIntervalRecord>,
}

/// One interval of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskIntervalRecord {
    /// Number of the tick that closed it.
    pub tick: u32,
    /// Start, ns since the start of the run.
    pub start_ns: u64,
    /// End, ns since the start of the run.
    pub end_ns: u64,
    /// Counted in it.
    pub counters: DiskCountersRecord,
}

/// The fields of one line of `/proc/diskstats`; sectors are 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskCountersRecord {
    /// Reads completed.
    #[serde(skip_serializing_if = "is_default")]
    pub read_ios: u64,
    /// Reads merged into others.
    #[serde(skip_serializing_if = "is_default")]
    pub read_merges: u64,
    /// Sectors read.
    #[serde(skip_serializing_if = "is_default")]
    pub read_sectors: u64,
    /// Time spent reading, ms.
    #[serde(skip_serializing_if = "is_default")]
    pub read_ticks_ms: u64,
    /// Writes completed.
    #[serde(skip_serializing_if = "is_default")]
    pub write_ios: u64,
    /// Writes merged into others.
    #[serde(skip_serializing_if = "is_default")]
    pub write_merges: u64,
    /// Sectors written.
    #[serde(skip_serializing_if = "is_default")]
    pub write_sectors: u64,
    /// Time spent writing, ms.
    #[serde(skip_serializing_if = "is_default")]
    pub write_ticks_ms: u64,
    /// Time with any request in flight, ms.
    #[serde(skip_serializing_if = "is_default")]
    pub busy_ms: u64,
    /// Time weighted by requests in flight, ms.
    #[serde(skip_serializing_if = "is_default")]
    pub queue_ms: u64,
    /// Discards completed.
    #[serde(skip_serializing_if = "is_default")]
    pub discard_ios: u64,
    /// Sectors discarded.
    #[serde(skip_serializing_if = "is_default")]
    pub discard_sectors: u64,
    /// Flushes completed.
    #[serde(skip_serializing_if = "is_default")]
    pub flush_ios: u64,
    /// Time spent flushing, ms.
    #[serde(skip_serializing_if = "is_default")]
    pub flush_ticks_ms: u64,
}
