//! When the next request may be made: think time between blocks of requests.

use fathom_model::plan::TimePlan;

/// Counts requests down to the next pause.
#[derive(Debug)]
pub(crate) struct Pacer {
    think_ns: u64,
    blocks: u64,
    left: u64,
    paused_until: u64,
}

impl Pacer {
    pub fn new(time: &TimePlan) -> Self {
        let blocks = if time.think_time.0 == 0 { u64::MAX } else { u64::from(time.think_blocks.max(1)) };
        Pacer { think_ns: time.think_time.0, blocks, left: blocks, paused_until: 0 }
    }

    /// Requests that may be made before the next pause.
    #[inline(always)]
    pub fn allowance(&self) -> u64 {
        self.left
    }

    /// Counts `made` requests.
    #[inline(always)]
    pub fn made(&mut self, made: u64) {
        self.left -= made;
    }

    /// Called when nothing is in flight: where the allowance is used up, the time at which the pause ends.
    ///
    /// The pause begins when the last request before it has completed, so a slow device is not hidden by it.
    pub fn pause(&mut self, now: u64) -> Option<u64> {
        if self.left > 0 {
            return None;
        }
        if self.paused_until == 0 {
            self.paused_until = now.saturating_add(self.think_ns);
        }
        if now < self.paused_until {
            return Some(self.paused_until);
        }
        (self.paused_until, self.left) = (0, self.blocks);
        None
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;

    use super::*;

    #[test]
    fn pauses_after_each_block_of_requests() {
        let mut pacer =
            Pacer::new(&TimePlan { think_time: Nanos(100), think_blocks: 2, ..TimePlan::default() });
        assert_eq!((pacer.allowance(), pacer.pause(10)), (2, None));
        pacer.made(2);
        assert_eq!(pacer.pause(10), Some(110));
        assert_eq!(pacer.pause(50), Some(110));
        assert_eq!((pacer.pause(110), pacer.allowance()), (None, 2));
    }

    #[test]
    fn without_think_time_it_never_pauses() {
        let mut pacer = Pacer::new(&TimePlan::default());
        pacer.made(1_000_000);
        assert_eq!(pacer.pause(5), None);
    }
}
