//! The series of one phase: counts per interval.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// One interval of one worker. Times are ns since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntervalRecord {
    /// Number of the tick that closed it, the same for all workers of a run.
    pub tick: u32,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Reads.
    #[serde(skip_serializing_if = "is_default")]
    pub read: IntervalOpRecord,
    /// Writes.
    #[serde(skip_serializing_if = "is_default")]
    pub write: IntervalOpRecord,
    /// Trims.
    #[serde(skip_serializing_if = "is_default")]
    pub trim: IntervalOpRecord,
}

/// Counts of one operation in one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntervalOpRecord {
    /// Completed requests.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Sum of the completion latencies, ns.
    pub clat_sum_ns: u64,
    /// Sparse clat histogram: `[bin, count]` ascending.
    #[serde(skip_serializing_if = "is_default")]
    pub clat_bins: Vec<(u16, u64)>,
}
