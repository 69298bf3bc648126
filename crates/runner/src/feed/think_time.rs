//! Think time: pauses between blocks of requests, which end by count or by time, whichever is first.

use fathom_model::plan;

/// Counts requests until the next pause.
#[derive(Debug)]
pub(super) struct ThinkTime {
    pause_ns: u64,
    /// Time at the end of a pause in which the worker spins, ns.
    spin_ns: u64,
    /// Requests of a block, and its time, ns; `u64::MAX` = no limit.
    blocks: u64,
    io_ns: u64,
    /// Remaining requests of the block.
    left: u64,
    /// Start of the block, session ns: the end of the previous pause.
    begins: u64,
}

impl ThinkTime {
    /// The think time of `plan`; `None` for jobs without pauses.
    pub fn new(plan: &plan::ThinkTime) -> Option<Self> {
        let blocks = plan.block_limit().map_or(u64::MAX, u64::from);
        let io_ns = if plan.io_time.0 == 0 { u64::MAX } else { plan.io_time.0 };
        let pause_ns = plan.pause.0;
        let spin_ns = plan.spin.0.min(pause_ns);
        (pause_ns > 0).then_some(ThinkTime { pause_ns, spin_ns, blocks, io_ns, left: blocks, begins: 0 })
    }

    /// A pause of `busy_ns` after each request, in which the worker spins; `None` for 0.
    pub fn busy(busy_ns: u64) -> Option<Self> {
        let (pause_ns, spin_ns) = (busy_ns, busy_ns);
        let one = ThinkTime { pause_ns, spin_ns, blocks: 1, io_ns: u64::MAX, left: 1, begins: 0 };
        (busy_ns > 0).then_some(one)
    }

    /// Start of the block, session ns: the end of the previous pause.
    pub fn begins(&self) -> u64 {
        self.begins
    }

    /// Time at the end of a pause in which the worker spins, ns.
    pub fn spin_ns(&self) -> u64 {
        self.spin_ns
    }

    /// Begins the first block.
    pub fn begin(&mut self, now: u64) {
        self.begins = now;
    }

    /// Requests that may be made at `now` before the next pause.
    #[inline(always)]
    pub fn allowance(&self, now: u64) -> u64 {
        if now < self.begins || self.is_over(now) { 0 } else { self.left }
    }

    /// Counts `made` requests.
    #[inline(always)]
    pub fn made(&mut self, made: u64) {
        self.left -= made;
    }

    /// Whether the block is over at `now`, by count or by time. A block has at least one request, however late the pause
    /// before it ended.
    #[inline(always)]
    fn is_over(&self, now: u64) -> bool {
        self.left == 0 || (self.left < self.blocks && now.saturating_sub(self.begins) >= self.io_ns)
    }

    /// Called when nothing is in flight: the time at which the pause ends, where there is one.
    ///
    /// The pause begins when the last request before it has completed, so a slow device is not hidden by it.
    pub fn pause(&mut self, now: u64) -> Option<u64> {
        if self.is_over(now) {
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
        let plan = plan::ThinkTime { pause: Nanos(100), blocks: Some(2), ..plan::ThinkTime::default() };
        let mut think_time = ThinkTime::new(&plan).expect("it pauses");
        think_time.begin(10);
        assert_eq!((think_time.allowance(10), think_time.pause(10)), (2, None));
        think_time.made(2);
        assert_eq!((think_time.allowance(10), think_time.pause(10)), (0, Some(110)));
        assert_eq!((think_time.allowance(50), think_time.pause(50)), (0, Some(110)));
        assert_eq!((think_time.pause(110), think_time.allowance(110)), (None, 2));
    }

    #[test]
    fn pauses_after_a_time_or_a_count_whichever_comes_first() {
        let mut plan =
            plan::ThinkTime { pause: Nanos(100), io_time: Nanos(30), ..plan::ThinkTime::default() };
        let mut by_time = ThinkTime::new(&plan).expect("it pauses");
        by_time.begin(10);
        by_time.made(1_000_000);
        assert_eq!((by_time.allowance(39) > 0, by_time.allowance(40)), (true, 0));
        // What was in flight then has completed at 45.
        assert_eq!((by_time.pause(45), by_time.allowance(144)), (Some(145), 0));
        // Late, but not too late for one request.
        assert_eq!((by_time.allowance(200) > 0, by_time.pause(200)), (true, None));
        by_time.made(1);
        assert_eq!(by_time.allowance(200), 0);
        plan.blocks = Some(2);
        let mut by_either = ThinkTime::new(&plan).expect("it pauses");
        by_either.begin(10);
        by_either.made(2);
        assert_eq!((by_either.allowance(12), by_either.pause(12)), (0, Some(112)));
        assert_eq!((by_either.allowance(112), by_either.pause(112)), (2, None));
    }

    #[test]
    fn without_think_time_it_never_pauses() {
        assert!(ThinkTime::new(&plan::ThinkTime::default()).is_none());
    }
}
