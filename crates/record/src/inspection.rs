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

/// A block that was read by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockRecord {
    /// Every byte is zero.
    pub is_zero: bool,
    /// How long the read took, ns.
    pub lat_ns: u64,
}
