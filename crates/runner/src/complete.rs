//! Taking a completion: recording it, sending the rest of what was cut short, or failing.

use fathom_engine::Completion;
use fathom_model::{Op, Request};
use fathom_stats::{SlowRequest, WorkerFailure};
use fathom_sys::io::describe;

use crate::clock::Clock;
use crate::drive::Worker;

/// errno of a request that moved nothing although it should have (EIO), as at the end of a file that shrank.
const MOVED_NOTHING: i32 = 5;
const SYNC_SLOWEST_INDEX: u8 = 3;

impl<C: Clock> Worker<C> {
    /// Records one completion at `self.now`, or sends the rest of a request that was cut short.
    #[inline]
    pub fn complete(&mut self, completion: Completion) {
        let slot = self.slots.all[completion.slot as usize];
        let request = slot.request;
        if completion.result != i64::from(request.len) {
            return self.complete_oddly(completion);
        }
        let (clat, lat) = (self.now - slot.issued.min(self.now), self.now - slot.start.min(self.now));
        let phase = self.phase();
        if request.op.is_sync() {
            if !self.closing {
                phase.syncs.add(1);
                // From its start: where an engine does it while submitting, that is its time all the same.
                phase.sync_lat.record(lat);
            }
        } else {
            let op = &phase.ops[request.op as usize];
            op.ios.add(1);
            op.bytes.add(u64::from(request.len + slot.moved));
            if let Some(slat) = &op.slat {
                slat.record(lat - clat);
            }
            if let Some(live) = &op.clat {
                live.record(clat);
            }
            if let Some(live) = &op.lat {
                live.record(lat);
            }
        }
        self.live.last_completion_ns.set(self.now);
        if lat > self.slowest.threshold_ns && !self.closing {
            self.keep_slow(request, slot.start, lat);
        }
        self.release(completion.slot);
    }

    #[inline(always)]
    fn release(&mut self, slot: u32) {
        self.slots.free.push(slot);
        self.in_flight -= 1;
        self.live.in_flight.set(u64::from(self.in_flight));
    }

    #[cold]
    fn keep_slow(&mut self, request: Request, start_ns: u64, lat_ns: u64) {
        let op = if request.op.is_sync() { SYNC_SLOWEST_INDEX } else { request.op as u8 };
        self.slowest.insert(SlowRequest {
            start_ns,
            lat_ns,
            op,
            offset: request.offset,
            depth: self.in_flight,
        });
    }

    /// A failed request, or one that the device cut short.
    #[cold]
    fn complete_oddly(&mut self, completion: Completion) {
        let slot = completion.slot as usize;
        let request = self.slots.all[slot].request;
        let result = completion.result;
        if result > 0 && result < i64::from(request.len) {
            let moved = result as u32;
            if let Some(op) = self.phase().ops.get(request.op as usize) {
                op.short.add(1);
            }
            let place = &mut self.slots.all[slot];
            place.moved += moved;
            self.any_short = true;
            place.request.offset += u64::from(moved);
            place.request.len -= moved;
            self.in_flight -= 1;
            self.batch.push(completion.slot);
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
        self.live.last_completion_ns.set(self.now);
        self.release(completion.slot);
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
}
