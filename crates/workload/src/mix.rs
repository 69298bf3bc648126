//! The share of reads in a mixed workload, exact in every 100 requests.
//!
//! Each 100 requests are a shuffled deck with exactly the given percentage of reads, so the share is exact after a
//! second as after an hour, and the order is random.

use crate::Rng;

const DECK: u32 = 100;

/// Draws read or write.
#[derive(Clone, Debug)]
pub struct ReadShare {
    percent: u32,
    reads_left: u32,
    cards_left: u32,
}

impl ReadShare {
    /// `percent` reads, 0 to 100.
    pub fn new(percent: u8) -> Self {
        ReadShare { percent: u32::from(percent.min(100)), reads_left: 0, cards_left: 0 }
    }

    /// True for a read.
    #[inline]
    pub fn next_is_read(&mut self, rng: &mut Rng) -> bool {
        if self.cards_left == 0 {
            (self.cards_left, self.reads_left) = (DECK, self.percent);
        }
        let read = rng.below(u64::from(self.cards_left)) < u64::from(self.reads_left);
        self.cards_left -= 1;
        self.reads_left -= u32::from(read);
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_exact_in_every_hundred() {
        for percent in [0, 1, 50, 75, 99, 100] {
            let mut share = ReadShare::new(percent);
            let mut rng = Rng::new(1);
            for _ in 0..20 {
                let reads = (0..DECK).filter(|_| share.next_is_read(&mut rng)).count();
                assert_eq!(reads, usize::from(percent));
            }
        }
    }

    #[test]
    fn order_is_random_within_the_deck() {
        let mut share = ReadShare::new(50);
        let mut rng = Rng::new(2);
        let flips: Vec<bool> = (0..1000).map(|_| share.next_is_read(&mut rng)).collect();
        let changes = flips.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((400..600).contains(&changes), "{changes} changes of direction in 1000");
    }
}
