//! `ping`: single requests on a thread of their own, each reported as it completes, and watched from here.
//!
//! The watcher never touches the target, so a device that does not answer holds up neither a report nor Ctrl-C. Prints
//! nothing: a [`PingObserver`] receives the events.

mod target;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fathom_analysis::ping::{
    DeviceCounts, Note, Ping, PingHow, PingProgress, PingSample, PingStall, PingTally, PingWindow, Rules,
};
use fathom_record::{Activity, Observed, PingActivity, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_runner::{
    InFlight, MachineTick, MachineTicks, Progress, RunControl, RunHandle, Session, StopHandle,
};
use fathom_sys::clock::unix_us;
use fathom_sys::device::{DiskSampler, DiskStats};

use crate::catalogue::VolumeTypes;
use crate::simulated::is_simulated;
use crate::target::absolute;
use crate::{AssessError, ErrorKind, enter_conditions};
use worker::{PingEvent, PingReady, SharedTally};

/// The id of the test that a ping is.
pub const PING_TEST: &str = "ping";

/// A request without an answer for so long is reported.
pub const STALL_NS: u64 = 1_500_000_000;
/// It is reported again each time this has passed.
const REMIND_NS: u64 = 10_000_000_000;
/// How often the progress of a ping is reported.
const PROGRESS_NS: u64 = 500_000_000;
/// A request without an answer for so long shows in how a ping stands.
const WAITS_NS: u64 = 1_000_000_000;

/// Receives the events of a ping. Every method is optional.
pub trait PingObserver {
    /// The target is open; requests begin. Samples count their time from `unix_us`.
    fn ready(&mut self, _header: &RunHeader, _how: &PingHow, _unix_us: u64) {}
    /// A request was answered.
    fn sample(&mut self, _sample: &PingSample, _note: Option<Note>) {}
    /// A period has ended.
    fn period(&mut self, _period: &PingWindow) {}
    /// The last request of a burst was answered.
    fn burst_ended(&mut self) {}
    /// What was begun has no answer yet; `preparing` where it was not yet a request.
    fn stalled(&mut self, _stall: &PingStall, _preparing: bool) {}
    /// A request that was reported as stalled has its answer.
    fn answered(&mut self, _length_ns: u64) {}
    /// How it stands, where the settings ask for that: half a second after the last time or later, once a request was answered or
    /// while one has no answer, and at the end.
    fn progress(&mut self, _progress: &PingProgress) {}
}

impl PingObserver for () {}

/// Pings until the count, the time or `stop` ends it: a run of one test.
///
/// # Errors
/// Nothing could be measured, or a request failed where that is the end.
pub fn run(
    settings: PingSettings,
    stop: &StopHandle,
    observer: &mut dyn PingObserver,
) -> Result<RunRecord, AssessError> {
    run_under(RunControl::default().with_stop(stop.clone()), settings, observer)
}

/// As [`run`], under `control`, whose stop request ends it and whose gate, if it has one, starts it.
///
/// # Errors
/// As for [`run`].
pub fn run_under(
    control: RunControl,
    settings: PingSettings,
    observer: &mut dyn PingObserver,
) -> Result<RunRecord, AssessError> {
    let fixed = settings.schedule == LatePolicy::Fixed;
    let is_simulated = is_simulated(&settings.target);
    if is_simulated && settings.count.is_none() && settings.work_ns.is_none() {
        let message = "without a count or a time limit this would never end in virtual time";
        return Err(AssessError::usage(message, "set a count (-c 10) or a time (-w 1min)"));
    }
    let tally = SharedTally::new(Mutex::new(PingTally::new(settings.rules, fixed)));
    let (own, counted) = (control.clone(), tally.clone());
    let handle =
        RunHandle::begin(control.clone(), move |events| worker::work(settings, &own, &counted, events))
            .map_err(|error| {
                AssessError::run(format!("the thread that issues I/Os cannot be started: {error}"), None)
            })?;
    let mut watcher = Watcher {
        control,
        tally,
        observer,
        ready: None,
        unix_us: 0,
        is_simulated,
        reported: None,
        machine: None,
        last_report: LastReport::default(),
    };
    let end_ns = watcher.watch(handle)?;
    watcher.account(end_ns)
}

struct Watcher<'a> {
    control: RunControl,
    tally: SharedTally,
    observer: &'a mut dyn PingObserver,
    ready: Option<Box<PingReady>>,
    /// Wall clock when requests began; 0 on virtual time.
    unix_us: u64,
    is_simulated: bool,
    /// The request reported as stalled: when it was made, and when it was last reported.
    reported: Option<(u64, u64)>,
    /// Counters of machine and devices, for progress in real time.
    machine: Option<MachineTicks>,
    last_report: LastReport,
}

