//! A random order that visits every block exactly once without storing which were visited.
//!
//! A Feistel network permutes pairs (row, column): a power of two of columns, and just enough rows to hold the block
//! count. A round changes one half by a keyed hash of the other, columns by exclusive or, rows by addition modulo their
//! number. Both steps are invertible, so no two indices collide. Only the last row may be partly empty; an index that
//! lands in the empty part is permuted again until it lands on a block (cycle walking), which affects at most one index
//! per row. So the cost of an offset is the same for every block count. A new key gives a new order.

use crate::Rng;

/// With four rounds the distances of successive offsets are measurably uneven (see the tests), with six they are not.
const ROUNDS: usize = 6;

/// The keys of one round.
#[derive(Clone, Copy, Debug)]
struct RoundKey {
    mask: u64,
    factor: u64,
}

impl RoundKey {
    fn draw(rng: &mut Rng) -> Self {
        RoundKey { mask: rng.next_u64(), factor: rng.next_u64() | 1 }
    }

    /// A hash of `half` in which every bit depends on all bits of `half`.
    #[inline(always)]
    fn hash(self, half: u64) -> u64 {
        let product = u128::from(half ^ self.mask) * u128::from(self.factor);
        (product >> 64) as u64 ^ product as u64
    }
}

/// A keyed permutation of `0..len`.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    column_bits: u32,
    column_mask: u64,
    rows: u64,
    keys: [RoundKey; ROUNDS],
}

impl Permutation {
    /// A random order of `len` blocks; `len` must not be 0.
    pub fn new(len: u64, rng: &mut Rng) -> Self {
        assert!(len > 0, "a permutation needs at least one block");
        let bits = 64 - (len - 1).leading_zeros();
        let column_bits = bits / 2;
        Permutation {
            len,
            column_bits,
            column_mask: (1 << column_bits) - 1,
            rows: ((len - 1) >> column_bits) + 1,
            keys: std::array::from_fn(|_| RoundKey::draw(rng)),
        }
    }

    /// Changes to another random order of the same blocks.
    pub fn renew(&mut self, rng: &mut Rng) {
        let tweak = rng.next_u64();
        // The keys are independent of each other, so one random number suffices to change them all.
        self.keys.iter_mut().for_each(|key| key.mask = key.mask.rotate_left(1) ^ tweak);
    }

