//! Offset and size of the next request of one operation in one file, for mixed sizes.
//!
//! All offsets are multiples of the smallest size from the start of the file's range. In random order that visits each
//! block once, a pass tiles the range with requests without gaps or overlaps, deck after deck in one shuffled order of
//! sizes, and visits the tiles by a permutation: so the shares are kept in any part of a pass, and no visited block is
//! remembered. Each pass tiles the range anew.

use fathom_model::BlockSize;

use crate::block_deck::BlockDeck;
use crate::{Permutation, Rng};

/// The order of the requests of one operation in one file. What is left at the end of the range is accessed in smaller
/// requests, unless offsets are independent; only a remainder below the smallest size is not.
#[derive(Clone, Debug)]
pub(crate) struct MixedOffsets {
    /// Bytes of the range.
    len: u64,
    /// Smallest size.
    unit: u64,
    deck: BlockDeck,
    order: MixedOrder,
}

#[derive(Clone, Debug)]
enum MixedOrder {
    /// Sequential.
    Sequential { next: u64 },
    /// Every tile of the range once, in random order.
    Tiles(Box<Tiles>),
    /// Independent random offsets, as many bytes per pass as the range has.
    Draw { moved: u64 },
}

/// A range tiled with requests: the same 100 sizes repeated, the last repetition as far as it fits.
#[derive(Clone, Debug)]
struct Tiles {
    /// Offset within a deck, and size.
    tiles: Box<[(u64, u64)]>,
    deck_bytes: u64,
    count: u64,
    /// The last tiles, which are smaller than their sizes in the deck.
    shrunk: Box<[(u64, u64)]>,
    order: Permutation,
    next: u64,
}

impl Tiles {
    fn new(len: u64, deck: &BlockDeck, rng: &mut Rng) -> Self {
        let cards = deck.cards();
        let starts = cards.iter().scan(0, |end, &size| {
            let start = *end;
            *end += size;
            Some((start, size))
        });
        let tiles: Box<[(u64, u64)]> = starts.collect();
        let deck_bytes = cards.iter().sum::<u64>().max(1);
        let rest = len % deck_bytes;
        let in_rest = tiles.iter().take_while(|(start, size)| start + size <= rest).count() as u64;
        let covered = tiles.iter().take(in_rest as usize).map(|(_, size)| size).sum::<u64>();
        let mut end = len - rest + covered;
        let shrunk = std::iter::from_fn(|| {
            let size = deck.shrunk(len - end)?;
            end += size;
            Some((end - size, size))
        });
        let shrunk: Box<[(u64, u64)]> = shrunk.collect();
        let count = len / deck_bytes * tiles.len() as u64 + in_rest + shrunk.len() as u64;
        Tiles { tiles, deck_bytes, count, shrunk, order: Permutation::new(count.max(1), rng), next: 0 }
    }

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.next >= self.count {
            return None;
        }
        let tile = self.order.at(self.next);
        self.next += 1;
        if let Some(last) = tile.checked_sub(self.count - self.shrunk.len() as u64) {
            return Some(self.shrunk[last as usize]);
        }
        let decks = tile / self.tiles.len() as u64;
        let (start, size) = self.tiles[(tile % self.tiles.len() as u64) as usize];
        Some((decks * self.deck_bytes + start, size))
    }
}

impl MixedOffsets {
    /// The order over `len` bytes, at least the largest of `sizes`. A map needs sizes that are multiples of the smallest.
    pub(crate) fn new(random: bool, random_map: bool, len: u64, sizes: &BlockSize, rng: &mut Rng) -> Self {
        let deck = BlockDeck::new(sizes, rng.next_u64());
        let unit = sizes.smallest().max(1);
        let is_aligned = !matches!(sizes, BlockSize::Range(range) if range.step() < unit);
        let order = match (random, random_map && is_aligned) {
            (false, _) => MixedOrder::Sequential { next: 0 },
            (true, true) => MixedOrder::Tiles(Box::new(Tiles::new(len, &deck, rng))),
            (true, false) => MixedOrder::Draw { moved: 0 },
        };
        MixedOffsets { len, unit, deck, order }
    }

    /// Offset and size of the next request, or `None` at the end of the pass.
    pub(crate) fn next_range(&mut self, rng: &mut Rng) -> Option<(u64, u64)> {
        match &mut self.order {
            MixedOrder::Sequential { next } => {
                let size = self.deck.draw_to_fit(self.len - *next)?;
                let offset = *next;
                *next += size;
                Some((offset, size))
            }
            MixedOrder::Tiles(tiles) => tiles.next(),
            MixedOrder::Draw { moved } => {
                let size = self.deck.draw(self.len - *moved)?;
                *moved += size;
                Some((rng.below((self.len - size) / self.unit + 1) * self.unit, size))
            }
        }
    }

