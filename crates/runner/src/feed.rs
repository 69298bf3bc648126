//! The requests of a worker and their times: order, think time, rates, and the syncs at the end.
//!
//! The loop follows the feed. The feed does not depend on slots, engines and completions, so a new order of requests,
//! or another reason to wait, is implemented only here. It reads no clock: the caller passes the time.

mod ahead;
mod arrivals;
mod cached;
mod flow;
mod open_loop;
mod pauses;
mod read_back;
mod replay;
mod think_time;

use fathom_model::{Op, Request};
use fathom_workload::Source;

use crate::logging::IssueLog;
use crate::worker::WorkerSpec;
use ahead::Ahead;
pub(crate) use flow::{FlowShare, Flows};
use open_loop::OpenLoop;
use pauses::{Pause, Pauses};
use read_back::ReadBack;
pub(crate) use read_back::Turned;
use replay::Replay;

/// The next request, or the reason why there is none now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next<T> {
    /// It may be issued now.
    Issue(T),
    /// None is due before this time, session ns.
    NotBefore(u64),
    /// Think time: none until all requests in flight have completed and [`Feed::pause_until`] was called.
    Pause,
    /// The work is done.
    Done,
}

/// A request, and its due time, session ns, if a schedule made it.
type Arrival = (Request, Option<u64>);

/// The requests of one worker.
pub(crate) struct Feed {
    source: Source,
    /// Requests drawn ahead, for turns that issue one request at a time.
    ahead: Ahead,
    pauses: Option<Box<Pauses>>,
    /// Reads back what was written.
    read_back: Option<Box<ReadBack>>,
    /// Recorded requests, instead of those of the source.
    replay: Option<Box<Replay>>,
    /// Records what is issued.
    issue_log: Option<Box<IssueLog>>,
    /// Requests are drawn one by one, because some of them wait, are read back or are recorded.
    singly: bool,
    /// The schedule; `None` in a closed loop, in which each completion permits the next request.
    open_loop: Option<Box<OpenLoop>>,
    /// Requests have times, by a schedule or a recording.
    timed: bool,
    /// Syncs after all other requests (`end_fsync`), the last one first.
    final_syncs: Vec<Request>,
}

impl Feed {
    pub fn new(spec: &WorkerSpec) -> Self {
        let synced = if spec.end_fsync { 0..spec.setup.files.len() as u32 } else { 0..0 };
        let source = Source::new(&spec.source);
        let pauses = Pauses::new(spec);
        let read_back = ReadBack::new(spec, &source).map(Box::new);
        let issue_log = spec.issue_log.clone().map(|port| Box::new(IssueLog::new(port)));
        let (open_loop, replay) = (OpenLoop::new(spec), Replay::new(spec));
        Feed {
            source,
            ahead: Ahead::new(spec),
            singly: pauses.is_some() || read_back.is_some() || issue_log.is_some(),
            timed: open_loop.is_some() || replay.is_some(),
            replay,
            issue_log,
            pauses,
            read_back,
            open_loop,
            final_syncs: synced.map(|file| Request { op: Op::Sync, file, len: 0, offset: 0 }).collect(),
        }
    }

    /// Begins at `now`: schedules and blocks of requests count from here.
    pub fn begin(&mut self, now: u64) {
        if let Some(pauses) = &mut self.pauses {
            pauses.begin(now);
        }
        if let Some(open_loop) = &mut self.open_loop {
            open_loop.begin(now);
        }
        if let Some(replay) = &mut self.replay {
            replay.begin(now);
        }
        if let Some(log) = &mut self.issue_log {
            log.begin(now);
        }
    }

    /// Ends at `now`: nothing more is issued.
    pub fn end(&mut self, now: u64) {
        if let Some(log) = self.issue_log.take() {
            log.end(now);
        }
        if let Some(pauses) = &mut self.pauses {
            pauses.end();
        }
    }

    /// Time by which a wait for a due request ends early, ns; the worker spins for the rest.
    pub fn spin_ns(&self) -> u64 {
        let of_replay = self.replay.as_ref().map_or(0, |replay| replay.spin_ns());
        let of_pauses = self.pauses.as_ref().map_or(of_replay, |pauses| pauses.spin_ns());
        self.open_loop.as_ref().map_or(of_pauses, |open_loop| open_loop.spin_ns().max(of_pauses))
    }