    /// Number of blocks.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Always false: there is at least one block.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The block at `index` of the order; `index` must be below `len`.
    #[inline(always)]
    pub fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let mut value = index;
        loop {
            value = self.permute(value);
            if value < self.len {
                return value;
            }
        }
    }

    /// Permutes all cells, empty ones included.
    #[inline(always)]
    fn permute(&self, value: u64) -> u64 {
        let mut column = value & self.column_mask;
        let mut row = value >> self.column_bits;
        for pair in self.keys.chunks_exact(2) {
            column ^= pair[0].hash(row) & self.column_mask;
            let step = ((u128::from(pair[1].hash(column)) * u128::from(self.rows)) >> 64) as u64;
            row += step;
            row = if row >= self.rows { row - self.rows } else { row };
        }
        row << self.column_bits | column
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    fn check_covers_once(len: u64, seed: u64) {
        let order = Permutation::new(len, &mut Rng::new(seed));
        let mut seen = vec![false; len as usize];
        for index in 0..len {
            let block = order.at(index) as usize;
            assert!(!std::mem::replace(&mut seen[block], true), "block {block} of {len} twice");
        }
    }

    #[test]
    fn every_block_once_around_powers_of_two() {
        for bits in 0..=16 {
            for len in [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1] {
                if len > 0 {
                    check_covers_once(len, bits);
                }
            }
        }
    }

    #[test]
    fn a_huge_volume_needs_no_memory_and_stays_in_range() {
        let blocks = (16u64 << 40) / 4096 + 1;
        let order = Permutation::new(blocks, &mut Rng::new(3));
        let mut sum = 0u128;
        for index in 0..100_000 {
            let block = order.at(index);
            assert!(block < blocks);
            sum += u128::from(block);
        }
        let mean = (sum / 100_000) as f64 / blocks as f64;
        assert!((mean - 0.5).abs() < 0.01, "offsets are biased: mean {mean}");
    }

    /// How often `permute` runs per offset.
    fn walks(len: u64) -> f64 {
        let order = Permutation::new(len, &mut Rng::new(1));
        let mut walks = 0u64;
        for index in 0..len {
            let mut value = index;
            loop {
                walks += 1;
                value = order.permute(value);
                if value < len {
                    break;
                }
            }
        }
        walks as f64 / len as f64
    }

    #[test]
    fn cycle_walking_is_rare_at_every_size() {
        for len in [1 << 20, (1 << 20) + 1, (1 << 21) - 1, (1 << 19) + (1 << 18) + 3, 1_000_003] {
            assert!(walks(len) < 1.002, "{} permutations per offset for {len}", walks(len));
        }
    }

    #[test]
    fn all_sizes_up_to_the_largest_stay_in_range() {
        for len in [u64::MAX, u64::MAX / 2 + 2, (1 << 63) + 1, 1 << 52] {
            let order = Permutation::new(len, &mut Rng::new(9));
            for index in (0..1000).flat_map(|i| [i, len - 1 - i]) {
                assert!(order.at(index) < len, "{index} of {len}");
            }
        }
    }

    #[test]
    fn successive_offsets_are_scattered() {
        let len = 1u64 << 18;
        let order = Permutation::new(len, &mut Rng::new(5));
        let sequential = (1..len).filter(|&i| order.at(i) == order.at(i - 1) + 1).count();
        assert!(sequential < 12, "{sequential} sequential pairs; one is expected");
        let same_sixteenth =
            (1..len).filter(|&i| order.at(i) * 16 / len == order.at(i - 1) * 16 / len).count();
        let share = same_sixteenth as f64 / len as f64;
        assert!((share - 1.0 / 16.0).abs() < 0.01, "{share}");
    }

    /// Differences of successive offsets over 64 equal parts of the range: chi-squared with 63 degrees of freedom
    /// exceeds 120 by chance once in 50,000 times.
    #[test]
    fn distances_of_successive_offsets_are_uniform() {
        for (len, seed) in
            [(1u64 << 16, 1), ((1 << 16) + 1, 2), (50_021, 3), (1 << 20, 4), ((1 << 20) + 1, 5)]
        {
            let order = Permutation::new(len, &mut Rng::new(seed));
            for stride in [1, 2, 256, 1024] {
                let mut counts = [0u64; 64];
                let samples = len - stride;
                for index in 0..samples {
                    let step = (order.at(index + stride) + len - order.at(index)) % len;
                    counts[(step * 64 / len) as usize] += 1;
                }
                let expected = samples as f64 / 64.0;
                let chi: f64 = counts.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
                assert!(chi < 120.0, "{chi} for {len} blocks {stride} apart");
            }
        }
    }

    /// Whether the position of a block in one pass predicts its position in the next: counts of pairs of eighths;
    /// chi-squared with 49 degrees of freedom exceeds 105 by chance once in 200,000 times.
    #[test]
    fn passes_are_independent_of_each_other() {
        for (len, seed) in [(1u64 << 14, 1), (10_007, 2), ((1 << 16) + 1, 3)] {
            let mut rng = Rng::new(seed);
            let mut order = Permutation::new(len, &mut rng);
            for _ in 0..4 {
                let before = order.clone();
                order.renew(&mut rng);
                let mut counts = [0u64; 64];
                let eighth = |block: u64| (block * 8 / len) as usize;
                (0..len).for_each(|i| counts[eighth(before.at(i)) * 8 + eighth(order.at(i))] += 1);
                let expected = len as f64 / 64.0;
                let chi: f64 = counts.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
                assert!(chi < 105.0, "{chi} for {len}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_block_once(len in 1u64..5_000, seed: u64) {
            check_covers_once(len, seed);
        }

        #[test]
        fn a_new_key_gives_a_new_order(seed: u64) {
            let mut rng = Rng::new(seed);
            let (a, b) = (Permutation::new(1_000, &mut rng), Permutation::new(1_000, &mut rng));
            prop_assert!((0..1_000).any(|i| a.at(i) != b.at(i)));
        }

        #[test]
        fn renewing_gives_another_order_of_the_same_blocks(len in 1u64..2_000, seed: u64) {
            let mut rng = Rng::new(seed);
            let mut order = Permutation::new(len, &mut rng);
            let before: Vec<u64> = (0..len).map(|index| order.at(index)).collect();
            order.renew(&mut rng);
            let mut after: Vec<u64> = (0..len).map(|index| order.at(index)).collect();
            prop_assert!(len < 20 || before != after);
            after.sort_unstable();
            prop_assert!(after.into_iter().eq(0..len));
        }
    }
}
