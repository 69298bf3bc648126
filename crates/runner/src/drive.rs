//! The loop: one turn draws requests, submits them, reaps completions and records them.
//!
//! `step` never sleeps: only an engine may wait, in `reap`, until the next change is due. So the same code runs on a
//! thread in real time, and together with others on one virtual clock. Nothing in a turn allocates, locks or formats.
//!
//! The loop keeps slots, batches and time. The [`Feed`] decides the next request and its time; the [`Recorder`] counts
//! completions. Two shorter turns do the same in simpler cases: `synchronous` and `simulated`.

mod apart;
mod checks;
mod complete;
mod depth_search;
mod life;
mod rate_floor;
mod simulated;
mod synchronous;
mod verify;
mod wait;

use fathom_engine::{Completion, Engine, EngineError, Queued, Reaped};
use fathom_model::{Nanos, Op, Request};
use fathom_stats::{BatchCounts, DepthCounts};

use crate::batching::Batching;
use crate::clock::Clock;
use crate::feed::{Feed, Next};
use crate::filler::Filler;
use crate::recorder::Recorder;
use crate::schedule::{Schedule, Stage};
use crate::slots::{Claimed, Slots, Stamp};
use crate::stop::StopSignal;
use crate::usage::Usage;
use crate::verifier::Verifier;
use apart::Apart;
use checks::Checks;
use wait::Wait;

pub(crate) use simulated::MAX_COMPLETIONS;

/// The result of one turn of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something happened; take another turn.
    Progress,
    /// Nothing can happen before this time of the session's clock.
    BlockedUntil(Nanos),
    /// The worker has done its work.
    Finished,
}

/// The longest single wait in an engine, so that a stop request is noticed.
const LONGEST_WAIT_NS: u64 = 100_000_000;

/// The turn that the loop takes by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Requests are submitted in batches and complete later.
    Common,
    /// Each request is one synchronous call.
    Synchronous,
}

/// How the common turn draws requests; chosen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collects {
    /// A completion permits the next request.
    Closed,
    /// A schedule does.
    Arrivals,
    /// As `Closed`, but requests that overlap wait for each other.
    Apart,
    /// Nothing is drawn until the queue is empty.
    Settling,
}