/// When progress was last reported, and up to where.
#[derive(Default)]
struct LastReport {
    /// ns since the ping began.
    at_ns: u64,
    requests: u64,
}

impl Watcher<'_> {
    /// Until the worker has ended; with its end, session ns, or `None` where it was given up.
    fn watch(
        &mut self,
        mut handle: RunHandle<PingEvent, Result<u64, AssessError>>,
    ) -> Result<Option<u64>, AssessError> {
        loop {
            match handle.wait() {
                Progress::Event(event) => self.take(event),
                Progress::Waiting => {}
                Progress::Stuck(_) => {
                    self.look();
                    self.tell_progress(true);
                    return Ok(None);
                }
                Progress::Ended(end_ns) => {
                    self.look();
                    self.tell_progress(true);
                    return end_ns.map(Some);
                }
            }
            self.look();
            self.tell_progress(false);
        }
    }

    fn take(&mut self, event: PingEvent) {
        match event {
            PingEvent::Ready(mut ready) => {
                self.unix_us = if self.is_simulated { 0 } else { unix_us() };
                ready.header.started_unix_ms = self.unix_us / 1000;
                self.observer.ready(&ready.header, &ready.how, self.unix_us);
                self.machine = ready.machine.take();
                self.ready = Some(ready);
            }
            PingEvent::Sample(sample, note) => self.observer.sample(&sample, note),
            PingEvent::Period(period) => self.observer.period(&period),
            PingEvent::BurstEnded => self.observer.burst_ended(),
            PingEvent::Progress(progress) => self.observer.progress(&progress),
            PingEvent::Stalled(stall) => {
                self.observer.stalled(&stall, false);
                if !stall.unanswered {
                    self.observer.answered(stall.length_ns);
                }
            }
        }
    }

    /// Looks how long the request in flight has taken; on virtual time the worker tells.
    fn look(&mut self) {
        let Some(now) = self.control.now_ns() else { return };
        let in_flight = self.control.waited();
        if let Some((since, _)) =
            self.reported.filter(|(since, _)| in_flight.is_none_or(|(now, _)| now.since_ns != *since))
        {
            self.reported = None;
            self.observer.answered(now - since);
        }
        let Some((stalled, length_ns)) = in_flight.filter(|(_, length)| *length >= STALL_NS) else { return };
        if self.reported.is_some_and(|(_, told_at)| now - told_at < REMIND_NS) {
            return;
        }
        self.reported = Some((stalled.since_ns, now));
        self.observer.stalled(&self.stall(stalled, length_ns), self.ready.is_none());
    }

    /// Tells how the ping stands, if that is due or `is_last`. Reads the counters of devices, and never their target.
    fn tell_progress(&mut self, is_last: bool) {
        let begin_ns = self.ready.as_ref().map(|ready| ready.begin_ns);
        let (Some(machine), Some(now), Some(begin_ns)) = (&mut self.machine, self.control.now_ns(), begin_ns)
        else {
            return;
        };
        let elapsed_ns = now.saturating_sub(begin_ns);
        if !is_last && elapsed_ns < self.last_report.at_ns + PROGRESS_NS {
            return;
        }
        let waits_ns = self.control.waited().map(|(_, length_ns)| length_ns);
        let account = worker::lock(&self.tally).account();
        let has_news = account.counts.requests > self.last_report.requests;
        if !is_last && !has_news && waits_ns.is_none_or(|ns| ns < WAITS_NS) {
            return;
        }
        self.last_report = LastReport { at_ns: elapsed_ns, requests: account.counts.requests };
        let MachineTick { devices, host } = machine.tick(now);
        self.observer.progress(&PingProgress { elapsed_ns, account, waits_ns, devices, host });
    }

    fn stall(&self, InFlight { since_ns, offset }: InFlight, length_ns: u64) -> PingStall {
        let begin_ns = self.ready.as_ref().map_or(0, |ready| ready.begin_ns);
        PingStall {
            begin_ns: since_ns.saturating_sub(begin_ns),
            length_ns,
            offset_bytes: offset,
            unanswered: true,
        }
    }

    /// Everything that was measured.
    fn account(mut self, end_ns: Option<u64>) -> Result<RunRecord, AssessError> {
        let interrupted = self.control.stop_handle().reason();
        // Without an end the thread is stuck in a request.
        let in_flight = self.control.waited().filter(|_| end_ns.is_none());
        let unanswered = in_flight.map(|(in_flight, length_ns)| self.stall(in_flight, length_ns));
        let Some(ready) = self.ready.take() else {
            let reason = interrupted.unwrap_or_else(|| "nobody".to_owned());
            let message = format!("interrupted by {reason} before the first request");
            return Err(AssessError::new(ErrorKind::Stopped, message, None));
        };
        let PingReady { mut header, how, disk, begin_ns, thread, .. } = *ready;
        let stuck_thread = end_ns.is_none().then_some(thread);
        let now = end_ns.or_else(|| self.control.now_ns());
        let elapsed_ns = now.unwrap_or(begin_ns).saturating_sub(begin_ns);
        let mut tally = worker::lock(&self.tally);
        unanswered.into_iter().for_each(|stall| tally.stalled(stall));
        let mut ping = tally.result(how);
        drop(tally);
        ping.elapsed_ns = elapsed_ns;
        ping.stuck_thread = stuck_thread;
        ping.device_counts = disk.as_ref().and_then(|(sampler, before)| {
            let since = read(sampler)?.since(before);
            Some(DeviceCounts {
                name: sampler.names().next()?.to_owned(),
                reads: since.read_ios,
                writes: since.write_ios,
                flushes: since.flush_ios,
            })
        });
        header.interrupted.clone_from(&interrupted);
        let test = test_of(ping, header.started_unix_ms, interrupted);
        let status = test.status;
        Ok(RunRecord { header, status, tests: vec![test], ..RunRecord::default() })
    }
}

