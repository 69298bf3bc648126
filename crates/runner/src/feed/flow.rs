//! A flow: several jobs whose numbers of requests are in proportion to their weights.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_model::JobPlan;
use fathom_model::plan::FlowPlan;

/// Requests of the whole flow by which its jobs may be ahead of each other: so many workers need not wait at each one.
const LEAD: u64 = 32;
/// Shortest wait of a job that is ahead, ns.
const SHORTEST_WAIT_NS: u64 = 20_000;

/// The counts of a flow, shared by its workers.
#[derive(Debug, Default)]
pub(crate) struct FlowGroup {
    /// Sum of the weights of the workers that take part.
    weight: AtomicU64,
    /// Sum of their requests.
    made: AtomicU64,
}

/// The flow of a worker, and its weight there.
#[derive(Clone, Debug)]
pub(crate) struct FlowShare {
    pub group: Arc<FlowGroup>,
    pub plan: FlowPlan,
}

/// The flows of a run, by phase and number.
#[derive(Default)]
pub(crate) struct Flows(BTreeMap<(u32, u32), Arc<FlowGroup>>);

impl Flows {
    /// The share of the workers of `job`, if it takes part in a flow.
    pub fn share(&mut self, job: &JobPlan) -> Option<FlowShare> {
        let plan = job.threads.flow;
        let group = || self.0.entry((job.phase, plan.id)).or_default().clone();
        (plan.weight > 0).then(group).map(|group| FlowShare { group, plan })
    }
}

/// The part of one worker in its flow.
#[derive(Debug)]
pub(super) struct Flow {
    share: FlowShare,
    own: u64,
    takes_part: bool,
}

impl Flow {
    pub fn new(share: FlowShare) -> Flow {
        Flow { share, own: 0, takes_part: false }
    }

    /// Takes part from now on, as if the worker had made its share of the requests so far; no change if it does already.
    pub fn join(&mut self) {
        if self.takes_part {
            return;
        }
        let FlowGroup { weight, made } = &*self.share.group;
        let own_weight = u64::from(self.share.plan.weight);
        let others = weight.fetch_add(own_weight, Ordering::Relaxed);
        let share = u128::from(made.load(Ordering::Relaxed)) * u128::from(own_weight);
        self.own = share.checked_div(u128::from(others)).unwrap_or(0) as u64;
        made.fetch_add(self.own, Ordering::Relaxed);
        self.takes_part = true;
    }

    /// Takes no part any more: the others do not wait for this worker.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.takes_part) {
            self.share.group.made.fetch_sub(self.own, Ordering::Relaxed);
            self.share.group.weight.fetch_sub(u64::from(self.share.plan.weight), Ordering::Relaxed);
        }
    }

    /// Requests that may be made now.
    pub fn allowance(&self) -> u64 {
        let FlowGroup { weight, made } = &*self.share.group;
        let (weight, made) = (weight.load(Ordering::Relaxed), made.load(Ordering::Relaxed));
        let due = u128::from(made.saturating_add(LEAD)) * u128::from(self.share.plan.weight);
        let due = due.checked_div(u128::from(weight)).unwrap_or(u128::from(u64::MAX)) as u64;
        due.saturating_add(1).saturating_sub(self.own)
    }

    /// Counts requests of this worker.
    pub fn made(&mut self, requests: u64) {
        self.own += requests;
        self.share.group.made.fetch_add(requests, Ordering::Relaxed);
    }

    /// When a worker that is ahead at `now` looks again.
    pub fn retry_at(&self, now: u64) -> u64 {
        now.saturating_add(self.share.plan.sleep.0.max(SHORTEST_WAIT_NS))
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;

    use super::*;

    fn flows(weights: &[u32]) -> Vec<Flow> {
        let group = Arc::new(FlowGroup::default());
        let plan = |weight| FlowPlan { weight, id: 0, sleep: Nanos::ZERO };
        let share = |weight: &u32| FlowShare { group: group.clone(), plan: plan(*weight) };
        let mut flows: Vec<Flow> = weights.iter().map(|weight| Flow::new(share(weight))).collect();
        flows.iter_mut().for_each(Flow::join);
        flows
    }

    /// Makes up to `most` requests of a flow; returns how many it may.
    fn make(flow: &mut Flow, most: u64) -> u64 {
        let mut made = 0;
        while made < most && flow.allowance() > 0 {
            flow.made(1);
            made += 1;
        }
        made
    }

    #[test]
    fn requests_are_in_proportion_to_the_weights() {
        let mut flows = flows(&[3, 1]);
        let [mut first, mut second] = [0, 0];
        for _ in 0..1_000 {
            first += make(&mut flows[0], 1_000);
            second += make(&mut flows[1], 7);
        }
        assert_eq!(second, 7_000);
        assert!(first.abs_diff(3 * second) <= 4 * LEAD, "{first}");
    }

    #[test]
    fn a_worker_that_has_ended_holds_up_no_other() {
        let mut flows = flows(&[3, 1]);
        let ahead = make(&mut flows[0], 1_000_000);
        assert!(ahead < 1_000 && flows[0].allowance() == 0, "{ahead}");
        drop(flows.pop());
        assert_eq!(make(&mut flows[0], 10_000), 10_000);
    }

    #[test]
    fn a_worker_that_joins_late_does_not_catch_up() {
        let mut flows = flows(&[1, 1]);
        let mut late = flows.pop().expect("there are two");
        late.leave();
        assert_eq!(make(&mut flows[0], 100_000), 100_000);
        late.join();
        assert!(make(&mut late, 1_000) <= LEAD + 1);
    }
}
