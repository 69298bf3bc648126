//! The way of one operation through the range of one file.

use fathom_model::Op;

use crate::block_deck::BlockDeck;
use crate::mixed::MixedOffsets;
use crate::rng::Rng;
use crate::skew::Skew;
use crate::source::SourcePlan;

/// How a request relates to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// At an offset of its own.
    Draw,
    /// After the one before it.
    Follow,
    /// At the same offset.
    Repeat,
}

/// After a request that ends where the range ends: none follows in this pass if some bytes are left out.
const END: u64 = u64::MAX;

/// Offsets and sizes within a range. A pass moves as many bytes as the range has.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    len: u64,
    moved: u64,
    deck: BlockDeck,
    order: Order,
    /// Random offsets are multiples of this.
    align: u64,
    /// Bytes from the end of a request to the one after it.
    skip: i64,
    /// Offset of the next sequential request of each operation, [`END`] after one at the end of the range, and offset of
    /// the last one.
    next: [u64; 3],
    last: [u64; 3],
    /// Sequential requests start again at the end of the range.
    is_sequential: bool,
    /// The range ends where the file ends.
    to_file_end: bool,
}

#[derive(Clone, Debug)]
enum Order {
    /// Every block once.
    Once(Box<MixedOffsets>),
    /// Independent of each other.
    Drawn,
    /// Independent of each other, from a distribution.
    Skewed(Box<Skew>),
}

impl Walk {
    /// Whether its offsets are random and drawn independently of each other.
    pub(super) fn is_independent(&self) -> bool {
        !self.is_sequential && !matches!(self.order, Order::Once(_))
    }

    /// The walk of `op` over `len` bytes; `like` has the tables of the same walk in another file.
    pub(super) fn new(plan: &SourcePlan, op: Op, len: u64, like: Option<&Walk>, rng: &mut Rng) -> Walk {
        let (access, sizes) = (&plan.access, &plan.block_size[op]);
        let unit = sizes.smallest().max(1);
        let align = if access.align[op] == 0 { unit } else { access.align[op] };
        let deck = BlockDeck::new(sizes, rng.next_u64());
        let known = like.and_then(|walk| match &walk.order {
            Order::Skewed(skew) => Some(&**skew),
            Order::Once(_) | Order::Drawn => None,
        });
        let blocks = (len / align).max(1);
        let is_partly_random = access.percentage_random[op] < 100;
        let is_plain = access.align[op] == 0 && access.zones.is_none() && !is_partly_random;
        let order = match Skew::scattered(&access.distribution[op], (blocks, align), known, rng) {
            Some(skew) => Order::Skewed(Box::new(skew)),
            None if plan.pattern.random && plan.random_map && is_plain => {
                Order::Once(Box::new(MixedOffsets::new(true, true, len, sizes, rng)))
            }
            None => Order::Drawn,
        };
        let (skip, is_sequential) = (access.skip, !plan.pattern.random);
        let to_file_end = plan.to_file_ends;
        Walk {
            len,
            moved: 0,
            deck,
            order,
            align,
            skip,
            next: [0; 3],
            last: [0; 3],
            is_sequential,
            to_file_end,
        }
    }

    /// Offset and size of the next request of `op`; `None` at the end of the pass.
    pub(super) fn next(&mut self, op: Op, how: Move, rng: &mut Rng) -> Option<(u64, u64)> {
        let entry = op as usize;
        let (offset, len) = match (how, &mut self.order) {
            (Move::Draw, Order::Once(order)) => order.next_range(rng)?,
            _ => {
                let len = self.deck.draw(self.len - self.moved)?;
                (self.offset(entry, how, len, rng)?, len)
            }
        };
        self.moved = (self.moved + len).min(self.len);
        self.last[entry] = offset;
        self.next[entry] = match (offset + len).checked_add_signed(self.skip) {
            Some(_) if self.skip > 0 && offset + len == self.len => END,
            Some(next) => next,
            // Backwards past the start: from the end.
            None => self.len.saturating_add_signed(self.skip),
        };
        Some((offset, len))
    }

    fn offset(&mut self, entry: usize, how: Move, len: u64, rng: &mut Rng) -> Option<u64> {
        let last_offset = self.len - len;
        let wanted = match how {
            Move::Draw => None,
            Move::Follow => Some(self.next[entry]),
            Move::Repeat => Some(self.last[entry]),
        };
        if let Some(offset) = wanted.filter(|&offset| offset <= last_offset) {
            return Some(offset);
        }
        if self.is_sequential {
            // As in fio: a skip past the end of the file leads to the start of the range; a request that the end cuts ends the
            // pass, and so does a skip past the end of a range within the file.
            let wraps = self.to_file_end && (self.len..END).contains(&self.next[entry]);
            return (self.skip <= 0 || wraps).then_some(0);
        }
        match &mut self.order {
            Order::Once(order) => order.next_range(rng).map(|(offset, _)| offset.min(last_offset)),
            Order::Drawn => Some(rng.below(last_offset / self.align + 1) * self.align),
            Order::Skewed(skew) => {
                Some((skew.next(rng) * self.align).min(last_offset - last_offset % self.align))
            }
        }
    }

    /// Begins a new pass; sequential requests begin at the start of the range.
    pub(super) fn restart(&mut self, rng: &mut Rng) {
        self.moved = 0;
        if self.is_sequential {
            self.next = [0; 3];
        }
        if let Order::Once(order) = &mut self.order {
            order.restart(rng);
        }
    }
}
