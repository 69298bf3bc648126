//! A volume at work: each request is answered with the instant at which it will be complete.
//!
//! The answer is given when the request is made and never changes: whatever comes later stands behind it, in every queue. So a
//! simulated run needs no events inside the volume, only the completions.

use fathom_model::Op;

use crate::cache::Cached;
use crate::client::Issuer;
use crate::fault::FaultSchedule;
use crate::first_touch::Touched;
use crate::latency::Sampler;
use crate::limit::Standing;
use crate::model::{ModelError, VolumeModel};
use crate::rng::VolumeRng;
use crate::servers::Servers;
use crate::stage::{LimitStage, Passage, StageRequest};

/// A request: an operation on `offset..offset + bytes` of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// What to do.
    pub op: Op,
    /// Where, in bytes.
    pub offset: u64,
    /// How much; 0 for sync operations.
    pub bytes: u32,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeCompletion {
    /// When it is complete, ns; [`u64::MAX`] where that is never.
    pub at_ns: u64,
    /// How it ends.
    pub outcome: RequestOutcome,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// As it should.
    Done,
    /// With this errno.
    Failed(i32),
    /// Not at all: the volume has fallen silent.
    Never,
}

/// What was asked of a volume and what became of it. `issued = done + failed + never`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests.
    pub issued: u64,
    /// Those that ended as they should.
    pub done: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that never end.
    pub never: u64,
    /// Bytes read by those that are done.
    pub read_bytes: u64,
    /// Bytes written by those that are done.
    pub written_bytes: u64,
    /// Reads that the cache served.
    pub cache_hits: u64,
    /// Requests that touched something for the first time.
    pub first_touches: u64,
}

/// What one stage's limits stand at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageStanding<'a> {
    /// The stage's name.
    pub name: &'a str,
    /// On I/Os; `None` = no limit.
    pub ios: Option<Standing>,
    /// On bytes; `None` = no limit.
    pub bytes: Option<Standing>,
}

/// errno of a request that reaches past the end.
const PAST_THE_END: i32 = 5;

/// See the module.
#[derive(Clone, Debug)]
pub struct Volume {
    model: VolumeModel,
    /// The instant on the caller's clock at which the volume begins; inside, it is 0.
    origin_ns: u64,
    /// The latest instant at which something was asked.
    now: u64,
    faults: FaultSchedule,
    issuer: Option<Issuer>,
    cached: Option<Cached>,
    touched: Option<Touched>,
    shared: Vec<Passage>,
    reads: Lane,
    writes: Lane,
    sync_latency: Sampler,
    counters: Counters,
}

/// What one direction passes by itself. Without limits of its own it shares the servers, which then are those of reads.
#[derive(Clone, Debug)]
struct Lane {
    passages: Vec<Passage>,
    servers: Option<Servers>,
    latency: Sampler,
}

impl Volume {
    /// A volume that begins at the instant 0. The same seed gives the same answers to the same requests.
    pub fn new(model: &VolumeModel, seed: u64) -> Result<Self, ModelError> {
        Volume::beginning_at(model, seed, 0)
    }

