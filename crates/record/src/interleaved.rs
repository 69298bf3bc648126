//! The place of a run among those of two targets that are measured in turns.

use serde::{Deserialize, Serialize};

/// A run that is one side of a block: both targets measured one after the other, in an order that changes from block to block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterleavedRecord {
    /// What the runs of one comparison have in common.
    pub comparison: u64,
    /// Number of the block, from 0.
    pub block: u32,
    /// Numbers of blocks after which each test may end, because its verdict is clear.
    pub looks: Vec<u32>,
}

impl InterleavedRecord {
    /// How many looks may end a test; at least one.
    pub fn look_count(&self) -> u32 {
        (self.looks.len() as u32).max(1)
    }
}
