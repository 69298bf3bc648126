//! Data on a device: signatures of file systems, partition tables and others.

use std::io;

use fathom_sys::device::signature::{ReadAt, probe};

/// Bytes of a place in an input: how far to go on from the one before, and how many bytes lie there.
const HEAD: usize = 5;

/// Searches for signatures on a device with the size and content of the input.
pub fn check(data: &[u8]) {
    let Some((size, mut rest)) = data.split_first_chunk::<8>() else { return };
    let mut device = Sparse { size: u64::from_le_bytes(*size), pieces: Vec::new() };
    let mut at = 0_u64;
    while let Some((head, tail)) = rest.split_first_chunk::<HEAD>() {
        at = at.wrapping_add(u64::from(u32::from_le_bytes([head[0], head[1], head[2], head[3]])));
        let (piece, behind) = tail.split_at(tail.len().min(usize::from(head[4])));
        device.pieces.push((at, piece));
        rest = behind;
    }
    let found = probe(&device, device.size).expect("a device in memory can be read");
    for signature in found {
        assert!(!signature.to_string().is_empty());
        assert!(signature.offset < device.size, "{signature} at {}", signature.offset);
    }
}

/// A device that is zero but for some pieces, the last of which holds where they overlap.
struct Sparse<'a> {
    size: u64,
    pieces: Vec<(u64, &'a [u8])>,
}

impl ReadAt for Sparse<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let length =
            usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..length];
        buffer.fill(0);
        for (start, piece) in &self.pieces {
            for (index, byte) in piece.iter().enumerate() {
                let place = start.checked_add(index as u64).and_then(|at| at.checked_sub(offset));
                if let Some(to) = place.and_then(|place| buffer.get_mut(usize::try_from(place).ok()?)) {
                    *to = *byte;
                }
            }
        }
        Ok(length)
    }
}
