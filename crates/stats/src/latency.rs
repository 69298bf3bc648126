//! A latency: its histogram and its exact moments together.

use crate::{Histogram, Moments, histogram};

/// Latencies of one kind (slat, clat or lat), in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Log-linear counts.
    pub histogram: Histogram,
    /// Exact count, sum, squares, min and max.
    pub moments: Moments,
}

impl Latency {
    /// So many latencies of 0 ns.
    pub fn of_nothing(count: u64) -> Self {
        let mut latency = Latency::default();
        if count > 0 {
            latency.histogram.add(histogram::bin(0), count);
            latency.moments = Moments { count, sum: 0, sum_squares: 0, min: 0, max: 0 };
        }
        latency
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
