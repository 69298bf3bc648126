//! What a sweep covers: the axes of its grid, what it looks for, and how long it may take.

use crate::criterion::{LatencyObjective, RateGoal};
use crate::pattern::AccessPattern;

/// The first sizes of a range are these, four times apart.
const FIRST_BLOCK: u64 = 4096;
const FIRST_LARGEST: u64 = 256 << 10;

/// Values along one axis of the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Axis {
    /// These and no others.
    Exactly(Vec<u64>),
    /// Chosen between two values, both included.
    Within(u64, u64),
}

/// What a sweep covers.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepSpec {
    /// Patterns.
    pub patterns: Vec<AccessPattern>,
    /// Bytes per request.
    pub blocks: Axis,
    /// Requests in flight per job.
    pub depths: Axis,
    /// Numbers of jobs; the first is swept in full before the others.
    pub jobs: Vec<u32>,
    /// Blocks are multiples of this, bytes.
    pub unit: u64,
    /// Time for all points together, ns.
    pub budget_ns: u64,
    /// An objective for latency.
    pub slo: Option<LatencyObjective>,
    /// A rate to reach.
    pub reach: Option<RateGoal>,
}

/// The depths of a sweep, ascending.
pub fn depths(spec: &SweepSpec) -> Vec<u32> {
    let small = |depth: u64| u32::try_from(depth).unwrap_or(u32::MAX);
    match &spec.depths {
        Axis::Exactly(depths) => depths.iter().map(|&depth| small(depth)).collect(),
        Axis::Within(least, most) => {
            let doubled = std::iter::successors(Some(*least), |depth| depth.checked_mul(2));
            let mut depths: Vec<u32> = doubled.take_while(|depth| depth < most).map(small).collect();
            depths.push(small(*most));
            depths
        }
    }
}

/// The block sizes to begin with, ascending.
pub fn first_blocks(spec: &SweepSpec) -> Vec<u64> {
    match &spec.blocks {
        Axis::Exactly(blocks) => blocks.clone(),
        Axis::Within(least, most) => {
            let from = FIRST_BLOCK.clamp(*least, *most);
            let to = FIRST_LARGEST.clamp(from, *most);
            std::iter::successors(Some(from), |block| block.checked_mul(4))
                .take_while(|&block| block <= to)
                .collect()
        }
    }
}
