//! The loop: one turn collects requests, hands them over, takes completions and records them.
//!
//! `step` never sleeps: only an engine may wait, in `reap`, up to the time of the next change. So the same code runs on a
//! thread in real time and beside others on one virtual clock. Nothing in a turn allocates, locks or formats.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fathom_engine::{Completion, Engine, EngineError, Queued, Reaped};
use fathom_model::plan::{DepthPlan, OnError};
use fathom_model::{Nanos, Op, Request};
use fathom_stats::live::{LivePhase, LiveWorker};
use fathom_stats::{BatchCounts, CpuUsage, DepthCounts, WorkerFailure};
use fathom_workload::Source;

use crate::clock::Clock;
use crate::paced::OpenLoop;
use crate::pacer::Pacer;
use crate::schedule::{Schedule, Stage};
use crate::slots::{Slots, Stamp};
use crate::slowest::Slowest;
use crate::stop::StopSignal;
use crate::worker::Filler;

/// What one turn of the loop says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something happened; take another turn.
    Progress,
    /// Nothing can happen before this moment of the session's clock.
    BlockedUntil(Nanos),
    /// The worker has done its work.
    Finished,
}

/// The longest single wait in an engine, so that a request to stop is seen.
const LONGEST_WAIT_NS: u64 = 100_000_000;

/// One thread of a job, on an engine that is known only when it runs or, in virtual time, beforehand.
pub(crate) struct Worker<C, E: ?Sized = dyn Engine> {
    pub clock: C,
    pub engine: Box<E>,
    pub source: Source,
    pub filler: Filler,
    pub live: Arc<LiveWorker>,
    pub depth: DepthPlan,
    pub on_error: OnError,
    pub schedule: Schedule,
    pub pacer: Pacer,
    /// When requests are due; `None` where the depth alone decides.
    pub open_loop: Option<Box<OpenLoop>>,
    pub stop: StopSignal,
    /// Syncs to be done when everything else is (`end_fsync`).
    pub final_syncs: Vec<Request>,
    /// The final syncs have begun: they take time but are no part of the workload that is counted.
    pub closing: bool,
    /// Each request is done in one call, one at a time.
    pub at_once: bool,
    /// Requests drawn before their time, by the turns that do not take what all engines share.
    pub ahead: VecDeque<Request>,
    pub slots: Slots,
    pub slowest: Slowest,
    /// The latest reading of the clock.
    pub now: u64,
    /// Most requests handed over in one go, between the plan's two sizes.
    pub batch_limit: u32,
    /// Slots with a request that the engine has not accepted yet.
    pub batch: Vec<u32>,
    /// Slots accepted by the engine and not handed over yet, in order.
    pub accepted: Vec<u32>,
    pub done: Vec<Completion>,
    pub in_flight: u32,
    /// Completions of the last look whose places have not been filled again.
    pub owed: u32,
    /// A request was cut short.
    pub any_short: bool,
    /// False from a full queue until it has fallen to `depth.low`.
    pub filling: bool,
    pub measuring: bool,
    pub errors: BTreeMap<(&'static str, i32), u64>,
    pub failure: Option<WorkerFailure>,
    pub usage: fn() -> CpuUsage,
    pub usage_at_start: CpuUsage,
    pub usage_of_ramp: CpuUsage,
}

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// Reads the clock after a wait that the worker asked for.
    pub fn wake(&mut self) {
        self.now = self.clock.now();
    }

    /// One turn.
    pub fn step(&mut self) -> Result<Step, EngineError> {
        if self.now >= self.schedule.next_change || self.stop.is_set() {
            self.now = self.clock.now();
            if let Some(blocked) = self.change_stage() {
                return Ok(blocked);
            }
        }
        if self.at_once && self.batch.is_empty() && self.schedule.stage != Stage::Draining {
            return Ok(self.carry_out());
        }
        let collected = self.collect();
        if collected || !self.accepted.is_empty() {
            self.issue()?;
        }
        if self.in_flight == 0 {
            return Ok(if collected { Step::Progress } else { self.idle() });
        }
        self.take()
    }

    /// The phase that completions count for.
    #[inline(always)]
    pub fn phase(&self) -> &LivePhase {
        match &self.live.ramp {
            Some(ramp) if !self.measuring => ramp,
            _ => &self.live.measured,
        }
    }

