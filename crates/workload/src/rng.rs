//! The random numbers of a worker: xoshiro256++ seeded through splitmix64.
//!
//! Implemented here because a seed must give the same requests in every future version. Algorithms: Blackman and Vigna,
//! "Scrambled linear pseudorandom number generators" (2021), public domain reference.

/// A xoshiro256++ generator.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator determined by `seed`.
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        Rng { state: std::array::from_fn(|_| splitmix64(&mut mixer)) }
    }

    /// An independent generator; the same `seed` and `stream` give the same numbers.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut mixer = stream;
        Rng::new(seed ^ splitmix64(&mut mixer))
    }

    /// The next 64 bits.
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let t = s1 << 17;
        let (s2, s3) = (s2 ^ s0, s3 ^ s1);
        let (s1, s0) = (s1 ^ s2, s0 ^ s3);
        self.state = [s0, s1, s2 ^ t, s3.rotate_left(45)];
        result
    }

    /// A number below `bound`, which must not be 0. The bias is below `bound / 2^64`.
    #[inline(always)]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// One step of splitmix64 (Steele, Lea and Flood 2014).
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_equals_the_published_one() {
        // xoshiro256++ from the state 1, 2, 3, 4, as the reference code gives it.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, stream| Rng::stream(seed, stream).next_u64();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn below_is_uniform() {
        let mut rng = Rng::new(7);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }
}
