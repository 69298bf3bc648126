//! The random numbers of a volume: splitmix64 (Steele, Lea and Flood 2014), the same on every machine.

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub(crate) struct VolumeRng(u64);

impl VolumeRng {
    /// An independent generator for each `stream` of a `seed`.
    pub(crate) fn stream(seed: u64, stream: u64) -> Self {
        let mut mixer = VolumeRng(stream);
        let key = mixer.next_u64();
        VolumeRng(seed ^ key)
    }

    #[inline(always)]
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0.
    #[inline(always)]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_equals_the_published_one() {
        // The reference code's first numbers from the state 1234567.
        let mut rng = VolumeRng(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
