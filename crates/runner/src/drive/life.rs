//! The life of a worker: construction, start, stages, and results.

use std::sync::Arc;

use fathom_engine::Engine;
use fathom_model::Nanos;
use fathom_stats::live::LiveWorker;
use fathom_stats::{CpuUsage, WorkerFailure};

use super::apart::Apart;
use super::checks::Checks;
use super::{Collects, Step, Turn, Worker};
use crate::batching::Batching;
use crate::clock::Clock;
use crate::feed::Feed;
use crate::filler::Filler;
use crate::recorder::{Kept, Recorder};
use crate::schedule::{Schedule, Stage};
use crate::slots::Slots;
use crate::stop::StopSignal;
use crate::usage::Usage;
use crate::verifier::Verifier;
use crate::worker::{WorkerEnd, WorkerSpec};

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// A worker ready to start, with all memory allocated. `watch` is its stop signal, and the function that returns
    /// the CPU time of its thread.
    pub fn new(
        spec: &WorkerSpec,
        mut engine: Box<E>,
        clock: C,
        live: Arc<LiveWorker>,
        watch: (StopSignal, fn() -> CpuUsage),
    ) -> Self {
        Filler::fill_buffers(spec, engine.as_mut());
        let is_synchronous = spec.recorded.is_synchronous
            && !spec.recorded.scheduled
            && spec.verify.is_none()
            && spec.replay.is_none();
        let collects = match () {
            () if spec.recorded.scheduled || spec.replay.is_some() => Collects::Arrivals,
            () if spec.serialize_overlap => Collects::Apart,
            () => Collects::Closed,
        };
        Worker {
            clock,
            engine,
            collects,
            turn: if is_synchronous { Turn::Synchronous } else { Turn::Common },
            now: 0,
            schedule: Schedule::new(&spec.time, spec.ramp_end(), u64::MAX),
            stop: watch.0,
            feed: Feed::new(spec),
            filler: Filler::new(spec),
            slots: Slots::new(spec.depth.iodepth),
            batching: Batching::new(spec.depth),
            recorder: Recorder::new(spec, live),
            usage: Usage::new(watch.1),
            verifier: Verifier::new(spec),
            verifies_only: spec.verify.as_ref().is_some_and(|verify| verify.plan.only),
            apart: Apart::new(spec.depth.iodepth),
            checks: Checks::new(spec, collects),
        }
    }

    /// Starts the worker; its start delay counts from now.
    pub fn start(&mut self, spec: &WorkerSpec) {
        self.wake();
        let start_at = self.now.saturating_add(spec.start_delay_ns());
        self.schedule = Schedule::new(&spec.time, spec.ramp_end(), start_at);
    }

    /// Enters the stage that is due, if any. `Some` if the worker has to wait for it.
    #[cold]
    pub(super) fn change_stage(&mut self) -> Option<Step> {
        if self.stop.is_set() {
            if self.schedule.is_issuing() {
                self.end_schedule(self.now);
            }
            self.schedule.drain();
            return None;
        }
        if let Some(start) = self.schedule.delayed_until(self.now) {
            return Some(Step::BlockedUntil(Nanos(start)));
        }
        if self.now >= self.schedule.check_at {
            self.run_checks();
        }
        if self.now < self.schedule.stage_change {
            return None;
        }
        let (before, due) = (self.schedule.stage, self.schedule.stage_change);
        match self.schedule.advance(self.now) {
            Stage::Ramp => {
                self.usage.begin();
                self.recorder.begin_ramp(self.now);
                self.begin_checks_of_ramp();
            }
            Stage::Measuring => {
                if before == Stage::Ramp {
                    self.usage.end_ramp();
                } else {
                    self.usage.begin();
                }
                self.recorder.begin_measured(self.now);
                self.begin_checks();
            }
            Stage::Draining => self.end_schedule(due),
            Stage::Delayed | Stage::Closing => {}
        }
        if before == Stage::Delayed {
            self.feed.begin(self.now);
            self.recorder.begin_responses(self.now);
        }
        None
    }

    /// Ends the schedule of requests at `end`, if there is one and it is measured.
    pub(super) fn end_schedule(&mut self, end: u64) {
        if self.recorder.has_measured()
            && let Some(backlog) = self.feed.backlog(end)
        {
            self.recorder.end_schedule(end, backlog);
        }
    }

    /// Whether the worker has failed.
    pub fn has_failed(&self) -> bool {
        self.recorder.has_failed()
    }

    /// Stores why the worker ends, unless that is known.
    pub fn fail(&mut self, failure: WorkerFailure) {
        self.recorder.fail(|| failure);
    }

    /// The results after it has finished or failed.
    ///
    /// CPU usage before the start is excluded; a ramp without a measured part keeps its own.
    pub fn into_end(mut self) -> WorkerEnd {
        self.feed.end(self.now);
        let (of_ramp, last) = self.usage.end();
        let (usage_of_ramp, usage) = match () {
            () if self.recorder.has_measured() => (of_ramp, last),
            () if self.recorder.has_begun() => (last, CpuUsage::default()),
            () => Default::default(),
        };
        let verified = self.verifier.map(|verifier| verifier.outcome());
        let latency = self.checks.as_ref().and_then(|checks| checks.latency());
        let Kept { errors, slowest, silences, failure } = self.recorder.into_kept();
        WorkerEnd { usage, usage_of_ramp, slowest, silences, errors, failure, verified, latency }
    }
}
