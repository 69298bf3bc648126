//! Latencies: a histogram and exact moments.

use serde::{Deserialize, Serialize};

use crate::{Histogram, Moments, histogram};

/// Latencies of one kind (slat, clat or lat), in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Exact count, sum, squares, min and max.
    pub moments: Moments,
    /// Log-linear counts.
    #[serde(rename = "bins")]
    pub histogram: Histogram,
}

impl Latency {
    /// `count` latencies of `ns`.
    pub fn repeated(count: u64, ns: u64) -> Self {
        if count == 0 {
            return Latency::default();
        }
        let (wide, samples) = (u128::from(ns), u128::from(count));
        let (sum, sum_squares) = (samples * wide, samples * wide * wide);
        Latency {
            moments: Moments { count, sum, sum_squares, min: ns, max: ns },
            histogram: Histogram::from_sparse([(histogram::bin(ns), count)]),
        }
    }

    /// Counts one latency in ns.
    pub fn record(&mut self, ns: u64) {
        self.histogram.record(ns);
        self.moments.record(ns);
    }

    /// Adds every sample of `other`.
    pub fn merge(&mut self, other: &Latency) {
        self.histogram.merge(&other.histogram);
        self.moments.merge(&other.moments);
    }
}
