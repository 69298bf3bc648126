//! The sink of completions: counts, latencies, the slowest requests, errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use fathom_engine::OpenFile;
use fathom_model::plan::{EndPlan, OnError, RequestPriorities};
use fathom_model::{Op, Request};
use fathom_stats::live::{LivePhase, LiveWorker};
use fathom_stats::{
    FailedRequest, FailureCause, LoggedIo, MIN_SILENCE_NS, Silence, Silences, SlowRequest, WorkerFailure,
};

use crate::error::HOST_MANAGED_HINT;
use crate::logging::LogBuffer;
use crate::responses::Responses;
use crate::slots::{Slots, Stamp};
use crate::slowest::Slowest;
use crate::stalls::STALL_NS;
use crate::worker::WorkerSpec;

/// errno of a request that the kernel finds invalid.
const EINVAL: i32 = 22;
/// errno of a request that the device refuses.
const EIO: i32 = 5;

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

/// What follows the failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterError {
    GoOn,
    /// The work is done.
    Drain,
    /// The worker has failed.
    End,
}

/// Whether counting a request is all there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attention {
    /// It is counted.
    Counted,
    /// It is also to be kept: it is one of the slowest so far, or all requests are.
    Kept,
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
    silences: Silences,
    /// Latency from which a request may be all of a silence: of single requests.
    silent_from_ns: u64,
    /// Latency from which a request is [`Attention::Kept`]; 0 if all are, for logs or latencies by priority.
    kept_from_ns: u64,
    /// Only if the job is logged.
    log: Option<LogBuffer>,
    /// Only under a rate.
    pub responses: Option<Box<Responses>>,
    on_error: OnError,
    end: EndPlan,
    /// A full file system ends the work, not the job.
    fills_device: bool,
    is_direct: bool,
    /// It writes to a device that takes writes only in the order of its zones.
    is_host_managed: bool,
    errors: BTreeMap<(Op, i32), u64>,
    failure: Option<WorkerFailure>,
    /// When the worker last had no request to wait for, session ns.
    pub idle_ns: u64,
    /// Requests that took longer than the latency that the queue depth is chosen for.
    pub slow_ios: u64,
    priorities: Priorities,
}

/// The priorities of requests, and what is recorded by them.
struct Priorities {
    plan: RequestPriorities,
    /// That of requests that have none of their own.
    of_job: u16,
    recorded: bool,
    /// Total latencies, not completion latencies.
    of_lat: bool,
}

/// The results of a recorder besides the counters.
pub(crate) struct Kept {
    pub errors: BTreeMap<(Op, i32), u64>,
    pub slowest: Vec<SlowRequest>,
    pub silences: Silences,
    pub failure: Option<WorkerFailure>,
}

fn is_host_managed(file: &OpenFile) -> bool {
    file.file.as_deref().is_some_and(fathom_sys::device::is_host_managed_file)
}

