//! Noise for tests: numbers that look random and are the same every time.

/// An xorshift generator (Marsaglia 2003, Journal of Statistical Software 8) with 64 bits of state.
#[derive(Clone, Debug)]
pub struct RepeatableNoise(u64);

impl RepeatableNoise {
    /// Noise from this state, which must not be 0.
    pub const fn new(state: u64) -> RepeatableNoise {
        RepeatableNoise(state)
    }

    /// Noise from a seed; neighbouring seeds give unrelated noise.
    pub const fn seeded(seed: u64) -> RepeatableNoise {
        RepeatableNoise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Evenly distributed from 0 to below 1.
    pub fn even(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Nearly standard normal: twelve even ones less their mean.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.even()).sum::<f64>() - 6.0
    }

    /// Standard normal, of which it keeps the share `kept` of `last`, the value before.
    pub fn after(&mut self, last: f64, kept: f64) -> f64 {
        kept * last + (1.0 - kept * kept).sqrt() * self.normal()
    }
}
