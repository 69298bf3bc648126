//! Completions: recording them, issuing the remainder of short requests, and failures.

use fathom_engine::{Completion, Engine};
use fathom_model::{Op, Request};
use fathom_stats::{FailedRequest, FailureCause, WorkerFailure};
use fathom_sys::io::describe;

use super::Worker;
use crate::clock::Clock;
use crate::recorder::{AfterError, Attention, Completed};
use crate::schedule::Stage;
use crate::slots::Slots;

/// errno of a request that moved no bytes (EIO), as at the end of a truncated file.
const MOVED_NOTHING: i32 = 5;

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// Records `slots.done` as completed at `self.now`, or issues the remainders of short requests.
    ///
    /// Requests that were submitted and completed together have equal latencies and are recorded in one call.
    #[inline]
    pub(super) fn complete_all(&mut self) {
        if self.verifier.is_some() {
            self.verify_done();
        }
        self.recorder.record_responses(&self.slots, self.now);
        if let Some(first) = self.slots.done.first() {
            let start = self.slots.stamps[first.slot as usize].start;
            self.recorder.note_silence(start, self.now, self.slots.in_flight);
        }
        let mut next = 0;
        while let Some(&Completion { slot, result }) = self.slots.done.get(next) {
            let request = self.slots.requests[slot as usize];
            if result != i64::from(request.len) {
                self.complete_failed_or_short(slot, result);
                next += 1;
                continue;
            }
            let stamp = self.slots.stamps[slot as usize];
            let batch = 1 + self.slots.done[next + 1..]
                .iter()
                .take_while(|other| {
                    let theirs = &self.slots.requests[other.slot as usize];
                    other.result == result
                        && (theirs.op, theirs.len) == (request.op, request.len)
                        && self.slots.stamps[other.slot as usize] == stamp
                })
                .count();
            // The syncs at the end take time but are not counted.
            if self.schedule.stage != Stage::Closing {
                let completed = Completed { request, stamp, at: self.now, count: batch as u32 };
                if self.recorder.record(completed) == Attention::Kept {
                    (next..next + batch).for_each(|done| self.keep(self.slots.done[done].slot));
                }
            }
            let Slots { free, done, in_flight, .. } = &mut self.slots;
            free.extend(done[next..next + batch].iter().map(|done| done.slot));
            *in_flight -= batch as u32;
            next += batch;
        }
        self.slots.done.clear();
        self.recorder.live.last_completion_ns.set(self.now);
        self.recorder.live.in_flight.set(u64::from(self.slots.in_flight));
    }

    /// Logs or keeps the request of `slot`, which has just completed.
    #[cold]
    pub(super) fn keep(&mut self, slot: u32) {
        let (request, stamp) = (self.slots.requests[slot as usize], self.slots.stamps[slot as usize]);
        let completed = Completed { request, stamp, at: self.now, count: 1 };
        self.recorder.keep(&completed, self.slots.in_flight, self.engine.priority(slot));
        let lat_ns = completed.lat_ns();
        if let Some(limit_ns) = self.recorder.exceeded_limit(&request, lat_ns) {
            self.schedule.drain();
            self.recorder.fail(|| exceeds(&request, lat_ns, limit_ns));
        }
    }

    /// Moves the remainder of a short write to the start of its buffer, and keeps the first part of a short read that is
    /// checked.
    fn keep_part(&mut self, slot: u32, request: &Request, moved: usize) {
        let payload = self.engine.payload(slot);
        let len = (request.len as usize).min(payload.len());
        match (request.op, &mut self.verifier) {
            (Op::Write, _) if moved < len => payload.copy_within(moved..len, 0),
            (Op::Read, Some(verifier)) if moved <= len => verifier.begin(slot, &payload[..moved]),
            _ => {}
        }
    }

    /// A failed or short request.
    #[cold]
    fn complete_failed_or_short(&mut self, slot: u32, result: i64) {
        let request = self.slots.requests[slot as usize];
        if result > 0 && result < i64::from(request.len) {
            self.recorder.record_short(&request);
            self.keep_part(slot, &request, result as usize);
            self.slots.put_remainder(slot, result as u32);
            return;
        }
        let errno = if result < 0 { result.unsigned_abs() as i32 } else { MOVED_NOTHING };
        match self.recorder.record_failed(&request, errno) {
            AfterError::GoOn => {}
            AfterError::Drain => self.schedule.drain(),
            AfterError::End => {
                self.schedule.drain();
                self.recorder.fail(|| failure_of(&request, errno, result == 0));
            }
        }
        if matches!(request.op, Op::Write | Op::Trim) {
            self.feed.forget(&request);
        }
        self.slots.free.push(slot);
        self.slots.in_flight -= 1;
    }
}

/// fio's error of a request that took longer than `max_latency`.
fn exceeds(request: &Request, lat_ns: u64, limit_ns: u64) -> WorkerFailure {
    const ETIMEDOUT: i32 = 110;
    let Request { op, offset, len, .. } = request;
    WorkerFailure {
        errno: ETIMEDOUT,
        message: format!(
            "latency of {lat_ns} nsec exceeds specified max ({limit_ns} nsec): {op} of {len} bytes at offset {offset}"
        ),
        hint: None,
        cause: FailureCause::MaxLatency { request: failed(request), lat_ns, limit_ns },
    }
}

fn failed(request: &Request) -> FailedRequest {
    let Request { op, file, offset, len } = *request;
    FailedRequest { op, file, offset, len }
}

fn failure_of(request: &Request, errno: i32, moved_nothing: bool) -> WorkerFailure {
    let error = std::io::Error::from_raw_os_error(errno);
    let what = if moved_nothing { "moved no data".to_owned() } else { describe(&error) };
    let Request { op, offset, len, file } = request;
    WorkerFailure {
        errno,
        message: format!("{op} of {len} bytes at offset {offset} (file {file}): {what}"),
        hint: crate::error::errno_hint(errno).map(str::to_owned),
        cause: match moved_nothing {
            true => FailureCause::NoData(failed(request)),
            false => FailureCause::Request(failed(request)),
        },
    }
}
