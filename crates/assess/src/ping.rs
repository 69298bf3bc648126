//! `ping`: one request after the other, each told of, on a thread of its own, and watched from here.
//!
//! The watcher never touches the target, so a device that does not answer holds up neither a report nor Ctrl-C. Prints
//! nothing: a [`PingObserver`] is told.

mod clock;
mod error;
mod modelled;
pub(crate) mod probe;
mod random;
mod settings;
mod target;
mod worker;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fathom_analysis::ping::{
    DeviceCounts, Note, Ping, PingHow, PingSample, PingStall, PingTally, PingWindow,
};
use fathom_runner::StopHandle;
use fathom_sys::clock::unix_us;
use fathom_sys::device::{DiskSampler, DiskStats};

pub use error::PingError;
pub use settings::{LatePolicy, Operation, PingSettings};

use clock::PingClock;
use worker::{PingEvent, WorkerState};

use crate::simulated::is_simulated;

/// A request that has had no answer for so long is told of.
pub const STALL_NS: u64 = 1_500_000_000;
/// It is told of again each time this has passed.
const REMIND_NS: u64 = 10_000_000_000;
/// How long a request may take to come back after the ping was asked to end.
const GRACE_NS: u64 = 3_000_000_000;
/// The watcher looks this often.
const LOOK: Duration = Duration::from_millis(50);
/// Answers that may wait to be told of; then requests wait, too.
const BACKLOG: usize = 4096;

/// Is told how a ping goes on. Every method may be left out.
pub trait PingObserver {
    /// The target is open; requests begin. Samples count their time from `unix_us`.
    fn ready(&mut self, _how: &PingHow, _unix_us: u64) {}
    /// A request was answered.
    fn sample(&mut self, _sample: &PingSample, _note: Option<Note>) {}
    /// A period has ended.
    fn period(&mut self, _period: &PingWindow) {}
    /// The last request of a burst was answered.
    fn burst_ended(&mut self) {}
    /// What was begun has no answer yet; `preparing` where it was not yet a request.
    fn stalled(&mut self, _stall: &PingStall, _preparing: bool) {}
    /// What was told of as stalled has its answer after all.
    fn answered(&mut self, _length_ns: u64) {}
}

impl PingObserver for () {}

/// Pings until the count, the time or `stop` ends it.
///
/// # Errors
/// Nothing could be measured, or a request failed where that is the end.
pub fn run(
    settings: PingSettings,
    stop: &StopHandle,
    observer: &mut dyn PingObserver,
) -> Result<Ping, PingError> {
    let fixed = settings.schedule == LatePolicy::Fixed;
    let is_simulated = is_simulated(&settings.target);
    if is_simulated && settings.count.is_none() && settings.work_ns.is_none() {
        return Err(PingError::Endless);
    }
    let shared = Arc::new(WorkerState {
        tally: Mutex::new(PingTally::new(settings.rules, fixed)),
        settings,
        clock: if is_simulated { PingClock::beginning_at_zero() } else { PingClock::real() },
        stop: stop.clone(),
        busy_since: AtomicU64::new(0),
        busy_at: AtomicU64::new(0),
        begin: AtomicU64::new(0),
        thread: AtomicU32::new(0),
    });
    let (sender, events) = sync_channel(BACKLOG);
    let thread = shared.clone();
    std::thread::Builder::new()
        .name("ping".to_owned())
        .spawn(move || worker::work(&thread, &sender))
        .map_err(|error| PingError::Thread(format!("cannot be started: {error}")))?;
    let mut watcher = Watcher { shared, events, observer, how: None, told: None, disk: None };
    watcher.watch()?;
    watcher.account()
}

struct Watcher<'a> {
    shared: Arc<WorkerState>,
    events: Receiver<PingEvent>,
    observer: &'a mut dyn PingObserver,
    how: Option<(PingHow, u64)>,
    /// The request told of as stalled: when it was made, and when it was last told of.
    told: Option<(u64, u64)>,
    disk: Option<(DiskSampler, DiskStats)>,
}

