//! Random choices of an engine among its requests.

/// Numbers below 100, each as likely as the others, and the same in every run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draws {
    /// Numbers drawn.
    count: u64,
}

impl Draws {
    /// The next number: bits of the count, mixed by multiplications and shifts.
    pub fn next(&mut self) -> u8 {
        self.count += 1;
        let mut bits = self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for _ in 0..2 {
            bits = (bits ^ bits >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        ((u128::from(bits ^ bits >> 32) * 100) >> 64) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_below_a_hundred_and_equally_likely() {
        let mut draws = Draws::default();
        let mut counts = [0_u32; 100];
        (0..100_000).for_each(|_| counts[draws.next() as usize] += 1);
        // A thousand each, within five standard deviations.
        assert!(counts.iter().all(|count| count.abs_diff(1_000) < 160), "{counts:?}");
    }
}
