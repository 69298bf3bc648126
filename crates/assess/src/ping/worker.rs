//! Opens the target and makes the requests of the feed, on the thread of the run, which may get stuck in any of them, also in
//! opening the target. Completions go to the tally and to the thread that watches.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_analysis::ping::{
    Note, PingHow, PingProgress, PingSample, PingStall, PingTally, PingWindow, ServedBy,
};
use fathom_model::{Op, Request};
use fathom_record::RunHeader;
use fathom_runner::{
    EventSender, InFlight, MachineTicks, RunControl, Session, SingleCompletion, SingleFeed, SingleRequest,
};
use fathom_sys::device::{DiskSampler, DiskStats};
use fathom_sys::io::{Advice, fadvise};
use fathom_sys::residency::{is_cached, is_hole};

use super::engine::requester;
use super::feed::{EAGAIN, PingFeed};
use super::random::Random;
use super::settings::{LatePolicy, PingSettings};
use super::target::{self, EINVAL, OpenedTarget};
use super::{PROGRESS_NS, REMIND_NS, STALL_NS, volume};
use crate::AssessError;
use crate::error::plain;

/// The account, which the worker and its watcher share.
pub(super) type SharedTally = Arc<Mutex<PingTally>>;

pub(super) fn lock(tally: &SharedTally) -> MutexGuard<'_, PingTally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was opened.
pub(super) struct PingReady {
    pub header: RunHeader,
    pub how: PingHow,
    /// The counters of the device beneath, where they are needed at the end.
    pub disk: Option<(DiskSampler, DiskStats)>,
    /// The counters of the machine and of the target's devices, where they are shown meanwhile.
    pub machine: Option<MachineTicks>,
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
    /// How it stands on virtual time. On real time the watcher finds out by itself.
    Progress(Box<PingProgress>),
    /// A simulated volume took its time, or never answered. Of real ones the watcher tells, while they do.
    Stalled(PingStall),
}

/// Ends with the time of the session's clock, ns.
pub(super) type PingSender = EventSender<PingEvent, Result<u64, AssessError>>;

/// Makes the requests, on the thread of the run.
pub(super) fn work(
    settings: PingSettings,
    control: &RunControl,
    tally: &SharedTally,
    events: &PingSender,
) -> Result<u64, AssessError> {
    let (session, mut target, mut random, notes);
    if crate::is_simulated(&settings.target) {
        let opened = volume::open(&settings)?;
        (target, notes) = (opened.target, opened.notes);
        session = opened.session.controlled(control.clone());
        random = Random::new(settings.seed.unwrap_or(0));
    } else {
        session = Session::real().controlled(control.clone());
        random = Random::new(settings.seed.unwrap_or_else(crate::machine::random));
        let beat = || control.set_in_flight(Some(InFlight { since_ns: session.now(), offset: 0 }));
        beat();
        target = target::open(&settings, &mut random, &beat)?;
        notes = Vec::new();
    }
    let (engine, mut requester) = requester(&settings, &target, &session)?;
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
    session.await_start(settings.work_ns);
    let header = settings.header(&session);
    let (begin_ns, thread) = (session.now(), fathom_sys::thread::thread_id());
    let is_watched = settings.progress && !session.is_simulated();
    let machine = is_watched.then(|| MachineTicks::begin(Some(&settings.target), begin_ns));
    events.tell(PingEvent::Ready(Box::new(PingReady { header, how, disk, machine, begin_ns, thread })));
    let period_end = settings.print_interval_ns;
    let told_ns = Some(0).filter(|_| settings.progress && session.is_simulated());
    let feed = PingFeed::new(settings, target.range, begin_ns, random);
    let mut requests = PingRequests {
        tally,
        events,
        target,
        feed,
        served: None,
        answered_ns: None,
        period_end,
        told_ns,
        end: None,
    };
    requester.run(&mut requests)?;
    requests.tell_progress(session.now() - begin_ns, 0);
    requests.end.unwrap_or_else(|| Ok(session.now()))
}

/// The requests of a ping, and the account of them.
struct PingRequests<'a> {
    tally: &'a SharedTally,
    events: &'a PingSender,
    target: OpenedTarget,
    feed: PingFeed,
    /// Where the request in flight will be answered.
    served: Option<ServedBy>,
    /// When the latest request was answered, ns since the beginning; `None` once the period was looked at.
    answered_ns: Option<u64>,
    /// When the present period of fixed length ends, ns since the beginning.
    period_end: u64,
    /// When it was last told how the ping stands, ns since the beginning; `None` on real time, or where nobody asks.
    told_ns: Option<u64>,
    /// How it ended before its time.
    end: Option<Result<u64, AssessError>>,
}

