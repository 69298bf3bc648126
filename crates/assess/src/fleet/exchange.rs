//! Texts of any length in the launcher's space of short values.
//!
//! A text is compressed with its checksum (gzip), written in characters that every launcher takes (base64 of RFC 4648, section 5), and
//! divided into values of the length that this one takes. The first value begins with the number of values.

use std::io::{Read, Write};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fathom_sys::clock::monotonic_ns;
use fathom_sys::process_manager::{JobPlace, ProcessManager, ProcessManagerError};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{AssessError, ErrorKind};

/// Longest wait for a launcher to take or give one value.
const CALL: Duration = Duration::from_secs(20);
/// Values need not be longer than this.
const MAX_VALUE: usize = 32 << 10;
/// Room in the first value for the number of values.
const COUNT_ROOM: usize = 8;
/// Most bytes that a text of a rank may have.
const MAX_BYTES: u64 = 512 << 20;

/// The connection to the launcher, with texts of any length.
#[derive(Debug)]
pub(super) struct Exchange {
    manager: Box<dyn ProcessManager>,
    /// The place of this rank.
    pub place: JobPlace,
    /// What the ranks are about to do, for errors.
    pub phase: &'static str,
    /// While a rank joins, all calls together have a limit, which ends at this time of the monotonic clock, ns: a launcher that answers
    /// each in time may have no end of answers.
    joining: Option<(Duration, u64)>,
}

/// A message of the ranks.
pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("messages have no maps with other keys than texts")
}

impl Exchange {
    /// Texts over `manager`.
    pub fn new(manager: Box<dyn ProcessManager>) -> Exchange {
        Exchange { place: manager.place(), manager, phase: "joining the job", joining: None }
    }

    /// From `since_ns` of the monotonic clock all calls together take `limit` at most, until the rank [has joined](Self::joined).
    pub fn joins(&mut self, since_ns: u64, limit: Duration) {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.joining = Some((limit, since_ns.saturating_add(limit_ns)));
    }

    /// From now on each call has its own limit alone.
    pub fn joined(&mut self) {
        self.joining = None;
    }

    /// Makes `text` known to all ranks behind the next fence, under a name that no rank uses twice.
    ///
    /// # Errors
    /// The launcher does not take it.
    pub fn put(&mut self, name: &str, text: &[u8]) -> Result<(), AssessError> {
        let rank = self.place.rank;
        // Limits count a byte that ends a text in C.
        let room = (self.place.limits.value.saturating_sub(1)).clamp(COUNT_ROOM * 2, MAX_VALUE);
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
    pub fn get(&mut self, rank: u32, name: &str) -> Result<Vec<u8>, AssessError> {
        let phase = self.phase;
        let wrong = |reason: String| unreadable(phase, rank, &reason);
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

    /// The same, as it was put by [`to_json`].
    ///
    /// # Errors
    /// As there.
    pub fn read<T: DeserializeOwned>(&mut self, rank: u32, name: &str) -> Result<T, AssessError> {
        let text = self.get(rank, name)?;
        serde_json::from_slice(&text).map_err(|error| unreadable(self.phase, rank, &error.to_string()))
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// One does not come within `limit`.
    pub fn fence(&mut self, limit: Duration) -> Result<(), AssessError> {
        self.call("fence", limit, |manager, limit| manager.fence(limit))
    }

    /// Leaves the job.
    pub fn finish(&mut self) -> Result<(), AssessError> {
        self.call("finalize", CALL, |manager, limit| manager.finish(limit))
    }

    /// Has the launcher end the job.
    pub fn abort(&mut self, code: i32, message: &str) {
        self.manager.abort(code, message);
    }

    fn call<T>(
        &mut self,
        asked: &'static str,
        max: Duration,
        call: impl FnOnce(&mut dyn ProcessManager, Duration) -> Result<T, ProcessManagerError>,
    ) -> Result<T, AssessError> {
        let phase = self.phase;
        let left = |until_ns: u64| Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        let joining = self.joining.map(|(limit, until_ns)| (left(until_ns), limit));
        let (limit, shown) = joining.filter(|(left, _)| *left < max).unwrap_or((max, max));
        let done = match limit.is_zero() {
            true => Err(ProcessManagerError::Deadline { asked, limit }),
            false => call(self.manager.as_mut(), limit),
        };
        done.map_err(|error| match error {
            ProcessManagerError::Deadline { asked, .. } => {
                manager_error(phase, ProcessManagerError::Deadline { asked, limit: shown })
            }
            error => manager_error(phase, error),
        })
    }
}

/// The launcher cannot be asked, or the ranks did not come: the launcher has to end the job then.
pub(super) fn manager_error(phase: &str, error: ProcessManagerError) -> AssessError {
    let message = format!("{phase}: {error}");
    match error {
        ProcessManagerError::Deadline { .. } => {
            let hint = "a rank has died, hangs or was not started; --fleet-join=TIME waits longer for the first meeting";
            AssessError::new(ErrorKind::Lost, message, Some(hint.to_owned()))
        }
        error => AssessError::run(message, error.hint().map(str::to_owned)),
    }
}

/// What another rank put cannot be read.
fn unreadable(phase: &str, rank: u32, reason: &str) -> AssessError {
    let message = format!("{phase}: rank {rank} sent what cannot be read: {reason}");
    AssessError::run(message, Some("use one version of fathom on every host".to_owned()))
}

fn key(name: &str, rank: u32, place: usize) -> String {
    format!("fathom-{name}-{rank}-{place}")
}

fn pack(text: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text);
    let compressed = written.and_then(|()| encoder.finish()).expect("writing to memory does not fail");
    URL_SAFE_NO_PAD.encode(compressed)
}

fn unpack(packed: &str) -> Result<Vec<u8>, String> {
    let compressed = URL_SAFE_NO_PAD.decode(packed).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let read = GzDecoder::new(compressed.as_slice()).take(MAX_BYTES).read_to_end(&mut text);
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;
    use fathom_options::FleetOptions;
    use fathom_sys::process_manager::TextLimits;

    use super::super::{FleetFiles, FleetJob};
    use super::*;

    /// A launcher that answers at once, and every text has a further value.
    #[derive(Debug)]
    struct Endless;

    impl ProcessManager for Endless {
        fn place(&self) -> JobPlace {
            let limits = TextLimits { key: 64, value: 1024 };
            JobPlace { interface: "endless", rank: 0, size: 1, limits }
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
        let options = FleetOptions { join: Some(Nanos::from_millis(50)), ..FleetOptions::default() };
        let job = FleetJob::on(Box::new(Endless), options, "h".to_owned(), "boot".to_owned(), monotonic_ns());
        let met = job.meet(&[], Ok(FleetFiles::default()), |_| {});
        let stop = met.map(drop).unwrap_err();
        assert!(stop.error.to_string().contains("did not answer 'get' within 50ms"), "{}", stop.error);
    }

    #[test]
    fn texts_of_any_length_come_back() {
        for length in [0, 1, 2, 3, 4, 1000, 100_000] {
            let text: Vec<u8> = (0..length).map(|at: u32| (at.wrapping_mul(at) >> 3) as u8).collect();
            let packed = pack(&text);
            assert!(packed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
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
