//! A running volume: each request returns its completion time when it is made.
//!
//! The completion time never changes, because later requests are behind in every queue. So a simulated run needs no
//! events inside the volume, only completions.

use fathom_model::Op;

use crate::cache::Cached;
use crate::client::Issuer;
use crate::fault::FaultSchedule;
use crate::first_touch::Touched;
use crate::latency::Sampler;
use crate::limit::LimitState;
use crate::measured::Measured;
use crate::model::{ModelError, VolumeModel};
use crate::rng::VolumeRng;
use crate::servers::Servers;
use crate::stage::{LimitStage, Passage, StageRequest};

/// A request: an operation on `offset..offset + bytes` of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// The operation.
    pub op: Op,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes; 0 for sync operations.
    pub bytes: u32,
}

/// The completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeCompletion {
    /// Completion time, ns; [`u64::MAX`] = never.
    pub at_ns: u64,
    /// The result.
    pub outcome: RequestOutcome,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// Success.
    Done,
    /// Failure with this errno.
    Failed(i32),
    /// No completion: the volume has stopped responding.
    Never,
}

/// Counts of requests and their results. `issued = done + failed + never`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests issued.
    pub issued: u64,
    /// Requests that succeeded.
    pub done: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that never complete.
    pub never: u64,
    /// Bytes of successful reads.
    pub read_bytes: u64,
    /// Bytes of successful writes.
    pub written_bytes: u64,
    /// Reads that the cache served.
    pub cache_hits: u64,
    /// Requests with a first access.
    pub first_touches: u64,
}

/// The state of the limits of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageState<'a> {
    /// The stage's name.
    pub name: &'a str,
    /// Limit on I/Os; `None` = unlimited.
    pub ios: Option<LimitState>,
    /// Limit on bytes; `None` = unlimited.
    pub bytes: Option<LimitState>,
}

/// errno of a request beyond the end of the volume (EIO).
const PAST_THE_END: i32 = 5;

/// A volume and its state.
#[derive(Clone, Debug)]
pub struct Volume {
    model: VolumeModel,
    /// The beginning of the volume on the caller's clock; internally it is 0.
    origin_ns: u64,
    /// Time of the latest request.
    now: u64,
    faults: FaultSchedule,
    issuer: Option<Issuer>,
    cached: Option<Cached>,
    touched: Option<Touched>,
    shared: Vec<Passage>,
    reads: Lane,
    writes: Lane,
    measured: Option<Box<Measured>>,
    sync_latency: Sampler,
    counters: Counters,
}

/// The parts for one direction. Without limits of their own, writes share the servers of reads.
#[derive(Clone, Debug)]
struct Lane {
    passages: Vec<Passage>,
    servers: Option<Servers>,
    latency: Sampler,
}

impl Volume {
    /// A volume that begins at time 0. The same seed gives the same results for the same requests.
    pub fn new(model: &VolumeModel, seed: u64) -> Result<Self, ModelError> {
        Volume::beginning_at(model, seed, 0)
    }

    /// A volume that begins at `origin_ns` of the caller's clock: its initial credits apply then, and its faults count
    /// from there.
    pub fn beginning_at(model: &VolumeModel, seed: u64, origin_ns: u64) -> Result<Self, ModelError> {
        model.validate()?;
        let passages = |stages: &[LimitStage]| stages.iter().map(Passage::new).collect::<Vec<_>>();
        let lane = |stages, servers: bool, latency, stream| Lane {
            passages: passages(stages),
            servers: model.parallelism.filter(|_| servers).map(Servers::new),
            latency: Sampler::new(latency, VolumeRng::stream(seed, stream)),
        };
        let issuer = model.client.and_then(|client| Some(Issuer::new(client, client.limit().ok()?)));
        let is_apart = !(model.reads.is_empty() && model.writes.is_empty());
        Ok(Volume {
            origin_ns,
            now: 0,
            faults: FaultSchedule::new(&model.faults, VolumeRng::stream(seed, 1)),
            issuer,
            cached: model.cache.as_ref().map(|cache| Cached::new(cache, VolumeRng::stream(seed, 5))),
            touched: model.first_touch.map(|penalty| Touched::new(penalty, model.size_bytes)),
            shared: passages(&model.shared),
            reads: lane(&model.reads, true, &model.read_latency, 2),
            writes: lane(&model.writes, is_apart, &model.write_latency, 3),
            measured: model
                .measured
                .as_ref()
                .map(|latency| Box::new(Measured::new(latency, model, &mut VolumeRng::stream(seed, 6)))),
            sync_latency: Sampler::new(&model.sync_latency, VolumeRng::stream(seed, 4)),
            counters: Counters::default(),
            model: model.clone(),
        })
    }

