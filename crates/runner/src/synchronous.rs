//! The turn of a worker whose engine does each request in one call, one at a time.
//!
//! Nothing is ever in flight between two of them, so the way is short: draw, stamp, do, stamp, count. Whatever is not
//! plain, the rest of a request that was cut short or a failure, goes the way that all engines share.

use fathom_engine::{Completion, Queued};
use fathom_model::Op;
use fathom_stats::{BatchCounts, DepthCounts};

use crate::clock::Clock;
use crate::drive::{Step, Worker};
use crate::slots::Stamp;

/// Requests drawn at once.
pub(crate) const AHEAD: u64 = 16;

/// The only place there is.
const SLOT: u32 = 0;

impl<C: Clock> Worker<C> {
    /// Does one request after another until the stage changes, a pause is due, or one ends oddly.
    #[inline]
    pub fn carry_out(&mut self) -> Step {
        if self.pacer.allowance() == 0 {
            return self.idle();
        }
        if self.ahead.is_empty() {
            let ahead = &mut self.ahead;
            if self.source.next_requests(AHEAD, |request| ahead.push_back(request)) == 0 {
                self.schedule.drain();
                return Step::Progress;
            }
        }
        self.live.in_flight.set(1);
        while self.batch.is_empty() && self.carry_out_next() {}
        self.live.in_flight.set(0);
        Step::Progress
    }

    /// Does the next request that was drawn; false where none is left or a look at the stage is due.
    #[inline(always)]
    fn carry_out_next(&mut self) -> bool {
        let Some(request) = self.ahead.pop_front() else { return false };
        if request.op != Op::Read {
            let was_read = self.slots.requests[SLOT as usize].op == Op::Read;
            self.filler.prepare(self.engine.as_mut(), SLOT, &request, was_read);
        }
        self.pacer.made(u64::from(!request.op.is_sync()));
        self.slots.requests[SLOT as usize] = request;
        let start = self.clock.now();
        let queued = self.engine.queue(&[SLOT], &self.slots.requests);
        self.now = self.clock.now();
        let Queued::Done(result) = queued else {
            unreachable!("an engine that does each request in one call has done it");
        };
        let phase = self.phase();
        phase.depth[DepthCounts::bucket(1)].add(1);
        phase.submit[BatchCounts::bucket(1)].add(1);
        phase.complete[BatchCounts::bucket(1)].add(1);
        let op = phase.ops.get(request.op as usize);
        if let Some(op) = op {
            op.issued.add(1);
        }
        let lat = self.now.saturating_sub(start);
        match op {
            Some(op) if result == i64::from(request.len) && lat <= self.slowest.threshold_ns => {
                op.complete(1, request.len, lat, lat);
                self.live.last_completion_ns.set(self.now);
            }
            _ => {
                self.slots.free.clear();
                self.slots.stamps[SLOT as usize] = Stamp { start, issued: start, moved: 0 };
                self.in_flight = 1;
                self.done.push(Completion { slot: SLOT, result });
                self.complete_all();
                // It may have ended the worker.
                return false;
            }
        }
        self.now < self.schedule.next_change && self.pacer.allowance() > 0 && !self.stop.is_set()
    }
}