/// One worker of a job. Its engine is chosen at run time, or statically in virtual time.
pub(crate) struct Worker<C, E: ?Sized = dyn Engine> {
    pub clock: C,
    engine: Box<E>,
    turn: Turn,
    collects: Collects,
    /// The latest reading of the clock.
    now: u64,
    schedule: Schedule,
    stop: StopSignal,
    feed: Feed,
    filler: Filler,
    slots: Slots,
    batching: Batching,
    recorder: Recorder,
    usage: Usage,
    /// Checks what is read.
    verifier: Option<Box<Verifier>>,
    /// The blocks are those of an earlier run.
    verifies_only: bool,
    apart: Apart,
    /// Conditions that are checked at intervals.
    checks: Option<Box<Checks>>,
}

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// Reads the clock after a wait that the worker requested.
    pub fn wake(&mut self) {
        self.now = self.clock.now();
    }

    /// Time by which a requested wait ends early, ns; the worker spins for the rest.
    pub fn spin_ns(&self) -> u64 {
        self.feed.spin_ns()
    }

    /// One turn.
    pub fn step(&mut self) -> Result<Step, EngineError> {
        if self.now >= self.schedule.next_change || self.stop.is_set() {
            self.now = self.clock.now();
            if let Some(blocked) = self.change_stage() {
                return Ok(blocked);
            }
        }
        if self.turn == Turn::Synchronous && self.slots.batch.is_empty() && self.schedule.is_issuing() {
            return Ok(self.run_synchronous());
        }
        let collected = self.collect();
        if collected || !self.slots.accepted.is_empty() {
            self.issue()?;
        }
        if self.slots.in_flight == 0 {
            return Ok(if collected { Step::Progress } else { self.idle() });
        }
        self.take()
    }

    /// Draws new requests into free slots and fills write buffers. True if there is anything to issue.
    #[inline]
    fn collect(&mut self) -> bool {
        if !self.schedule.is_issuing() {
            self.collect_final_sync();
            return !self.slots.batch.is_empty();
        }
        let room = self.batching.room(self.slots.batch.len()).min(self.slots.free.len() as u64);
        let goes_on = match self.collects {
            Collects::Closed => self.collect_closed(room),
            Collects::Arrivals => self.collect_arrivals(room),
            Collects::Apart => self.collect_apart(room),
            Collects::Settling => self.settle(),
        };
        if !goes_on {
            self.schedule.drain();
        }
        !self.slots.batch.is_empty()
    }

    /// As [`Worker::collect`], for up to `room` requests of a closed loop. False when the work is done.
    #[inline]
    fn collect_closed(&mut self, room: u64) -> bool {
        let Worker { feed, filler, slots, engine, now, .. } = self;
        let mut claimed = slots.claim(room as usize);
        let goes_on = feed.draw(*now, room, |request| {
            place(&mut claimed, request, filler, engine.as_mut());
        });
        let unused = claimed.left();
        slots.unclaim(unused);
        goes_on
    }

    /// As [`Worker::collect_closed`], for requests of a schedule.
    #[inline(never)]
    fn collect_arrivals(&mut self, room: u64) -> bool {
        self.note_free_slots();
        let Worker { feed, filler, slots, recorder, engine, now, .. } = self;
        let mut claimed = slots.claim(room as usize);
        let goes_on = feed.draw_arrivals(*now, room, |request, due| {
            let slot = place(&mut claimed, request, filler, engine.as_mut());
            if let (Some(due), Some(responses)) = (due, &mut recorder.responses) {
                responses.await_response(slot, due);
            }
        });
        let unused = claimed.left();
        slots.unclaim(unused);
        self.note_free_slots();
        goes_on
    }

    /// Records for response times whether another request could be issued.
    fn note_free_slots(&mut self) {
        let Worker { feed, slots, batching, recorder, now, .. } = self;
        if let Some(responses) = &mut recorder.responses {
            let is_open = batching.is_filling() && !slots.free.is_empty();
            responses.note_free_slots(is_open && feed.peek(*now) != Next::Pause, *now);
        }
    }

    #[cold]
    fn collect_final_sync(&mut self) {
        if self.slots.in_flight > 0 || !self.slots.batch.is_empty() {
            return;
        }
        if self.recorder.has_failed() || self.stop.run.is_requested() {
            self.feed.skip_final_syncs();
        }
        if let Some(request) = self.feed.next_final_sync(self.now) {
            self.slots.claim(1).put(request);
            self.schedule.close();
        }
    }

    /// Offers the batch to the engine and submits what it accepted.
    #[inline]
    fn issue(&mut self) -> Result<(), EngineError> {
        self.now = self.clock.now();
        let mut start = self.now;
        // Published before the call: a synchronous engine may block for long.
        let waiting = self.slots.batch.len();
        self.recorder.live.in_flight.set(u64::from(self.slots.in_flight) + waiting as u64);
        let (mut offered, mut fresh) = (0, 0);
        while offered < self.slots.batch.len() {
            match self.engine.queue(&self.slots.batch[offered..], &self.slots.requests) {
                Queued::Accepted(0) => {
                    if self.slots.accepted.is_empty() || self.submit()? == 0 {
                        break;
                    }
                }
                Queued::Accepted(count) => {
                    fresh += self.accept(offered, count as usize, start);
                    offered += count as usize;
                }
                Queued::Done(result) => {
                    self.finish_synchronously(self.slots.batch[offered], start, result);
                    offered += 1;
                    // The next request of the batch has waited for this one, which is not part of its latency.
                    start = self.now;
                }
            }
        }
        let depth = self.batching.issued(fresh, self.slots.in_flight);
        self.recorder.phase().depth[DepthCounts::bucket(depth)].add(fresh);
        self.slots.batch.drain(..offered);
        while !self.slots.accepted.is_empty() && self.submit()? > 0 {}
        Ok(())
    }

    /// Stamps and counts `count` requests of the batch that the engine has accepted; returns how many of them are new.
    #[inline]
    fn accept(&mut self, offered: usize, count: usize, start: u64) -> u64 {
        let Slots { batch, accepted, stamps, requests, in_flight, .. } = &mut self.slots;
        let taken = &batch[offered..offered + count];
        let mut issued = [0; Op::COUNT];
        for &slot in taken {
            let stamp = &mut stamps[slot as usize];
            if stamp.start == Stamp::UNSET {
                stamp.start = start;
                issued[requests[slot as usize].op as usize] += 1;
            }
        }
        accepted.extend_from_slice(taken);
        *in_flight += count as u32;
        if self.schedule.stage == Stage::Closing {
            return 0;
        }
        for (op, &count) in self.recorder.phase().ops.iter().zip(&issued) {
            op.issued.add(count);
        }
        issued.iter().sum()
    }

    /// Takes the result of a request that completed when it was offered.
    fn finish_synchronously(&mut self, slot: u32, start: u64, result: i64) {
        let stamp = &mut self.slots.stamps[slot as usize];
        let fresh = stamp.start == Stamp::UNSET;
        if fresh {
            stamp.start = start;
        } else {
            self.slots.rests -= 1;
        }
        stamp.issued = stamp.start;
        self.now = self.clock.now();
        self.slots.in_flight += 1;
        let counted = u64::from(fresh && self.schedule.stage != Stage::Closing);
        let phase = self.recorder.phase();
        if let Some(op) = phase.ops.get(self.slots.requests[slot as usize].op as usize) {
            op.issued.add(counted);
        }
        phase.depth[DepthCounts::bucket(self.slots.in_flight)].add(counted);
        phase.submit[BatchCounts::bucket(1)].add(1);
        phase.complete[BatchCounts::bucket(1)].add(1);
        self.slots.done.push(Completion { slot, result });
        self.complete_all();
    }

    /// Submits accepted requests and stamps them; returns their number.
    #[inline]
    fn submit(&mut self) -> Result<u32, EngineError> {
        let went = self.engine.submit()?;
        self.now = self.clock.now();
        self.slots.hand_over(went, self.now);
        self.recorder.phase().submit[BatchCounts::bucket(went)].add(1);
        Ok(went)
    }

    /// Takes completions; waits only if nothing more can be issued.
    #[inline]
    fn take(&mut self) -> Result<Step, EngineError> {
        if self.slots.free.is_empty() {
            self.batching.full();
        }
        let Wait { may_issue, min, until } = self.wait();
        let wait = Some(Nanos(until.saturating_sub(self.now).min(LONGEST_WAIT_NS)));
        if !may_issue {
            self.batching.forget_deficit();
        }
        let in_flight = self.slots.in_flight;
        match self.engine.reap(min, self.batching.most_completions(min), wait, &mut self.slots.done)? {
            Reaped::Some(0) => {
                self.now = self.clock.now();
                self.batching.found_none();
                if min > 0 {
                    self.recorder.publish_stall(&self.slots, self.now);
                }
                Ok(Step::Progress)
            }
            Reaped::Some(count) => {
                self.now = self.clock.now();
                self.recorder.phase().complete[BatchCounts::bucket(count)].add(1);
                self.complete_all();
                self.batching.found(count, self.slots.in_flight, min == 0 && count == in_flight);
                Ok(Step::Progress)
            }
            Reaped::NothingBefore(time) => {
                self.batching.found_none();
                Ok(if may_issue { Step::Progress } else { Step::BlockedUntil(time.min(Nanos(until))) })
            }
        }
    }

    /// How to reap completions now. Shortly before a request is due the worker spins, because a wait might be too long.
    #[inline]
    fn wait(&self) -> Wait {
        let until = self.schedule.next_change;
        let min = self.batching.plan.batch_complete_min.min(self.slots.in_flight);
        let is_open = self.schedule.is_issuing() && self.batching.is_filling() && self.slots.batch.is_empty();
        if !is_open {
            return Wait { may_issue: false, min, until };
        }
        match self.feed.peek(self.now) {
            Next::Issue(()) => Wait { may_issue: true, min: 0, until },
            Next::NotBefore(due) if due <= self.now + self.spin_ns() => {
                Wait { may_issue: false, min: 0, until: until.min(due) }
            }
            Next::NotBefore(due) => {
                let wake = self.feed.wake_at(due, until) - self.spin_ns();
                Wait { may_issue: false, min, until: until.min(wake) }
            }
            Next::Pause | Next::Done => Wait { may_issue: false, min, until },
        }
    }

    /// Nothing is in flight and nothing was issued: the worker pauses or has finished.
    #[cold]
    fn idle(&mut self) -> Step {
        self.now = self.clock.now();
        self.recorder.idle_ns = self.now;
        self.batching.forget_deficit();
        if !self.schedule.is_issuing() {
            return if self.feed.has_final_syncs() { Step::Progress } else { self.finish() };
        }
        if self.verifier.is_some() {
            self.turn_round();
        }
        match self.feed.pause_until(self.now, self.schedule.next_change) {
            Some(until) => Step::BlockedUntil(Nanos(until.min(self.schedule.next_change))),
            None => Step::Progress,
        }
    }

    /// The last turn: closes the phase.
    fn finish(&mut self) -> Step {
        if self.verifier.is_some() {
            self.finish_verify();
        }
        self.feed.end(self.now);
        self.recorder.live.close(self.now);
        Step::Finished
    }
}

/// Puts a request into the next claimed slot, and fills the buffer of a write.
#[inline(always)]
fn place<E>(claimed: &mut Claimed<'_>, request: Request, filler: &mut Filler, engine: &mut E) -> u32
where
    E: Engine + ?Sized,
{
    let (slot, before) = claimed.put(request);
    if request.op == Op::Write {
        filler.prepare(engine, slot, &request, before == Op::Read);
    }
    slot
}

#[cfg(test)]
pub(crate) mod tests;
