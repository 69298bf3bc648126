//! Taking a completion: recording it, sending the rest of what was cut short, or failing.

use std::ops::Range;

use fathom_engine::{Completion, Engine};
use fathom_model::{Op, Request};
use fathom_stats::{SlowRequest, WorkerFailure};
use fathom_sys::io::describe;

use crate::clock::Clock;
use crate::drive::Worker;
use crate::slots::Stamp;
use crate::stalls::STALL_NS;

/// errno of a request that moved nothing although it should have (EIO), as at the end of a file that shrank.
const MOVED_NOTHING: i32 = 5;

/// The number of an operation in [`SlowRequest`].
pub(crate) fn slowest_index(op: Op) -> u8 {
    const SYNC: u8 = 3;
    if op.is_sync() { SYNC } else { op as u8 }
}

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// Records what is in `done` as completed at `self.now`, or sends the rests of requests that were cut short.
    ///
    /// Requests that went together and came back together took the same time: they are recorded as one.
    #[inline]
    pub fn complete_all(&mut self) {
        if self.open_loop.is_some() {
            self.record_responses();
        }
        let mut next = 0;
        while let Some(&Completion { slot, result }) = self.done.get(next) {
            let request = self.slots.requests[slot as usize];
            if result != i64::from(request.len) {
                self.complete_oddly(slot, result);
                next += 1;
                continue;
            }
            let stamp = self.slots.stamps[slot as usize];
            let alike = 1 + self.done[next + 1..]
                .iter()
                .take_while(|other| {
                    let theirs = &self.slots.requests[other.slot as usize];
                    other.result == result
                        && (theirs.op, theirs.len) == (request.op, request.len)
                        && self.slots.stamps[other.slot as usize] == stamp
                })
                .count();
            self.record(&request, &stamp, alike as u32);
            let lat = self.now - stamp.start.min(self.now);
            if lat > self.slowest.threshold_ns && !self.closing {
                self.keep_slow(next..next + alike, lat);
            }
            self.slots.free.extend(self.done[next..next + alike].iter().map(|done| done.slot));
            self.in_flight -= alike as u32;
            next += alike;
        }
        self.done.clear();
        self.live.last_completion_ns.set(self.now);
        self.live.in_flight.set(u64::from(self.in_flight));
    }

    /// Counts requests alike that are whole.
    #[inline(always)]
    pub fn record(&self, request: &Request, stamp: &Stamp, alike: u32) {
        let (clat, lat) = (self.now - stamp.issued.min(self.now), self.now - stamp.start.min(self.now));
        let phase = self.phase();
        if let Some(op) = phase.ops.get(request.op as usize) {
            op.complete(alike, request.len + stamp.moved, clat, lat);
        } else if !self.closing {
            phase.syncs.add(u64::from(alike));
            // From its start: where an engine does it while submitting, that is its time all the same.
            if let Some(sync_lat) = &phase.sync_lat {
                sync_lat.record_alike(lat, alike);
            }
        }
    }

    #[cold]
    fn keep_slow(&mut self, done: Range<usize>, lat_ns: u64) {
        self.live.resume(self.now, STALL_NS);
        for &Completion { slot, .. } in &self.done[done] {
            let request = &self.slots.requests[slot as usize];
            let op = slowest_index(request.op);
            let (offset, start_ns) = (request.offset, self.slots.stamps[slot as usize].start);
            if lat_ns > self.slowest.threshold_ns {
                self.slowest.insert(SlowRequest { start_ns, lat_ns, op, offset, depth: self.in_flight });
            }
        }
    }

    /// A failed request, or one that the device cut short.
    #[cold]
    pub fn complete_oddly(&mut self, slot: u32, result: i64) {
        let request = self.slots.requests[slot as usize];
        if result > 0 && result < i64::from(request.len) {
            let moved = result as u32;
            if let Some(op) = self.phase().ops.get(request.op as usize) {
                op.short.add(1);
            }
            let rest = &mut self.slots.requests[slot as usize];
            rest.offset += u64::from(moved);
            rest.len -= moved;
            self.slots.stamps[slot as usize].moved += moved;
            self.any_short = true;
            self.in_flight -= 1;
            self.batch.push(slot);
            return;
        }
        let errno = if result < 0 { result.unsigned_abs() as i32 } else { MOVED_NOTHING };
        *self.errors.entry((request.op.name(), errno)).or_insert(0) += 1;
        let phase = self.phase();
        match phase.ops.get(request.op as usize) {
            Some(op) => op.failed.add(1),
            None => phase.syncs_failed.add(1),
        }
        let goes_on =
            if request.op == Op::Read { self.on_error.continue_read } else { self.on_error.continue_write };
        if !goes_on {
            self.fail(request, errno, result == 0);
        }
        self.slots.free.push(slot);
        self.in_flight -= 1;
    }

    fn fail(&mut self, request: Request, errno: i32, moved_nothing: bool) {
        self.schedule.drain();
        let error = std::io::Error::from_raw_os_error(errno);
        let what = if moved_nothing { "moved no data".to_owned() } else { describe(&error) };
        let (op, offset, len) = (request.op, request.offset, request.len);
        self.failure.get_or_insert_with(|| WorkerFailure {
            errno,
            message: format!("{op} of {len} bytes at offset {offset} (file {}): {what}", request.file),
            hint: crate::error::errno_hint(errno).map(str::to_owned),
        });
    }

    /// After a wait in which nothing completed: tells the observer what is in flight, where that is a stall.
    #[cold]
    pub fn tell_what_is_held(&self) {
        let since = self.now.saturating_sub(self.live.last_completion_ns.get());
        if since >= STALL_NS {
            let held = |slot: &u32| !self.slots.free.contains(slot) && !self.batch.contains(slot);
            let slots = (0..self.depth.iodepth).filter(held);
            self.live.hold(self.now, slots.map(|slot| self.slots.requests[slot as usize].offset));
        }
    }
}
