//! What a write carries.
//!
//! Buffers are filled once with random bytes, which no compressor shortens. Before a write every 512-byte sector is
//! stamped with a number that never repeats within the worker, so that no two sectors on the device are equal.

use crate::Rng;

const SECTOR: usize = 512;

/// Fills `buffer` with random bytes.
pub fn fill_random(buffer: &mut [u8], rng: &mut Rng) {
    let mut chunks = buffer.chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&rng.next_u64().to_le_bytes());
    }
    let rest = chunks.into_remainder();
    let last = rng.next_u64().to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

/// Makes every sector of prepared random bytes unique.
#[derive(Clone, Debug)]
pub struct Stamp {
    next: u64,
    salt: u64,
}

impl Stamp {
    /// A stamp of its own for the worker with this seed.
    pub fn new(seed: u64) -> Self {
        Stamp { next: 0, salt: Rng::stream(seed, 0x57a3).next_u64() }
    }

    /// Stamps each sector of `buffer`, which holds prepared random bytes.
    #[inline]
    pub fn apply(&mut self, buffer: &mut [u8]) {
        for sector in buffer.chunks_mut(SECTOR) {
            // An odd multiplier keeps distinct counts distinct while every byte of the stamp changes.
            let stamp = (self.next ^ self.salt).wrapping_mul(0xd6e8_feb8_6659_fd93).to_le_bytes();
            self.next += 1;
            let len = sector.len().min(stamp.len());
            sector[..len].copy_from_slice(&stamp[..len]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_sectors_are_equal_and_none_compresses_by_repetition() {
        let mut buffer = vec![0u8; 4096];
        fill_random(&mut buffer, &mut Rng::new(1));
        let mut stamp = Stamp::new(1);
        let mut seen = HashSet::new();
        for _ in 0..2_000 {
            stamp.apply(&mut buffer);
            for sector in buffer.chunks(SECTOR) {
                assert!(seen.insert(sector.to_vec()), "a sector repeats");
            }
        }
        let mut counts = [0u32; 256];
        buffer.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        assert!(counts.iter().all(|&count| count < 60), "bytes are not even");
    }

    #[test]
    fn odd_lengths_are_filled_to_the_end() {
        for len in [0, 1, 3, 7, 9, 513] {
            let mut buffer = vec![0u8; len];
            fill_random(&mut buffer, &mut Rng::new(9));
            Stamp::new(2).apply(&mut buffer);
            assert!(len < 7 || buffer.iter().any(|&b| b != 0));
        }
    }
}
