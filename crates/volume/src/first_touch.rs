//! The first-touch penalty, and the parts of a volume that have been accessed.
//!
//! One bit per chunk, in pages that are allocated at the first access to one of their chunks and freed when all chunks
//! have been accessed. So an unused volume of 16 TiB takes no memory.
//!
//! A volume made from a snapshot may be initialized in the background as well: chunk by chunk from its beginning, at a rate. A
//! first access takes its chunk out of turn, so that the whole volume is initialized after its size divided by the rate, whatever
//! is accessed.

use crate::rate::TokenRate;

/// The first-touch penalty of reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTouch {
    /// Bytes that one access initializes.
    pub chunk_bytes: u32,
    /// I/Os that the limits count for each I/O of a first access; 2 halves the rate.
    pub counts_as: u32,
    /// Additional latency, ns.
    pub extra_ns: u64,
    /// The rate, bytes, at which the provider initializes the volume from time 0 on. `None` = only accesses initialize it.
    pub initialization: Option<TokenRate>,
}

/// Bits of a page.
const PAGE: u64 = 1 << 15;

/// The chunks that have been accessed.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    chunk_bytes: u64,
    pages: Vec<TouchedPage>,
    background: Option<Background>,
}

/// The initialization by the provider.
#[derive(Clone, Debug)]
struct Background {
    rate: TokenRate,
    /// Chunks of the volume.
    chunks: u64,
    /// Chunks that were initialized, in turn or for an access.
    done: u64,
    /// The next chunk in turn.
    next: u64,
}

#[derive(Clone, Debug)]
enum TouchedPage {
    None,
    Some { bits: Box<[u64]>, missing: u64 },
    All,
}

impl Touched {
    pub(crate) fn new(penalty: FirstTouch, size_bytes: u64) -> Self {
        let chunk_bytes = u64::from(penalty.chunk_bytes);
        let chunks = size_bytes.div_ceil(chunk_bytes);
        let background = penalty.initialization.map(|rate| Background { rate, chunks, done: 0, next: 0 });
        Touched { chunk_bytes, pages: Vec::new(), background }
    }

    /// Marks the chunks of a range that is accessed at `now`. The time at which they are initialized, if one of them was not yet.
    pub(crate) fn touch(&mut self, now: u64, offset: u64, bytes: u32) -> Option<u64> {
        self.initialize_until(now);
        let last = offset.saturating_add(u64::from(bytes.max(1)) - 1) / self.chunk_bytes;
        let mut first = 0;
        for chunk in offset / self.chunk_bytes..=last {
            first += u64::from(self.mark(chunk));
        }
        (first > 0).then(|| match &mut self.background {
            Some(background) => {
                background.done += first;
                background.rate.time_for(background.done.saturating_mul(self.chunk_bytes)).max(now)
            }
            None => now,
        })
    }

    /// Marks the chunks that the provider has initialized in turn.
    fn initialize_until(&mut self, now: u64) {
        let Some(mut background) = self.background.take() else { return };
        let permitted = background.rate.in_ns(now) / u128::from(self.chunk_bytes);
        while u128::from(background.done) < permitted && background.next < background.chunks {
            background.done += u64::from(self.mark(background.next));
            background.next += 1;
        }
        self.background = (background.next < background.chunks).then_some(background);
    }

    fn mark(&mut self, chunk: u64) -> bool {
        let index = (chunk / PAGE) as usize;
        if index >= self.pages.len() {
            self.pages.resize(index + 1, TouchedPage::None);
        }
        let page = &mut self.pages[index];
        if let TouchedPage::None = page {
            *page = TouchedPage::Some { bits: vec![0; (PAGE / 64) as usize].into(), missing: PAGE };
        }
        let TouchedPage::Some { bits, missing } = page else { return false };
        let (word, bit) = ((chunk % PAGE / 64) as usize, 1 << (chunk % 64));
        let is_first = bits[word] & bit == 0;
        bits[word] |= bit;
        *missing -= u64::from(is_first);
        if *missing == 0 {
            *page = TouchedPage::All;
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(chunk_bytes: u32, size_bytes: u64, per_second: u64) -> Touched {
        let initialization = TokenRate::per_second(per_second);
        Touched::new(FirstTouch { chunk_bytes, counts_as: 1, extra_ns: 0, initialization }, size_bytes)
    }

    #[test]
    fn a_volume_is_initialized_from_its_beginning_and_what_is_accessed_out_of_turn() {
        const MS: u64 = 1_000_000;
        // A chunk in every 10 ms.
        let mut touched = touched(1 << 20, 100 << 20, 100 << 20);
        let mut at = |ms: u64, chunk: u64| touched.touch(ms * MS, chunk << 20, 4096).map(|ns| ns / MS);
        assert_eq!(at(50, 4), None, "the fifth chunk is there after 50 ms");
        assert_eq!(at(50, 90), Some(60), "the sixth slot is taken by an access");
        assert_eq!(at(50, 80), Some(70), "and the next");
        assert_eq!(at(55, 90), None, "a chunk is fetched once");
        assert_eq!(at(79, 5), Some(80));
        assert_eq!(at(100, 6), None);
        // 100 chunks take a second, whatever was accessed before.
        assert_eq!(at(999, 99), Some(1000));
        assert_eq!(at(1000, 98), None);
        assert_eq!(touched.touch(1010 * MS, 97 << 20, 4096), None);
        assert!(touched.background.is_none(), "all is done");
    }

    #[test]
    fn each_chunk_has_one_first_access() {
        let mut touched = touched(1 << 20, 16 << 40, 0);
        let tib = 1 << 40;
        for (offset, bytes, expected) in [
            (0, 4096, true),
            (4096, 4096, false),
            ((1 << 20) - 1, 1, false),
            ((1 << 20) - 1, 2, true),
            (1 << 20, 1 << 20, false),
            (16 * tib - 4096, 4096, true),
            (16 * tib - 8192, 8192, false),
            (5 << 20, 0, true),
            (5 << 20, 0, false),
        ] {
            assert_eq!(touched.touch(7, offset, bytes), expected.then_some(7), "{offset}+{bytes}");
        }
        // Pages of 32 GiB; of the 512 that 16 TiB have, two hold bits.
        let held = touched.pages.iter().filter(|page| matches!(page, TouchedPage::Some { .. })).count();
        assert_eq!((touched.pages.len(), held), (512, 2));
    }

    #[test]
    fn a_fully_touched_page_needs_no_bits() {
        let mut touched = touched(4096, 8192 * PAGE, 0);
        let count = (0..2 * PAGE).filter(|chunk| touched.touch(0, chunk * 4096, 4096).is_some()).count();
        assert_eq!(count as u64, 2 * PAGE);
        assert!(touched.pages.iter().all(|page| matches!(page, TouchedPage::All)));
        assert_eq!(touched.touch(0, 0, u32::MAX / 64), None);
    }
}
