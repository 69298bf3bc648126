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
    /// The sizes, which shrink to the room that is left.
    sizes: Sizes,
}

#[derive(Clone, Debug)]
enum Sizes {
    /// In ascending order.
    Listed(Box<[u64]>),
    Range(BlockRange),
}

impl BlockDeck {
    /// A deck with the shares of `sizes`, determined by `seed`.
    pub(crate) fn new(sizes: &BlockSize, seed: u64) -> Self {
        let (cards, sizes): (Box<[u64]>, Sizes) = match sizes {
            BlockSize::Fixed(size) => (Box::from([*size]), Sizes::Listed(Box::from([*size]))),
            BlockSize::Split(split) => {
                let all = split.shares().iter();
                let mut listed: Vec<u64> = split.shares().iter().map(|&(size, _)| size).collect();
                listed.sort_unstable();
                let cards = all.flat_map(|&(size, share)| std::iter::repeat_n(size, share.into())).collect();
                (cards, Sizes::Listed(listed.into()))
            }
            BlockSize::Range(range) => (range.sample().collect(), Sizes::Range(*range)),
        };
        let mut deck = BlockDeck { cards, next: 0, rng: Rng::new(seed), sizes };
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
        let is_range = matches!(self.sizes, Sizes::Range(_));
        let shrunk = || is_range.then(|| self.shrunk(room)).flatten();
        let size = top.filter(|&size| size <= room).or_else(shrunk)?;
        self.next += 1;
        Some(size)
    }

    /// As [`BlockDeck::draw`]; if the top size stays, the largest that fits is added to those of the deck.
    pub(crate) fn draw_to_fit(&mut self, room: u64) -> Option<u64> {
        self.draw(room).or_else(|| self.shrunk(room))
    }

    /// The largest size that is at most `room`.
    pub(crate) fn shrunk(&self, room: u64) -> Option<u64> {
        match &self.sizes {
            Sizes::Listed(sizes) => sizes.iter().rev().copied().find(|&size| size <= room),
            Sizes::Range(range) => {
                let size = (room - room % range.step()).min(range.bounds().1);
                Some(size).filter(|&size| size >= range.bounds().0)
            }
        }
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
    fn a_size_that_does_not_fit_shrinks_or_stays_on_top() {
        let mut deck = deck(&[(4096, 1), (8192, 1), (65536, 98)]);
        let shrunk: Vec<Option<u64>> =
            [4095, 4096, 8191, 8192, 65535].into_iter().map(|room| deck.shrunk(room)).collect();
        assert_eq!(shrunk, [None, Some(4096), Some(4096), Some(8192), Some(8192)]);
        assert!((0..200).all(|_| deck.draw_to_fit(9000).is_some_and(|size| size <= 8192)));
        deck.shuffle();
        let before = deck.cards()[0];
        assert_eq!((deck.draw(before - 1), deck.draw(before)), (None, Some(before)));
    }
}