    /// Draws new requests into free slots and fills what writes carry. True where there is anything to issue.
    #[inline]
    fn collect(&mut self) -> bool {
        if self.schedule.stage == Stage::Draining {
            self.collect_final_sync();
            return !self.batch.is_empty();
        }
        if self.open_loop.is_some() {
            return self.collect_due();
        }
        let waiting = self.batch.len() as u64;
        if !self.filling || waiting >= u64::from(self.batch_limit) {
            return waiting > 0;
        }
        let room = (u64::from(self.batch_limit) - waiting)
            .min(self.slots.free.len() as u64)
            .min(self.pacer.allowance());
        if !self.ahead.is_empty() {
            return self.collect_ahead(room);
        }
        let Worker { source, slots, batch, engine, filler, .. } = self;
        let mut syncs = 0;
        let made = source.next_requests(room, |request| {
            let slot = slots.free.pop().expect("there is no more room than free places");
            if request.op != Op::Read {
                let was_read = slots.requests[slot as usize].op == Op::Read;
                filler.prepare(engine.as_mut(), slot, &request, was_read);
                syncs += u64::from(request.op.is_sync());
            }
            slots.put(slot, request);
            batch.push(slot);
        });
        if made < room {
            self.schedule.drain();
        }
        self.pacer.made(made - syncs);
        !self.batch.is_empty()
    }

    /// As [`Worker::collect`], where requests have been drawn ahead.
    #[cold]
    fn collect_ahead(&mut self, room: u64) -> bool {
        for _ in 0..room {
            let Some(request) = self.ahead.pop_front().or_else(|| self.source.next_request()) else {
                self.schedule.drain();
                break;
            };
            self.put(request);
        }
        !self.batch.is_empty()
    }

    #[cold]
    fn collect_final_sync(&mut self) {
        if self.in_flight > 0 || !self.batch.is_empty() {
            return;
        }
        if self.failure.is_some() || self.stop.run.is_requested() {
            self.final_syncs.clear();
        }
        if !self.slots.free.is_empty()
            && let Some(request) = self.final_syncs.pop()
            && let Some(slot) = self.slots.free.pop()
        {
            self.slots.put(slot, request);
            self.batch.push(slot);
            self.closing = true;
        }
    }

    /// Offers the batch to the engine and hands over what it accepted.
    #[inline]
    fn issue(&mut self) -> Result<(), EngineError> {
        self.now = self.clock.now();
        let mut start = self.now;
        // Said before the engine is asked: a synchronous one may not come back for long.
        self.live.in_flight.set(u64::from(self.in_flight) + self.batch.len() as u64);
        let (mut offered, mut fresh) = (0, 0);
        while offered < self.batch.len() {
            match self.engine.queue(&self.batch[offered..], &self.slots.requests) {
                Queued::Accepted(0) => {
                    if self.accepted.is_empty() || self.submit()? == 0 {
                        break;
                    }
                }
                Queued::Accepted(count) => {
                    fresh += self.accept(offered, count as usize, start);
                    offered += count as usize;
                }
                Queued::Done(result) => {
                    self.finish_at_once(self.batch[offered], start, result);
                    offered += 1;
                    // The next of the batch has waited for this one, which is none of its own time.
                    start = self.now;
                }
            }
        }
        // A batch goes as one, and so do those that follow upon one look for completions: each request is issued at the
        // depth that takes the place of what came back.
        self.owed = u64::from(self.owed).saturating_sub(fresh) as u32;
        self.phase().depth[DepthCounts::bucket(self.in_flight + self.owed)].add(fresh);
        self.batch.drain(..offered);
        while !self.accepted.is_empty() && self.submit()? > 0 {}
        Ok(())
    }

    /// Stamps and counts `count` requests of the batch that the engine has accepted; answers how many of them begin.
    #[inline]
    fn accept(&mut self, offered: usize, count: usize, start: u64) -> u64 {
        let slots = &self.batch[offered..offered + count];
        let mut issued = [0; Op::COUNT];
        for &slot in slots {
            let stamp = &mut self.slots.stamps[slot as usize];
            if stamp.start == Stamp::UNSET {
                stamp.start = start;
                issued[self.slots.requests[slot as usize].op as usize] += 1;
            }
        }
        self.accepted.extend_from_slice(slots);
        self.in_flight += count as u32;
        if self.closing {
            return 0;
        }
        for (op, &count) in self.phase().ops.iter().zip(&issued) {
            op.issued.add(count);
        }
        issued.iter().sum()
    }

