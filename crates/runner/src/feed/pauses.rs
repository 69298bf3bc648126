//! The reasons of a worker to issue nothing: think time, computing between requests, and its share of a flow.

use super::Next;
use super::flow::Flow;
use super::think_time::ThinkTime;
use crate::worker::WorkerSpec;

/// The pauses of a worker.
#[derive(Debug)]
pub(super) struct Pauses {
    think_time: Option<ThinkTime>,
    /// Pauses after each request in which the CPU is busy.
    cycles: Option<ThinkTime>,
    flow: Option<Flow>,
    delays_rate: bool,
}

/// A pause.
pub(super) struct Pause {
    /// Its end, session ns.
    pub until: u64,
    /// Time by which it delays the schedule of a rate, ns.
    pub delay_ns: u64,
}

impl Pauses {
    /// The pauses of `spec`; `None` without any.
    pub fn new(spec: &WorkerSpec) -> Option<Box<Pauses>> {
        let plan = &spec.time.think_time;
        let mut flow = spec.flow.clone().map(Flow::new);
        if spec.starts_at_once() {
            // Before the start of all: none runs ahead of those that start a moment later.
            flow.iter_mut().for_each(Flow::join);
        }
        let pauses = Pauses {
            think_time: ThinkTime::new(plan),
            cycles: ThinkTime::busy(spec.cycles_ns),
            flow,
            delays_rate: plan.delays_rate,
        };
        let is_any = pauses.think_time.is_some() || pauses.cycles.is_some() || pauses.flow.is_some();
        is_any.then(|| Box::new(pauses))
    }

    pub fn begin(&mut self, now: u64) {
        self.times_mut().for_each(|time| time.begin(now));
        if let Some(flow) = &mut self.flow {
            flow.join();
        }
    }

    /// Other workers of the flow do not wait for this one any more.
    pub fn end(&mut self) {
        if let Some(flow) = &mut self.flow {
            flow.leave();
        }
    }

    pub fn spin_ns(&self) -> u64 {
        self.times().map(ThinkTime::spin_ns).max().unwrap_or(0)
    }

    /// Requests that may be made at `now` before the next pause.
    pub fn allowance(&self, now: u64) -> u64 {
        let by_time = self.times().map(|time| time.allowance(now)).min().unwrap_or(u64::MAX);
        self.flow.as_ref().map_or(by_time, |flow| flow.allowance().min(by_time))
    }

    /// Whether a request may be made at `now`, or why not.
    #[inline(never)]
    pub fn hold(&self, now: u64) -> Next<()> {
        if self.times().any(|time| time.allowance(now) == 0) {
            return Next::Pause;
        }
        match &self.flow {
            Some(flow) if flow.allowance() == 0 => Next::NotBefore(flow.retry_at(now)),
            _ => Next::Issue(()),
        }
    }

    /// Counts a request. Syncs count towards no pause.
    #[inline(never)]
    pub fn made(&mut self, is_sync: bool) {
        let counted = u64::from(!is_sync);
        self.times_mut().for_each(|time| time.made(counted));
        if let Some(flow) = &mut self.flow {
            flow.made(counted);
        }
    }

    /// Called when nothing is in flight: the pause at `now`, where there is one.
    pub fn pause(&mut self, now: u64) -> Option<Pause> {
        let delays_rate = self.delays_rate;
        let pauses = self.times_mut().filter_map(|time| {
            let before = time.begins();
            let until = time.pause(now)?;
            let is_new = delays_rate && before != time.begins();
            Some(Pause { until, delay_ns: if is_new { until - now } else { 0 } })
        });
        pauses.max_by_key(|pause| pause.until)
    }

    fn times(&self) -> impl Iterator<Item = &ThinkTime> {
        self.think_time.iter().chain(&self.cycles)
    }

    fn times_mut(&mut self) -> impl Iterator<Item = &mut ThinkTime> {
        self.think_time.iter_mut().chain(&mut self.cycles)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fathom_model::Nanos;
    use fathom_model::plan::{FlowPlan, Mix};

    use super::*;
    use crate::drive::tests::spec;
    use crate::feed::FlowShare;

    /// Requests that the first of two workers of a flow makes before the second begins, which does so after `delay`.
    fn made_alone(delay: Nanos) -> u64 {
        let group = Arc::default();
        let member = |weight, delay| {
            let mut spec = spec(Mix::Read, 1, 100);
            let plan = FlowPlan { weight, id: 1, sleep: Nanos::ZERO };
            spec.flow = Some(FlowShare { group: Arc::clone(&group), plan });
            spec.time.start_delay = (delay, delay);
            Pauses::new(&spec).expect("it has a flow")
        };
        let (mut first, _second) = (member(8, Nanos::ZERO), member(1, delay));
        first.begin(0);
        let mut made = 0;
        while made < 10_000 && first.allowance(0) > 0 {
            first.made(false);
            made += 1;
        }
        made
    }

    #[test]
    fn workers_of_a_flow_do_not_run_ahead_of_those_that_start_with_them() {
        let made = made_alone(Nanos::ZERO);
        assert!(made < 300, "{made}");
        assert_eq!(made_alone(Nanos::from_secs(1)), 10_000);
    }
}
