//! The first-touch penalty, and the parts of a volume that have been accessed.
//!
//! One bit per chunk, in pages that are allocated at the first access to one of their chunks and freed when all chunks
//! have been accessed. So an unused volume of 16 TiB takes no memory.

/// The first-touch penalty of reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTouch {
    /// Bytes that one access initializes.
    pub chunk_bytes: u32,
    /// I/Os that the limits count for each I/O of a first access; 2 halves the rate.
    pub counts_as: u32,
    /// Additional latency, ns.
    pub extra_ns: u64,
}

/// Bits of a page.
const PAGE: u64 = 1 << 15;

/// The chunks that have been accessed.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    chunk_bytes: u64,
    pages: Vec<TouchedPage>,
}

#[derive(Clone, Debug)]
enum TouchedPage {
    None,
    Some { bits: Box<[u64]>, missing: u64 },
    All,
}

impl Touched {
    pub(crate) fn new(chunk_bytes: u32) -> Self {
        Touched { chunk_bytes: u64::from(chunk_bytes), pages: Vec::new() }
    }

    /// Marks the chunks of a range; true if one of them was untouched.
    pub(crate) fn touch(&mut self, offset: u64, bytes: u32) -> bool {
        let last = offset.saturating_add(u64::from(bytes.max(1)) - 1) / self.chunk_bytes;
        let mut is_first = false;
        for chunk in offset / self.chunk_bytes..=last {
            is_first |= self.mark(chunk);
        }
        is_first
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

    #[test]
    fn each_chunk_has_one_first_access() {
        let mut touched = Touched::new(1 << 20);
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
            assert_eq!(touched.touch(offset, bytes), expected, "{offset}+{bytes}");
        }
        // Pages of 32 GiB; of the 512 that 16 TiB have, two hold bits.
        let held = touched.pages.iter().filter(|page| matches!(page, TouchedPage::Some { .. })).count();
        assert_eq!((touched.pages.len(), held), (512, 2));
    }

    #[test]
    fn a_fully_touched_page_needs_no_bits() {
        let mut touched = Touched::new(4096);
        let count = (0..2 * PAGE).filter(|chunk| touched.touch(chunk * 4096, 4096)).count();
        assert_eq!(count as u64, 2 * PAGE);
        assert!(touched.pages.iter().all(|page| matches!(page, TouchedPage::All)));
        assert!(!touched.touch(0, u32::MAX / 64));
    }
}
