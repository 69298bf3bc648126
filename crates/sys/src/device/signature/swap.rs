//! Swap space and the images of hibernated systems that are put into it: marks at the end of the first page, whose size
//! is that of the machine that wrote it.

use std::io;

use super::SignatureClass::Swap;
use super::view::View;
use super::{Found, add};

/// From 4 KiB up to what PowerPC and Hexagon may be built with.
const PAGE_SIZES: [u64; 7] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10];

/// The marks, each within the last ten bytes of the page.
const MARKS: [(&str, &[u8]); 6] = [
    ("swap", b"SWAPSPACE2"),
    ("swap", b"SWAP-SPACE"),
    ("hibernation image", b"S1SUSPEND"),
    ("hibernation image", b"S2SUSPEND"),
    ("hibernation image", b"ULSUSPEND"),
    ("hibernation image", b"LINHIB0001"),
];

/// TuxOnIce's mark at the start.
const TUX_ON_ICE: &[u8] = &[0xed, 0xc3, 0x02, 0xe9, 0x98, 0x56, 0xe5, 0x0c];

/// All of them.
pub(super) fn probe(view: &View, found: &mut Found) -> io::Result<()> {
    for offset in PAGE_SIZES.map(|page| page - 10) {
        let Some(end) = view.bytes::<10>(offset)? else { break };
        for (name, _) in MARKS.iter().filter(|(_, mark)| end.starts_with(mark)) {
            add(found, name, Swap, offset);
        }
    }
    if view.has(0, TUX_ON_ICE)? {
        add(found, "hibernation image", Swap, 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::signature::fixture::check;

    #[test]
    fn every_mark_in_every_size_of_page() {
        for page in PAGE_SIZES {
            for (name, mark) in MARKS {
                check(&[(page as usize - 10, mark)], &[name]);
            }
        }
        check(&[(2048 - 10, b"SWAPSPACE2")], &[]);
        check(&[(0, TUX_ON_ICE)], &["hibernation image"]);
    }
}
