//! Conditions that a worker checks at intervals, when its schedule says so: the bytes of a ramp, least rates, and the
//! queue depth for a latency. Nothing is checked per request.

use fathom_engine::Engine;
use fathom_model::plan::DepthPlan;
use fathom_stats::live::LivePhase;
use fathom_stats::{LatencyOutcome, WorkerFailure};

use super::depth_search::{DepthSearch, Verdict};
use super::rate_floor::{Counts, RateFloor};
use super::{Collects, Worker};
use crate::clock::Clock;
use crate::schedule::RampEnd;
use crate::worker::WorkerSpec;

/// Time between two looks at the bytes of a ramp, ns.
const RAMP_LOOK_NS: u64 = 1_000_000;

/// The conditions of a worker.
pub(super) struct Checks {
    floor: Option<RateFloor>,
    ramp: Option<RampOfBytes>,
    search: Option<Search>,
}

/// A ramp that ends after some bytes.
struct RampOfBytes {
    bytes: u64,
    /// Its least time, ns.
    least_ns: u64,
    ends_from: u64,
    at: u64,
}

/// A search for a queue depth, and its windows.
struct Search {
    depths: DepthSearch,
    plan: DepthPlan,
    /// How requests are drawn at each depth.
    collects: Collects,
    /// The end of the window, session ns; `u64::MAX` before the search begins and after its end.
    at: u64,
    /// Requests, and slow ones, at the beginning of the window; `None` while the queue is too long.
    before: Option<(u64, u64)>,
    /// The depth is found, and measured next.
    is_found: bool,
}

impl Checks {
    /// The conditions of `spec`; `None` without any.
    pub fn new(spec: &WorkerSpec, collects: Collects) -> Option<Box<Checks>> {
        let target = spec.end.latency_target;
        let checks = Checks {
            floor: RateFloor::new(&spec.end.least_rates, spec.issued()),
            ramp: (spec.time.ramp_bytes > 0).then_some(RampOfBytes {
                bytes: spec.time.ramp_bytes,
                least_ns: spec.time.ramp.0,
                ends_from: 0,
                at: u64::MAX,
            }),
            search: (target.target.0 > 0).then(|| Search {
                depths: DepthSearch::new(target, spec.depth.iodepth),
                plan: spec.depth,
                collects,
                at: u64::MAX,
                before: None,
                is_found: false,
            }),
        };
        let is_any = checks.floor.is_some() || checks.ramp.is_some() || checks.search.is_some();
        is_any.then(|| Box::new(checks))
    }

    /// The time of the next check.
    fn next_at(&self) -> u64 {
        let of_floor = self.floor.as_ref().map_or(u64::MAX, |floor| floor.at);
        let of_ramp = self.ramp.as_ref().map_or(u64::MAX, |ramp| ramp.at);
        of_floor.min(of_ramp).min(self.search.as_ref().map_or(u64::MAX, |search| search.at))
    }

