//! Texts of any length in the launcher's space of short values.
//!
//! A text is compressed with its checksum (gzip), written in the 64 characters that every launcher takes, and divided into values
//! of the length that this one takes. The first value begins with the number of values.

use std::io::{Read, Write};
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;
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
    joining: Option<Joining>,
}

/// While a rank joins, all calls together have a limit: a launcher that answers each in time may have no end of answers.
#[derive(Clone, Copy, Debug)]
struct Joining {
    limit: Duration,
    until_ns: u64,
}

impl Exchange {
    /// Texts over `manager`.
    pub fn new(manager: Box<dyn ProcessManager>) -> Exchange {
        Exchange { manager, phase: "joining the job", joining: None }
    }

    /// From `since_ns` of the monotonic clock all calls together take `limit` at most, until the rank [has joined](Self::joined).
    pub fn joins(&mut self, since_ns: u64, limit: Duration) {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.joining = Some(Joining { limit, until_ns: since_ns.saturating_add(limit_ns) });
    }

    /// From now on each call has its own limit alone.
    pub fn joined(&mut self) {
        self.joining = None;
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
        let first = format!("{}.{first}", rest.len() + 1);
        self.call("put", CALL, |manager, limit| manager.put(&key(name, rank, 0), &first, limit))?;
        for (place, chunk) in rest.iter().enumerate() {
            self.call("put", CALL, |manager, limit| manager.put(&key(name, rank, place + 1), chunk, limit))?;
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
        let mut get = |place| {
            self.call("get", CALL, |manager, limit| manager.get(rank, &key(name, rank, place), limit))
        };
        let first = get(0)?;
        let (count, first) = first.split_once('.').ok_or_else(|| wrong("no count".to_owned()))?;
        let count: usize = count.parse().map_err(|_| wrong("no count".to_owned()))?;
        let mut packed = first.to_owned();
        for place in 1..count {
            packed.push_str(&get(place)?);
        }
        unpack(&packed).map_err(wrong)
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// One does not come within `limit`.
    pub fn fence(&mut self, limit: Duration) -> Result<(), FleetError> {
        self.call("fence", limit, |manager, limit| manager.fence(limit))
    }

    /// Leaves the job.
    pub fn finish(&mut self) -> Result<(), FleetError> {
        self.call("finalize", CALL, |manager, limit| manager.finish(limit))
    }

    /// Has the launcher end the job.
    pub fn abort(&mut self, code: i32, message: &str) {
        self.manager.abort(code, message);
    }

    fn call<T>(
        &mut self,
        asked: &'static str,
        most: Duration,
        call: impl FnOnce(&mut dyn ProcessManager, Duration) -> Result<T, ProcessManagerError>,
    ) -> Result<T, FleetError> {
        let phase = self.phase;
        let left = |joining: Joining| Duration::from_nanos(joining.until_ns.saturating_sub(monotonic_ns()));
        let joining = self.joining.map(|joining| (left(joining), joining.limit));
        let (limit, shown) = joining.filter(|(left, _)| *left < most).unwrap_or((most, most));
        let done = match limit.is_zero() {
            true => Err(ProcessManagerError::Deadline { asked, limit }),
            false => call(self.manager.as_mut(), limit),
        };
        done.map_err(|source| match source {
            ProcessManagerError::Deadline { asked, .. } => {
                FleetError::Manager { phase, source: ProcessManagerError::Deadline { asked, limit: shown } }
            }
            source => FleetError::Manager { phase, source },
        })
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
    use fathom_model::Nanos;
    use fathom_sys::process_manager::TextLimits;

    use super::super::{FleetFiles, FleetJob, FleetSettings};
    use super::*;

    /// A launcher that answers at once, and every text has a further value.
    #[derive(Debug)]
    struct Endless;

    impl ProcessManager for Endless {
        fn name(&self) -> &'static str {
            "endless"
        }

        fn rank(&self) -> u32 {
            0
        }

        fn size(&self) -> u32 {
            1
        }

        fn limits(&self) -> TextLimits {
            TextLimits { key: 64, value: 1024 }
        }

        fn put(&mut self, _: &str, _: &str, _: Duration) -> Result<(), ProcessManagerError> {
            Ok(())
        }

        fn get(&mut self, _: u32, _: &str, _: Duration) -> Result<String, ProcessManagerError> {
            Ok(format!("{}.", usize::MAX))
        }

        fn fence(&mut self, _: Duration) -> Result<(), ProcessManagerError> {
            Ok(())
        }

        fn finish(&mut self, _: Duration) -> Result<(), ProcessManagerError> {
            Ok(())
        }

        fn abort(&mut self, _: i32, _: &str) {}
    }

    #[test]
    fn a_text_that_never_ends_holds_no_rank_that_joins() {
        let settings = FleetSettings { join: Nanos::from_millis(50), ..FleetSettings::default() };
        let job =
            FleetJob::on(Box::new(Endless), settings, "h".to_owned(), "boot".to_owned(), monotonic_ns());
        let met = job.meet(&[], Ok(FleetFiles::default()), |_| {});
        let stop = met.map(drop).unwrap_err();
        assert!(stop.error.to_string().contains("did not answer 'get' within 50ms"), "{}", stop.error);
    }

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