    /// Starts a new pass; a range in random order is tiled anew.
    pub(crate) fn restart(&mut self, rng: &mut Rng) {
        match &mut self.order {
            MixedOrder::Sequential { next } => *next = 0,
            MixedOrder::Tiles(tiles) => {
                self.deck.shuffle();
                **tiles = Tiles::new(self.len, &self.deck, rng);
            }
            MixedOrder::Draw { moved } => *moved = 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SHARES: [(u64, u8); 3] = [(4096, 50), (8192, 30), (65536, 20)];
    /// Bytes of 100 requests.
    const HUNDRED: u64 = 50 * 4096 + 30 * 8192 + 20 * 65536;

    fn mixed(order: (bool, bool), len: u64) -> (MixedOffsets, Rng) {
        let size = BlockSize::of_shares(&SHARES).unwrap();
        let mut rng = Rng::new(3);
        (MixedOffsets::new(order.0, order.1, len, &size, &mut rng), rng)
    }

    fn pass(mixed: &mut MixedOffsets, rng: &mut Rng) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| mixed.next_range(rng)).collect()
    }

    fn counts(requests: &[(u64, u64)]) -> Vec<u64> {
        let mut counts = BTreeMap::new();
        requests.iter().for_each(|&(_, size)| *counts.entry(size).or_default() += 1);
        counts.into_values().collect()
    }

    #[test]
    fn a_random_pass_covers_the_range_once_with_exact_shares() {
        let (mut mixed, mut rng) = mixed((true, true), 70 * HUNDRED);
        let passes = [pass(&mut mixed, &mut rng), {
            mixed.restart(&mut rng);
            pass(&mut mixed, &mut rng)
        }];
        assert_ne!(passes[0], passes[1]);
        for mut requests in passes {
            assert_eq!(counts(&requests), [3500, 2100, 1400]);
            assert!(requests.windows(2).filter(|two| two[0].0 + two[0].1 == two[1].0).count() < 10);
            requests.sort_unstable();
            let end = requests.iter().try_fold(0, |end, &(at, size)| (at == end).then_some(at + size));
            assert_eq!(end, Some(70 * HUNDRED));
        }
    }

    #[test]
    fn a_pass_of_a_range_covers_every_byte_once() {
        let sizes = BlockSize::of_range(4096, 16384, false).unwrap();
        for (random, len) in [(true, 1 << 20), (false, 1 << 20), (true, 300 << 20), (true, (1 << 20) + 4096)]
        {
            let mut rng = Rng::new(3);
            let mut mixed = MixedOffsets::new(random, true, len, &sizes, &mut rng);
            let mut requests = pass(&mut mixed, &mut rng);
            requests.sort_unstable();
            let end = requests.iter().try_fold(0, |end, &(at, size)| (at == end).then_some(at + size));
            assert_eq!(end, Some(len));
        }
    }

    #[test]
    fn the_remainder_of_a_pass_is_smaller_than_the_smallest_request() {
        for len in [65536, 100_000, HUNDRED - 4096, HUNDRED + 1, 3 * HUNDRED / 2] {
            for order in [(false, true), (true, true), (true, false)] {
                let (mut mixed, mut rng) = mixed(order, len);
                for _ in 0..5 {
                    let requests = pass(&mut mixed, &mut rng);
                    let moved: u64 = requests.iter().map(|(_, size)| size).sum();
                    let least = if order == (true, false) { 65536 } else { 4096 };
                    assert!(moved <= len && len - moved < least, "{moved} of {len}, {order:?}");
                    assert!(requests.iter().all(|&(at, size)| at % 4096 == 0 && at + size <= len));
                    mixed.restart(&mut rng);
                }
            }
        }
    }

    #[test]
    fn sequential_and_independent_orders_keep_the_shares_over_passes() {
        for (order, most_added) in [((false, true), 0.02), ((true, false), 0.0)] {
            let (mut mixed, mut rng) = mixed(order, 16 << 20);
            let mut all = Vec::new();
            while all.len() < 10_000 {
                match mixed.next_range(&mut rng) {
                    Some(range) => all.push(range),
                    None => mixed.restart(&mut rng),
                }
            }
            let deviation = |(count, share): (u64, u64)| (count as f64 / share as f64 - 1.0).abs();
            let deviations = counts(&all).into_iter().zip([5000, 3000, 2000]).map(deviation);
            assert!(deviations.fold(0.0, f64::max) <= most_added, "{:?} {order:?}", counts(&all));
        }
        let (mut mixed, mut rng) = mixed((false, true), 1 << 20);
        let requests = pass(&mut mixed, &mut rng);
        assert!(requests.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0) && requests[0].0 == 0);
    }
}
