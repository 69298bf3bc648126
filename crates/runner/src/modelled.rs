//! The turn of a worker on modelled volumes, as long as nothing happens but that one request takes the place of another.
//!
//! Each completion is known before it comes, so the way is short: take, count, draw, ask. Whatever is not plain goes the way
//! that all engines share. Both count the same: which of them was gone is to be seen nowhere.

use fathom_engine::Completion;
use fathom_engine::sim::SimEngine;
use fathom_model::{Nanos, Request};
use fathom_stats::{BatchCounts, DepthCounts, SlowRequest};

use crate::clock::VirtualClock;
use crate::complete::slowest_index;
use crate::drive::Worker;
use crate::schedule::Stage;
use crate::slots::Stamp;
use crate::stalls::STALL_NS;
use crate::synchronous::AHEAD;

/// Most completions that [`Worker::follow`] takes in one go: time may stand still, which is looked at in between.
pub(crate) const MOST_FOLLOWED: u64 = 1 << 16;

impl Worker<VirtualClock, SimEngine> {
    /// Goes from one completion to the next, up to the instant `last`, and answers when the next thing is due after it.
    /// `None` where a turn of the way that all engines share is to be taken, at the time that the clock then shows.
    pub fn follow(&mut self, last: Nanos) -> Option<Nanos> {
        // A request that is never answered leads to no completion at which a stop would be seen.
        if !self.is_level() || self.stop.is_set() {
            return None;
        }
        let next_change = self.schedule.next_change;
        let last = last.0.min(next_change - 1);
        let (mut taken, mut issued) = (0, 0);
        let due = loop {
            if taken == MOST_FOLLOWED {
                break Some(Nanos(self.now));
            }
            let Some(next) = self.engine.next() else { break None };
            if next.at > last {
                break Some(Nanos(next.at.min(next_change)));
            }
            self.clock.0.advance_to(Nanos(next.at));
            self.now = next.at;
            if !next.is_alone || self.stop.is_set() || !self.count(&next.completion) {
                break None;
            }
            self.engine.take_next();
            taken += 1;
            let Some(request) = self.draw() else {
                self.leave(next.completion.slot);
                break None;
            };
            self.issue_one(next.completion.slot, &request);
            issued += 1;
        };
        if taken > 0 {
            let phase = self.phase();
            phase.complete[BatchCounts::bucket(1)].add(taken);
            phase.submit[BatchCounts::bucket(1)].add(issued);
            phase.depth[DepthCounts::bucket(self.depth.iodepth)].add(issued);
            self.live.last_completion_ns.set(self.now);
        }
        due
    }

    /// True where every place is in flight and each completion is followed by one request.
    #[inline]
    fn is_level(&self) -> bool {
        matches!(self.schedule.stage, Stage::Ramp | Stage::Measuring)
            && self.now < self.schedule.next_change
            && self.slots.free.is_empty()
            && self.batch.is_empty()
            && self.open_loop.is_none()
            && self.depth.low.saturating_add(1) >= self.depth.iodepth
            && self.depth.batch_complete_min > 0
            && !self.any_short
    }

    /// Counts a completion at `self.now`; false where it is not whole, which is told elsewhere.
    #[inline(always)]
    fn count(&mut self, done: &Completion) -> bool {
        let request = self.slots.requests[done.slot as usize];
        if done.result != i64::from(request.len) {
            return false;
        }
        let stamp = self.slots.stamps[done.slot as usize];
        self.record(&request, &stamp, 1);
        let lat_ns = self.now - stamp.start;
        if lat_ns > self.slowest.threshold_ns {
            self.live.resume(self.now, STALL_NS);
            let (op, start_ns, offset) = (slowest_index(request.op), stamp.start, request.offset);
            self.slowest.insert(SlowRequest { start_ns, lat_ns, op, offset, depth: self.in_flight });
        }
        true
    }

    /// The next request, where one may be made.
    #[inline(always)]
    fn draw(&mut self) -> Option<Request> {
        if self.pacer.allowance() == 0 {
            return None;
        }
        if self.ahead.is_empty() {
            let ahead = &mut self.ahead;
            self.source.next_requests(AHEAD, |request| ahead.push_back(request));
        }
        self.ahead.pop_front()
    }

    /// Issues a request in the place of the one that has been taken; it carries nothing, for no bytes are moved.
    #[inline(always)]
    fn issue_one(&mut self, slot: u32, request: &Request) {
        self.pacer.made(u64::from(!request.op.is_sync()));
        self.slots.requests[slot as usize] = *request;
        self.slots.stamps[slot as usize] = Stamp { start: self.now, issued: self.now, moved: 0 };
        if let Some(op) = self.phase().ops.get(request.op as usize) {
            op.issued.add(1);
        }
        self.engine.ask(slot, request);
    }

    /// Leaves a place free, as taking a completion does where all engines share the way.
    #[cold]
    fn leave(&mut self, slot: u32) {
        self.slots.free.push(slot);
        self.in_flight -= 1;
        self.live.in_flight.set(u64::from(self.in_flight));
        self.owed = 1;
        self.filling = true;
    }
}

#[cfg(test)]
#[path = "modelled_tests.rs"]
mod tests;
