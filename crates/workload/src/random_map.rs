//! A random order that visits every block exactly once, without remembering which were visited.
//!
//! A Feistel network permutes the numbers below `2^bits`, where `bits` is just enough for the block count; values at or
//! past the count are permuted again until one falls below it (cycle walking), fewer than two rounds on average whatever
//! the count. The halves may differ by one bit, so no power of four is needed. A new key gives a new order.

use crate::Rng;

const ROUNDS: usize = 4;

/// A keyed permutation of `0..len`.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A random order of `len` blocks; `len` must not be 0.
    pub fn new(len: u64, rng: &mut Rng) -> Self {
        assert!(len > 0, "a permutation needs at least one block");
        let bits = 64 - (len - 1).leading_zeros();
        let low_bits = bits / 2;
        let mask = |bits: u32| if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        Permutation {
            len,
            low_bits,
            low_mask: mask(low_bits),
            high_mask: mask(bits - low_bits),
            keys: std::array::from_fn(|_| rng.next_u64()),
        }
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
    #[inline]
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

    #[inline(always)]
    fn permute(&self, value: u64) -> u64 {
        let mut low = value & self.low_mask;
        let mut high = value >> self.low_bits;
        for pair in self.keys.chunks_exact(2) {
            low ^= mix(high, pair[0]) & self.low_mask;
            high ^= mix(low, pair[1]) & self.high_mask;
        }
        high << self.low_bits | low
    }
}

/// Spreads every bit of `half` over the low bits of the result.
#[inline(always)]
fn mix(half: u64, key: u64) -> u64 {
    let product = u128::from(half ^ key) * 0x9e37_79b9_7f4a_7c15_u128;
    (product >> 64) as u64 ^ (product as u64 >> 32)
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
    fn a_huge_volume_costs_nothing_and_stays_in_range() {
        let blocks = (16u64 << 40) / 4096 + 1;
        let order = Permutation::new(blocks, &mut Rng::new(3));
        let mut sum = 0u128;
        for index in 0..100_000 {
            let block = order.at(index);
            assert!(block < blocks);
            sum += u128::from(block);
        }
        let mean = (sum / 100_000) as f64 / blocks as f64;
        assert!((mean - 0.5).abs() < 0.01, "offsets lean to one side: {mean}");
    }

    #[test]
    fn walks_are_fewer_than_two_on_average_at_the_worst_size() {
        let len = (1u64 << 20) + 1;
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
        assert!((walks as f64 / len as f64) < 2.01, "{walks} walks for {len}");
    }

    #[test]
    fn neighbours_are_scattered() {
        let len = 1u64 << 18;
        let order = Permutation::new(len, &mut Rng::new(5));
        let sequential = (1..len).filter(|&i| order.at(i) == order.at(i - 1) + 1).count();
        assert!(sequential < 12, "{sequential} sequential pairs; one is expected");
        let same_sixteenth =
            (1..len).filter(|&i| order.at(i) * 16 / len == order.at(i - 1) * 16 / len).count();
        let share = same_sixteenth as f64 / len as f64;
        assert!((share - 1.0 / 16.0).abs() < 0.01, "{share}");
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
    }
}
