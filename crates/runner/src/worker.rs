//! One worker from its specification: opened engine, source, counters, and the thread it runs on.

use std::collections::VecDeque;
use std::sync::Arc;

use fathom_engine::{Engine, EngineEntry, EngineSetup};
use fathom_model::plan::{DepthPlan, Mix, OnError, Payload, TimePlan};
use fathom_model::{Op, Request};
use fathom_stats::live::{LiveWorker, Recorded};
use fathom_stats::{CpuUsage, DATA_OPS};
use fathom_workload::{Rng, Source, SourcePlan, payload};

use crate::clock::Clock;
use crate::drive::Worker;
use crate::paced::OpenLoop;
use crate::pacer::Pacer;
use crate::schedule::Schedule;
use crate::slots::{Slots, room};
use crate::slowest::Slowest;
use crate::stop::StopSignal;
use crate::synchronous::AHEAD;

/// Everything a worker is made from. Plain data, so it can be made on one thread and run on another.
pub(crate) struct WorkerSpec {
    pub job: usize,
    pub clone: usize,
    pub name: String,
    pub entry: &'static EngineEntry,
    pub setup: EngineSetup,
    pub source: SourcePlan,
    pub payload: Payload,
    pub depth: DepthPlan,
    pub time: TimePlan,
    pub on_error: OnError,
    pub cpus: Vec<usize>,
    pub recorded: Recorded,
    pub used: [bool; DATA_OPS],
    /// Drop the files' cached pages before the start.
    pub invalidate: bool,
    pub end_fsync: bool,
    pub exit_all: bool,
}

impl WorkerSpec {
    /// Whether the requests of a mixed job are ever of `op`.
    pub fn mixes(&self, op: Op) -> bool {
        match (self.source.pattern.mix, op) {
            (Mix::ReadWrite { read_percent }, Op::Read) => read_percent > 0,
            (Mix::ReadWrite { read_percent }, Op::Write) => read_percent < 100,
            _ => false,
        }
    }

    /// The counters of this worker.
    pub fn live(&self) -> Arc<LiveWorker> {
        Arc::new(LiveWorker::new(self.recorded, self.used, self.time.ramp.0 > 0))
    }

    /// Delay before the first request, ns: drawn evenly from the planned range by the worker's seed.
    pub fn start_delay_ns(&self) -> u64 {
        let (low, high) = self.time.start_delay;
        let span = high.0.saturating_sub(low.0);
        low.0 + if span == 0 { 0 } else { Rng::stream(self.source.seed, 3).below(span.saturating_add(1)) }
    }
}

/// Fills what writes carry.
pub(crate) struct Filler {
    way: Filling,
    /// What a buffer gets back after a read has used it; empty where none does.
    prepared: Vec<u8>,
}

enum Filling {
    /// Prepared bytes with a stamp per sector.
    Stamp(payload::BlockStamp),
    /// Fresh random bytes.
    Refill(Rng),
    /// What the buffer holds already.
    Keep,
}

impl Filler {
    fn new(spec: &WorkerSpec) -> Self {
        let (pattern, seed) = (spec.source.pattern, spec.source.seed);
        let way = match spec.payload {
            Payload::Stamped => Filling::Stamp(payload::BlockStamp::new(seed)),
            Payload::Refill => Filling::Refill(Rng::stream(seed, 4)),
            Payload::Fixed | Payload::Zero => Filling::Keep,
        };
        let spoilt = pattern.reads() && pattern.writes() && spec.payload != Payload::Refill;
        let mut prepared = vec![0; if spoilt { spec.setup.max_block } else { 0 }];
        if spec.payload != Payload::Zero {
            payload::fill_random(&mut prepared, &mut Rng::stream(seed, 6));
        }
        Filler { way, prepared }
    }

    /// Fills what a write carries in the buffer of its slot; other requests carry nothing.
    #[inline]
    pub fn prepare<E>(&mut self, engine: &mut E, slot: u32, request: &Request, was_read: bool)
    where
        E: Engine + ?Sized,
    {
        if request.op == Op::Write {
            let payload = engine.payload(slot);
            let len = payload.len().min(request.len as usize);
            self.fill(&mut payload[..len], was_read);
        }
    }

