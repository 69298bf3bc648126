//! The random offsets and payloads of a ping: xorshift128+ (Vigna 2014), seeded through splitmix64, as ioping has them,
//! so that one seed asks for the same blocks in both.

/// A generator.
#[derive(Clone, Debug)]
pub(super) struct Random([u64; 2]);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Random {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Random([next(), next()])
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        let (mut x, y) = (self.0[0], self.0[1]);
        x ^= x << 23;
        x ^= y ^ (x >> 17) ^ (y >> 26);
        self.0 = [y, x];
        x.wrapping_add(y)
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_ne_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_all() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            std::array::from_fn::<u64, 4, _>(|_| random.next())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut bytes = [0; 21];
        Random::new(3).fill(&mut bytes);
        assert_eq!(bytes[..8], draw(3)[0].to_ne_bytes());
        assert!(bytes[16..].iter().any(|&byte| byte != 0));
    }
}
