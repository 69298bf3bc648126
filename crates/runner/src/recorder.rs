//! The sink of completions: counts, latencies, the slowest requests, errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use fathom_model::plan::OnError;
use fathom_model::{Op, Request};
use fathom_stats::live::{LivePhase, LiveWorker};
use fathom_stats::{SlowRequest, WorkerFailure};

use crate::responses::Responses;
use crate::slots::{Slots, Stamp};
use crate::slowest::Slowest;
use crate::stalls::STALL_NS;
use crate::worker::WorkerSpec;

/// The phase that completions count for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Ramp,
    Measured,
}

impl Phase {
    #[inline(always)]
    fn counters(self, live: &LiveWorker) -> &LivePhase {
        match (self, &live.ramp) {
            (Phase::Ramp, Some(ramp)) => ramp,
            _ => &live.measured,
        }
    }
}

/// Whether the failure of a request ends its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterError {
    GoOn,
    End,
}

/// Whether a request is among the slowest so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// It is not one of them.
    Common,
    /// It is one of them.
    Slow,
}

/// Requests that completed in full, together, and differ only in their offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    /// The first of them; for a short request, its last part.
    pub request: Request,
    pub stamp: Stamp,
    /// When they completed, session ns.
    pub at: u64,
    pub count: u32,
}

impl Completed {
    #[inline(always)]
    pub fn lat_ns(&self) -> u64 {
        self.at - self.stamp.start.min(self.at)
    }
}

/// The measurements of one worker.
pub(crate) struct Recorder {
    pub live: Arc<LiveWorker>,
    phase: Phase,
    slowest: Slowest,
    /// Only under a rate.
    pub responses: Option<Box<Responses>>,
    on_error: OnError,
    errors: BTreeMap<(Op, i32), u64>,
    failure: Option<WorkerFailure>,
}

/// The results of a recorder besides the counters.
pub(crate) struct Kept {
    pub errors: BTreeMap<(Op, i32), u64>,
    pub slowest: Vec<SlowRequest>,
    pub failure: Option<WorkerFailure>,
}

impl Recorder {
    pub fn new(spec: &WorkerSpec, live: Arc<LiveWorker>) -> Self {
        let scheduled = spec.recorded.scheduled;
        Recorder {
            phase: if live.ramp.is_some() { Phase::Ramp } else { Phase::Measured },
            live,
            slowest: Slowest::default(),
            responses: scheduled.then(|| Box::new(Responses::new(spec.depth.iodepth))),
            on_error: spec.on_error,
            errors: BTreeMap::new(),
            failure: None,
        }
    }

    /// The counters of the phase.
    #[inline(always)]
    pub fn phase(&self) -> &LivePhase {
        self.phase.counters(&self.live)
    }

    /// Begins the schedule: slots are free from now on.
    pub fn begin_responses(&mut self, now: u64) {
        if let Some(responses) = &mut self.responses {
            responses.begin(now);
        }
    }

    /// Begins the ramp.
    pub fn begin_ramp(&self, now: u64) {
        if let Some(ramp) = &self.live.ramp {
            ramp.start_ns.set(now);
        }
    }

    /// Ends the ramp, if there is one, and begins the measured part.
    pub fn begin_measured(&mut self, now: u64) {
        if let Some(ramp) = &self.live.ramp {
            ramp.close(now);
            self.slowest.clear();
        }
        self.phase = Phase::Measured;
        self.live.measured.start_ns.set(now);
    }

    /// Whether the measured part has begun.
    pub fn has_measured(&self) -> bool {
        self.live.measured.start_ns.get() != 0
    }

    /// Whether any part has begun.
    pub fn has_begun(&self) -> bool {
        self.has_measured() || self.live.ramp.as_ref().is_some_and(|ramp| ramp.start_ns.get() != 0)
    }

    /// Ends a schedule at `end`, with the backlog of due requests that were not issued.
    pub fn end_schedule(&self, end: u64, backlog: impl Iterator<Item = (Op, u64)>) {
        let measured = &self.live.measured;
        measured.schedule_end_ns.set(end);
        for (op, backlog) in backlog {
            if let Some(counted) = &measured.ops[op as usize].open_loop {
                counted.set_backlog(backlog);
            }
        }
    }

    /// Records the response times of `slots.done`, completed at `now`, under a rate.
    #[inline]
    pub fn record_responses(&mut self, slots: &Slots, now: u64) {
        if let Some(responses) = &mut self.responses {
            responses.record(slots, now, self.phase.counters(&self.live));
        }
    }

    /// Records equal requests that completed in full. Those that are [`Pace::Slow`] must be passed to
    /// [`Recorder::keep_slow`].
    #[inline(always)]
    pub fn record(&self, completed: Completed) -> Pace {
        let Completed { request, stamp, at, count } = completed;
        let (clat, lat) = (at - stamp.issued.min(at), completed.lat_ns());
        let phase = self.phase();
        if let Some(op) = phase.ops.get(request.op as usize) {
            op.complete(count, request.len + stamp.moved, clat, lat);
        } else {
            phase.syncs.add(u64::from(count));
            // From its start, because an engine may execute it during submission.
            if let Some(sync_lat) = &phase.sync_lat {
                sync_lat.record_many(lat, count);
            }
        }
        self.pace(lat)
    }

    /// Whether a request with latency `lat_ns` is among the slowest so far.
    #[inline(always)]
    pub fn pace(&self, lat_ns: u64) -> Pace {
        if lat_ns > self.slowest.threshold_ns { Pace::Slow } else { Pace::Common }
    }

    /// Keeps one of the slowest requests, issued at `depth`.
    #[cold]
    pub fn keep_slow(&mut self, completed: &Completed, depth: u32) {
        self.live.record_resumption(completed.at, STALL_NS);
        let (Completed { request, stamp, .. }, lat_ns) = (completed, completed.lat_ns());
        if self.pace(lat_ns) == Pace::Slow {
            let Request { op, offset, .. } = *request;
            let start_ns = stamp.start;
            self.slowest.insert(SlowRequest { start_ns, lat_ns, op, offset, depth });
        }
    }

    /// Counts a short request.
    pub fn record_short(&self, request: &Request) {
        if let Some(op) = self.phase().ops.get(request.op as usize) {
            op.short.add(1);
        }
    }

    /// Counts a request that failed.
    pub fn record_failed(&mut self, request: &Request, errno: i32) -> AfterError {
        *self.errors.entry((request.op, errno)).or_insert(0) += 1;
        let phase = self.phase();
        match phase.ops.get(request.op as usize) {
            Some(op) => op.failed.add(1),
            None => phase.syncs_failed.add(1),
        }
        let OnError { continue_read, continue_write } = self.on_error;
        let goes_on = if request.op == Op::Read { continue_read } else { continue_write };
        if goes_on { AfterError::GoOn } else { AfterError::End }
    }

    /// Stores why the worker ends, unless that is known.
    pub fn fail(&mut self, failure: impl FnOnce() -> WorkerFailure) {
        self.failure.get_or_insert_with(failure);
    }

    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Publishes the offsets in flight at `now`, if the worker is stalled.
    #[cold]
    pub fn publish_stall(&self, slots: &Slots, now: u64) {
        let since = now.saturating_sub(self.live.last_completion_ns.get());
        if since >= STALL_NS {
            self.live.publish_stalled_offsets(now, slots.offsets_in_flight());
        }
    }

    /// The results besides the counters.
    pub fn into_kept(self) -> Kept {
        let slowest = if self.has_measured() { self.slowest.into_vec() } else { Vec::new() };
        Kept { errors: self.errors, slowest, failure: self.failure }
    }
}
