//! Offset of the next request of one operation in one file.

use crate::{Permutation, Rng};

/// The used range of one file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Length.
    pub len: u64,
}

/// Most blocks for which a shuffled table is used (2 KiB): it is as small as the keys of a permutation, and faster.
const LARGEST_TABLE: u64 = 1024;

/// The order of the offsets of one operation in one file. A pass visits each whole block of the extent; a remainder
/// shorter than a block is never accessed.
#[derive(Clone, Debug)]
pub enum Offsets {
    /// Block after block.
    Sequential {
        /// Next block.
        next: u64,
        /// Blocks in the extent.
        blocks: u64,
    },
    /// Every block of a small extent once, in random order; the table is shuffled one step ahead of its use.
    Shuffle {
        /// The blocks; those before `next` were visited in this pass.
        order: Box<[u16]>,
        /// Blocks already visited in this pass.
        next: u64,
    },
    /// Every block of an extent of any size once, in random order.
    Map {
        /// The order.
        order: Permutation,
        /// Blocks already visited in this pass.
        next: u64,
    },
    /// Independent random blocks.
    Draw {
        /// Blocks in the extent.
        blocks: u64,
        /// Blocks drawn in this pass.
        drawn: u64,
    },
}

impl Offsets {
    /// The order over `blocks` blocks, at least one; with `random_map` each is visited once per pass, without it each
    /// offset is drawn independently.
    pub fn new(random: bool, random_map: bool, blocks: u64, rng: &mut Rng) -> Self {
        match (random, random_map) {
            (false, _) => Offsets::Sequential { next: 0, blocks },
            (true, true) if blocks <= LARGEST_TABLE => {
                Offsets::Shuffle { order: (0..blocks as u16).collect(), next: 0 }
            }
            (true, true) => Offsets::Map { order: Permutation::new(blocks, rng), next: 0 },
            (true, false) => Offsets::Draw { blocks, drawn: 0 },
        }
    }

    /// The next block number, or `None` at the end of the pass.
    #[inline]
    pub fn next_block(&mut self, rng: &mut Rng) -> Option<u64> {
        let mut drawn = None;
        self.next_blocks(1, rng, |block| drawn = Some(block));
        drawn
    }

    /// Passes the next `most` block numbers to `each`, fewer at the end of the pass; returns their number.
    ///
    /// Several at a time, because the steps of one offset depend on each other, but not on those of other offsets.
    #[inline(always)]
    pub fn next_blocks(&mut self, most: u64, rng: &mut Rng, mut each: impl FnMut(u64)) -> u64 {
        match self {
            Offsets::Sequential { next, blocks } => {
                let (first, count) = (*next, most.min(*blocks - *next));
                *next += count;
                (first..first + count).for_each(each);
                count
            }
            Offsets::Shuffle { order, next } => {
                let (first, len) = (*next, order.len() as u64);
                let count = most.min(len - first);
                *next += count;
                (first..first + count).for_each(|index| {
                    // A Fisher-Yates shuffle: every order has the same probability.
                    order.swap(index as usize, (index + rng.below(len - index)) as usize);
                    each(u64::from(order[index as usize]));
                });
                count
            }
            Offsets::Map { order, next } => {
                let (first, count) = (*next, most.min(order.len() - *next));
                *next += count;
                (first..first + count).for_each(|index| each(order.at(index)));
                count
            }
            Offsets::Draw { blocks, drawn } => {
                let count = most.min(*blocks - *drawn);
                *drawn += count;
                (0..count).for_each(|_| each(rng.below(*blocks)));
                count
            }
        }
    }

    /// Starts a new pass; a random map gets a new order.
    pub fn restart(&mut self, rng: &mut Rng) {
        match self {
            Offsets::Sequential { next, .. } | Offsets::Shuffle { next, .. } => *next = 0,
            Offsets::Map { order, next } => {
                order.renew(rng);
                *next = 0;
            }
            Offsets::Draw { drawn, .. } => *drawn = 0,
        }
    }
}
