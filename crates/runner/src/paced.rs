//! The loop where requests are due by a schedule: which are made now, how long to wait, how long each took.
//!
//! The schedule is never moved: what could not be made in time is made as soon as there is room, and its response time
//! counts from when it was due. Without a rate nothing of this is looked at but that it is not there.

use fathom_engine::{Completion, Engine};
use fathom_model::plan::Mix;
use fathom_model::{Op, Request};
use fathom_stats::Offered;

use crate::arrivals::Arrivals;
use crate::clock::Clock;
use crate::drive::Worker;
use crate::worker::WorkerSpec;

/// A wait ends so long before a request is due, ns; the rest is spent turning. A timer is later than that on few machines.
const SPIN_NS: u64 = 50_000;
/// Mean gap from which on turning costs a quarter of a processor at most, ns.
const SPIN_FROM_NS: f64 = 200_000.0;
/// Of a request that no schedule made.
const NOT_DUE: u64 = u64::MAX;

/// The schedule of a worker and what it has to remember.
#[derive(Debug)]
pub(crate) struct OpenLoop {
    arrivals: Arrivals,
    /// Per place: when its request was due, and when there was room for it as well.
    places: Box<[(u64, u64)]>,
    /// The operation of a mix that has no rate and takes whatever places there are.
    unpaced: Option<Op>,
    /// Since when there has been room for another request.
    room_since: u64,
    /// Something that is due has found no room.
    is_full: bool,
    spin_ns: u64,
    begun: bool,
    ended: bool,
}

impl OpenLoop {
    /// The schedule of `spec`; `None` where it has none.
    pub fn new(spec: &WorkerSpec) -> Option<Box<OpenLoop>> {
        let arrivals = Arrivals::new(&spec.time.rate, spec.source.seed)?;
        let unpaced = match spec.source.pattern.mix {
            Mix::ReadWrite { .. } => {
                [Op::Read, Op::Write].into_iter().find(|&op| spec.mixes(op) && !arrivals.has(op))
            }
            _ => None,
        };
        Some(Box::new(OpenLoop {
            places: vec![(NOT_DUE, NOT_DUE); spec.depth.iodepth as usize].into_boxed_slice(),
            spin_ns: if arrivals.mean_gap_ns() > SPIN_FROM_NS { SPIN_NS } else { 0 },
            arrivals,
            unpaced,
            room_since: 0,
            is_full: false,
            begun: false,
            ended: false,
        }))
    }

    /// A wait for something due ends so long before it, ns.
    pub fn spin_ns(&self) -> u64 {
        self.spin_ns
    }
}

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// Begins the schedule, where there is one and it has not begun.
    pub fn begin_schedule(&mut self) {
        let now = self.now;
        if let Some(open) = self.open_loop.as_mut().filter(|open| !open.begun) {
            open.arrivals.begin(now);
            (open.begun, open.room_since) = (true, now);
        }
    }

    /// Ends the schedule at `end`, where there is one: what was due before and was not made is left over.
    pub fn end_schedule(&mut self, end: u64) {
        let Some(mut open) = self.open_loop.take() else { return };
        if open.begun && !open.ended && self.measuring {
            open.ended = true;
            let measured = &self.live.measured;
            measured.schedule_end_ns.set(end);
            for (op, backlog) in open.arrivals.overdue(end - 1) {
                if let Some(counted) = &measured.ops[op as usize].open_loop {
                    counted.leave(backlog);
                }
            }
        }
        self.open_loop = Some(open);
    }

    /// Draws the requests that are due into free slots. True where there is anything to issue.
    pub fn collect_due(&mut self) -> bool {
        let Some(mut open) = self.open_loop.take() else { return false };
        if open.is_full && self.has_room() {
            (open.is_full, open.room_since) = (false, self.now);
        }
        while self.has_room() && (self.batch.len() as u64) < u64::from(self.batch_limit) {
            let (request, due) = if self.source.owes_sync() {
                (self.source.next_request(), NOT_DUE)
            } else if let Some((op, due)) = open.arrivals.take(self.now) {
                (self.source.next_request_of(op), due)
            } else if let Some(op) = open.unpaced {
                (self.source.next_request_of(op), NOT_DUE)
            } else {
                break;
            };
            let Some(request) = request else {
                self.schedule.drain();
                break;
            };
            let slot = self.put(request);
            open.places[slot as usize] = (due, due.max(open.room_since));
        }
        open.is_full = !self.has_room();
        self.open_loop = Some(open);
        !self.batch.is_empty()
    }

    fn has_room(&self) -> bool {
        self.filling && !self.slots.free.is_empty() && self.pacer.allowance() > 0
    }

    /// Puts a request into a free slot and the batch.
    pub fn put(&mut self, request: Request) -> u32 {
        let slot = self.slots.free.pop().expect("there is room");
        if request.op != Op::Read {
            let was_read = self.slots.requests[slot as usize].op == Op::Read;
            self.filler.prepare(self.engine.as_mut(), slot, &request, was_read);
        }
        self.pacer.made(u64::from(!request.op.is_sync()));
        self.slots.put(slot, request);
        self.batch.push(slot);
        slot
    }

    /// When the next request may be made by the schedule, session ns: 0 where one may at once, and where there is no
    /// schedule.
    pub fn next_due(&self) -> u64 {
        match &self.open_loop {
            Some(open) if open.unpaced.is_none() && !self.source.owes_sync() => open.arrivals.next_due(),
            _ => 0,
        }
    }

    /// How to wait where there is room for a request: whether one is due, how many completions to wait for, and until
    /// when. What is nearly due is turned for; a wait might be too long.
    pub fn until_due(&self) -> (bool, u32, u64) {
        let spin_ns = self.open_loop.as_ref().map_or(0, |open| open.spin_ns);
        let (due, change) = (self.next_due(), self.schedule.next_change);
        if due <= self.now + spin_ns {
            return (due <= self.now, 0, change.min(due));
        }
        (false, self.depth.batch_complete_min.min(self.in_flight), change.min(due - spin_ns))
    }

    /// Records the response times of what is in `done` as completed at `self.now`.
    pub fn record_responses(&self) {
        let Some(open) = &self.open_loop else { return };
        for &Completion { slot, result } in &self.done {
            let request = &self.slots.requests[slot as usize];
            let Some((due, ready)) = open.places.get(slot as usize).copied() else { continue };
            let counted = self.phase().ops.get(request.op as usize).and_then(|op| op.open_loop.as_ref());
            if let Some(counted) = counted.filter(|_| due != NOT_DUE && result == i64::from(request.len)) {
                let start = self.slots.stamps[slot as usize].start;
                counted.complete(&Offered { due, ready, start, completed: self.now });
            }
        }
    }
}
