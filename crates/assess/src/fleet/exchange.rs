//! Texts of any length in the launcher's space of short values.
//!
//! A text is compressed with its checksum (gzip), written in the 64 characters that every launcher takes, and divided into values
//! of the length that this one takes. The first value begins with the number of values.

use std::io::{Read, Write};
use std::time::Duration;

use fathom_sys::process_manager::{ProcessManager, ProcessManagerError};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::error::FleetError;

/// Longest wait for a launcher to take or give one value.
const CALL: Duration = Duration::from_secs(20);
/// Values need not be longer than this.
const LONGEST_VALUE: usize = 32 << 10;
/// Room in the first value for the number of values.
const COUNT_ROOM: usize = 8;
/// Most bytes that a text of a rank may have.
const MOST_BYTES: u64 = 512 << 20;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The connection to the launcher, with texts of any length.
#[derive(Debug)]
pub(super) struct Exchange {
    manager: Box<dyn ProcessManager>,
    /// What the ranks are about to do, for errors.
    pub phase: &'static str,
}

impl Exchange {
    /// Texts over `manager`.
    pub fn new(manager: Box<dyn ProcessManager>) -> Exchange {
        Exchange { manager, phase: "joining the job" }
    }

    /// The launcher's interface.
    pub fn name(&self) -> &'static str {
        self.manager.name()
    }

    /// Number of this rank.
    pub fn rank(&self) -> u32 {
        self.manager.rank()
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.manager.size()
    }

    /// Makes `text` known to all ranks behind the next fence, under a name that no rank uses twice.
    ///
    /// # Errors
    /// The launcher does not take it.
    pub fn put(&mut self, name: &str, text: &[u8]) -> Result<(), FleetError> {
        let rank = self.rank();
        // Limits count a byte that ends a text in C.
        let room = (self.manager.limits().value.saturating_sub(1)).clamp(COUNT_ROOM * 2, LONGEST_VALUE);
        let packed = pack(text);
        let (first, rest) = packed.split_at(packed.len().min(room - COUNT_ROOM));
        let rest: Vec<&str> = rest
            .as_bytes()
            .chunks(room)
            .map(|chunk| std::str::from_utf8(chunk).unwrap_or_default())
            .collect();
        self.call(|manager| manager.put(&key(name, rank, 0), &format!("{}.{first}", rest.len() + 1), CALL))?;
        for (place, chunk) in rest.iter().enumerate() {
            self.call(|manager| manager.put(&key(name, rank, place + 1), chunk, CALL))?;
        }
        Ok(())
    }

    /// What `rank` has put under `name` before the last fence.
    ///
    /// # Errors
    /// It has put nothing, or what cannot be read; the launcher does not give it.
    pub fn get(&mut self, rank: u32, name: &str) -> Result<Vec<u8>, FleetError> {
        let phase = self.phase;
        let wrong = |reason: String| FleetError::Message { phase, rank, reason };
        let first = self.call(|manager| manager.get(rank, &key(name, rank, 0), CALL))?;
        let (count, first) = first.split_once('.').ok_or_else(|| wrong("no count".to_owned()))?;
        let count: usize = count.parse().map_err(|_| wrong("no count".to_owned()))?;
        let mut packed = first.to_owned();
        for place in 1..count {
            packed.push_str(&self.call(|manager| manager.get(rank, &key(name, rank, place), CALL))?);
        }
        unpack(&packed).map_err(wrong)
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// One does not come within `limit`.
    pub fn fence(&mut self, limit: Duration) -> Result<(), FleetError> {
        self.call(|manager| manager.fence(limit))
    }

    /// Leaves the job.
    pub fn finish(&mut self) -> Result<(), FleetError> {
        self.call(|manager| manager.finish(CALL))
    }

    /// Has the launcher end the job.
    pub fn abort(&mut self, code: i32, message: &str) {
        self.manager.abort(code, message);
    }

    fn call<T>(
        &mut self,
        call: impl FnOnce(&mut dyn ProcessManager) -> Result<T, ProcessManagerError>,
    ) -> Result<T, FleetError> {
        let phase = self.phase;
        call(self.manager.as_mut()).map_err(|source| FleetError::Manager { phase, source })
    }
}

fn key(name: &str, rank: u32, place: usize) -> String {
    format!("fathom-{name}-{rank}-{place}")
}

fn pack(text: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text);
    let compressed = written.and_then(|()| encoder.finish()).expect("writing to memory does not fail");
    let mut packed = String::with_capacity(compressed.len().div_ceil(3) * 4);
    for bytes in compressed.chunks(3) {
        let group =
            bytes.iter().enumerate().fold(0_u32, |all, (at, byte)| all | u32::from(*byte) << (16 - 8 * at));
        for at in 0..=bytes.len() {
            packed.push(char::from(DIGITS[(group >> (18 - 6 * at) & 63) as usize]));
        }
    }
    packed
}

fn unpack(packed: &str) -> Result<Vec<u8>, String> {
    let mut compressed = Vec::with_capacity(packed.len() / 4 * 3);
    for digits in packed.as_bytes().chunks(4) {
        let mut group = 0_u32;
        for (at, digit) in digits.iter().enumerate() {
            let value = DIGITS.iter().position(|known| known == digit);
            group |= (value.ok_or_else(|| format!("the character {digit:#x}"))? as u32) << (18 - 6 * at);
        }
        compressed.extend_from_slice(&group.to_be_bytes()[1..][..digits.len().saturating_sub(1)]);
    }
    let mut text = Vec::new();
    let read = GzDecoder::new(compressed.as_slice()).take(MOST_BYTES).read_to_end(&mut text);
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_come_back() {
        for length in [0, 1, 2, 3, 4, 1000, 100_000] {
            let text: Vec<u8> = (0..length).map(|at: u32| (at.wrapping_mul(at) >> 3) as u8).collect();
            let packed = pack(&text);
            assert!(packed.bytes().all(|byte| DIGITS.contains(&byte)));
            assert_eq!(unpack(&packed), Ok(text), "{length}");
        }
    }

    #[test]
    fn damage_is_noticed() {
        let packed = pack(b"a text of some length, which is compressed");
        assert!(unpack(&packed[..packed.len() - 6]).is_err());
        let mut other = packed.clone().into_bytes();
        let middle = other.len() / 2;
        other[middle] = if other[middle] == b'A' { b'B' } else { b'A' };
        assert!(unpack(std::str::from_utf8(&other).unwrap()).is_err());
        assert!(unpack("a b").is_err());
    }
}