fn test_of(ping: Ping, started_unix_ms: u64, interrupted: Option<String>) -> TestRecord {
    let failed = ping.counts.errors;
    let unanswered = || ping.stuck_thread.map(|_| "the last I/O never completed".to_owned());
    let (status, reason) = match interrupted.clone().or_else(unanswered) {
        Some(reason) => (TestStatus::Incomplete, Some(reason)),
        None if failed > 0 => (TestStatus::Failed, Some(format!("{failed} I/Os failed"))),
        None => (TestStatus::Complete, None),
    };
    TestRecord {
        id: PING_TEST.to_owned(),
        title: ping.how.title(),
        status,
        reason,
        started_unix_ms,
        observed: Some(Observed::Ping(Box::new(ping))),
        interrupted,
        ..TestRecord::default()
    }
}

/// A reading of the only device of `sampler`.
fn read(sampler: &DiskSampler) -> Option<DiskStats> {
    let mut readings = Vec::new();
    sampler.sample(&mut readings).ok()?;
    readings.first().cloned()
}

/// What is asked of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
    /// A write and a read in turn.
    Mixed,
}

impl Operation {
    /// True where data is written.
    pub const fn writes(self) -> bool {
        !matches!(self, Operation::Read)
    }

    /// The word used in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Mixed => "mixed",
        }
    }
}

/// What becomes of requests that are late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatePolicy {
    /// The schedule waits: after a late answer the next request is due at once, and those missed are never made.
    #[default]
    Waiting,
    /// The schedule stands: every request is due at its time, and its response time counts from there.
    Fixed,
}

