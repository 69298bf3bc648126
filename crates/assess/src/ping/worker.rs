//! Opens the target and makes the requests of the feed, on the thread of the run, which may get stuck in any of them, also in
//! opening the target. Completions go to the tally and to the thread that watches.
//!
//! Random offsets and payloads come from xorshift128+ (Vigna 2014), seeded through splitmix64, as ioping has them, so that one seed asks
//! for the same blocks in both.

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

use super::target::{self, EINVAL, OpenedTarget, open_volume, requester};
use super::{LatePolicy, Operation, PingSettings};
use super::{PROGRESS_NS, REMIND_NS, STALL_NS};
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
        let opened = open_volume(&settings)?;
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

/// A request at a fixed time is not slept for to the end: waking takes longer than many a device.
const SPIN_NS: u64 = 60_000;
/// After a failure the next request waits at least so long: errors come back at once.
const AFTER_ERROR_NS: u64 = 100_000_000;
pub(super) const EAGAIN: i64 = 11;

/// Decides what is requested next, and when.
pub(super) struct PingFeed {
    pub settings: PingSettings,
    /// Of the offsets and the payloads.
    pub random: Random,
    /// Requests that fit into the range.
    blocks: u64,
    /// When the ping began, session ns.
    pub begin_ns: u64,
    /// When the latest request, or the burst that it belongs to, was due, session ns.
    pub due_ns: u64,
    /// The number of the latest request, from 1 on.
    pub number: u64,
    /// Completed requests of a burst that goes on with the next one; 0 where a new one begins.
    in_burst: u64,
    /// The latest request failed.
    has_failed: bool,
}

impl PingFeed {
    /// Requests that spread over `range` bytes and begin at `begin_ns`.
    pub fn new(settings: PingSettings, range: u64, begin_ns: u64, random: Random) -> PingFeed {
        let (blocks, due_ns) = (range / settings.size, begin_ns);
        PingFeed { settings, random, blocks, begin_ns, due_ns, number: 0, in_burst: 0, has_failed: false }
    }

    /// The next request; `None` where the ping has come to its end.
    pub fn next(&mut self, now: u64) -> Option<SingleRequest> {
        if self.number > 0 && (self.schedule(now) || self.settings.count.is_some_and(|it| self.number >= it))
        {
            return None;
        }
        let settings = &self.settings;
        let block = if settings.linear { self.number } else { self.random.next() } % self.blocks;
        self.number += 1;
        let op = match settings.operation {
            Operation::Read => Op::Read,
            Operation::Mixed if self.number.is_multiple_of(2) => Op::Read,
            Operation::Mixed | Operation::Write => Op::Write,
        };
        let is_slept = settings.schedule == LatePolicy::Waiting || settings.interval_ns < 4 * SPIN_NS;
        let offset = settings.offset + block * settings.size;
        Some(SingleRequest {
            request: Request { op, file: 0, len: settings.size as u32, offset },
            not_before_ns: if self.in_burst > 0 { 0 } else { self.due_ns },
            spin_ns: if is_slept { 0 } else { SPIN_NS },
            syncs: op == Op::Write && settings.flushes(),
        })
    }

    /// Sets when the next request is due; true where that is beyond the end.
    fn schedule(&mut self, now: u64) -> bool {
        let interval_ns = self.settings.interval_ns;
        if self.in_burst == 0 {
            self.due_ns = self.due_ns.saturating_add(interval_ns);
            if self.settings.schedule == LatePolicy::Waiting {
                self.due_ns = self.due_ns.max(now);
            }
        }
        if self.has_failed {
            self.due_ns = self.due_ns.max(now + AFTER_ERROR_NS.min(interval_ns.max(AFTER_ERROR_NS / 10)));
        }
        let end = self.settings.work_ns.map(|span| self.begin_ns.saturating_add(span));
        end.is_some_and(|end| self.due_ns >= end || (self.in_burst > 0 && now >= end))
    }

    /// True where the latest request is the first of its interval.
    pub const fn begins_interval(&self) -> bool {
        self.in_burst == 0
    }

    /// Takes the result of the latest request; true where it was the last of a burst.
    pub fn completed(&mut self, result: i64) -> bool {
        let burst = self.settings.burst;
        self.has_failed = result < 0 && -result != EAGAIN;
        self.in_burst = if result >= 0 && self.in_burst + 1 < burst { self.in_burst + 1 } else { 0 };
        burst > 0 && self.in_burst == 0
    }
}

