//! The turn of a worker with a synchronous engine.
//!
//! Nothing is in flight between two requests, so the turn is short: draw, stamp, execute, stamp, count. The remainder
//! of a short request, or a failure, takes the common turn.

use fathom_engine::{Completion, Engine, Queued};
use fathom_model::{Op, Request};
use fathom_stats::{BatchCounts, DepthCounts};

use super::{Step, Worker};
use crate::clock::Clock;
use crate::feed::Next;
use crate::recorder::Attention;
use crate::slots::Stamp;

/// Longest time between two checks of stage, stop and pause, ns: several requests to memory, or one to a device.
const LOOK_NS: u64 = 100_000;

/// The only slot there is.
const SLOT: u32 = 0;

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// Executes requests until the stage changes, a pause is due, or a request fails or is short.
    ///
    /// Not inlined, so that its cost does not depend on how the compiler inlines the common turn.
    #[inline(never)]
    pub(super) fn run_synchronous(&mut self) -> Step {
        self.recorder.live.in_flight.set(1);
        let look_at = self.schedule.next_change.min(self.now.saturating_add(LOOK_NS));
        let mut done = 0;
        let next = loop {
            let next = self.feed.next(self.now);
            let Next::Issue(request) = next else { break next };
            done += 1;
            if !self.run_one(&request) || self.now >= look_at {
                break next;
            }
        };
        self.recorder.live.in_flight.set(0);
        if done > 0 {
            let phase = self.recorder.phase();
            phase.depth[DepthCounts::bucket(1)].add(done);
            phase.submit[BatchCounts::bucket(1)].add(done);
            phase.complete[BatchCounts::bucket(1)].add(done);
            self.recorder.live.last_completion_ns.set(self.now);
        }
        match next {
            _ if done > 0 => Step::Progress,
            Next::Done => {
                self.schedule.drain();
                Step::Progress
            }
            Next::Issue(_) | Next::Pause | Next::NotBefore(_) => self.idle(),
        }
    }

    /// Executes one request and counts it; false if it failed or was short, which may have ended the worker.
    #[inline(always)]
    fn run_one(&mut self, request: &Request) -> bool {
        if request.op == Op::Write {
            let was_read = self.slots.requests[SLOT as usize].op == Op::Read;
            self.filler.prepare(self.engine.as_mut(), SLOT, request, was_read);
        }
        self.slots.requests[SLOT as usize] = *request;
        let start = self.clock.now();
        let queued = self.engine.queue(&[SLOT], &self.slots.requests);
        self.now = self.clock.now();
        let Queued::Done(result) = queued else {
            unreachable!("a synchronous engine completes each request in `queue`");
        };
        let lat = self.now.saturating_sub(start);
        let op = self.recorder.phase().ops.get(request.op as usize);
        if let Some(op) = op {
            op.issued.add(1);
            if result == i64::from(request.len) && self.recorder.attention(lat) == Attention::Counted {
                op.complete(1, request.len, lat, lat);
                return true;
            }
        }
        self.complete_in_full(start, result)
    }

    /// Takes the result of a sync, of a request that is kept, or of a failed or short one, as the common turn does.
    #[inline(never)]
    fn complete_in_full(&mut self, start: u64, result: i64) -> bool {
        self.slots.free.clear();
        self.slots.stamps[SLOT as usize] = Stamp { start, issued: start, moved: 0 };
        self.slots.in_flight = 1;
        self.slots.done.push(Completion { slot: SLOT, result });
        self.complete_all();
        self.slots.batch.is_empty() && self.schedule.is_issuing()
    }
}
