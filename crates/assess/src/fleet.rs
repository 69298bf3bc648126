//! One measurement by many processes: what happens between the ranks of a job that a launcher started.
//!
//! The ranks meet at fences of the launcher's process manager ([`fathom_sys::process_manager`]), and nowhere else; nothing is sent
//! while a phase runs. [`FleetJob::join`] joins the job, [`FleetJob::meet`] compares the ranks (version, command line, clock) and
//! hands out the job files of rank 0, and [`Fleet`] does the rest on a thread of its own: before each phase of each test all ranks
//! meet, rank 0 reads their states and decides ([`coordinator::verdict`]), and those whose turn it is start together. At the end each rank
//! writes its record to a directory, if there is one, and rank 0 collects and merges the records.
//!
//! Every fence has a deadline. Where one passes, the job is over for all ranks, because the launcher's connection is of no use any
//! more: each keeps what it has, rank 0 reports what it can find, and then has the launcher end what is left
//! ([ADR 0036](../../../docs/adr/0036-process-managers.md)).
//!
//! A text of any length goes into the launcher's space of short values compressed with its checksum (gzip), in characters that every
//! launcher takes (base64 of RFC 4648, section 5). The first value begins with the number of values.

mod coordinator;
mod hello;
mod records;
#[cfg(test)]
mod tests;

