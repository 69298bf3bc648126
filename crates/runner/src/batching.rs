//! How many requests go and come back in one go.

use fathom_model::plan::DepthPlan;

/// Whether free slots are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// As long as there are any.
    Filling,
    /// Not before no more than `low` requests are in flight (`iodepth_low`).
    Emptying,
}

/// The sizes of batches, which follow how the engine completes them.
#[derive(Debug)]
pub(crate) struct Batching {
    pub plan: DepthPlan,
    /// Most requests handed over in one go, between the plan's two sizes.
    limit: u32,
    fill: Fill,
    /// Completions of the last look whose slots have not been filled again.
    refill_deficit: u32,
}

impl Batching {
    pub fn new(plan: DepthPlan) -> Self {
        Batching { plan, limit: plan.batch_submit, fill: Fill::Filling, refill_deficit: 0 }
    }

    /// Requests that may join a batch of `waiting`.
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

    /// Counts `fresh` requests that were issued with `in_flight` there; answers the depth that each of them was issued at.
    ///
    /// A batch goes as one, and so do those that follow upon one look for completions: each request is issued at the depth
    /// that takes the place of what came back.
    #[inline]
    pub fn issued(&mut self, fresh: u64, in_flight: u32) -> u32 {
        self.refill_deficit = u64::from(self.refill_deficit).saturating_sub(fresh) as u32;
        in_flight + self.refill_deficit
    }

    /// Completions to look for where `least` are waited for.
    #[inline]
    pub fn most_completions(&self, least: u32) -> u32 {
        self.plan.batch_complete_max.max(self.limit).max(least)
    }

    /// The slots that came back will not be filled by requests that belong to that look.
    #[inline]
    pub fn forget_deficit(&mut self) {
        self.refill_deficit = 0;
    }

    /// A look for completions found none.
    #[inline]
    pub fn found_none(&mut self) {
        self.limit = self.plan.batch_submit;
    }

    /// A look found `count` completions and left `in_flight`. Where it found everything `inline`, without a wait, the next
    /// batch is larger: no device is kept waiting.
    #[inline]
    pub fn found(&mut self, count: u32, in_flight: u32, inline: bool) {
        self.refill_deficit = count;
        let larger = (self.limit * 2).min(self.plan.batch_submit_inline);
        self.limit = if inline { larger } else { self.plan.batch_submit };
        if in_flight <= self.plan.low {
            self.fill = Fill::Filling;
        }
    }

    /// One of `depth` requests, all of which were in flight, has completed.
    #[inline]
    pub fn one_left(&mut self) {
        (self.refill_deficit, self.fill) = (1, Fill::Filling);
    }
}
