//! Trims of blocks that a job with a check has written: some of them, in batches, while it goes on writing.

use std::collections::VecDeque;

use fathom_model::plan::VerifyTrim;
use fathom_model::{Op, Request};
use fathom_workload::Rng;

use super::written::Written;

/// Number of the random stream that chooses the blocks.
const STREAM: u64 = 10;

/// The blocks to trim.
pub(super) struct Trims {
    plan: VerifyTrim,
    rng: Rng,
    /// Writes whose blocks are to be trimmed, and their numbers.
    chosen: VecDeque<(Request, u64)>,
    /// Writes since the last batch.
    since: u64,
    /// Trims that the batch still has.
    left: u64,
}

impl Trims {
    /// For a job with this seed.
    pub fn new(plan: VerifyTrim, seed: u64) -> Trims {
        let rng = Rng::stream(seed, STREAM);
        Trims { plan, rng, chosen: VecDeque::new(), since: 0, left: 0 }
    }

    /// Notes a write, whose block may be chosen.
    pub fn note(&mut self, write: &Request, number: u64) {
        self.since += 1;
        if self.rng.below(100) < u64::from(self.plan.percent) {
            self.chosen.push_back((*write, number));
        }
    }

    /// Whether blocks are to be trimmed before the next write.
    pub fn are_due(&self) -> bool {
        self.since >= self.plan.backlog && !self.chosen.is_empty()
    }

    /// Begins a batch.
    pub fn begin_batch(&mut self) {
        (self.since, self.left) = (0, self.plan.batch);
    }

    /// The next trim of the batch: of a block that was not written again.
    pub fn next(&mut self, written: &mut Written) -> Option<Request> {
        while self.left > 0 {
            let (write, number) = self.chosen.pop_front()?;
            if written.trim(&write, number) {
                self.left -= 1;
                return Some(Request { op: Op::Trim, ..write });
            }
        }
        None
    }

    /// Begins a pass.
    pub fn begin_pass(&mut self) {
        self.chosen.clear();
        self.since = 0;
    }
}