    /// Fills a buffer; `was_read` where what was prepared in it may have given way to what was read.
    #[inline]
    fn fill(&mut self, buffer: &mut [u8], was_read: bool) {
        if was_read && let Some(prepared) = self.prepared.get(..buffer.len()) {
            buffer.copy_from_slice(prepared);
        }
        match &mut self.way {
            Filling::Stamp(stamp) => stamp.apply(buffer),
            Filling::Refill(rng) => payload::fill_random(buffer, rng),
            Filling::Keep => {}
        }
    }
}

/// What a worker leaves behind besides its counters.
#[derive(Clone)]
pub(crate) struct WorkerEnd {
    pub errors: std::collections::BTreeMap<(&'static str, i32), u64>,
    pub slowest: Vec<fathom_stats::SlowRequest>,
    pub failure: Option<fathom_stats::WorkerFailure>,
    pub usage_of_ramp: CpuUsage,
    pub usage: CpuUsage,
}

/// A worker ready to be started; everything it needs is allocated.
pub(crate) fn build<C: Clock, E: Engine + ?Sized>(
    spec: &WorkerSpec,
    mut engine: Box<E>,
    clock: C,
    live: Arc<LiveWorker>,
    watch: (StopSignal, fn() -> CpuUsage),
) -> Worker<C, E> {
    let depth = spec.depth.iodepth;
    if spec.source.pattern.writes() && spec.payload != Payload::Zero {
        let mut rng = Rng::stream(spec.source.seed, 5);
        (0..depth).for_each(|slot| payload::fill_random(engine.payload(slot), &mut rng));
    }
    let final_syncs = if spec.end_fsync { 0..spec.setup.files.len() as u32 } else { 0..0 };
    Worker {
        source: Source::new(&spec.source),
        filler: Filler::new(spec),
        engine,
        live,
        depth: spec.depth,
        on_error: spec.on_error,
        schedule: Schedule::new(&spec.time, u64::MAX),
        pacer: Pacer::new(&spec.time),
        open_loop: OpenLoop::new(spec),
        stop: watch.0,
        final_syncs: final_syncs.map(|file| Request { op: Op::Sync, file, len: 0, offset: 0 }).collect(),
        closing: false,
        at_once: spec.recorded.at_once && !spec.recorded.scheduled,
        ahead: VecDeque::with_capacity(if spec.recorded.at_once { AHEAD as usize } else { 0 }),
        slots: Slots::new(depth),
        slowest: Slowest::default(),
        now: 0,
        batch_limit: spec.depth.batch_submit,
        batch: Vec::with_capacity(room(depth)),
        accepted: Vec::with_capacity(room(depth)),
        done: Vec::with_capacity(room(depth)),
        in_flight: 0,
        owed: 0,
        any_short: false,
        filling: true,
        measuring: false,
        errors: Default::default(),
        failure: None,
        usage: watch.1,
        usage_at_start: CpuUsage::default(),
        usage_of_ramp: CpuUsage::default(),
        clock,
    }
}

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// Starts it now; its start delay counts from here.
    pub fn start(&mut self, spec: &WorkerSpec) {
        self.wake();
        self.schedule = Schedule::new(&spec.time, self.now.saturating_add(spec.start_delay_ns()));
    }

    /// What remains when it has finished or failed.
    ///
    /// What was used before anything began is nobody's; a ramp that was never followed by measuring keeps its own.
    pub fn into_end(self) -> WorkerEnd {
        let begun = self.measuring || self.live.ramp.as_ref().is_some_and(|ramp| ramp.start_ns.get() != 0);
        let last = if begun { (self.usage)().since(&self.usage_at_start) } else { CpuUsage::default() };
        let (usage_of_ramp, usage, slowest) = if self.measuring {
            (self.usage_of_ramp, last, self.slowest.into_vec())
        } else {
            (last, CpuUsage::default(), Vec::new())
        };
        WorkerEnd { usage, usage_of_ramp, slowest, errors: self.errors, failure: self.failure }
    }
}
