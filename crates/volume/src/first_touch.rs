//! What the first access to each part of a volume costs, and which parts have been accessed.
//!
//! A bit for each part, in pages that come into being when one of their parts is touched and go when all are. So a volume of
//! 16 TiB costs nothing before it is used.

/// The penalty of a first access. It is paid by reads and writes alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTouch {
    /// Bytes that come with one access.
    pub chunk_bytes: u32,
    /// How many I/Os each I/O of a first access counts for; 2 where half of them are lost.
    pub counts_as: u32,
    /// What it takes longer, ns.
    pub extra_ns: u64,
}

/// Bits of a page.
const PAGE: u64 = 1 << 15;

/// Which chunks have been accessed.
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

    /// Marks the chunks of a range; true where one of them was not touched before.
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
    fn each_chunk_is_new_once() {
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
    fn a_page_that_is_whole_needs_no_bits() {
        let mut touched = Touched::new(4096);
        let count = (0..2 * PAGE).filter(|chunk| touched.touch(chunk * 4096, 4096)).count();
        assert_eq!(count as u64, 2 * PAGE);
        assert!(touched.pages.iter().all(|page| matches!(page, TouchedPage::All)));
        assert!(!touched.touch(0, u32::MAX / 64));
    }
}
