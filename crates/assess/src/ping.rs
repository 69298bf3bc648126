//! `ping`: single requests on a thread of their own, each reported as it completes, and watched from here.
//!
//! The watcher never touches the target, so a device that does not answer holds up neither a report nor Ctrl-C. Prints
//! nothing: a [`PingObserver`] receives the events.

mod settings;
mod target;
mod worker;

use std::sync::Mutex;

use fathom_analysis::ping::{
    DeviceCounts, Note, Ping, PingHow, PingProgress, PingSample, PingStall, PingTally, PingWindow,
};
use fathom_record::{Observed, RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_runner::{InFlight, MachineTick, MachineTicks, Progress, RunControl, RunHandle, StopHandle};
use fathom_sys::clock::unix_us;
use fathom_sys::device::{DiskSampler, DiskStats};

pub use settings::{LatePolicy, Operation, PingSettings};

use worker::{PingEvent, PingReady, SharedTally};

use crate::simulated::is_simulated;
use crate::{AssessError, ErrorKind};

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