    /// A volume that begins at an instant of the caller's clock: its credit is what it was given then, and its
    /// faults count from there.
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
            cached: model.cache.map(Cached::new),
            touched: model.first_touch.map(|touch| Touched::new(touch.chunk_bytes)),
            shared: passages(&model.shared),
            reads: lane(&model.reads, true, &model.read_latency, 2),
            writes: lane(&model.writes, is_apart, &model.write_latency, 3),
            sync_latency: Sampler::new(&model.sync_latency, VolumeRng::stream(seed, 4)),
            counters: Counters::default(),
            model: model.clone(),
        })
    }

    /// What becomes of a request made at `now_ns`. Requests are made in the order of time; an earlier instant than the
    /// last one counts as that one.
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

    /// What it is made of.
    pub fn model(&self) -> &VolumeModel {
        &self.model
    }

    /// What was asked so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Transactions to be paid for bursts on demand so far.
    pub fn billed_transactions(&self) -> u64 {
        let all = self.shared.iter().chain(&self.reads.passages).chain(&self.writes.passages);
        all.map(Passage::billed).sum()
    }

    /// What each stage stands at, at `now_ns`, if nothing more is asked: shared ones, then reads', then writes'. Credit
    /// counts what has been promised to requests that still wait as spent.
    pub fn standings(&self, now_ns: u64) -> impl Iterator<Item = StageStanding<'_>> {
        let at = now_ns.saturating_sub(self.origin_ns);
        let stages = self.model.shared.iter().chain(&self.model.reads).chain(&self.model.writes);
        let passages = self.shared.iter().chain(&self.reads.passages).chain(&self.writes.passages);
        stages.zip(passages).map(move |(stage, passage)| {
            let (ios, bytes) = passage.standing(stage, at);
            let on_clock = |standing| self.on_callers_clock(standing);
            StageStanding { name: &stage.name, ios: ios.map(on_clock), bytes: bytes.map(on_clock) }
        })
    }

    /// What the client's CPU credit stands at, in ns of CPU time; `None` where its CPU time is not counted.
    pub fn client_standing(&self, now_ns: u64) -> Option<Standing> {
        let at = now_ns.saturating_sub(self.origin_ns);
        self.issuer.as_ref().map(|issuer| issuer.standing(at))
    }

    fn on_callers_clock(&self, standing: Standing) -> Standing {
        let on_clock = |until_ns: u64| until_ns.saturating_add(self.origin_ns);
        match standing {
            Standing::Burst { until_ns } => Standing::Burst { until_ns: on_clock(until_ns) },
            Standing::Rest { until_ns } => Standing::Rest { until_ns: on_clock(until_ns) },
            steady => steady,
        }
    }

    /// When the request is complete, on the volume's own clock, and its errno if it fails.
    #[inline]
    fn answer(&mut self, request: &VolumeRequest) -> (u64, Option<i32>) {
        let mut arrival = self.now;
        if let Some(issuer) = &mut self.issuer {
            arrival = issuer.issue(arrival, request.bytes);
        }
        arrival = self.faults.resumed(arrival);
        if request.op.is_sync() {
            let written = self.cached.as_ref().map_or(0, Cached::written);
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

    /// With a cache in front. A request that fails behind it fails for the client too, though a write that is kept
    /// has been acknowledged by then: a cache that loses writes is nothing to model.
    fn answer_cached(&mut self, arrival: u64, request: &VolumeRequest) -> (u64, Option<i32>) {
        let Some(cached) = &mut self.cached else { return self.answer_from_medium(arrival, request) };
        let is_hit = request.op != Op::Trim && cached.touch(request.offset, request.bytes);
        let (latency, keeps) = (cached.latency_ns(), cached.keeps_writes());
        match request.op {
            Op::Read if is_hit => {
                self.counters.cache_hits += 1;
                (self.faults.end(arrival, latency), self.faults.failure(arrival))
            }
            Op::Write if keeps => {
                let (written, failure) = self.answer_from_medium(arrival, request);
                let kept =
                    self.cached.as_mut().map_or(written, |it| it.keep(arrival, request.bytes, written));
                (self.faults.resumed(kept), failure)
            }
            _ => self.answer_from_medium(arrival, request),
        }
    }

    /// Through the limits to a server, and what it takes there.
    #[inline]
    fn answer_from_medium(&mut self, arrival: u64, request: &VolumeRequest) -> (u64, Option<i32>) {
        let (weight, extra_ns) = self.first_touch(request);
        let bytes = if request.op == Op::Trim { 0 } else { request.bytes };
        let load = StageRequest { op: request.op, offset: request.offset, bytes, weight };
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

    /// How many times its I/Os count, and what it takes longer.
    #[inline]
    fn first_touch(&mut self, request: &VolumeRequest) -> (u64, u64) {
        let (Some(touched), Some(penalty)) = (&mut self.touched, self.model.first_touch) else {
            return (1, 0);
        };
        if request.op == Op::Trim || !touched.touch(request.offset, request.bytes) {
            return (1, 0);
        }
        self.counters.first_touches += 1;
        (u64::from(penalty.counts_as), penalty.extra_ns)
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