impl SingleFeed for PingRequests<'_> {
    fn next(&mut self, now: u64) -> Option<SingleRequest> {
        if self.end.is_some() {
            return None;
        }
        let next = self.feed.next(now);
        let PingFeed { begin_ns, due_ns, .. } = self.feed;
        let (due, every) = (due_ns.max(now) - begin_ns, self.feed.settings.print_interval_ns);
        if let Some(answered_ns) = self.answered_ns.take().filter(|_| every > 0 && due >= self.period_end) {
            // The period will have ended when the next request is due.
            self.events.tell(PingEvent::Period(lock(self.tally).close_period(answered_ns)));
            // After a long silence the next period is whole again.
            self.period_end = (self.period_end + every).max(due);
        }
        next
    }

    fn prepare(&mut self, request: &Request, payload: &mut [u8]) {
        self.served = self.make_ready(request.op, request.offset);
        if request.op == Op::Write {
            self.feed.random.fill(payload);
        }
    }

    fn completed(&mut self, completion: &SingleCompletion, _payload: &[u8]) {
        let SingleCompletion { request, prepared_from_ns, start_ns, end_ns, result } = *completion;
        let PingFeed { ref settings, begin_ns, due_ns, number, .. } = self.feed;
        let stall = |from_ns: u64, to_ns: u64| PingStall {
            begin_ns: from_ns - begin_ns,
            length_ns: to_ns - from_ns,
            offset_bytes: request.offset,
            unanswered: false,
        };
        let preparation = stall(prepared_from_ns, start_ns);
        if preparation.length_ns >= STALL_NS {
            lock(self.tally).stalled(preparation);
        }
        let Some(result) = result else {
            // A simulated volume that falls silent is waited for until the ping's time is over.
            let end = settings.work_ns.map_or(0, |span| begin_ns.saturating_add(span));
            let given_up_ns = end.max(end_ns + REMIND_NS);
            let stall = PingStall { unanswered: true, ..stall(start_ns, given_up_ns) };
            self.events.tell(PingEvent::Stalled(stall));
            lock(self.tally).stalled(stall);
            self.end = Some(Ok(given_up_ns));
            return;
        };
        let request_stall = Some(stall(start_ns, end_ns)).filter(|stall| stall.length_ns >= STALL_NS);
        if let Some(stall) = request_stall.filter(|_| self.target.file.is_none()) {
            self.events.tell(PingEvent::Stalled(stall));
        }
        let sample = PingSample {
            request: number,
            operation: request.op,
            offset_bytes: request.offset,
            size_bytes: request.len,
            result,
            lat_ns: end_ns - start_ns,
            response_ns: (settings.schedule == LatePolicy::Fixed).then(|| end_ns.saturating_sub(due_ns)),
            served: self.served,
            elapsed_ns: end_ns - begin_ns,
        };
        self.answered_ns = Some(sample.elapsed_ns);
        self.count(&sample, request_stall);
        self.tell_progress(sample.elapsed_ns, PROGRESS_NS);
        if self.feed.completed(result) && self.feed.settings.each && self.end.is_none() {
            self.events.tell(PingEvent::BurstEnded);
        }
    }
}

impl PingRequests<'_> {
    /// Drops from the cache what is to be read, and says where the request will be answered.
    fn make_ready(&self, op: Op, offset: u64) -> Option<ServedBy> {
        let PingFeed { settings, .. } = &self.feed;
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

    /// Tells how the ping stands on virtual time, where it was last told `after_ns` ago.
    fn tell_progress(&mut self, elapsed_ns: u64, after_ns: u64) {
        let is_due = |told_ns: u64| elapsed_ns >= told_ns + after_ns;
        if !self.told_ns.is_some_and(is_due) {
            return;
        }
        self.told_ns = Some(elapsed_ns);
        let account = lock(self.tally).account();
        let progress = PingProgress { elapsed_ns, account, ..PingProgress::default() };
        self.events.tell(PingEvent::Progress(Box::new(progress)));
    }

    /// Counts a sample, with its stall where it was one, and tells of it.
    fn count(&mut self, sample: &PingSample, stall: Option<PingStall>) {
        let PingFeed { settings, .. } = &self.feed;
        let mut tally = lock(self.tally);
        tally.made(sample.elapsed_ns - sample.lat_ns, self.feed.begins_interval());
        let note = tally.take(sample);
        stall.into_iter().for_each(|stall| tally.stalled(stall));
        let by_count = settings.print_count > 0 && tally.period.lat_ns.count >= settings.print_count;
        let period = by_count.then(|| tally.close_period(sample.elapsed_ns));
        drop(tally);
        if sample.result < 0 && -sample.result != EAGAIN && !settings.go_on {
            let errno = -sample.result as i32;
            let message = format!("request failed: {}", plain(&io::Error::from_raw_os_error(errno)));
            let hint = "direct I/O requires sizes and offsets in whole sectors: use -s 4k, or --buffered";
            self.end = Some(Err(AssessError::run(message, (errno == EINVAL).then(|| hint.to_owned()))));
            return;
        }
        if settings.each {
            self.events.tell(PingEvent::Sample(*sample, note));
        }
        if let Some(period) = period {
            self.events.tell(PingEvent::Period(period));
        }
    }
}
