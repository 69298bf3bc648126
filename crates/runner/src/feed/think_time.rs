//! Think time: pauses between blocks of requests.

use fathom_model::plan;

/// Counts requests down to the next pause.
#[derive(Debug)]
pub(super) struct ThinkTime {
    pause_ns: u64,
    blocks: u64,
    /// Requests left of the block.
    left: u64,
    /// When the block begins, session ns: the end of the pause before it.
    begins: u64,
}

impl ThinkTime {
    /// The think time of `plan`; `None` where a job never pauses.
    pub fn new(plan: &plan::ThinkTime) -> Option<Self> {
        let (pause_ns, blocks) = (plan.pause.0, u64::from(plan.block_limit()));
        (pause_ns > 0).then_some(ThinkTime { pause_ns, blocks, left: blocks, begins: 0 })
    }

    /// Begins the first block.
    pub fn begin(&mut self, now: u64) {
        self.begins = now;
    }

    /// Requests that may be made at `now` before the next pause.
    #[inline(always)]
    pub fn allowance(&self, now: u64) -> u64 {
        if now < self.begins { 0 } else { self.left }
    }

    /// Counts `made` requests.
    #[inline(always)]
    pub fn made(&mut self, made: u64) {
        self.left -= made;
    }

    /// Called when nothing is in flight: the time at which the pause ends, where there is one.
    ///
    /// The pause begins when the last request before it has completed, so a slow device is not hidden by it.
    pub fn pause(&mut self, now: u64) -> Option<u64> {
        if self.left == 0 {
            (self.begins, self.left) = (now.saturating_add(self.pause_ns), self.blocks);
        }
        (now < self.begins).then_some(self.begins)
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;

    use super::*;

    #[test]
    fn pauses_after_each_block_of_requests() {
        let plan = plan::ThinkTime { pause: Nanos(100), blocks: Some(2) };
        let mut think_time = ThinkTime::new(&plan).expect("it pauses");
        think_time.begin(10);
        assert_eq!((think_time.allowance(10), think_time.pause(10)), (2, None));
        think_time.made(2);
        assert_eq!((think_time.allowance(10), think_time.pause(10)), (0, Some(110)));
        assert_eq!((think_time.allowance(50), think_time.pause(50)), (0, Some(110)));
        assert_eq!((think_time.pause(110), think_time.allowance(110)), (None, 2));
    }

    #[test]
    fn without_think_time_it_never_pauses() {
        assert!(ThinkTime::new(&plan::ThinkTime::default()).is_none());
    }
}
