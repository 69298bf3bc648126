//! Steady states that end jobs (`steadystate`): samples of the workers' counters, taken by the observer.

use std::sync::Arc;

use fathom_model::plan::{SteadyFigure, SteadyStatePlan};
use fathom_stats::SteadyOutcome;
use fathom_stats::live::LiveWorker;

use crate::observe::TICK_NS;
use crate::stop::StopHandle;

/// The reason of a stop.
const STEADY: &str = "the steady state is attained";

/// Requests, bytes and the sum of latencies.
type Totals = [u64; 3];

/// The workers that are judged together.
#[derive(Clone)]
struct Unit {
    plan: SteadyStatePlan,
    /// Its reporting group, if that is reported as one.
    group: Option<u32>,
    workers: Vec<usize>,
    members: Vec<(Arc<LiveWorker>, StopHandle)>,
    /// When the next sample ends, session ns, or the first one begins.
    next: u64,
    /// The last reading and its time.
    last: Option<(u64, Totals)>,
    outcome: SteadyOutcome,
}

/// The steady states of a phase.
#[derive(Clone, Default)]
pub(crate) struct SteadyWatch {
    units: Vec<Unit>,
}

impl SteadyWatch {
    /// Adds a worker, the one with this index. It is judged together with those of its `group`, if that is given.
    pub fn add(
        &mut self,
        plan: &SteadyStatePlan,
        group: Option<u32>,
        index: usize,
        member: (Arc<LiveWorker>, StopHandle),
    ) {
        if plan.duration.0 == 0 {
            return;
        }
        let known = self.units.iter_mut().find(|unit| group.is_some() && unit.group == group);
        if let Some(unit) = known {
            unit.workers.push(index);
            unit.members.push(member);
            return;
        }
        self.units.push(Unit {
            plan: *plan,
            group,
            workers: vec![index],
            members: vec![member],
            next: 0,
            last: None,
            outcome: SteadyOutcome { plan: *plan, ..SteadyOutcome::default() },
        });
    }

    /// Takes the samples that are due at `now` and ends the workers whose state is steady.
    pub fn tick(&mut self, now: u64) {
        self.units.iter_mut().for_each(|unit| unit.tick(now));
    }

    /// The result for the worker with this index.
    pub fn outcome(&self, index: usize) -> Option<SteadyOutcome> {
        self.units.iter().find(|unit| unit.workers.contains(&index)).map(|unit| unit.outcome.clone())
    }
}

impl Unit {
    fn tick(&mut self, now: u64) {
        let started = self.members.iter().map(|(live, _)| live.measured.start_ns.get()).max().unwrap_or(0);
        let is_running = self.members.iter().any(|(live, _)| live.measured.ended_ns() == 0);
        if self.outcome.attained || started == 0 || !is_running {
            return;
        }
        if self.next == 0 && self.plan.ramp.0 == 0 {
            // Nothing has completed at the start.
            (self.last, self.next) = (Some((started, [0; 3])), started.saturating_add(self.plan.interval.0));
        }
        // Ticks may be early by the time that workers take to start.
        let due = now + TICK_NS / 10;
        let next = if self.next == 0 { started.saturating_add(self.plan.ramp.0) } else { self.next };
        if due < next {
            return;
        }
        self.next = next.max(now).saturating_add(self.plan.interval.0);
        let totals = self.totals();
        if let Some((since, before)) = self.last.replace((now, totals)) {
            self.sample(now.saturating_sub(since).max(1), totals, before);
        }
    }

    /// Adds a sample of `span_ns` and judges a full window.
    fn sample(&mut self, span_ns: u64, after: Totals, before: Totals) {
        let [ios, bytes, latency_ns]: Totals = std::array::from_fn(|index| after[index] - before[index]);
        let per_second = |count: u64| (u128::from(count) * 1_000_000_000 / u128::from(span_ns)) as u64;
        let most = self.plan.samples();
        let outcome = &mut self.outcome;
        push(&mut outcome.iops, per_second(ios), most);
        push(&mut outcome.bandwidth, per_second(bytes), most);
        if self.plan.figure == SteadyFigure::Lat {
            push(&mut outcome.latency_ns, latency_ns.checked_div(ios).unwrap_or(0), most);
        }
        if outcome.iops.len() < most {
            return;
        }
        outcome.judge();
        if outcome.attained {
            self.members.iter().for_each(|(_, stop)| stop.request(STEADY));
        }
    }