    /// The result of the search for a queue depth.
    pub fn latency(&self) -> Option<LatencyOutcome> {
        let depths = &self.search.as_ref()?.depths;
        Some(LatencyOutcome { target: depths.target, depth: depths.depth })
    }
}

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// The ramp begins.
    pub(super) fn begin_checks_of_ramp(&mut self) {
        let now = self.now;
        let Some(checks) = &mut self.checks else { return };
        match (&mut checks.ramp, &mut checks.search) {
            (Some(ramp), _) => {
                (ramp.ends_from, ramp.at) = (now.saturating_add(ramp.least_ns), now + RAMP_LOOK_NS);
            }
            (None, Some(search)) if self.schedule.ramp_end() == RampEnd::Search => {
                search.at = now.saturating_add(self.schedule.ramp_ns());
            }
            _ => {}
        }
        self.arm();
    }

    /// The measured part begins.
    pub(super) fn begin_checks(&mut self) {
        let now = self.now;
        let Some(checks) = &mut self.checks else { return };
        if let Some(floor) = &mut checks.floor {
            floor.begin(now);
        }
        if let Some(search) = checks.search.as_mut().filter(|search| search.depths.target.run) {
            search.at = now;
        }
        self.arm();
    }

    /// Sets the time of the next check, or makes it if that is now.
    fn arm(&mut self) {
        let next_at = self.checks.as_ref().map_or(u64::MAX, |checks| checks.next_at());
        if next_at <= self.now {
            return self.run_checks();
        }
        self.schedule.check_at(next_at);
    }

    /// Makes the checks that are due.
    #[cold]
    pub(super) fn run_checks(&mut self) {
        let Some(mut checks) = self.checks.take() else { return };
        let now = self.now;
        let completed_at = self.recorder.live.last_completion_ns.get();
        if checks.ramp.as_ref().is_some_and(|ramp| now >= ramp.at) {
            self.check_ramp(&mut checks);
        }
        if let Some(floor) = checks.floor.as_mut().filter(|floor| now >= floor.at) {
            if self.feed.is_reading_back_a_pass() {
                floor.skip(now);
            } else if let Some(failure) = floor.check(now, completed_at, counts(&self.recorder.live.measured))
            {
                self.fail_condition(failure);
            }
        }
        if checks.search.as_ref().is_some_and(|search| now >= search.at) {
            self.check_search(&mut checks);
        }
        self.schedule.check_at(checks.next_at());
        self.checks = Some(checks);
    }

    fn fail_condition(&mut self, failure: WorkerFailure) {
        self.end_schedule(self.now);
        self.schedule.drain();
        self.recorder.fail(|| failure);
    }

    /// Ends the ramp if its bytes are moved.
    fn check_ramp(&mut self, checks: &mut Checks) {
        let Some(ramp) = &mut checks.ramp else { return };
        let moved: u64 = counts(self.recorder.phase()).iter().map(|(_, bytes)| bytes).sum();
        if moved < ramp.bytes || self.now < ramp.ends_from {
            ramp.at = self.now + RAMP_LOOK_NS;
            return;
        }
        ramp.at = u64::MAX;
        match &mut checks.search {
            Some(search) if !search.depths.target.run => search.at = self.now,
            _ => self.measure(checks, None),
        }
    }

    /// Begins the measured part before the schedule does.
    fn measure(&mut self, checks: &mut Checks, length_ns: Option<u64>) {
        self.usage.end_ramp();
        self.recorder.begin_measured(self.now);
        self.schedule.measure(self.now, length_ns);
        if let Some(floor) = &mut checks.floor {
            floor.begin(self.now);
        }
        if let Some(search) = checks.search.as_mut().filter(|search| search.depths.target.run) {
            search.at = self.now + 1;
        }
    }

    /// Begins a window at a queue depth, or ends it and judges the depth.
    fn check_search(&mut self, checks: &mut Checks) {
        let Some(search) = &mut checks.search else { return };
        let ios: u64 = counts(self.recorder.phase()).iter().map(|(ios, _)| ios).sum();
        let slow = self.recorder.slow_ios;
        let verdict = match search.before {
            Some((ios_before, slow_before)) => search.depths.judge(ios - ios_before, slow - slow_before),
            None => Verdict::Try(search.depths.depth),
        };
        search.is_found |= matches!(verdict, Verdict::Found(_));
        let (Verdict::Try(depth) | Verdict::Found(depth)) = verdict else {
            (search.before, search.at) = (Some((ios, slow)), self.window_end(search.depths.target.window.0));
            return;
        };
        let is_settling = depth < self.batching.plan.iodepth || self.collects == Collects::Settling;
        let is_idle = self.slots.in_flight == 0 && self.slots.batch.is_empty();
        if !self.slots.limit(depth) || is_settling && !is_idle {
            // Requests of the longer queue would be slow in the window of the shorter one.
            (search.before, search.at) = (None, u64::MAX);
            self.collects = Collects::Settling;
            self.batching.hold_until_idle();
            return;
        }
        self.collects = search.collects;
        self.batching.adopt(&search.plan, depth);
        let window_ns = search.depths.target.window.0;
        (search.before, search.at) = (Some((ios, slow)), self.window_end(window_ns));
        if search.is_found {
            search.at = u64::MAX;
            self.measure(checks, Some(window_ns));
        }
    }

    /// Draws nothing until the queue is empty, when requests of a smaller depth begin. True, because the work goes on.
    #[cold]
    pub(super) fn settle(&mut self) -> bool {
        if let Some(mut checks) = self.checks.take() {
            self.check_search(&mut checks);
            self.schedule.check_at(checks.next_at());
            self.checks = Some(checks);
        }
        true
    }

    fn window_end(&self, window_ns: u64) -> u64 {
        self.now.saturating_add(window_ns.max(1))
    }
}

fn counts(phase: &LivePhase) -> Counts {
    phase.ops.each_ref().map(|op| (op.ios.get(), op.bytes.get()))
}
