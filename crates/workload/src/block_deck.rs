//! Draws request sizes from a mix; the shares are exact in every 100 requests.
//!
//! Like the share of reads: 100 requests are a shuffled deck that contains each size exactly as often as its share
//! says.

use fathom_model::BlockSplit;

use crate::Rng;

/// Draws sizes. It has its own generator, so that operations of one size get the same requests with and without it.
#[derive(Clone, Debug)]
pub(crate) struct BlockDeck {
    cards: Box<[u64]>,
    next: usize,
    rng: Rng,
}

impl BlockDeck {
    /// A deck with the shares of `split`, determined by `seed`.
    pub(crate) fn new(split: &BlockSplit, seed: u64) -> Self {
        let cards = split.shares().iter().flat_map(|&(size, share)| std::iter::repeat_n(size, share.into()));
        let mut deck = BlockDeck { cards: cards.collect(), next: 0, rng: Rng::new(seed) };
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

    /// Draws the top size if it is at most `room`; a larger one stays on top.
    pub(crate) fn draw(&mut self, room: u64) -> Option<u64> {
        if self.next == self.cards.len() {
            self.shuffle();
        }
        let size = self.cards.get(self.next).copied().filter(|&size| size <= room)?;
        self.next += 1;
        Some(size)
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
        let size = BlockSize::of_shares(shares).unwrap();
        BlockDeck::new(size.split().unwrap(), 1)
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
    fn a_size_that_does_not_fit_stays_on_top() {
        let mut deck = deck(&[(4096, 1), (8192, 99)]);
        let before = deck.cards()[0];
        assert_eq!((deck.draw(before - 1), deck.draw(before)), (None, Some(before)));
    }
}
