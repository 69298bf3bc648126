//! Queue depths and batch sizes, counted in fio's buckets.

use serde::{Deserialize, Serialize};

/// Requests by the queue depth at which they were issued: 1, 2-3, 4-7, 8-15, 16-31, 32-63, 64 and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DepthCounts(pub [u64; 7]);

impl DepthCounts {
    /// Labels of the buckets, as fio prints them.
    pub const LABELS: [&'static str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];

    /// The bucket of a queue depth, which includes the request itself.
    #[inline]
    pub const fn bucket(depth: u32) -> usize {
        if depth <= 1 {
            return 0;
        }
        let log2 = (31 - depth.leading_zeros()) as usize;
        if log2 > 6 { 6 } else { log2 }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &DepthCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// Calls by the number of requests they moved: 0, 1-4, 5-8, 9-16, 17-32, 33-64, more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BatchCounts(pub [u64; 7]);

impl BatchCounts {
    /// Labels of the buckets, as fio prints them.
    pub const LABELS: [&'static str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

    /// The bucket of a call that moved `size` requests.
    #[inline]
    pub const fn bucket(size: u32) -> usize {
        match size {
            0 => 0,
            1..=4 => 1,
            5..=8 => 2,
            9..=16 => 3,
            17..=32 => 4,
            33..=64 => 5,
            _ => 6,
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &BatchCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_fio() {
        for (depth, expected) in
            [(1, 0), (2, 1), (3, 1), (4, 2), (31, 4), (32, 5), (63, 5), (64, 6), (100_000, 6)]
        {
            assert_eq!(DepthCounts::bucket(depth), expected, "depth {depth}");
        }
        for (size, expected) in
            [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (16, 3), (32, 4), (64, 5), (65, 6)]
        {
            assert_eq!(BatchCounts::bucket(size), expected, "batch {size}");
        }
    }
}