    /// The next request of a closed loop at `now`.
    #[inline(always)]
    pub fn next(&mut self, now: u64) -> Next<Request> {
        match self.hold(now) {
            Next::Issue(()) => {}
            Next::NotBefore(due) => return Next::NotBefore(due),
            Next::Pause | Next::Done => return Next::Pause,
        }
        let Some(request) = self.ahead.take(&mut self.source) else { return Next::Done };
        if self.singly {
            self.count(&request, now);
        }
        Next::Issue(request)
    }

    /// Passes the requests of a closed loop that may be issued at `now` to `each`, at most `room`. False when the work
    /// is done.
    #[inline]
    pub fn draw(&mut self, now: u64, room: u64, mut each: impl FnMut(Request)) -> bool {
        if self.singly || !self.ahead.is_empty() {
            return self.draw_singly(now, room, &mut each);
        }
        let goes_on = self.source.next_requests(room, each) == room;
        self.ahead.drop_cached(&self.source);
        goes_on
    }

    /// As [`Feed::draw`], for requests that were drawn ahead or count towards a pause.
    #[cold]
    fn draw_singly(&mut self, now: u64, room: u64, each: &mut dyn FnMut(Request)) -> bool {
        let allowance = self.pauses.as_ref().map_or(u64::MAX, |pauses| pauses.allowance(now));
        for _ in 0..room.min(allowance) {
            let Feed { ahead, source, read_back, .. } = self;
            ahead.drop_cached(source);
            let mut draw = || match ahead.take_drawn().or_else(|| source.next_request()) {
                Some(request) => Next::Issue((request, None)),
                None => Next::Done,
            };
            let next = match read_back {
                Some(read_back) => read_back.next(draw),
                None => draw(),
            };
            let request = match next {
                Next::Issue((request, _)) => request,
                Next::Done => return false,
                Next::NotBefore(_) | Next::Pause => return true,
            };
            self.count(&request, now);
            each(request);
        }
        true
    }

    /// Whether a pause delays requests at `now`.
    #[inline(always)]
    fn hold(&self, now: u64) -> Next<()> {
        self.pauses.as_ref().map_or(Next::Issue(()), |pauses| pauses.hold(now))
    }

    /// Counts a request towards the next pause and records it, if there are pauses or a record.
    #[inline(never)]
    fn count(&mut self, request: &Request, now: u64) {
        if let Some(pauses) = &mut self.pauses {
            pauses.made(request.op.is_sync());
        }
        if let Some(log) = &mut self.issue_log {
            log.push(now, request);
        }
    }

    /// As [`Feed::draw`], for an open loop: each with its due time, if a schedule made it.
    pub fn draw_arrivals(&mut self, now: u64, room: u64, mut each: impl FnMut(Request, Option<u64>)) -> bool {
        let batch = self.open_loop.as_ref().map_or(room, |open_loop| open_loop.batch(now, room));
        for _ in 0..batch {
            match self.next_arrival(now) {
                Next::Issue((request, due)) => each(request, due),
                Next::Done => return false,
                Next::NotBefore(_) | Next::Pause => break,
            }
        }
        true
    }

    /// The next request of an open loop at `now`.
    fn next_arrival(&mut self, now: u64) -> Next<Arrival> {
        match self.hold(now) {
            Next::Issue(()) => {}
            Next::NotBefore(due) => return Next::NotBefore(due),
            Next::Pause | Next::Done => return Next::Pause,
        }
        let next = match self.read_back.take() {
            Some(mut read_back) => {
                let next = read_back.next(|| self.draw_arrival(now));
                self.read_back = Some(read_back);
                next
            }
            None => self.draw_arrival(now),
        };
        if let (true, Next::Issue((request, _))) = (self.singly, &next) {
            self.count(request, now);
        }
        next
    }

    /// The next request of the source at its time.
    fn draw_arrival(&mut self, now: u64) -> Next<Arrival> {
        match self.peek_source(now) {
            Next::Issue(()) => {}
            Next::NotBefore(due) => return Next::NotBefore(due),
            Next::Pause => return Next::Pause,
            Next::Done => return Next::Done,
        }
        if let Some(replay) = &mut self.replay {
            return replay.take().map_or(Next::Done, |request| Next::Issue((request, None)));
        }
        let arrival = self.open_loop.as_mut().filter(|_| !self.source.sync_is_due());
        self.ahead.drop_cached(&self.source);
        let (request, due) = match arrival.and_then(|open_loop| open_loop.take(now)) {
            Some((op, due)) => (self.source.next_request_of(op), due),
            None => (self.source.next_request(), None),
        };
        match request {
            Some(request) => Next::Issue((request, due)),
            None => Next::Done,
        }
    }