    /// Takes the result of a request that was done while it was offered.
    fn finish_at_once(&mut self, slot: u32, start: u64, result: i64) {
        let stamp = &mut self.slots.stamps[slot as usize];
        let fresh = stamp.start == Stamp::UNSET;
        if fresh {
            stamp.start = start;
        }
        stamp.issued = stamp.start;
        self.now = self.clock.now();
        self.in_flight += 1;
        let counted = u64::from(fresh && !self.closing);
        let phase = self.phase();
        if let Some(op) = phase.ops.get(self.slots.requests[slot as usize].op as usize) {
            op.issued.add(counted);
        }
        phase.depth[DepthCounts::bucket(self.in_flight)].add(counted);
        phase.submit[BatchCounts::bucket(1)].add(1);
        phase.complete[BatchCounts::bucket(1)].add(1);
        self.done.push(Completion { slot, result });
        self.complete_all();
    }

    /// Hands accepted requests over and stamps them; returns how many went.
    #[inline]
    fn submit(&mut self) -> Result<u32, EngineError> {
        let went = self.engine.submit()?;
        self.now = self.clock.now();
        if self.any_short {
            self.stamp_whole_requests(went);
        } else {
            for slot in self.accepted.drain(..went as usize) {
                self.slots.stamps[slot as usize].issued = self.now;
            }
        }
        self.phase().submit[BatchCounts::bucket(went)].add(1);
        Ok(went)
    }

    /// Stamps what went, save the rests of requests that were cut short: they keep the time of their first part.
    #[cold]
    fn stamp_whole_requests(&mut self, went: u32) {
        for slot in self.accepted.drain(..went as usize) {
            let stamp = &mut self.slots.stamps[slot as usize];
            if stamp.moved == 0 {
                stamp.issued = self.now;
            }
        }
    }

    /// Takes completions; waits only where nothing more can be issued.
    #[inline]
    fn take(&mut self) -> Result<Step, EngineError> {
        if self.slots.free.is_empty() {
            self.filling = false;
        }
        let mut may_issue = self.schedule.stage != Stage::Draining
            && self.filling
            && self.batch.is_empty()
            && self.pacer.allowance() > 0;
        let mut min = if may_issue { 0 } else { self.depth.batch_complete_min.min(self.in_flight) };
        let mut next_change = self.schedule.next_change;
        if may_issue && self.open_loop.is_some() {
            (may_issue, min, next_change) = self.until_due();
        }
        let until_change = next_change.saturating_sub(self.now);
        let wait = Some(Nanos(until_change.min(LONGEST_WAIT_NS)));
        if !may_issue {
            self.owed = 0;
        }
        let max = self.depth.batch_complete_max.max(self.batch_limit).max(min);
        let in_flight = self.in_flight;
        match self.engine.reap(min, max, wait, &mut self.done)? {
            Reaped::Some(0) => {
                self.now = self.clock.now();
                self.batch_limit = self.depth.batch_submit;
                if min > 0 {
                    self.tell_what_is_held();
                }
                Ok(Step::Progress)
            }
            Reaped::Some(count) => {
                self.now = self.clock.now();
                self.owed = count;
                self.phase().complete[BatchCounts::bucket(count)].add(1);
                self.complete_all();
                let inline = min == 0 && count == in_flight;
                self.batch_limit = if inline { self.larger_batch() } else { self.depth.batch_submit };
                self.filling |= self.in_flight <= self.depth.low;
                Ok(Step::Progress)
            }
            Reaped::NothingBefore(time) => {
                self.batch_limit = self.depth.batch_submit;
                let blocked = Step::BlockedUntil(time.min(Nanos(next_change)));
                Ok(if may_issue { Step::Progress } else { blocked })
            }
        }
    }

    /// The size that follows where a look, without waiting, found everything completed: no device is kept waiting.
    #[inline]
    fn larger_batch(&self) -> u32 {
        (self.batch_limit * 2).min(self.depth.batch_submit_inline)
    }

    /// Nothing is in flight and nothing was issued: paused, or done.
    #[cold]
    pub fn idle(&mut self) -> Step {
        self.now = self.clock.now();
        self.owed = 0;
        if self.schedule.stage == Stage::Draining {
            return if self.final_syncs.is_empty() { self.finish() } else { Step::Progress };
        }
        match self.pacer.pause(self.now) {
            Some(until) => Step::BlockedUntil(Nanos(until.min(self.schedule.next_change))),
            None if self.next_due() > self.now => {
                Step::BlockedUntil(Nanos(self.next_due().min(self.schedule.next_change)))
            }
            None => Step::Progress,
        }
    }

    /// The last turn: closes the phase.
    fn finish(&mut self) -> Step {
        self.live.close(self.now);
        Step::Finished
    }
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
