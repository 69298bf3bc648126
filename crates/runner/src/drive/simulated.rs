//! The turn of a worker on simulated volumes, as long as each completion is followed by one new request.
//!
//! Each completion is known in advance, so the turn is short: take, count, draw, issue. Everything else takes the
//! common turn. Both give the same outcome.

use std::sync::Arc;

use fathom_engine::Completion;
use fathom_engine::sim::SimEngine;
use fathom_model::{Nanos, Request};
use fathom_stats::live::LiveWorker;
use fathom_stats::{BatchCounts, CpuUsage, DepthCounts};

use super::{Collects, Turn, Worker};
use crate::clock::VirtualClock;
use crate::feed::Next;
use crate::recorder::{Attention, Completed};
use crate::slots::Stamp;
use crate::stop::StopSignal;
use crate::worker::WorkerSpec;

/// Most completions per call of [`Worker::run_simulated`], because time may not advance, which is checked between
/// calls.
pub(crate) const MAX_COMPLETIONS: u64 = 1 << 16;

impl Worker<VirtualClock, SimEngine> {
    /// A worker on simulated volumes, which are asynchronous whatever engine the job names.
    pub fn simulated(
        spec: &WorkerSpec,
        engine: SimEngine,
        clock: VirtualClock,
        live: Arc<LiveWorker>,
        stop: StopSignal,
    ) -> Self {
        let worker = Worker::new(spec, Box::new(engine), clock, live, (stop, CpuUsage::default));
        Worker { turn: Turn::Common, ..worker }
    }

    /// Processes completions up to the time `last`, and returns when the next one is due. `None` if the common turn
    /// must be taken at the current time.
    pub fn run_simulated(&mut self, last: Nanos) -> Option<Nanos> {
        // A request that never completes has no completion at which a stop would be noticed.
        if !self.is_level() || self.stop.is_set() {
            return None;
        }
        let next_change = self.schedule.next_change;
        let last = last.0.min(next_change - 1);
        let (mut taken, mut issued) = (0, 0);
        let due = loop {
            if taken == MAX_COMPLETIONS {
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
            let Next::Issue(request) = self.feed.next(self.now) else {
                self.leave(next.completion.slot);
                break None;
            };
            self.issue_one(next.completion.slot, &request);
            issued += 1;
        };
        if taken > 0 {
            let phase = self.recorder.phase();
            phase.complete[BatchCounts::bucket(1)].add(taken);
            phase.submit[BatchCounts::bucket(1)].add(issued);
            phase.depth[DepthCounts::bucket(self.batching.plan.iodepth)].add(issued);
        }
        due
    }

    /// True if every slot is in flight and each completion is followed by one request.
    #[inline]
    fn is_level(&self) -> bool {
        let plan = &self.batching.plan;
        self.schedule.is_issuing()
            && self.now < self.schedule.next_change
            && self.slots.free.is_empty()
            && self.slots.batch.is_empty()
            && self.collects == Collects::Closed
            && self.verifier.is_none()
            && !self.recorder.limits_latency()
            && plan.low.saturating_add(1) >= plan.iodepth
            && plan.batch_complete_min > 0
            && self.slots.rests == 0
    }

    /// Counts a completion at `self.now`; false if it failed, which the common turn counts.
    #[inline(always)]
    fn count(&mut self, done: &Completion) -> bool {
        let request = self.slots.requests[done.slot as usize];
        if done.result != i64::from(request.len) {
            return false;
        }
        let stamp = self.slots.stamps[done.slot as usize];
        let completed = Completed { request, stamp, at: self.now, count: 1 };
        self.recorder.note_silence(stamp.start, self.now, self.slots.in_flight);
        if self.recorder.record(completed) == Attention::Kept {
            self.keep(done.slot);
        }
        self.recorder.live.last_completion_ns.set(self.now);
        true
    }

    /// Issues a request in the slot of the completed one; it has no payload, because no bytes are moved.
    #[inline(always)]
    fn issue_one(&mut self, slot: u32, request: &Request) {
        self.slots.requests[slot as usize] = *request;
        self.slots.stamps[slot as usize] = Stamp { start: self.now, issued: self.now, moved: 0 };
        if let Some(op) = self.recorder.phase().ops.get(request.op as usize) {
            op.issued.add(1);
        }
        self.engine.issue(slot, request);
    }

    /// Leaves a slot free, as the common turn does when it takes a completion.
    #[cold]
    fn leave(&mut self, slot: u32) {
        self.slots.free.push(slot);
        self.slots.in_flight -= 1;
        self.recorder.live.in_flight.set(u64::from(self.slots.in_flight));
        self.batching.one_left();
    }
}

#[cfg(test)]
#[path = "simulated_tests.rs"]
mod tests;