    /// The completion of a request made at `now_ns`. Requests are made in the order of time; an earlier time than the
    /// last counts as the last.
    #[inline]
    pub fn submit(&mut self, now_ns: u64, request: &VolumeRequest) -> VolumeCompletion {
        self.now = now_ns.saturating_sub(self.origin_ns).max(self.now);
        self.faults.advance(self.now);
        let (at, failure) = self.answer(request);
        self.counters.issued += 1;
        if at == u64::MAX {
            self.counters.never += 1;
            return VolumeCompletion { at_ns: u64::MAX, outcome: RequestOutcome::Never };
        }
        let outcome = match failure {
            Some(errno) => {
                self.counters.failed += 1;
                RequestOutcome::Failed(errno)
            }
            None => {
                self.count_done(request);
                RequestOutcome::Done
            }
        };
        VolumeCompletion { at_ns: at.saturating_add(self.origin_ns), outcome }
    }

    /// Writes until now are on the medium before the client issues the next one, so none of them is merged with it.
    pub fn flushed(&mut self) {
        self.shared.iter_mut().chain(&mut self.writes.passages).for_each(Passage::flushed);
    }

    /// Lets time pass by on the caller's clock in which nothing changes: it is as before, later. No request may be in flight.
    pub fn skip(&mut self, span_ns: u64) {
        self.origin_ns = self.origin_ns.saturating_add(span_ns);
    }

    /// The model.
    pub fn model(&self) -> &VolumeModel {
        &self.model
    }

    /// The counts so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Transactions billed for on-demand bursts so far.
    pub fn billed_transactions(&self) -> u64 {
        let all = self.shared.iter().chain(&self.reads.passages).chain(&self.writes.passages);
        all.map(Passage::billed).sum()
    }

    /// When the last request leaves the limits, on the caller's clock: until then limits hold requests back.
    pub fn limits_busy_until_ns(&self) -> u64 {
        let all = self.shared.iter().chain(&self.reads.passages).chain(&self.writes.passages);
        all.map(Passage::last).max().unwrap_or(0).saturating_add(self.origin_ns)
    }

