//! The turn of a worker whose engine does each request in one call, one at a time.
//!
//! Nothing is ever in flight between two of them, so the way is short: draw, stamp, do, stamp, count. Whatever is not
//! plain, the rest of a request that was cut short or a failure, goes the way that all engines share.

use fathom_engine::{Completion, Engine, Queued};
use fathom_model::{Op, Request};
use fathom_stats::{BatchCounts, DepthCounts};

use crate::clock::Clock;
use crate::drive::{Step, Worker};
use crate::schedule::Stage;
use crate::slots::Stamp;

/// Requests drawn at once.
pub(crate) const AHEAD: u64 = 16;

/// Stage, stop and pause are looked at after this long at the latest, ns: between several requests to memory, after each
/// to a device.
const LOOK_NS: u64 = 100_000;

/// The only place there is.
const SLOT: u32 = 0;

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
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
        let due = self.schedule.next_change.min(self.now.saturating_add(LOOK_NS));
        let mut carried = 0;
        while let Some(request) = self.ahead.pop_front() {
            carried += 1;
            let plain = self.carry_out_one(&request);
            if !plain || self.now >= due || self.pacer.allowance() == 0 {
                break;
            }
        }
        let phase = self.phase();
        phase.depth[DepthCounts::bucket(1)].add(carried);
        phase.submit[BatchCounts::bucket(1)].add(carried);
        phase.complete[BatchCounts::bucket(1)].add(carried);
        self.live.last_completion_ns.set(self.now);
        self.live.in_flight.set(0);
        Step::Progress
    }

    /// Does one request and counts it; false where it ended oddly, which may have ended the worker.
    #[inline(always)]
    fn carry_out_one(&mut self, request: &Request) -> bool {
        if request.op != Op::Read {
            let was_read = self.slots.requests[SLOT as usize].op == Op::Read;
            self.filler.prepare(self.engine.as_mut(), SLOT, request, was_read);
        }
        self.pacer.made(u64::from(!request.op.is_sync()));
        self.slots.requests[SLOT as usize] = *request;
        let start = self.clock.now();
        let queued = self.engine.queue(&[SLOT], &self.slots.requests);
        self.now = self.clock.now();
        let Queued::Done(result) = queued else {
            unreachable!("an engine that does each request in one call has done it");
        };
        let lat = self.now.saturating_sub(start);
        let op = self.phase().ops.get(request.op as usize);
        if let Some(op) = op {
            op.issued.add(1);
            if result == i64::from(request.len) && lat <= self.slowest.threshold_ns {
                op.complete(1, request.len, lat, lat);
                return true;
            }
        }
        self.complete_in_full(start, result)
    }

    /// Takes the result of a sync, of one of the slowest requests, or of one that ended oddly, the way all engines share.
    #[inline(never)]
    fn complete_in_full(&mut self, start: u64, result: i64) -> bool {
        self.slots.free.clear();
        self.slots.stamps[SLOT as usize] = Stamp { start, issued: start, moved: 0 };
        self.in_flight = 1;
        self.done.push(Completion { slot: SLOT, result });
        self.complete_all();
        self.batch.is_empty() && self.schedule.stage != Stage::Draining
    }
}