/// A generator.
#[derive(Clone, Debug)]
pub(super) struct Random([u64; 2]);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Random {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Random([next(), next()])
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        let (mut x, y) = (self.0[0], self.0[1]);
        x ^= x << 23;
        x ^= y ^ (x >> 17) ^ (y >> 26);
        self.0 = [y, x];
        x.wrapping_add(y)
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_ne_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN_NS: u64 = 1_000;

    /// The requests of `settings` over four blocks: operation, block, not before, and the times at which they complete with
    /// `results`.
    fn requests(settings: PingSettings, results: &[(u64, i64)]) -> Vec<(Op, u64, u64)> {
        let settings = PingSettings { linear: true, offset: 4096, ..settings };
        let mut feed = PingFeed::new(settings, 4 * 4096 + 512, BEGIN_NS, Random::new(1));
        let (mut now, mut results) = (BEGIN_NS, results.iter());
        let mut requests = Vec::new();
        while let Some(single) = feed.next(now) {
            let Request { op, offset, .. } = single.request;
            requests.push((op, offset / 4096 - 1, single.not_before_ns.saturating_sub(BEGIN_NS)));
            let Some((at_ns, result)) = results.next() else { break };
            now = BEGIN_NS + at_ns;
            feed.completed(*result);
        }
        requests
    }

    #[test]
    fn late_requests_move_a_waiting_schedule_and_not_a_fixed_one() {
        let check = |schedule, expected: [u64; 4]| {
            let settings = PingSettings { schedule, interval_ns: 100, ..PingSettings::new() };
            let due = requests(settings, &[(10, 4096), (350, 4096), (360, 4096)]);
            assert_eq!(due.iter().map(|(_, _, due)| *due).collect::<Vec<_>>(), expected, "{schedule:?}");
        };
        check(LatePolicy::Waiting, [0, 100, 350, 450]);
        check(LatePolicy::Fixed, [0, 100, 200, 300]);
    }

    #[test]
    fn blocks_follow_each_other_and_operations_alternate() {
        let settings = PingSettings { operation: Operation::Mixed, interval_ns: 0, ..PingSettings::new() };
        let made = requests(settings, &[(0, 4096); 4]);
        let made: Vec<(Op, u64)> = made.into_iter().map(|(op, block, _)| (op, block)).collect();
        assert_eq!(made, [(Op::Write, 0), (Op::Read, 1), (Op::Write, 2), (Op::Read, 3), (Op::Write, 0)]);
    }

    #[test]
    fn a_burst_ends_by_its_count_and_by_a_failure() {
        let settings = PingSettings { burst: 2, interval_ns: 1_000_000_000, ..PingSettings::new() };
        let due = requests(settings, &[(10, 4096), (20, 4096), (1_000_000_010, -5), (2_000_000_010, -11)]);
        let due: Vec<u64> = due.into_iter().map(|(_, _, due)| due).collect();
        assert_eq!(due, [0, 0, 1_000_000_000, 2_000_000_000, 3_000_000_000]);
    }

    #[test]
    fn after_a_failure_the_next_request_waits_and_after_a_refusal_it_does_not() {
        let settings = PingSettings { interval_ns: 0, ..PingSettings::new() };
        let due = requests(settings, &[(10, -5), (20_000_000, -11)]);
        assert_eq!(due.into_iter().map(|(_, _, due)| due).collect::<Vec<_>>(), [0, 10_000_010, 20_000_000]);
    }

    #[test]
    fn the_count_and_the_time_end_a_ping() {
        let check = |settings: PingSettings, at_ns: &[u64], expected: usize| {
            let settings = PingSettings { interval_ns: 100, ..settings };
            let results: Vec<(u64, i64)> = at_ns.iter().map(|at_ns| (*at_ns, 4096)).collect();
            assert_eq!(requests(settings, &results).len(), expected);
        };
        let settings = PingSettings::new;
        check(PingSettings { count: Some(3), ..settings() }, &[10, 110, 210, 310], 3);
        // None is made that would be due at the end or later.
        check(PingSettings { work_ns: Some(200), ..settings() }, &[10, 110, 210], 2);
        check(PingSettings { work_ns: Some(100), burst: 5, ..settings() }, &[40, 90, 100, 110], 3);
    }

    #[test]
    fn a_seed_decides_all() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            std::array::from_fn::<u64, 4, _>(|_| random.next())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut bytes = [0; 21];
        Random::new(3).fill(&mut bytes);
        assert_eq!(bytes[..8], draw(3)[0].to_ne_bytes());
        assert!(bytes[16..].iter().any(|&byte| byte != 0));
    }
}