    /// Whether a request may be issued at `now`, without drawing one.
    #[inline]
    pub fn peek(&self, now: u64) -> Next<()> {
        match self.hold(now) {
            Next::Issue(()) => {}
            held => return held,
        }
        match self.read_back.as_ref().and_then(|read_back| read_back.peek()) {
            Some(next) => next,
            None => self.peek_source(now),
        }
    }

    #[inline]
    fn peek_source(&self, now: u64) -> Next<()> {
        if self.timed { self.peek_timed(now) } else { Next::Issue(()) }
    }

    #[inline]
    fn peek_timed(&self, now: u64) -> Next<()> {
        match (&self.open_loop, &self.replay) {
            (Some(open_loop), _) if !self.source.sync_is_due() => open_loop.peek(now),
            (_, Some(replay)) => replay.peek(now),
            _ => Next::Issue(()),
        }
    }

    /// The end of a sleep for a request that is due at `due`, where something else happens at `change`.
    #[inline(never)]
    pub fn wake_at(&self, due: u64, change: u64) -> u64 {
        self.open_loop.as_ref().map_or(due, |open_loop| open_loop.wake_at(due, change))
    }

    /// The time to wait for, if any; something else happens at `change`. To be called when nothing is in flight and nothing
    /// was drawn.
    pub fn pause_until(&mut self, now: u64, change: u64) -> Option<u64> {
        if let Some(Pause { until, delay_ns }) = self.pauses.as_mut().and_then(|pauses| pauses.pause(now)) {
            if let Some(open_loop) = self.open_loop.as_mut().filter(|_| delay_ns > 0) {
                open_loop.delay(delay_ns);
            }
            return Some(until);
        }
        match self.peek(now) {
            Next::NotBefore(due) => Some(self.wake_at(due, change)),
            Next::Issue(()) | Next::Pause | Next::Done => None,
        }
    }

    /// Whether completed reads are those of blocks that were read back.
    #[inline]
    pub fn is_reading_back(&self) -> bool {
        self.read_back.as_ref().is_some_and(|read_back| read_back.is_reading())
    }

    /// The seed that the block of `read` has if an earlier run has written it in a further pass, which its runtime ended.
    pub fn later_seed_of(&self, read: &Request) -> Option<u64> {
        self.read_back.as_ref().and_then(|read_back| read_back.later_seed_of(read))
    }

    /// Whether the blocks of a whole pass are read back.
    pub fn is_reading_back_a_pass(&self) -> bool {
        self.read_back.as_ref().is_some_and(|read_back| read_back.is_reading_a_pass())
    }

    /// Whether the job reads back what it has written.
    pub fn reads_back(&self) -> bool {
        self.read_back.is_some()
    }

    /// The pass that writes belong to.
    pub fn pass(&self) -> u64 {
        self.read_back.as_ref().map_or(0, |read_back| read_back.pass())
    }

    /// The seed of the data that was last written to the block of `read`, if it is known.
    pub fn seed_of(&self, read: &Request) -> Option<u64> {
        self.read_back.as_ref().and_then(|read_back| read_back.seed_of(read))
    }

    /// Forgets a request that failed, and that wrote or trimmed a block.
    pub fn forget(&mut self, request: &Request) {
        if let Some(read_back) = &mut self.read_back {
            read_back.forget(request);
        }
    }

    /// Whether the block of `read` was trimmed after its last write.
    pub fn is_trimmed(&self, read: &Request) -> bool {
        self.read_back.as_ref().is_some_and(|read_back| read_back.is_trimmed(read))
    }

    /// Goes on with writing or reading back, when nothing is in flight.
    pub fn settle(&mut self) -> Turned {
        match &mut self.read_back {
            Some(read_back) => read_back.settle(&mut self.source),
            None => Turned::Nothing,
        }
    }

    /// Requests of each operation that were due before `end` and not drawn; `None` in a closed loop.
    pub fn backlog(&self, end: u64) -> Option<impl Iterator<Item = (Op, u64)> + '_> {
        self.open_loop.as_ref().map(|open_loop| open_loop.backlog(end))
    }

    /// The next of the syncs at the end, issued at `now`.
    pub fn next_final_sync(&mut self, now: u64) -> Option<Request> {
        let sync = self.final_syncs.pop()?;
        if let Some(log) = &mut self.issue_log {
            log.push(now, &sync);
        }
        Some(sync)
    }

    /// Skips the remaining syncs at the end.
    pub fn skip_final_syncs(&mut self) {
        self.final_syncs.clear();
    }

    /// Whether syncs at the end are left.
    pub fn has_final_syncs(&self) -> bool {
        !self.final_syncs.is_empty()
    }
}