impl Watcher<'_> {
    /// Until the worker has ended or is given up.
    fn watch(&mut self) -> Result<(), PingError> {
        let mut asked_at = None;
        loop {
            match self.events.recv_timeout(LOOK) {
                Ok(PingEvent::Ended(ended)) => {
                    self.look();
                    return ended;
                }
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PingError::Thread("has ended without a word".to_owned()));
                }
            }
            self.look();
            if self.shared.stop.is_requested() {
                let now = self.shared.clock.now();
                if now - *asked_at.get_or_insert(now) > GRACE_NS {
                    return Ok(());
                }
            }
        }
    }

    fn take(&mut self, event: PingEvent) {
        match event {
            PingEvent::Ready(how, disk) => {
                // On virtual time nothing is said of the clock on the wall.
                let unix_us = if self.shared.clock.is_virtual() { 0 } else { unix_us() };
                self.disk = disk;
                self.observer.ready(&how, unix_us);
                self.how = Some((*how, unix_us));
            }
            PingEvent::Sample(sample, note) => self.observer.sample(&sample, note),
            PingEvent::Period(period) => self.observer.period(&period),
            PingEvent::BurstEnded => self.observer.burst_ended(),
            PingEvent::Stalled(stall) => {
                self.observer.stalled(&stall, false);
                if !stall.unanswered {
                    self.observer.answered(stall.length_ns);
                }
            }
            PingEvent::Ended(_) => {}
        }
    }

    /// Looks how long the request in flight has taken.
    fn look(&mut self) {
        if self.shared.clock.is_virtual() {
            return;
        }
        let in_flight = self.shared.in_flight();
        let now = self.shared.clock.now();
        if let Some((since, _)) =
            self.told.filter(|(since, _)| in_flight.is_none_or(|(now, _)| now != *since))
        {
            self.told = None;
            self.observer.answered(now - since);
        }
        let Some((since, length_ns)) = in_flight.filter(|(_, length)| *length >= STALL_NS) else { return };
        if self.told.is_some_and(|(_, told_at)| now - told_at < REMIND_NS) {
            return;
        }
        self.told = Some((since, now));
        self.observer.stalled(&self.stall(since, length_ns), self.how.is_none());
    }

    fn stall(&self, since: u64, length_ns: u64) -> PingStall {
        PingStall {
            begin_ns: since.saturating_sub(self.shared.begin.load(Ordering::Acquire)),
            length_ns,
            offset_bytes: self.shared.busy_at.load(Ordering::Relaxed),
            unanswered: true,
        }
    }

    /// Everything that was measured.
    fn account(mut self) -> Result<Ping, PingError> {
        let interrupted = self.shared.stop.reason();
        let Some((how, started_unix_us)) = self.how.take() else {
            let reason = interrupted.unwrap_or_else(|| "nobody".to_owned());
            return Err(PingError::Stopped { reason });
        };
        let mut tally = self.shared.tally();
        let in_flight = self.shared.in_flight();
        if let Some((since, length_ns)) = in_flight {
            tally.stalled(self.stall(since, length_ns));
        }
        let result = tally.result();
        drop(tally);
        let device = self.disk.as_ref().and_then(|(sampler, before)| {
            let since = read(sampler)?.since(before);
            Some(DeviceCounts {
                name: sampler.names().next()?.to_owned(),
                reads: since.read_ios,
                writes: since.write_ios,
                flushes: since.flush_ios,
            })
        });
        let begin = self.shared.begin.load(Ordering::Acquire);
        let elapsed_ns = self.shared.clock.now().saturating_sub(begin);
        let stuck = in_flight.filter(|_| !self.shared.clock.is_virtual());
        let stuck_thread = stuck.map(|_| self.shared.thread.load(Ordering::Acquire));
        let verdicts = Vec::new();
        Ok(Ping {
            how,
            result,
            started_unix_us,
            elapsed_ns,
            interrupted,
            device_counts: device,
            stuck_thread,
            slo: verdicts,
        })
    }
}

/// A reading of the only device of `sampler`.
fn read(sampler: &DiskSampler) -> Option<DiskStats> {
    let mut readings = Vec::new();
    sampler.sample(&mut readings).ok()?;
    readings.first().cloned()
}
