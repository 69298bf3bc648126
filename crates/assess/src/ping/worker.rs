//! The thread that makes the requests, one at a time. It may get stuck in any of them, also in opening the target; what
//! it is at stands in [`WorkerState`] for the thread that watches.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard};

use fathom_analysis::ping::{Note, PingHow, PingSample, PingStall, PingTally, PingWindow, ServedBy};
use fathom_model::Op;
use fathom_runner::StopHandle;
use fathom_sys::device::{DiskSampler, DiskStats};
use fathom_sys::io::{Advice, fadvise};
use fathom_sys::residency::{is_cached, is_hole};

use super::clock::PingClock;
use super::error::PingError;
use super::modelled::{self, ModelledProbe};
use super::probe::EngineProbe;
use super::random::Random;
use super::settings::{LatePolicy, Operation, PingSettings};
use super::target::{self, OpenedTarget};
use super::{REMIND_NS, STALL_NS};

/// What the worker and its watcher both see.
pub(super) struct WorkerState {
    pub settings: PingSettings,
    pub clock: PingClock,
    pub stop: StopHandle,
    pub tally: Mutex<PingTally>,
    /// When the present request was made, ns of the clock plus 1; 0 between requests.
    pub busy_since: AtomicU64,
    /// Where it goes, bytes.
    pub busy_at: AtomicU64,
    /// When the first request was due, ns of the clock.
    pub begin: AtomicU64,
    /// The kernel's id of the thread that makes the requests.
    pub thread: AtomicU32,
}

impl WorkerState {
    pub fn tally(&self) -> MutexGuard<'_, PingTally> {
        self.tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The request in flight and the ns it has taken so far.
    pub fn in_flight(&self) -> Option<(u64, u64)> {
        let since = self.busy_since.load(Ordering::Acquire).checked_sub(1)?;
        Some((since, self.clock.now().saturating_sub(since)))
    }
}

/// What the worker tells.
pub(super) enum PingEvent {
    /// The target is open; requests begin. With the counters of the device beneath, where somebody will want them.
    Ready(Box<PingHow>, Option<(DiskSampler, DiskStats)>),
    /// A request was answered.
    Sample(PingSample, Option<Note>),
    /// A period has ended.
    Period(PingWindow),
    /// The last request of a burst was answered.
    BurstEnded,
    /// A modelled volume took its time, or never answered. Of real ones the watcher tells, while they do.
    Stalled(PingStall),
    /// All is done, or it cannot go on.
    Ended(Result<(), PingError>),
}

/// A request at a fixed time is not slept for to the end: waking takes longer than many a device.
const SPIN_NS: u64 = 60_000;
/// After a failure the next request waits at least so long: errors come back at once.
const AFTER_ERROR_NS: u64 = 100_000_000;

/// The life of the thread.
pub(super) fn work(shared: &Arc<WorkerState>, events: &SyncSender<PingEvent>) {
    shared.thread.store(fathom_sys::thread::thread_id(), Ordering::Release);
    let ended = PingWorker::start(shared.clone(), events.clone()).and_then(|mut worker| worker.run());
    let (ended, is_silent) = match ended {
        Err(PingError::Silent) => (Ok(()), true),
        ended => (ended, false),
    };
    if !is_silent {
        shared.busy_since.store(0, Ordering::Release);
    }
    // Nobody listens where the watcher has given up.
    let _ = events.send(PingEvent::Ended(ended));
}

/// Who answers.
enum Responder {
    Engine(EngineProbe),
    Volume(Box<ModelledProbe>),
}

struct PingWorker {
    shared: Arc<WorkerState>,
    events: SyncSender<PingEvent>,
    target: OpenedTarget,
    probe: Responder,
    random: Random,
    /// Bytes from the beginning of the range, where requests go in order.
    next: u64,
    begin: u64,
    /// When the present period of fixed length ends, ns since the beginning.
    period_end: u64,
}