use std::io::{Read, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fathom_options::FleetOptions;
use fathom_record::{LaunchRecord, RunRecord};
use fathom_runner::RunControl;
use fathom_sys::clock::{RealClock, monotonic_ns};
use fathom_sys::process_manager::{JobPlace, ProcessManager, ProcessManagerError};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{AssessError, ErrorKind};
pub use coordinator::{AloneDecider, LedDecider, PointDecider, SweepSoFar};
use coordinator::{Coordinator, Ending, FleetGate, RankState, Request};
pub use hello::{FleetFiles, FleetJob, FleetPlace, FleetRole, FleetRoles, FleetStop};
use records::RecordDirectory;
pub use records::{FleetReport, MissingRank};

/// The exit code of a job that ranks are missing from.
pub const MISSING_EXIT: i32 = 75;
/// From a deadline to the end of the job by its launcher: of rank 0 at the least, so that all ranks can say where they are, and of
/// the others, which leave rank 0 the time to report.
const LAST_WORDS_NS: u64 = if cfg!(test) { 200_000_000 } else { 1_000_000_000 };
const PATIENCE_WITH_RANK_0_NS: u64 = 5 * LAST_WORDS_NS;
/// Longest wait for a launcher that is asked to end the job.
const ABORT: Duration = Duration::from_secs(1);

/// A rank of a job whose ranks have met.
pub struct Fleet {
    place: Arc<FleetPlace>,
    options: FleetOptions,
    directory: Option<Arc<RecordDirectory>>,
    requests: Sender<Request>,
    gate: Arc<FleetGate>,
    /// Why no rank measures, once that is known.
    refused: Arc<OnceLock<String>>,
    /// The launcher's interface, for the record.
    launcher: &'static str,
}

/// How a rank left the job.
pub enum FleetEnd {
    /// The ranks have met at the end; rank 0 has the report.
    Met(Option<Box<FleetReport>>),
    /// No rank measures, because one could not begin, or was asked to end before.
    Refused(String),
    /// The ranks did not meet; rank 0 has the report of what it found. The caller prints it and calls [`FleetAbort::abort`].
    Lost(Option<Box<FleetReport>>, FleetAbort),
}

/// The end of a job whose ranks do not meet any more.
pub struct FleetAbort {
    requests: Sender<Request>,
    /// Time of the monotonic clock.
    not_before_ns: u64,
}

impl FleetAbort {
    /// Has the launcher end what is left of the job. The caller has to end itself.
    pub fn abort(self) {
        let clock = RealClock::start();
        let wait_ns = self.not_before_ns.saturating_sub(monotonic_ns());
        clock.sleep_until(clock.now() + wait_ns, ABORT, || true);
        let (done, is_done) = channel();
        if self.requests.send(Request::Abort(done)).is_ok() {
            let _ = is_done.recv_timeout(ABORT);
        }
    }
}

/// Holds another rank where none measures, so that rank 0 can say why: some launchers end all ranks as soon as one ends with an error.
fn leave_rank_0_last_words(rank: u32) {
    if rank > 0 {
        let clock = RealClock::start();
        clock.sleep_until(clock.now() + LAST_WORDS_NS, Duration::from_nanos(LAST_WORDS_NS), || true);
    }
}

impl Fleet {
    /// Starts the thread that meets the other ranks. `tell` passes a line for standard error, when it is to be printed.
    fn begin(coordinator: Coordinator, tell: impl Fn(&str) + Send + 'static) -> Result<Fleet, AssessError> {
        let (requests, inbox) = channel();
        let fleet = Fleet {
            place: coordinator.place.clone(),
            options: coordinator.options.clone(),
            directory: coordinator.directory.clone(),
            gate: Arc::new(FleetGate::new(requests.clone())),
            requests,
            refused: coordinator.refused.clone(),
            launcher: coordinator.exchange.place.interface,
        };
        std::thread::Builder::new()
            .name("fleet".to_owned())
            .spawn(move || coordinator.serve(&inbox, &tell))
            .map_err(|error| {
                let hint = Some("raise the number of processes (ulimit -u)".to_owned());
                AssessError::run(format!("cannot start a thread: {}", crate::error::plain(&error)), hint)
            })?;
        Ok(fleet)
    }

    /// The place of this rank.
    pub fn place(&self) -> &FleetPlace {
        &self.place
    }

    /// What was asked for.
    pub fn options(&self) -> &FleetOptions {
        &self.options
    }

    /// True for the rank that reports.
    pub fn reports(&self) -> bool {
        self.place.rank == 0
    }

    /// `control` with phases that start on all ranks together.
    pub fn control(&self, control: RunControl) -> RunControl {
        control.with_gate(self.gate.clone())
    }

    /// Asks rank 0 for the points of a sweep.
    pub fn decider(&self) -> LedDecider {
        LedDecider::new(self.requests.clone(), self.place.rank == 0)
    }

    /// Enters the place of this rank into its record.
    pub fn enter(&self, record: &mut RunRecord) {
        record.header.launch = Some(LaunchRecord {
            launcher: self.launcher.to_owned(),
            rank: self.place.rank,
            ranks: Some(self.place.ranks),
            role: self.place.role.clone(),
            ..LaunchRecord::default()
        });
        // A simulated run has no facts of its host; its name tells the ranks apart.
        if record.header.hosts.is_empty() {
            let host = fathom_record::HostRecord { hostname: self.place.host.clone(), ..Default::default() };
            record.header.hosts.push(host);
        }
    }

    /// Keeps the record of a run that goes on beside the place of the final one; without a directory nothing.
    pub fn keep_partial(&self, mut record: RunRecord) {
        let Some(directory) = &self.directory else { return };
        self.enter(&mut record);
        // The final record is written all the same, and its failure is reported.
        let _ = directory.write_partial(&record);
    }

    /// True where partial records are kept.
    pub fn keeps_partial(&self) -> bool {
        self.directory.is_some()
    }

    /// Ends the part of a rank that could not begin to measure.
    pub fn fail(self, reason: &str) -> FleetEnd {
        self.part(RankState::Failed { reason: reason.to_owned() }, None)
    }

    /// Writes the record of this rank, meets the others, and collects their records where this is rank 0. `interrupted` is the reason
    /// for which this rank ended before its time, if it did.
    pub fn end(self, mut record: RunRecord, interrupted: Option<String>) -> FleetEnd {
        self.enter(&mut record);
        // Where no rank measures, nothing is left behind.
        let directory = self.directory.as_ref().filter(|_| self.refused.get().is_none());
        let note = directory.and_then(|directory| directory.write_record(&record).err());
        let text = record.to_json();
        let state = RankState::Ended { bytes: text.len() as u64, note, interrupted };
        self.part(state, Some(Box::new((record, text))))
    }

    /// Waits until the ranks have met, or do not any more.
    fn part(self, state: RankState, own: Option<Box<(RunRecord, String)>>) -> FleetEnd {
        let kept = own.as_ref().filter(|_| self.reports()).map(|own| own.0.clone());
        let (reply, answer) = channel();
        let _ = self.requests.send(Request::Part { state, own, reply });
        let ending = loop {
            match answer.recv_timeout(Duration::from_millis(500)) {
                Ok(ending) => break ending,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ending::Lost(monotonic_ns()),
            }
        };
        match ending {
            Ending::Met(report) => {
                self.directory.iter().for_each(|directory| directory.clear_mark());
                FleetEnd::Met(report)
            }
            Ending::Refused(reason) => {
                self.directory.iter().for_each(|directory| directory.clear_mark());
                leave_rank_0_last_words(self.place.rank);
                FleetEnd::Refused(reason)
            }
            Ending::Lost(at_ns) => {
                let wait_ns = if self.reports() { LAST_WORDS_NS } else { PATIENCE_WITH_RANK_0_NS };
                let not_before_ns = at_ns + wait_ns;
                let report = self.reports().then(|| {
                    let (place, directory) = (&self.place, self.directory.as_deref());
                    Box::new(records::found(place, directory, kept, at_ns + LAST_WORDS_NS))
                });
                FleetEnd::Lost(report, FleetAbort { requests: self.requests.clone(), not_before_ns })
            }
        }
    }
}

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
struct Exchange {
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
fn to_json(value: &impl Serialize) -> Vec<u8> {
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
fn manager_error(phase: &str, error: ProcessManagerError) -> AssessError {
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
