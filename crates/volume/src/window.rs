//! A limit that is lifted for a while: a burst rate for a fixed time, then the baseline for another.
//!
//! The burst begins with the first request that the baseline would hold back, whatever was spent before: unlike credit, time
//! is all it costs. What is owed is kept in tokens, because the rate at which it is paid changes.

use crate::bucket::div_ceil;
use crate::rate::{TokenRate, least_common_multiple};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    gain_base: u64,
    gain_burst: u64,
    scale: u64,
    burst_ns: u64,
    rest_ns: u64,
    slack_ns: u64,
    /// When the last burst began.
    began: Option<u64>,
    /// The instant for which `owed` holds.
    at: u64,
    /// Scaled tokens to be paid before the next request goes.
    owed: i128,
}

/// Which rate holds, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowPhase {
    /// The baseline; a burst begins when it is exceeded.
    Ready,
    /// The burst rate.
    Burst { until: u64 },
    /// The baseline, and no burst before it ends.
    Rest { until: u64 },
}

impl Window {
    /// `burst` for a while and then `base` for another, of so many ns each; `None` where the rates have no scale in
    /// common that fits. Requests may be up to `slack_ns` ahead, and one at least, so that whole ns lose nothing.
    pub(crate) fn new(
        base: TokenRate,
        burst: TokenRate,
        burst_ns: u64,
        rest_ns: u64,
        slack_ns: u64,
    ) -> Option<Self> {
        let scale = least_common_multiple(base.per_ns(), burst.per_ns())?;
        let gain = |rate: TokenRate| {
            let gain = rate.tokens().checked_mul(scale / rate.per_ns())?;
            (gain <= 1 << 62).then_some(gain)
        };
        let (gain_base, gain_burst) = (gain(base)?, gain(burst)?);
        let slack_ns = slack_ns.max(1);
        Some(Window {
            gain_base,
            gain_burst,
            scale,
            burst_ns,
            rest_ns,
            slack_ns,
            began: None,
            at: 0,
            owed: 0,
        })
    }

    /// The first instant from `now` on at which the next request may go. Begins a burst where the baseline holds it back.
    /// What costs nothing waits for nothing.
    pub(crate) fn earliest(&mut self, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        self.pay_until(now.max(self.at));
        while self.owed > 0 && self.at < u64::MAX {
            let (gain, end) = match self.phase(self.at) {
                WindowPhase::Ready => {
                    self.skip_whole_turns();
                    self.began = Some(self.at);
                    continue;
                }
                WindowPhase::Burst { until } => (self.gain_burst, until),
                WindowPhase::Rest { until } => (self.gain_base, until),
            };
            let paid = self.at.saturating_add(div_ceil(self.owed as u128, gain));
            if paid <= end {
                return paid;
            }
            self.pay(gain, end);
        }
        self.at
    }

    /// Charges `cost` at `at`, which [`Window::earliest`] has allowed.
    pub(crate) fn take(&mut self, at: u64, cost: u64) {
        self.pay_until(at);
        self.owed += i128::from(cost) * i128::from(self.scale);
    }

    /// What holds at `at`.
    pub(crate) fn phase(&self, at: u64) -> WindowPhase {
        let Some(began) = self.began else { return WindowPhase::Ready };
        let burst_end = began.saturating_add(self.burst_ns);
        let rest_end = burst_end.saturating_add(self.rest_ns);
        match at {
            _ if at < burst_end => WindowPhase::Burst { until: burst_end },
            _ if at < rest_end => WindowPhase::Rest { until: rest_end },
            _ => WindowPhase::Ready,
        }
    }

    /// Pays what is owed for longer than a burst and a rest, which go by so often until it is less.
    fn skip_whole_turns(&mut self) {
        let paid = i128::from(self.gain_burst) * i128::from(self.burst_ns)
            + i128::from(self.gain_base) * i128::from(self.rest_ns);
        let turns = (self.owed - 1) / paid;
        let turn_ns = u128::from(self.burst_ns) + u128::from(self.rest_ns);
        let skipped = u64::try_from(turns as u128 * turn_ns).unwrap_or(u64::MAX);
        self.at = self.at.saturating_add(skipped);
        self.owed -= turns * paid;
    }

    fn pay_until(&mut self, now: u64) {
        while self.at < now {
            match self.phase(self.at) {
                WindowPhase::Burst { until } => self.pay(self.gain_burst, until.min(now)),
                WindowPhase::Rest { until } => self.pay(self.gain_base, until.min(now)),
                WindowPhase::Ready => self.pay(self.gain_base, now),
            }
        }
    }

    /// Pays at `gain` until `end`.
    fn pay(&mut self, gain: u64, end: u64) {
        let gain = i128::from(gain);
        let gained = gain * i128::from(end - self.at);
        self.owed = (self.owed - gained).max(-gain * i128::from(self.slack_ns));
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn window(base: u64, burst: u64) -> Window {
        let rate = |tokens| TokenRate::per_second(tokens).unwrap();
        Window::new(rate(base), rate(burst), 60 * SECOND, 60 * SECOND, 0).unwrap()
    }

    /// Requests that go in each of `minutes`, where there is always one waiting.
    fn saturate(window: &mut Window, minutes: usize) -> Vec<u64> {
        let mut counts = vec![0; minutes];
        let mut now = 0;
        loop {
            now = window.earliest(now, 1);
            let Some(count) = counts.get_mut((now / (60 * SECOND)) as usize) else { return counts };
            window.take(now, 1);
            *count += 1;
        }
    }

    #[test]
    fn a_saturated_window_alternates() {
        // 75 and 50 a second by turns: the mean is that of the two.
        assert_eq!(saturate(&mut window(50, 75), 4), [4500, 3000, 4500, 3000]);
    }

    #[test]
    fn what_takes_many_turns_is_told_at_once() {
        // 3 tokens in 2 s, by turns of a ns each: a million of them.
        let rate = |tokens| TokenRate::per_second(tokens).unwrap();
        let mut window = Window::new(rate(1), rate(2), 1, 1, 0).unwrap();
        window.take(0, 1_500_000);
        assert_eq!(window.earliest(0, 1), 1_000_000 * SECOND);
        // What is never paid is told as that.
        window.take(u64::MAX, 1);
        assert_eq!(window.earliest(0, 1), u64::MAX);
    }

    #[test]
    fn below_the_baseline_nothing_is_used_up() {
        let mut window = window(50, 75);
        for tick in 0..1000 {
            let now = tick * SECOND / 50;
            assert_eq!(window.earliest(now, 1), now);
            window.take(now, 1);
        }
        assert_eq!(window.phase(20 * SECOND), WindowPhase::Ready);
        // The first that comes too early begins the burst.
        let now = 999 * SECOND / 50 + 1;
        assert_eq!(window.earliest(now, 1), now + 13_333_333);
        assert_eq!(window.phase(now), WindowPhase::Burst { until: now + 60 * SECOND });
    }

    #[test]
    fn a_burst_is_ready_again_after_the_rest_even_unused() {
        let mut window = window(1, 2);
        window.take(0, 1);
        assert_eq!(window.earliest(0, 1), SECOND / 2);
        for (second, expected) in [
            (59, WindowPhase::Burst { until: 60 * SECOND }),
            (60, WindowPhase::Rest { until: 120 * SECOND }),
            (119, WindowPhase::Rest { until: 120 * SECOND }),
            (120, WindowPhase::Ready),
        ] {
            assert_eq!(window.phase(second * SECOND), expected, "{second} s");
        }
    }
}