impl PingWorker {
    fn start(shared: Arc<WorkerState>, events: SyncSender<PingEvent>) -> Result<PingWorker, PingError> {
        let settings = &shared.settings;
        let beat = || shared.busy_since.store(shared.clock.now() + 1, Ordering::Release);
        beat();
        let (mut random, mut target, probe);
        if shared.clock.is_virtual() {
            let (opened, volume) = modelled::open(settings)?;
            random = Random::new(settings.seed.unwrap_or(0));
            (target, probe) = (opened, Responder::Volume(Box::new(volume)));
        } else {
            random = Random::new(settings.seed.unwrap_or_else(crate::machine::random));
            target = target::open(settings, &mut random, &beat)?;
            probe = Responder::Engine(EngineProbe::open(settings, &target)?);
        }
        shared.busy_since.store(0, Ordering::Release);
        let how = PingHow {
            target: target.facts.clone(),
            operation: settings.operation.word(),
            block_size_bytes: settings.size,
            range_bytes: target.range,
            direct: settings.direct,
            flushed: settings.flushes(),
            engine: match &probe {
                Responder::Engine(probe) => probe.name.clone(),
                Responder::Volume(_) => ModelledProbe::NAME.to_owned(),
            },
            fixed_schedule: settings.schedule == LatePolicy::Fixed,
            interval_ns: settings.interval_ns,
            notes: match &probe {
                Responder::Engine(_) => Vec::new(),
                Responder::Volume(volume) => volume.notes.clone(),
            },
        };
        let wanted = target.disk.take().filter(|_| settings.label);
        let disk = wanted.and_then(|sampler| super::read(&sampler).map(|before| (sampler, before)));
        let _ = events.send(PingEvent::Ready(Box::new(how), disk));
        let begin = shared.clock.now();
        shared.begin.store(begin, Ordering::Release);
        let period_end = shared.settings.print_interval_ns;
        Ok(PingWorker { shared, events, target, probe, random, next: 0, begin, period_end })
    }

    fn run(&mut self) -> Result<(), PingError> {
        let shared = self.shared.clone();
        let settings = &shared.settings;
        let end = settings.work_ns.map(|span| self.begin.saturating_add(span));
        let (mut due, mut number, mut in_burst) = (self.begin, 0, 0);
        while !shared.stop.is_requested() {
            number += 1;
            let sample = self.request(number, due)?;
            self.tell(&sample)?;
            in_burst += 1;
            let mut now = shared.clock.now();
            let goes_on = settings.burst > in_burst && sample.result >= 0;
            if !goes_on {
                if settings.burst > 0 && settings.each {
                    let _ = self.events.send(PingEvent::BurstEnded);
                    now = shared.clock.now();
                }
                in_burst = 0;
                due = due.saturating_add(settings.interval_ns);
                if settings.schedule == LatePolicy::Waiting {
                    due = due.max(now);
                }
            }
            if sample.result < 0 && -sample.result != EAGAIN {
                due = due.max(now + AFTER_ERROR_NS.min(settings.interval_ns.max(AFTER_ERROR_NS / 10)));
            }
            self.tell_of_period(due.max(now), sample.elapsed_ns);
            let is_over = end.is_some_and(|end| due >= end || (goes_on && now >= end));
            if is_over || settings.count.is_some_and(|count| number >= count) {
                return Ok(());
            }
            if !goes_on {
                self.wait_until(due);
            }
        }
        Ok(())
    }

    fn wait_until(&self, due: u64) {
        let WorkerState { clock, stop, settings, .. } = &*self.shared;
        let is_close = settings.interval_ns < 4 * SPIN_NS;
        if settings.schedule == LatePolicy::Waiting || is_close || clock.is_virtual() {
            return clock.sleep_until(due, || !stop.is_requested());
        }
        clock.sleep_until(due.saturating_sub(SPIN_NS), || !stop.is_requested());
        while clock.now() < due && !stop.is_requested() {
            std::hint::spin_loop();
        }
    }

    /// Makes one request that was due at `due` and waits for its answer.
    fn request(&mut self, number: u64, due: u64) -> Result<PingSample, PingError> {
        let shared = self.shared.clone();
        let settings = &shared.settings;
        let op = match settings.operation {
            Operation::Read => Op::Read,
            Operation::Mixed if number.is_multiple_of(2) => Op::Read,
            Operation::Mixed | Operation::Write => Op::Write,
        };
        let offset = settings.offset + self.place();
        let clock = &shared.clock;
        let ready_from = clock.now();
        // A device that does not answer holds up also who asks where its blocks are.
        shared.busy_at.store(offset, Ordering::Relaxed);
        shared.busy_since.store(ready_from + 1, Ordering::Release);
        let served = self.make_ready(op, offset);
        if let (Op::Write, Responder::Engine(probe)) = (op, &mut self.probe) {
            self.random.fill(probe.payload());
        }
        let start = clock.now();
        shared.busy_since.store(start + 1, Ordering::Release);
        let length_ns = start - ready_from;
        if length_ns >= STALL_NS {
            let begin_ns = ready_from - self.begin;
            shared.tally().stalled(PingStall {
                begin_ns,
                length_ns,
                offset_bytes: offset,
                unanswered: false,
            });
        }
        let mut result = self.ask(op, offset, settings.size as u32)?;
        if result >= 0 && op == Op::Write && settings.flushes() {
            let flushed = self.ask(Op::Datasync, 0, 0)?;
            result = if flushed < 0 { flushed } else { result };
        }
        let end = clock.now();
        shared.busy_since.store(0, Ordering::Release);
        Ok(PingSample {
            request: number,
            operation: op,
            offset_bytes: offset,
            size_bytes: settings.size as u32,
            result,
            lat_ns: end - start,
            response_ns: (settings.schedule == LatePolicy::Fixed).then(|| end.saturating_sub(due)),
            served,
            elapsed_ns: end - self.begin,
        })
    }

