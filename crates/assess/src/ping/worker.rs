//! The thread that makes the requests, one at a time. It may get stuck in any of them, also in opening the target; what
//! it is at stands in [`WorkerState`] for the thread that watches.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_analysis::ping::{Note, PingHow, PingSample, PingStall, PingTally, PingWindow, ServedBy};
use fathom_model::{Op, Request};
use fathom_record::RunHeader;
use fathom_runner::{EventSender, InFlight, Requester, RunControl, Session};
use fathom_sys::device::{DiskSampler, DiskStats};
use fathom_sys::io::{Advice, fadvise};
use fathom_sys::residency::{is_cached, is_hole};

use super::engine::requester;
use super::error::PingError;
use super::random::Random;
use super::settings::{LatePolicy, Operation, PingSettings};
use super::target::{self, OpenedTarget};
use super::{REMIND_NS, STALL_NS, modelled};

/// What the worker and its watcher both see.
pub(super) struct WorkerState {
    pub settings: PingSettings,
    pub control: RunControl,
    pub tally: Mutex<PingTally>,
}

impl WorkerState {
    pub fn tally(&self) -> MutexGuard<'_, PingTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.control.stop_handle().is_requested()
    }
}

/// What was opened.
pub(super) struct PingReady {
    pub header: RunHeader,
    pub how: PingHow,
    /// The counters of the device beneath, where somebody will want them.
    pub disk: Option<(DiskSampler, DiskStats)>,
    /// When the first request is due, ns of the session's clock.
    pub begin_ns: u64,
    /// The kernel's id of the thread that makes the requests.
    pub thread: u32,
}

/// What the worker tells.
pub(super) enum PingEvent {
    /// The target is open; requests begin.
    Ready(Box<PingReady>),
    /// A request was answered.
    Sample(PingSample, Option<Note>),
    /// A period has ended.
    Period(PingWindow),
    /// The last request of a burst was answered.
    BurstEnded,
    /// A modelled volume took its time, or never answered. Of real ones the watcher tells, while they do.
    Stalled(PingStall),
}

/// How the worker has ended.
pub(super) struct PingFinish {
    /// ns of the session's clock.
    pub at_ns: u64,
    /// A request that a modelled volume never answers.
    pub unanswered: Option<InFlight>,
}

pub(super) type PingSender = EventSender<PingEvent, Result<PingFinish, PingError>>;

/// A request at a fixed time is not slept for to the end: waking takes longer than many a device.
const SPIN_NS: u64 = 60_000;
/// After a failure the next request waits at least so long: errors come back at once.
const AFTER_ERROR_NS: u64 = 100_000_000;

/// Makes the requests, on the thread of the run.
pub(super) fn work(shared: &Arc<WorkerState>, events: &PingSender) -> Result<PingFinish, PingError> {
    let mut worker = PingWorker::start(shared.clone(), events)?;
    let is_silent = match worker.run() {
        Err(PingError::Silent) => true,
        ended => ended.map(|()| false)?,
    };
    let unanswered = shared.control.in_flight().filter(|_| is_silent);
    Ok(PingFinish { at_ns: worker.requester.now(), unanswered })
}

struct PingWorker<'a> {
    shared: Arc<WorkerState>,
    events: &'a PingSender,
    target: OpenedTarget,
    session: Session,
    requester: Requester,
    random: Random,
    /// Bytes from the beginning of the range, where requests go in order.
    next: u64,
    begin: u64,
    /// When the present period of fixed length ends, ns since the beginning.
    period_end: u64,
}