impl Recorder {
    pub fn new(spec: &WorkerSpec, live: Arc<LiveWorker>) -> Self {
        let scheduled = spec.recorded.scheduled;
        Recorder {
            phase: if live.ramp.is_some() { Phase::Ramp } else { Phase::Measured },
            live,
            slowest: Slowest::default(),
            silences: Silences::default(),
            silent_from_ns: if spec.depth.iodepth == 1 { MIN_SILENCE_NS } else { u64::MAX },
            kept_from_ns: if spec.log.is_some() || spec.records_priorities() { 0 } else { 1 },
            priorities: Priorities {
                plan: spec.threads.request_priorities.clone(),
                of_job: spec.job_priority(),
                recorded: spec.records_priorities(),
                of_lat: spec.priorities_are_of_lat,
            },
            idle_ns: 0,
            slow_ios: 0,
            log: spec.log.clone().map(LogBuffer::new),
            responses: scheduled.then(|| Box::new(Responses::new(spec.depth.iodepth))),
            on_error: spec.on_error,
            end: spec.end.clone(),
            fills_device: spec.usage.fill_device,
            is_direct: spec.setup.direct,
            is_host_managed: spec.setup.writes && spec.setup.files.iter().any(is_host_managed),
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
            if ramp.end_read_back(now) {
                self.live.measured.begin_read_back(now);
            }
            ramp.close(now);
            self.slowest.clear();
            self.silences = Silences::default();
            self.keep_slower();
        }
        self.phase = Phase::Measured;
        self.live.measured.start_ns.set(now);
        if let Some(log) = &self.log {
            log.begin();
        }
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

    /// Records equal requests that completed in full. Those that are [`Attention::Kept`] must be passed to
    /// [`Recorder::keep`].
    #[inline(always)]
    pub fn record(&self, completed: Completed) -> Attention {
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
        self.attention(lat)
    }

    /// Whether a request with latency `lat_ns` is to be kept.
    #[inline(always)]
    pub fn attention(&self, lat_ns: u64) -> Attention {
        if lat_ns >= self.kept_from_ns { Attention::Kept } else { Attention::Counted }
    }

    /// Logs a request that was issued at `depth`, if the job is logged, counts it for its own `priority`, if it has one, and
    /// keeps it if it is one of the slowest.
    #[inline(never)]
    pub fn keep(&mut self, completed: &Completed, depth: u32, priority: Option<u16>) {
        self.live.record_resumption(completed.at, STALL_NS);
        let (Completed { request, stamp, at, .. }, lat_ns) = (completed, completed.lat_ns());
        let Request { op, offset, len, .. } = *request;
        let clat_ns = at - stamp.issued.min(*at);
        let priority = priority.unwrap_or(self.priorities.of_job);
        if self.priorities.recorded && !op.is_sync() {
            let ns = if self.priorities.of_lat { lat_ns } else { clat_ns };
            self.phase().ops[op as usize].record_priority(priority, ns);
        }
        if let Some(log) = self.log.as_mut().filter(|_| self.phase == Phase::Measured && !op.is_sync()) {
            let at_ns = at - self.live.measured.start_ns.get().min(*at);
            let (offset, len) = (offset - u64::from(stamp.moved), len + stamp.moved);
            let is_high = self.priorities.plan.is_high(priority, self.priorities.of_job);
            log.push(LoggedIo { at_ns, clat_ns, lat_ns, offset, len, op, priority, is_high });
        }
        if lat_ns > self.target_ns() && !op.is_sync() {
            self.slow_ios += 1;
        }
        if lat_ns > self.slowest.threshold_ns {
            let start_ns = stamp.start;
            self.slowest.insert(SlowRequest { start_ns, lat_ns, op, offset, depth });
            self.keep_slower();
        }
    }

    /// Notes the time without a completion that ends `at` with one of a request that began at `start_ns`, if it was long.
    #[inline(always)]
    pub fn note_silence(&mut self, start_ns: u64, at: u64, depth: u32) {
        let start_ns = self.live.last_completion_ns.get().max(start_ns);
        let length_ns = at.saturating_sub(start_ns);
        if length_ns >= MIN_SILENCE_NS {
            self.silences.add(Silence { start_ns, length_ns, depth });
        }
    }

    /// The latency that the queue depth is chosen for, ns; `u64::MAX` without one.
    fn target_ns(&self) -> u64 {
        match self.end.latency_target.target.0 {
            0 => u64::MAX,
            target_ns => target_ns,
        }
    }

    /// Keeps requests that are slower than the slowest so far or than a limit, that may end a silence, or all.
    fn keep_slower(&mut self) {
        let limits = self.end.max_latency.iter().filter_map(|(_, limit)| limit.map(|limit| limit.0));
        let slower_ns = limits.min().unwrap_or(u64::MAX).min(self.slowest.threshold_ns).min(self.target_ns());
        let keeps_all = self.log.is_some() || self.priorities.recorded;
        self.kept_from_ns = if keeps_all { 0 } else { slower_ns.saturating_add(1).min(self.silent_from_ns) };
    }

    /// Counts a short request.
    pub fn record_short(&self, request: &Request) {
        if let Some(op) = self.phase().ops.get(request.op as usize) {
            op.short.add(1);
        }
    }

    /// Whether a slow request ends the worker.
    pub fn limits_latency(&self) -> bool {
        self.end.max_latency.iter().any(|(_, limit)| limit.is_some())
    }

    /// The limit that a request of `lat_ns` exceeds, ns.
    #[cold]
    pub fn exceeded_limit(&self, request: &Request, lat_ns: u64) -> Option<u64> {
        let limit = Op::DATA.contains(&request.op).then(|| self.end.max_latency[request.op]).flatten()?;
        Some(limit.0).filter(|&limit_ns| lat_ns > limit_ns)
    }

    /// Counts a request that failed.
    pub fn record_failed(&mut self, request: &Request, errno: i32) -> AfterError {
        const FULL: i32 = 28;
        if self.fills_device && errno == FULL {
            return AfterError::Drain;
        }
        self.count_error(request.op, errno);
        let phase = self.phase();
        match phase.ops.get(request.op as usize) {
            Some(op) => op.failed.add(1),
            None => phase.syncs_failed.add(1),
        }
        if self.goes_on_after(request.op, errno) { AfterError::GoOn } else { AfterError::End }
    }

    /// Whether an error does not fail the worker, as in fio: EIO where the job continues, unless it names its own errors.
    /// EILSEQ is an error of verify, whatever the request.
    fn goes_on_after(&self, op: Op, errno: i32) -> bool {
        const EIO: i32 = 5;
        const EILSEQ: i32 = 84;
        let OnError { continue_read, continue_write, continue_verify } = self.on_error;
        let (continues, named) = match op {
            Op::Read => (continue_read, &self.end.ignored_of_reads),
            _ => (continue_write, &self.end.ignored_of_writes),
        };
        match errno {
            EILSEQ if continue_verify => true,
            EIO if named.is_empty() => continues,
            _ => named.contains(&errno),
        }
    }

    /// Counts an error of an operation.
    pub fn count_error(&mut self, op: Op, errno: i32) {
        *self.errors.entry((op, errno)).or_insert(0) += 1;
    }

    /// Whether blocks with wrong data do not fail the worker.
    pub fn goes_on_after_bad_blocks(&self) -> bool {
        self.on_error.continue_verify
    }

    /// Writes that are complete, over both phases.
    pub fn writes_done(&self) -> u64 {
        let phases = self.live.ramp.iter().chain([&self.live.measured]);
        phases.map(|phase| phase.ops[Op::Write as usize].ios.get()).sum()
    }

    /// Stores why the worker ends, unless that is known.
    pub fn fail(&mut self, failure: impl FnOnce() -> WorkerFailure) {
        let (is_direct, is_host_managed) = (self.is_direct, self.is_host_managed);
        self.failure.get_or_insert_with(|| {
            let failure = failure();
            // Its remedy is that of direct I/O.
            let is_of_direct = failure.errno == EINVAL && !is_direct;
            let is_write =
                matches!(failure.cause, FailureCause::Request(FailedRequest { op: Op::Write, .. }));
            let is_of_zones = is_host_managed && is_write && failure.errno == EIO;
            let hint = match is_of_zones {
                true => Some(format!("the device is host-managed zoned: {HOST_MANAGED_HINT}")),
                false => failure.hint.filter(|_| !is_of_direct),
            };
            WorkerFailure { hint, ..failure }
        });
    }

    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Publishes the offsets in flight at `now`, if the worker is stalled.
    #[cold]
    pub fn publish_stall(&self, slots: &Slots, now: u64) {
        let last = self.live.last_completion_ns.get().max(self.idle_ns);
        if now.saturating_sub(last) >= STALL_NS {
            self.live.publish_stalled_offsets(now, slots.offsets_in_flight());
        }
    }

    /// The results besides the counters.
    pub fn into_kept(self) -> Kept {
        let has_measured = self.has_measured();
        if let Some(log) = self.log {
            let measured = &self.live.measured;
            let end = measured.ended_ns().max(self.live.last_completion_ns.get());
            log.end(end.saturating_sub(measured.start_ns.get()));
        }
        let (slowest, silences) = match has_measured {
            true => (self.slowest.into_vec(), self.silences),
            false => Default::default(),
        };
        Kept { errors: self.errors, slowest, silences, failure: self.failure }
    }
}