    /// The state of each stage at `now_ns` without further requests: shared stages, then those of reads, then those of
    /// writes. Credits exclude those allotted to waiting requests.
    pub fn stage_states(&self, now_ns: u64) -> impl Iterator<Item = StageState<'_>> {
        let at = now_ns.saturating_sub(self.origin_ns);
        let stages = self.model.shared.iter().chain(&self.model.reads).chain(&self.model.writes);
        let passages = self.shared.iter().chain(&self.reads.passages).chain(&self.writes.passages);
        stages.zip(passages).map(move |(stage, passage)| {
            let (ios, bytes) = passage.state(stage, at);
            let on_clock = |state| self.on_callers_clock(state);
            StageState { name: &stage.name, ios: ios.map(on_clock), bytes: bytes.map(on_clock) }
        })
    }

    /// The state of the client's CPU credits, in ns of CPU time; `None` if its CPU time is unlimited.
    pub fn client_state(&self, now_ns: u64) -> Option<LimitState> {
        let at = now_ns.saturating_sub(self.origin_ns);
        self.issuer.as_ref().map(|issuer| issuer.state(at))
    }

    fn on_callers_clock(&self, state: LimitState) -> LimitState {
        let on_clock = |until_ns: u64| until_ns.saturating_add(self.origin_ns);
        match state {
            LimitState::Burst { until_ns } => LimitState::Burst { until_ns: on_clock(until_ns) },
            LimitState::Rest { until_ns } => LimitState::Rest { until_ns: on_clock(until_ns) },
            steady => steady,
        }
    }

    /// Completion time on the volume's own clock, and the errno of a failure.
    #[inline]
    fn answer(&mut self, request: &VolumeRequest) -> (u64, Option<i32>) {
        let mut arrival = self.now;
        if let Some(issuer) = &mut self.issuer {
            arrival = issuer.issue(arrival, request.bytes);
        }
        arrival = self.faults.resumed(arrival);
        if request.op.is_sync() {
            self.flushed();
            let written = self.cached.as_ref().map_or(0, Cached::flushed);
            let begin = arrival.max(written);
            return (self.faults.end(begin, self.sync_latency.sample(0)), self.faults.failure(begin));
        }
        let end = request.offset.checked_add(u64::from(request.bytes));
        if end.is_none_or(|end| end > self.model.size_bytes) {
            return (arrival, Some(PAST_THE_END));
        }
        if self.cached.is_some() {
            return self.answer_cached(arrival, request);
        }
        self.answer_from_medium(arrival, request)
    }

    /// Through the cache. A request that fails behind it fails for the client too, although a cached write would have
    /// been acknowledged by then: caches that lose writes are not simulated.
    fn answer_cached(&mut self, arrival: u64, request: &VolumeRequest) -> (u64, Option<i32>) {
        let Some(cached) = &mut self.cached else { return self.answer_from_medium(arrival, request) };
        let is_hit = request.op != Op::Trim && cached.touch(request.offset, request.bytes);
        let load = StageRequest { op: request.op, offset: request.offset, bytes: request.bytes, weight: 1 };
        match request.op {
            Op::Read if is_hit && cached.is_served() => {
                self.counters.cache_hits += 1;
                let (at, latency) = cached.serve(arrival, &load, &self.faults);
                (self.faults.end(at, latency), self.faults.failure(at))
            }
            Op::Read if cached.is_sequential(request.offset) => self.answer_ahead(arrival, request),
            Op::Read => {
                cached.begin_sequence(arrival, request.offset, request.bytes);
                self.answer_from_medium(arrival, request)
            }
            Op::Write if cached.keeps_writes() => {
                let accepted = cached.accept(arrival, &load, &self.faults);
                let (written, failure) = self.answer_from_medium(arrival, request);
                let keep = |it: &mut Cached| it.keep(accepted, request.bytes, written);
                (self.faults.resumed(self.cached.as_mut().map_or(written, keep)), failure)
            }
            _ => self.answer_from_medium(arrival, request),
        }
    }

    /// A sequential read, which the host reads ahead within the limits of the volume.
    fn answer_ahead(&mut self, arrival: u64, request: &VolumeRequest) -> (u64, Option<i32>) {
        let (weight, extra_ns) = self.first_touch(arrival, request);
        let load = StageRequest { op: request.op, offset: request.offset, bytes: request.bytes, weight };
        let passages = self.shared.iter_mut().chain(&mut self.reads.passages);
        let at = passages.fold(arrival, |at, passage| passage.pass(at, &load, &self.faults));
        let ahead = |it: &mut Cached| it.read_ahead(at, request.offset, request.bytes);
        let end = self.cached.as_mut().map_or(at, ahead).saturating_add(extra_ns);
        (self.faults.resumed(end), self.faults.failure(at))
    }

    /// Through the limits to a server, including the service time.
    #[inline]
    fn answer_from_medium(&mut self, arrival: u64, request: &VolumeRequest) -> (u64, Option<i32>) {
        let (weight, extra_ns) = self.first_touch(arrival, request);
        let bytes = if request.op == Op::Trim { 0 } else { request.bytes };
        let load = StageRequest { op: request.op, offset: request.offset, bytes, weight };
        if self.measured.is_some() {
            return self.answer_as_measured(arrival, &load, extra_ns);
        }
        let mut at = arrival;
        for passage in &mut self.shared {
            at = passage.pass(at, &load, &self.faults);
        }
        let is_read = request.op == Op::Read;
        let lane = if is_read { &mut self.reads } else { &mut self.writes };
        for passage in &mut lane.passages {
            at = passage.pass(at, &load, &self.faults);
        }
        let mut latency = lane.latency.sample(bytes).saturating_add(extra_ns);
        if request.op == Op::Trim {
            latency = latency.max(self.model.least_trim_ns);
        }
        let is_apart = is_read || lane.servers.is_some();
        let servers = if is_apart { &mut lane.servers } else { &mut self.reads.servers };
        let end = match servers {
            Some(servers) => {
                at = servers.free(at);
                let end = self.faults.end(at, latency);
                servers.occupy(end);
                end
            }
            None => self.faults.end(at, latency),
        };
        (end, self.faults.failure(at))
    }

    /// With the latency that was measured for the present load.
    #[inline(never)]
    fn answer_as_measured(&mut self, arrival: u64, load: &StageRequest, extra_ns: u64) -> (u64, Option<i32>) {
        let is_read = load.op == Op::Read;
        let own = if is_read { &mut self.reads } else { &mut self.writes };
        let Some(measured) = &mut self.measured else { return (arrival, None) };
        let (latency, is_limited) = measured.latency(arrival, load, &mut self.shared, &mut own.passages);
        let least = if load.op == Op::Trim { self.model.least_trim_ns } else { 0 };
        let end = self.faults.end(arrival, latency.saturating_add(extra_ns).max(least));
        measured.keep(end, is_read, is_limited);
        if is_limited {
            for passage in self.shared.iter_mut().chain(&mut own.passages) {
                passage.held(end);
            }
        }
        (end, self.faults.failure(arrival))
    }

    /// The factor on its I/Os and the additional latency of a first access.
    #[inline]
    fn first_touch(&mut self, arrival: u64, request: &VolumeRequest) -> (u64, u64) {
        let (Some(touched), Some(penalty)) = (&mut self.touched, self.model.first_touch) else {
            return (1, 0);
        };
        if request.op == Op::Trim {
            return (1, 0);
        }
        let Some(initialized) = touched.touch(arrival, request.offset, request.bytes) else { return (1, 0) };
        self.counters.first_touches += 1;
        (u64::from(penalty.counts_as), penalty.extra_ns + (initialized - arrival))
    }

    #[inline]
    fn count_done(&mut self, request: &VolumeRequest) {
        self.counters.done += 1;
        match request.op {
            Op::Read => self.counters.read_bytes += u64::from(request.bytes),
            Op::Write => self.counters.written_bytes += u64::from(request.bytes),
            Op::Trim | Op::Sync | Op::Datasync => {}
        }
    }
}
