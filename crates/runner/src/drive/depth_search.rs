//! The search for the largest queue depth that keeps a latency (`latency_target`).
//!
//! Depths are doubled until one fails, then the gap between the last that kept the latency and the first that did not
//! is halved.

use fathom_model::plan::LatencyTarget;

/// Good windows in a row after which a job that goes on adjusting tries a larger depth.
const GOOD_WINDOWS: u32 = 5;

/// What follows a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Another window at the same depth.
    Again,
    /// A window at this depth.
    Try(u32),
    /// This depth is the result.
    Found(u32),
}

/// The state of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct DepthSearch {
    pub target: LatencyTarget,
    pub depth: u32,
    deepest: u32,
    /// Largest depth that kept the latency, and smallest that did not.
    low: u32,
    high: u32,
    good_windows: u32,
}

impl DepthSearch {
    pub fn new(target: LatencyTarget, deepest: u32) -> DepthSearch {
        DepthSearch { target, depth: 1, deepest, low: 0, high: deepest + 1, good_windows: 0 }
    }

    /// Judges a window at the depth with `ios` requests, of which `slow` exceeded the latency.
    pub fn judge(&mut self, ios: u64, slow: u64) -> Verdict {
        if ios == 0 {
            return Verdict::Again;
        }
        let is_good = slow as f64 * 100.0 <= ios as f64 * (100.0 - self.target.percentile);
        let was_settled = self.low == self.depth && self.low + 1 == self.high;
        match is_good {
            true => self.low = self.low.max(self.depth),
            false if self.depth == 1 => {
                // No depth keeps the latency now; it may later.
                (self.low, self.high, self.good_windows) = (0, self.deepest + 1, 0);
                return Verdict::Again;
            }
            false => {
                self.high = self.depth;
                self.low = if self.low < self.depth { self.low } else { 0 };
            }
        }
        if self.low + 1 < self.high {
            self.good_windows = 0;
            let is_doubling = self.high > self.deepest;
            let next = if is_doubling { self.low * 2 } else { (self.low + self.high) / 2 };
            return self.go_to(next.clamp(1, self.deepest));
        }
        if !self.target.run {
            self.depth = self.low;
            return Verdict::Found(self.low);
        }
        if !was_settled {
            self.good_windows = 0;
            return self.go_to(self.low);
        }
        self.good_windows += 1;
        if self.good_windows < GOOD_WINDOWS || self.depth == self.deepest {
            return Verdict::Again;
        }
        (self.high, self.good_windows) = (self.deepest + 1, 0);
        self.go_to(self.depth + 1)
    }

    fn go_to(&mut self, depth: u32) -> Verdict {
        if std::mem::replace(&mut self.depth, depth) == depth { Verdict::Again } else { Verdict::Try(depth) }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;

    use super::*;

    fn search(deepest: u32, percentile: f64, run: bool) -> DepthSearch {
        let target = LatencyTarget { target: Nanos(1), window: Nanos(1), percentile, run };
        DepthSearch::new(target, deepest)
    }

    /// The depth that is found where those up to `most` keep the latency, and the windows that it took.
    fn found(deepest: u32, most: u32) -> (u32, u32) {
        let mut search = search(deepest, 95.0, false);
        for windows in 1..100 {
            let slow = if search.depth <= most { 5 } else { 6 };
            if let Verdict::Found(depth) = search.judge(100, slow) {
                return (depth, windows);
            }
        }
        (0, 100)
    }

    #[test]
    fn the_largest_depth_that_keeps_the_latency_is_found() {
        for deepest in [1, 2, 3, 64, 100, 1024] {
            for most in 1..=deepest {
                let (depth, windows) = found(deepest, most);
                assert_eq!(depth, most, "of {deepest}");
                assert!(windows <= 21, "{windows} windows for {most} of {deepest}");
            }
        }
        assert_eq!(found(64, 0), (0, 100), "it goes on where none does");
    }

    #[test]
    fn the_share_of_slow_requests_decides_and_none_decide_nothing() {
        let mut strict = search(4, 100.0, false);
        assert_eq!(strict.judge(0, 0), Verdict::Again);
        assert_eq!(strict.judge(1_000_000, 1), Verdict::Again, "depth 1 fails");
        assert_eq!(strict.judge(1_000_000, 0), Verdict::Try(2));
        assert_eq!(strict.judge(1_000_000, 1), Verdict::Found(1));
    }

    #[test]
    fn a_search_that_goes_on_follows_the_device() {
        let mut search = search(64, 90.0, true);
        let mut settled = |most: u32| {
            let mut depths = Vec::new();
            for _ in 0..60 {
                let slow = if search.depth <= most { 0 } else { 100 };
                assert!(!matches!(search.judge(100, slow), Verdict::Found(_)));
                depths.push(search.depth);
            }
            let last = &depths[30..];
            let at_most = last.iter().filter(|depth| **depth == most).count();
            assert!(
                at_most >= 20 && last.iter().all(|depth| depth.abs_diff(most) <= 1),
                "{most}: {depths:?}"
            );
        };
        settled(20);
        settled(7);
        settled(33);
    }
}
