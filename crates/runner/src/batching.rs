//! Sizes of submission and completion batches.

use fathom_model::plan::DepthPlan;

/// Whether free slots are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// While any slot is free.
    Filling,
    /// Not until at most `low` requests are in flight (`iodepth_low`).
    Emptying,
}

/// The batch sizes, which adapt to how the engine completes requests.
#[derive(Debug)]
pub(crate) struct Batching {
    pub plan: DepthPlan,
    /// Most requests per submission, between the plan's two sizes.
    limit: u32,
    fill: Fill,
    /// Completions of the last reap whose slots have not been refilled.
    refill_deficit: u32,
}

impl Batching {
    pub fn new(plan: DepthPlan) -> Self {
        Batching { plan, limit: plan.batch_submit, fill: Fill::Filling, refill_deficit: 0 }
    }

    /// Requests that may be added to a batch of `waiting`.
    #[inline]
    pub fn room(&self, waiting: usize) -> u64 {
        if self.is_filling() { u64::from(self.limit).saturating_sub(waiting as u64) } else { 0 }
    }

    #[inline]
    pub fn is_filling(&self) -> bool {
        self.fill == Fill::Filling
    }

    /// Every slot is taken.
    #[inline]
    pub fn full(&mut self) {
        self.fill = Fill::Emptying;
    }

    /// Counts `fresh` requests that were issued with `in_flight` others; returns the queue depth at which each of them
    /// was issued.
    ///
    /// The requests of a batch, and of all batches after one reap, count as issued together: each request has the queue
    /// depth at which it replaces a completed one.
    #[inline]
    pub fn issued(&mut self, fresh: u64, in_flight: u32) -> u32 {
        self.refill_deficit = u64::from(self.refill_deficit).saturating_sub(fresh) as u32;
        in_flight + self.refill_deficit
    }

    /// Most completions to take when waiting for `least`.
    #[inline]
    pub fn most_completions(&self, least: u32) -> u32 {
        self.plan.batch_complete_max.max(self.limit).max(least)
    }

    /// The free slots will not be refilled on account of the last reap.
    #[inline]
    pub fn forget_deficit(&mut self) {
        self.refill_deficit = 0;
    }

    /// A reap found no completions.
    #[inline]
    pub fn found_none(&mut self) {
        self.limit = self.plan.batch_submit;
    }

    /// A reap found `count` completions and left `in_flight`. If all completed `inline`, without a wait, the next batch
    /// is larger, because no device is idle meanwhile.
    #[inline]
    pub fn found(&mut self, count: u32, in_flight: u32, inline: bool) {
        self.refill_deficit = count;
        let larger = (self.limit * 2).min(self.plan.batch_submit_inline);
        self.limit = if inline { larger } else { self.plan.batch_submit };
        if in_flight <= self.plan.low {
            self.fill = Fill::Filling;
        }
    }

    /// Fills no slot until nothing is in flight.
    pub fn hold_until_idle(&mut self) {
        (self.plan.low, self.fill) = (0, Fill::Emptying);
    }

    /// Fills `depth` slots from now on, with the batch sizes of `plan`.
    pub fn adopt(&mut self, plan: &DepthPlan, depth: u32) {
        let low = if plan.low >= plan.iodepth { depth } else { plan.low.min(depth) };
        let batch_complete_min = plan.batch_complete_min.min(depth);
        self.plan = DepthPlan { iodepth: depth, low, batch_complete_min, ..*plan };
        self.fill = Fill::Filling;
    }

    /// One of `depth` requests, all of which were in flight, has completed.
    #[inline]
    pub fn one_left(&mut self) {
        (self.refill_deficit, self.fill) = (1, Fill::Filling);
    }
}
