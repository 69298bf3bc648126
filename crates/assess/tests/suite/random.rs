//! Random numbers for tests that draw volumes.

/// The generator SplitMix64 from a seed.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn chance(&mut self, of: f64) -> bool {
        self.share() < of
    }

    /// Even on a scale of logarithms.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.share() * (high / low).ln()).exp()
    }
}
