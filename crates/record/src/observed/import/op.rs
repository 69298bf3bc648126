//! The figures of one operation.

use serde::{Deserialize, Serialize};

use super::Figure;
use crate::wire::is_default;

/// One operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedOp {
    /// I/Os per second.
    #[serde(skip_serializing_if = "is_default")]
    pub iops: Option<Figure<f64>>,
    /// Bytes per second.
    #[serde(skip_serializing_if = "is_default")]
    pub bytes_per_second: Option<Figure<f64>>,
    /// Bytes moved.
    #[serde(skip_serializing_if = "is_default")]
    pub bytes: Option<Figure<u64>>,
    /// I/Os.
    #[serde(skip_serializing_if = "is_default")]
    pub ios: Option<Figure<u64>>,
    /// I/Os that moved less than was asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub short: Option<Figure<u64>>,
    /// I/Os that were dropped.
    #[serde(skip_serializing_if = "is_default")]
    pub dropped: Option<Figure<u64>>,
    /// The time that the rates are counted over, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub runtime_ns: Option<Figure<u64>>,
    /// Start to issued.
    #[serde(skip_serializing_if = "is_default")]
    pub slat: ImportedLatency,
    /// Issued to completed.
    #[serde(skip_serializing_if = "is_default")]
    pub clat: ImportedLatency,
    /// Start to completed.
    #[serde(skip_serializing_if = "is_default")]
    pub lat: ImportedLatency,
    /// Bytes per second over windows of time.
    #[serde(skip_serializing_if = "is_default")]
    pub bandwidth_windows: Option<RateWindows>,
    /// I/Os per second over windows of time.
    #[serde(skip_serializing_if = "is_default")]
    pub iops_windows: Option<RateWindows>,
    /// I/Os per second in the last line of progress.
    #[serde(skip_serializing_if = "is_default")]
    pub last_iops: Option<Figure<f64>>,
    /// Bytes per second in the last line of progress.
    #[serde(skip_serializing_if = "is_default")]
    pub last_bytes_per_second: Option<Figure<f64>>,
}

/// A latency, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportedLatency {
    /// Number of samples.
    #[serde(skip_serializing_if = "is_default")]
    pub samples: Option<Figure<u64>>,
    /// Minimum.
    #[serde(skip_serializing_if = "is_default")]
    pub min: Option<Figure<u64>>,
    /// Arithmetic mean.
    #[serde(skip_serializing_if = "is_default")]
    pub mean: Option<Figure<u64>>,
    /// Maximum.
    #[serde(skip_serializing_if = "is_default")]
    pub max: Option<Figure<u64>>,
    /// Standard deviation.
    #[serde(skip_serializing_if = "is_default")]
    pub stddev: Option<Figure<u64>>,
    /// Percentiles, ascending.
    #[serde(skip_serializing_if = "is_default")]
    pub percentiles: Vec<ImportedPercentile>,
    /// Bins of the histogram, ascending.
    #[serde(skip_serializing_if = "is_default")]
    pub bins: Vec<LatencyBin>,
    /// The requests one by one, in their order.
    #[serde(skip_serializing_if = "is_default")]
    pub requests: Vec<Figure<u64>>,
}

/// A percentile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedPercentile {
    /// Which: 99.9.
    pub percent: f64,
    /// Its value.
    pub ns: Figure<u64>,
}

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBin {
    /// Its middle.
    pub ns: u64,
    /// I/Os in it.
    pub count: u64,
}

/// A rate over windows of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateWindows {
    /// The lowest.
    #[serde(skip_serializing_if = "is_default")]
    pub min: Option<Figure<f64>>,
    /// The mean.
    #[serde(skip_serializing_if = "is_default")]
    pub mean: Option<Figure<f64>>,
    /// The highest.
    #[serde(skip_serializing_if = "is_default")]
    pub max: Option<Figure<f64>>,
    /// Standard deviation.
    #[serde(skip_serializing_if = "is_default")]
    pub stddev: Option<Figure<f64>>,
    /// Number of windows.
    #[serde(skip_serializing_if = "is_default")]
    pub samples: Option<Figure<u64>>,
    /// Percentage of the rate of the group.
    #[serde(skip_serializing_if = "is_default")]
    pub group_percent: Option<Figure<f64>>,
}

/// All requests of a program that waits between them, whether they count or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PacedLoad {
    /// Requests.
    #[serde(skip_serializing_if = "is_default")]
    pub ios: Option<Figure<u64>>,
    /// Bytes moved.
    #[serde(skip_serializing_if = "is_default")]
    pub bytes: Option<Figure<u64>>,
    /// Wall-clock time, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub wall_ns: Option<Figure<u64>>,
    /// Requests that were too fast to count.
    #[serde(skip_serializing_if = "is_default")]
    pub too_fast: Option<Figure<u64>>,
    /// Requests that were too slow to count.
    #[serde(skip_serializing_if = "is_default")]
    pub too_slow: Option<Figure<u64>>,
    /// Requests per second of the wall-clock time.
    #[serde(skip_serializing_if = "is_default")]
    pub iops: Option<Figure<f64>>,
    /// Bytes per second of the wall-clock time.
    #[serde(skip_serializing_if = "is_default")]
    pub bytes_per_second: Option<Figure<f64>>,
}
