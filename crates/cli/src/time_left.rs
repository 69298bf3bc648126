//! How long a run still takes, as one figure that does not jump: each new estimate moves it a little.

use fathom_model::Nanos;
use fathom_sys::clock::monotonic_ns;

/// An estimate that stays the same is shown after a few times this, ns.
const SETTLES_NS: f64 = 8e9;

/// The time that is left of a whole run.
#[derive(Debug)]
pub struct TimeLeft {
    began_ns: u64,
    /// When something was shown, and what: ns of the clock, and ns left.
    shown: Option<(u64, f64)>,
}

impl TimeLeft {
    /// The run begins now.
    pub fn new() -> TimeLeft {
        TimeLeft { began_ns: monotonic_ns(), shown: None }
    }

    /// Since the run began, ns.
    pub fn spent_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.began_ns)
    }

    /// What to show where `left` is estimated now.
    pub fn show(&mut self, left: Nanos) -> Nanos {
        self.show_at(monotonic_ns(), left)
    }

    fn show_at(&mut self, now_ns: u64, left: Nanos) -> Nanos {
        let estimate = left.0 as f64;
        let shown = match self.shown {
            None => estimate,
            Some((at_ns, shown)) => {
                let passed = now_ns.saturating_sub(at_ns) as f64;
                let expected = (shown - passed).max(0.0);
                expected + (estimate - expected) * (passed / SETTLES_NS).min(1.0)
            }
        };
        self.shown = Some((now_ns, shown));
        Nanos(shown as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn left() -> TimeLeft {
        TimeLeft { began_ns: 0, shown: None }
    }

    #[test]
    fn an_estimate_that_holds_counts_down() {
        let mut left = left();
        for second in 0..100 {
            assert_eq!(
                left.show_at(second * SECOND, Nanos::from_secs(100 - second)).0,
                (100 - second) * SECOND
            );
        }
    }

    #[test]
    fn a_new_estimate_moves_the_figure_without_a_jump() {
        let mut left = left();
        let mut before = left.show_at(0, Nanos::from_secs(100)).as_secs_f64();
        for half in 1..=240_u64 {
            let at = half * SECOND / 2;
            // The rate turns out to be half of what it seemed.
            let now = left.show_at(at, Nanos(200 * SECOND - at)).as_secs_f64();
            assert!((now - before).abs() < 8.0, "{before} to {now} at {half}");
            before = now;
        }
        assert!((before - 80.0).abs() < 1.0, "{before}");
    }
}
