//! Draws request sizes from a mix or a range; the shares are exact in every 100 requests of a mix.
//!
//! Like the share of reads: 100 requests are a shuffled deck that contains each size exactly as often as its share
//! says. The deck of a range is a sample of its sizes.

use fathom_model::{BlockRange, BlockSize};

use crate::Rng;

/// Draws sizes. It has its own generator, so that operations of one size get the same requests with and without it.
#[derive(Clone, Debug)]
pub(crate) struct BlockDeck {
    cards: Box<[u64]>,
    next: usize,
    rng: Rng,
    /// A range, whose sizes shrink to the room that is left.
    range: Option<BlockRange>,
}

impl BlockDeck {
    /// A deck with the shares of `sizes`, determined by `seed`.
    pub(crate) fn new(sizes: &BlockSize, seed: u64) -> Self {
        let (cards, range) = match sizes {
            BlockSize::Fixed(size) => (Box::from([*size]), None),
            BlockSize::Split(split) => {
                let all = split.shares().iter();
                (all.flat_map(|&(size, share)| std::iter::repeat_n(size, share.into())).collect(), None)
            }
            BlockSize::Range(range) => (range.sample().collect(), Some(*range)),
        };
        let mut deck = BlockDeck { cards, next: 0, rng: Rng::new(seed), range };
        deck.shuffle();
        deck
    }

    /// Puts all cards back, in a new order.
    pub(crate) fn shuffle(&mut self) {
        for index in (1..self.cards.len()).rev() {
            self.cards.swap(index, self.rng.below(index as u64 + 1) as usize);
        }
        self.next = 0;
    }

    /// Draws the top size if it is at most `room`; a larger one stays on top, or shrinks if the sizes are a range.
    pub(crate) fn draw(&mut self, room: u64) -> Option<u64> {
        if self.next == self.cards.len() {
            self.shuffle();
        }
        let top = self.cards.get(self.next).copied();
        let size = top.filter(|&size| size <= room).or_else(|| self.shrunk(room))?;
        self.next += 1;
        Some(size)
    }

    /// The largest size of a range that is at most `room`.
    pub(crate) fn shrunk(&self, room: u64) -> Option<u64> {
        let range = self.range?;
        Some(room - room % range.step()).filter(|&size| size >= range.bounds().0)
    }

    /// The whole deck in its order.
    pub(crate) fn cards(&self) -> &[u64] {
        &self.cards
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::BlockSize;

    use super::*;

    fn deck(shares: &[(u64, u8)]) -> BlockDeck {
        BlockDeck::new(&BlockSize::of_shares(shares).unwrap(), 1)
    }

    #[test]
    fn shares_are_exact_in_every_hundred() {
        let mut deck = deck(&[(4096, 60), (8192, 39), (65536, 1)]);
        let mut orders = Vec::new();
        for _ in 0..20 {
            let drawn: Vec<u64> = (0..100).filter_map(|_| deck.draw(u64::MAX)).collect();
            let count = |size| drawn.iter().filter(|&&drawn| drawn == size).count();
            assert_eq!((count(4096), count(8192), count(65536)), (60, 39, 1));
            orders.push(drawn);
        }
        assert!(orders.windows(2).all(|pair| pair[0] != pair[1]), "the same order again");
    }

    #[test]
    fn sizes_of_a_range_shrink_to_the_room_left() {
        let mut deck = BlockDeck::new(&BlockSize::of_range(4096, 16384, false).unwrap(), 1);
        let drawn: Vec<u64> = (0..1024).filter_map(|_| deck.draw(u64::MAX)).collect();
        let count = |size| drawn.iter().filter(|&&drawn| drawn == size).count();
        assert_eq!([4096, 8192, 12288, 16384].map(count), [256; 4]);
        assert!((0..99).all(|_| deck.draw(9000).is_some_and(|size| size == 4096 || size == 8192)));
        assert_eq!(deck.draw(4095), None);
    }

    #[test]
    fn a_size_that_does_not_fit_stays_on_top() {
        let mut deck = deck(&[(4096, 1), (8192, 99)]);
        let before = deck.cards()[0];
        assert_eq!((deck.draw(before - 1), deck.draw(before)), (None, Some(before)));
    }
}