    fn totals(&self) -> Totals {
        let ops = self.members.iter().flat_map(|(live, _)| &live.measured.ops);
        ops.fold([0; 3], |[ios, bytes, latency_ns], op| {
            let latency = op.lat.as_ref().or(op.clat.as_ref());
            let sum_ns = latency.map_or(0, |latency| latency.sum());
            [ios + op.ios.get(), bytes + op.bytes.get(), latency_ns + sum_ns]
        })
    }
}

/// Adds a sample to a window of `most`, without the oldest one if it is full.
fn push(window: &mut Vec<u64>, sample: u64, most: usize) {
    if window.len() >= most {
        window.remove(0);
    }
    window.push(sample);
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;
    use fathom_stats::live::Recorded;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn plan(figure: SteadyFigure, limit: f64) -> SteadyStatePlan {
        SteadyStatePlan {
            figure,
            slope: false,
            limit,
            percent: true,
            duration: Nanos::from_secs(3),
            ramp: Nanos::from_secs(2),
            interval: Nanos::from_secs(1),
        }
    }

    fn worker() -> (Arc<LiveWorker>, StopHandle) {
        let recorded = Recorded { clat: true, ..Recorded::default() };
        let live = LiveWorker::new(recorded, [true; 3], false);
        live.measured.start_ns.set(100_000);
        (Arc::new(live), StopHandle::default())
    }

    #[test]
    fn a_window_of_even_samples_after_the_ramp_ends_the_worker() {
        let mut watch = SteadyWatch::default();
        let (live, stop) = worker();
        watch.add(&plan(SteadyFigure::Iops, 5.0), None, 0, (live.clone(), stop.clone()));
        // Uneven at first; even from second 6 on.
        let rates = [9, 900, 100, 200, 100, 100, 100, 100, 100];
        let mut ended = None;
        for (second, rate) in rates.into_iter().enumerate() {
            live.measured.ops[0].complete(rate, 4096, 1_000, 1_000);
            watch.tick((second as u64 + 1) * SECOND - SECOND / 2);
            watch.tick((second as u64 + 1) * SECOND);
            if stop.is_requested() {
                ended.get_or_insert(second + 1);
            }
        }
        let outcome = watch.outcome(0).expect("it is watched");
        assert_eq!((ended, outcome.iops.as_slice()), (Some(7), [100; 3].as_slice()));
        assert_eq!(outcome.bandwidth, [409_600; 3]);
        assert!(outcome.attained && outcome.latency_ns.is_empty());
    }

    #[test]
    fn workers_of_a_group_that_is_reported_as_one_are_judged_together() {
        let mut watch = SteadyWatch::default();
        let workers = [worker(), worker(), worker()];
        for (index, worker) in workers.iter().enumerate() {
            let group = if index < 2 { Some(4) } else { None };
            watch.add(&plan(SteadyFigure::Lat, 5.0), group, index, worker.clone());
        }
        watch.add(&SteadyStatePlan::default(), None, 3, worker());
        for second in 1..=5 {
            for (index, (live, _)) in workers.iter().enumerate() {
                // The two compensate each other; the third worker alternates.
                let ns = if (index as u64 + second).is_multiple_of(2) { 1_000 } else { 3_000 };
                live.measured.ops[1].complete(10, 4096, ns, ns);
            }
            watch.tick(second * SECOND);
        }
        let stopped = workers.each_ref().map(|(_, stop)| stop.is_requested());
        assert_eq!(stopped, [true, true, false]);
        assert_eq!(watch.outcome(1).expect("it is watched").latency_ns, [2_000; 3]);
        assert_eq!(watch.outcome(3), None);
    }
}