impl<'a> PingWorker<'a> {
    fn start(shared: Arc<WorkerState>, events: &'a PingSender) -> Result<PingWorker<'a>, PingError> {
        let WorkerState { settings, control, .. } = &*shared;
        let (session, mut target, mut random, notes);
        if crate::is_simulated(&settings.target) {
            let opened = modelled::open(settings)?;
            (target, notes) = (opened.target, opened.notes);
            session = opened.session.controlled(control.clone());
            random = Random::new(settings.seed.unwrap_or(0));
        } else {
            session = Session::real().controlled(control.clone());
            random = Random::new(settings.seed.unwrap_or_else(crate::machine::random));
            let beat = || control.set_in_flight(Some(InFlight { since_ns: session.now(), offset: 0 }));
            beat();
            target = target::open(settings, &mut random, &beat)?;
            notes = Vec::new();
        }
        let (engine, requester) = requester(settings, &target, &session)?;
        control.set_in_flight(None);
        let how = PingHow {
            target: target.facts.clone(),
            operation: settings.operation.word().to_owned(),
            block_size_bytes: settings.size,
            range_bytes: target.range,
            direct: settings.direct,
            flushed: settings.flushes(),
            engine,
            fixed_schedule: settings.schedule == LatePolicy::Fixed,
            interval_ns: settings.interval_ns,
            notes,
        };
        let wanted = target.disk.take().filter(|_| settings.label);
        let disk = wanted.and_then(|sampler| super::read(&sampler).map(|before| (sampler, before)));
        let header = settings.header(&session);
        let (begin, thread) = (session.now(), fathom_sys::thread::thread_id());
        events.tell(PingEvent::Ready(Box::new(PingReady { header, how, disk, begin_ns: begin, thread })));
        let period_end = settings.print_interval_ns;
        Ok(PingWorker { shared, events, target, session, requester, random, next: 0, begin, period_end })
    }

    fn run(&mut self) -> Result<(), PingError> {
        let shared = self.shared.clone();
        let settings = &shared.settings;
        let end = settings.work_ns.map(|span| self.begin.saturating_add(span));
        let (mut due, mut number, mut in_burst) = (self.begin, 0, 0);
        while !shared.is_stopped() {
            number += 1;
            let sample = self.request(number, due)?;
            self.tell(&sample)?;
            in_burst += 1;
            let mut now = self.requester.now();
            let goes_on = settings.burst > in_burst && sample.result >= 0;
            if !goes_on {
                if settings.burst > 0 && settings.each {
                    self.events.tell(PingEvent::BurstEnded);
                    now = self.requester.now();
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
        let settings = &self.shared.settings;
        let is_close = settings.interval_ns < 4 * SPIN_NS;
        let sleeps = settings.schedule == LatePolicy::Waiting || is_close || self.session.is_simulated();
        self.requester.wait_until(due, if sleeps { 0 } else { SPIN_NS });
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
        let ready_from = self.requester.now();
        // A device that does not answer holds up also who asks where its blocks are.
        shared.control.set_in_flight(Some(InFlight { since_ns: ready_from, offset }));
        let served = self.make_ready(op, offset);
        if op == Op::Write {
            self.random.fill(self.requester.payload());
        }
        let start = self.requester.now();
        shared.control.set_in_flight(Some(InFlight { since_ns: start, offset }));
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
        let end = self.requester.now();
        shared.control.set_in_flight(None);
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
        let asked_at = self.requester.now();
        let request = Request { op, file: 0, len, offset };
        let answer = self.requester.request(request).map_err(PingError::EngineFailed)?;
        if answer.is_none() {
            let end = self.shared.settings.work_ns.map_or(0, |span| self.begin.saturating_add(span));
            self.requester.wait_until(end.max(asked_at + REMIND_NS), 0);
        }
        let length_ns = self.requester.now() - asked_at;
        if length_ns >= STALL_NS && self.session.is_simulated() {
            let unanswered = answer.is_none();
            let stall =
                PingStall { begin_ns: asked_at - self.begin, length_ns, offset_bytes: offset, unanswered };
            self.events.tell(PingEvent::Stalled(stall));
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
        self.events.tell(PingEvent::Period(period));
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
            self.events.tell(PingEvent::Sample(*sample, note));
        }
        if let Some(period) = period {
            self.events.tell(PingEvent::Period(period));
        }
        Ok(())
    }
}

const EAGAIN: i64 = 11;
