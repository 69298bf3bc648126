//! Flushes after a test that wrote: whether they had anything to write.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// The flushes after a test, of the target whose first took longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlushRecord {
    /// The first, ns.
    pub first_ns: u64,
    /// The longest of several after it, when nothing was left to write, ns; `None` if the first took too long for doubt.
    #[serde(skip_serializing_if = "is_default")]
    pub idle_ns: Option<u64>,
    /// Writes and reads of the same kind after the flush, if they were to tell what it did.
    #[serde(skip_serializing_if = "is_default")]
    pub repeated: Option<RepeatedRecord>,
}

/// Short passes of writes, then of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepeatedRecord {
    /// The rate of writes, bytes per second.
    pub write_bytes_per_second: u64,
    /// The longest mean latency of a pass of reads, ns.
    pub read_lat_ns: u64,
}
