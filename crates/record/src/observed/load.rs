//! A load as seen in its single requests: sizes, order, queue depth, time at the device, and which part of the device is used.

use std::collections::BTreeMap;

use fathom_model::Op;
use fathom_stats::Latency;
use serde::{Deserialize, Serialize};

/// Different sizes that are distinguished per class; further ones count as the next smaller one.
const SIZES: usize = 4096;
/// Depths that are distinguished.
const DEPTHS: usize = 4096;

/// Requests of one kind and order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadClass {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many of each size in bytes.
    pub sizes: BTreeMap<u64, u64>,
    /// Where the first began and the last ended, bytes from the start of the device.
    pub range: Option<(u64, u64)>,
    /// How many were issued as the n-th in flight of their class, from n = 1 on.
    depths: Vec<u64>,
}

impl LoadClass {
    /// Counts a request of `bytes` at `at`.
    pub fn record(&mut self, at: u64, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
        let is_known = self.sizes.contains_key(&bytes) || self.sizes.len() < SIZES;
        let below = self.sizes.range(..bytes).next_back().or_else(|| self.sizes.iter().next());
        let size = if is_known { bytes } else { below.map_or(bytes, |(&size, _)| size) };
        *self.sizes.entry(size).or_default() += 1;
        let (low, high) = self.range.unwrap_or((at, at + bytes));
        self.range = Some((low.min(at), high.max(at + bytes)));
    }

    /// Counts a request that was issued as the `depth`-th in flight.
    pub fn record_depth(&mut self, depth: usize) {
        let index = depth.clamp(1, DEPTHS) - 1;
        if self.depths.len() <= index {
            self.depths.resize(index + 1, 0);
        }
        self.depths[index] += 1;
    }

    /// The depth that `share` (0 to 1) of the requests were issued at or below; `None` where it was not seen.
    pub fn depth_at(&self, share: f64) -> Option<u64> {
        let all: u64 = self.depths.iter().sum();
        let mut below = 0;
        let index = self.depths.iter().position(|count| {
            below += count;
            below > 0 && below as f64 >= share * all as f64
        })?;
        Some(index as u64 + 1)
    }

    /// Adds the requests of `other`.
    pub fn merge(&mut self, other: &LoadClass) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        for (&size, count) in &other.sizes {
            *self.sizes.entry(size).or_default() += count;
        }
        self.range = match (self.range, other.range) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.depths.resize(self.depths.len().max(other.depths.len()), 0);
        for (mine, theirs) in self.depths.iter_mut().zip(&other.depths) {
            *mine += theirs;
        }
    }
}

/// What was seen of one kind of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpLoad {
    /// Those that continue another.
    pub sequential: LoadClass,
    /// All others.
    pub random: LoadClass,
    /// From issue to completion.
    pub service: Latency,
}

impl OpLoad {
    /// All of them.
    pub fn all(&self) -> LoadClass {
        let mut all = self.sequential.clone();
        all.merge(&self.random);
        all
    }

    /// The share of sequential ones, 0 to 1.
    pub fn sequential_share(&self) -> Option<f64> {
        let all = self.sequential.requests + self.random.requests;
        (all > 0).then(|| self.sequential.requests as f64 / all as f64)
    }
}

/// What was seen of all requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservedLoad {
    /// By kind; a flush is [`Op::Sync`].
    pub ops: BTreeMap<Op, OpLoad>,
    /// Events that were missed because they came too fast.
    pub lost: u64,
}

impl ObservedLoad {
    /// Adds what `other` has seen.
    pub fn merge(&mut self, other: &ObservedLoad) {
        self.lost += other.lost;
        for (&op, theirs) in &other.ops {
            let mine = self.ops.entry(op).or_default();
            mine.sequential.merge(&theirs.sequential);
            mine.random.merge(&theirs.random);
            mine.service.merge(&theirs.service);
        }
    }
}
