//! What a target showed before its tests: whether first accesses cost more than later ones, and whether it holds data.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// Reads of a target that was not written just before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InspectionRecord {
    /// Bytes of each request.
    pub block_size_bytes: u64,
    /// Passes of random reads, in the order they ran.
    #[serde(skip_serializing_if = "is_default")]
    pub passes: Vec<PassRecord>,
    /// Passes of different blocks, orders and places, in the order they ran.
    #[serde(skip_serializing_if = "is_default")]
    pub shapes: Vec<ShapeRecord>,
    /// Random reads that began together after a rest, in the order they ran.
    #[serde(skip_serializing_if = "is_default")]
    pub bursts: Vec<BurstRecord>,
    /// Blocks that were read one by one; none where that was not possible.
    #[serde(skip_serializing_if = "is_default")]
    pub blocks: Vec<BlockRecord>,
}

/// A pass of random reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PassRecord {
    /// Requests in flight.
    pub iodepth: u32,
    /// It read beside the blocks of the pass before, so near that what fetches those brings these too.
    pub is_again: bool,
    /// Requests completed.
    pub ios: u64,
    /// How long it took, ns.
    pub elapsed_ns: u64,
}

/// A pass of reads of one block size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShapeRecord {
    /// Bytes of each request.
    pub block_size_bytes: u64,
    /// Requests in flight.
    pub iodepth: u32,
    /// At random all over the target, else in order from `offset_bytes` on.
    pub is_random: bool,
    /// Where it began; 0 if it was random.
    pub offset_bytes: u64,
    /// Requests completed.
    pub ios: u64,
    /// How long it took, ns.
    pub elapsed_ns: u64,
    /// Median of the latencies, ns.
    pub lat_ns_p50: u64,
    /// Their 90th percentile, ns.
    pub lat_ns_p90: u64,
}

/// Reads that began together while nothing else was in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BurstRecord {
    /// How long each took, ascending, ns.
    pub lat_ns: Vec<u64>,
}

/// A block that was read by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockRecord {
    /// Every byte is zero.
    pub is_zero: bool,
    /// How long the read took, ns.
    pub lat_ns: u64,
}