/// What a ping is asked to do. Times in ns, sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PingSettings {
    /// A directory, file or block device.
    pub target: PathBuf,
    /// The volume types that names mean.
    pub types: VolumeTypes,
    /// Read or write.
    pub operation: Operation,
    /// Bytes per request.
    pub size: u64,
    /// Bytes over which requests spread; `None` = all of a file or device, 1 MiB in a directory.
    pub range: Option<u64>,
    /// Where they begin.
    pub offset: u64,
    /// One block after the other instead of in random order.
    pub linear: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// Leave the cache alone: nothing dropped before a read, nothing flushed after a write.
    pub cached: bool,
    /// Drop the whole range from the cache before a read, where otherwise only the block is: large folios outlive that.
    pub drop_all: bool,
    /// O_SYNC.
    pub sync: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// Fail instead of waiting (RWF_NOWAIT).
    pub nowait: bool,
    /// Poll for the answer.
    pub poll: bool,
    /// Keep `ioping.tmp` in the directory.
    pub keep: bool,
    /// Name of the engine; `None` = the best there is for one request at a time.
    pub engine: Option<String>,
    /// What becomes of late requests.
    pub schedule: LatePolicy,
    /// From one request to the next.
    pub interval_ns: u64,
    /// So many requests at once, then the interval.
    pub burst: u64,
    /// Requests in all; `None` = no end.
    pub count: Option<u64>,
    /// Ends where the next request would be due later; `None` = no end.
    pub work_ns: Option<u64>,
    /// What counts.
    pub rules: Rules,
    /// What random offsets derive from; `None` = a new one each time.
    pub seed: Option<u64>,
    /// Tell of a period after so many requests that count; 0 = never.
    pub print_count: u64,
    /// Tell of a period each time this has passed; 0 = never.
    pub print_interval_ns: u64,
    /// Tell of each request.
    pub each: bool,
    /// Tell how it stands twice a second.
    pub progress: bool,
    /// Find out where requests are answered.
    pub label: bool,
    /// Go on after a failed request.
    pub go_on: bool,
    /// The content of a file may be overwritten, and that of a device where no name is asked for.
    pub destroy: bool,
    /// The content of this very target may be overwritten.
    pub destroy_named: Option<PathBuf>,
    /// A device is overwritten only where it was named.
    pub devices_by_name: bool,
    /// Latency objectives, as they were written.
    pub slo: Vec<String>,
    /// Labels of the run.
    pub labels: BTreeMap<String, String>,
    /// The command line, program name first.
    pub command: Vec<String>,
    /// Enter this machine and the target into the record.
    pub enter_conditions: bool,
}

impl PingSettings {
    /// One read of 4 KiB a second that waits, each of which is told, without end.
    pub fn new() -> PingSettings {
        PingSettings {
            size: 4096,
            interval_ns: 1_000_000_000,
            rules: Rules { warmup: 1, least_ns: 0, most_ns: u64::MAX, timeout_ns: u64::MAX },
            each: true,
            devices_by_name: true,
            ..PingSettings::default()
        }
    }

    /// Bytes over which requests spread, of a target that has `size`.
    fn range_within(&self, size: u64) -> Result<u64, AssessError> {
        let too_small = || {
            AssessError::preparation(
                "target is too small for this",
                "use a smaller -S (range) or -o (offset)",
            )
        };
        let range = match self.range {
            Some(range) if self.offset.checked_add(range).is_none_or(|end| end > size) => {
                return Err(too_small());
            }
            Some(range) => range,
            None => size.checked_sub(self.offset).ok_or_else(too_small)?,
        };
        if self.size > range {
            let message = "request size is too big for this target";
            return Err(AssessError::preparation(
                message,
                "use a smaller -s (request) or a larger -S (range)",
            ));
        }
        Ok(range)
    }

    /// That consent is for something that is not the target.
    fn other_named(&self, other: &Path) -> AssessError {
        let (path, other) = (self.target.display(), other.display());
        let message = format!("{path} is not the target named by --destroy-data={other}");
        AssessError::usage(message, "use the path of the target, or omit --destroy-data")
    }

    /// The header of the run.
    fn header(&self, session: &Session) -> RunHeader {
        let target = if session.is_simulated() { self.target.clone() } else { absolute(&self.target) };
        let mut header = RunHeader {
            command: self.command.clone(),
            activity: Activity::Ping(PingActivity { slo: self.slo.clone() }),
            target: target.display().to_string(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            labels: self.labels.clone(),
            seed: self.seed,
            ..RunHeader::default()
        };
        if self.enter_conditions && !session.is_simulated() {
            enter_conditions(&mut header, &[&self.target], session.clock_facts());
        }
        header
    }

    /// Writes are made durable before they count as answered.
    pub fn flushes(&self) -> bool {
        self.operation.writes() && !self.cached
    }
}