    /// Bytes moved, or a negative errno. A modelled volume that falls silent is waited for until the ping's time is over.
    fn ask(&mut self, op: Op, offset: u64, len: u32) -> Result<i64, PingError> {
        let WorkerState { clock, settings, .. } = &*self.shared;
        let volume = match &mut self.probe {
            Responder::Engine(probe) => return probe.ask(op, offset, len),
            Responder::Volume(volume) => volume,
        };
        let asked_at = clock.now();
        let answer = volume.ask(op, offset, len, clock);
        if answer.is_none() {
            let end = settings.work_ns.map_or(0, |span| self.begin.saturating_add(span));
            clock.sleep_until(end.max(asked_at + REMIND_NS), || true);
        }
        let length_ns = clock.now() - asked_at;
        if length_ns >= STALL_NS {
            let unanswered = answer.is_none();
            let stall =
                PingStall { begin_ns: asked_at - self.begin, length_ns, offset_bytes: offset, unanswered };
            let _ = self.events.send(PingEvent::Stalled(stall));
        }
        answer.ok_or(PingError::Silent)
    }

    /// The next place in the range, bytes from its beginning.
    fn place(&mut self) -> u64 {
        let size = self.shared.settings.size;
        let blocks = self.target.range / size;
        if !self.shared.settings.linear {
            return self.random.next() % blocks * size;
        }
        let place = self.next;
        self.next = if place / size + 1 < blocks { place + size } else { 0 };
        place
    }

    /// Drops from the cache what is to be read, and says where the request will be answered.
    fn make_ready(&self, op: Op, offset: u64) -> Option<ServedBy> {
        let WorkerState { settings, .. } = &*self.shared;
        let Some(file) = &self.target.file else { return settings.label.then_some(ServedBy::Device) };
        let len = settings.size;
        if op == Op::Read && !settings.cached && !settings.direct {
            let (from, span) = if settings.drop_all { (0, 0) } else { (offset, len) };
            // Advice only.
            let _ = fadvise(file, from, span, Advice::DontNeed);
        }
        if !settings.label {
            return None;
        }
        if self.target.in_memory {
            return Some(ServedBy::Cache);
        }
        if op == Op::Write {
            let reaches = settings.direct || settings.flushes() || settings.sync || settings.dsync;
            return Some(if reaches { ServedBy::Device } else { ServedBy::Cache });
        }
        let cached = if settings.direct { Some(false) } else { is_cached(file, offset, len) };
        match cached {
            Some(true) => Some(ServedBy::Cache),
            _ if !self.target.facts.is_block_device && is_hole(file, offset, len) => Some(ServedBy::Hole),
            Some(false) => Some(ServedBy::Device),
            None => None,
        }
    }

    /// Tells of a period that will have ended when the next request is due.
    fn tell_of_period(&mut self, due: u64, at_ns: u64) {
        let every = self.shared.settings.print_interval_ns;
        if every == 0 || due - self.begin < self.period_end {
            return;
        }
        let period = self.shared.tally().close_period(at_ns);
        let _ = self.events.send(PingEvent::Period(period));
        // After a long silence the next period is whole again.
        self.period_end = (self.period_end + every).max(due - self.begin);
    }

    /// Counts a sample and tells of it.
    fn tell(&mut self, sample: &PingSample) -> Result<(), PingError> {
        let WorkerState { settings, .. } = &*self.shared;
        let mut tally = self.shared.tally();
        let note = tally.take(sample);
        if sample.lat_ns >= STALL_NS {
            let begin_ns = sample.elapsed_ns.saturating_sub(sample.lat_ns);
            let (length_ns, offset) = (sample.lat_ns, sample.offset_bytes);
            tally.stalled(PingStall { begin_ns, length_ns, offset_bytes: offset, unanswered: false });
        }
        let by_count = settings.print_count > 0 && tally.period.lat_ns.count >= settings.print_count;
        let period = by_count.then(|| tally.close_period(sample.elapsed_ns));
        drop(tally);
        if sample.result < 0 && -sample.result != EAGAIN && !settings.go_on {
            return Err(PingError::Request { errno: -sample.result as i32 });
        }
        if settings.each {
            let _ = self.events.send(PingEvent::Sample(*sample, note));
        }
        if let Some(period) = period {
            let _ = self.events.send(PingEvent::Period(period));
        }
        Ok(())
    }
}

const EAGAIN: i64 = 11;
