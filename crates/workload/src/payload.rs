//! Contents of writes.
//!
//! Buffers are filled once with random bytes. Before a write, every word of the buffer is combined with a new key,
//! which costs a fraction of new random bytes: no two sectors on the device are equal, and no compressor or
//! deduplicator finds one block in another, even if many small blocks make up one of its records. A large block is
//! incompressible by itself, so only the first word of each of its sectors changes.

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

/// Smallest large block: longer than the records that file systems compress (128 KiB by default on ZFS and btrfs).
const LARGE: usize = 256 << 10;

/// Changes prepared random bytes before each write.
#[derive(Clone, Debug)]
pub struct BlockStamp {
    keys: Rng,
}

impl BlockStamp {
    /// The stamp of the worker with this seed.
    pub fn new(seed: u64) -> Self {
        BlockStamp { keys: Rng::stream(seed, 0x57a3) }
    }

    /// Changes `buffer`, which contains prepared random bytes.
    #[inline]
    pub fn apply(&mut self, buffer: &mut [u8]) {
        let key = self.keys.next_u64();
        if buffer.len() < LARGE {
            combine(buffer, key);
        } else {
            for sector in buffer.chunks_mut(SECTOR) {
                let word = sector.len().min(8);
                combine(&mut sector[..word], key);
            }
        }
    }
}

/// Combines every word with `key`, and a remainder at the end with the first bytes of `key`.
#[inline]
fn combine(buffer: &mut [u8], key: u64) {
    let (words, rest) = buffer.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ key).to_ne_bytes();
    }
    rest.iter_mut().zip(key.to_ne_bytes()).for_each(|(byte, key)| *byte ^= key);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Eight-byte strings that occur more than once and that a compressor would exploit.
    fn repetitions(data: &[u8]) -> usize {
        let mut seen = HashSet::new();
        data.windows(8)
            .filter(|window| !seen.insert(<[u8; 8]>::try_from(*window).expect("eight bytes")))
            .count()
    }

    #[test]
    fn writes_from_one_buffer_share_no_eight_bytes() {
        for block in [512, 4096, 3000, 65_536] {
            let mut buffer = vec![0u8; block];
            fill_random(&mut buffer, &mut Rng::new(3));
            let mut stamp = BlockStamp::new(4);
            let mut written = Vec::new();
            while written.len() < 262_144 {
                stamp.apply(&mut buffer);
                written.extend_from_slice(&buffer);
            }
            assert_eq!(repetitions(&written), 0, "blocks of {block}");
        }
    }

    #[test]
    fn large_blocks_change_in_every_sector() {
        let mut buffer = vec![0u8; LARGE + 100];
        fill_random(&mut buffer, &mut Rng::new(5));
        let before = buffer.clone();
        BlockStamp::new(6).apply(&mut buffer);
        assert!(buffer.chunks(SECTOR).zip(before.chunks(SECTOR)).all(|(now, then)| now != then));
    }

    #[test]
    fn sectors_differ_and_do_not_compress() {
        let mut buffer = vec![0u8; 4096];
        fill_random(&mut buffer, &mut Rng::new(1));
        let mut stamp = BlockStamp::new(1);
        let mut seen = HashSet::new();
        for _ in 0..2_000 {
            stamp.apply(&mut buffer);
            for sector in buffer.chunks(SECTOR) {
                assert!(seen.insert(sector.to_vec()), "a sector repeats");
            }
        }
        let mut counts = [0u32; 256];
        buffer.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        assert!(counts.iter().all(|&count| count < 60), "bytes are not uniform");
    }

    #[test]
    fn odd_lengths_are_filled_to_the_end() {
        for len in [0, 1, 3, 7, 9, 513] {
            let mut buffer = vec![0u8; len];
            fill_random(&mut buffer, &mut Rng::new(9));
            BlockStamp::new(2).apply(&mut buffer);
            assert!(len < 7 || buffer.iter().any(|&b| b != 0));
        }
    }
}
