//! A window limit: the burst rate for a fixed time, then the baseline for a fixed time.
//!
//! A burst begins with the first request that the baseline would delay, independently of earlier use. The deficit is
//! kept in tokens, because the rate at which it is paid changes.

use crate::bucket::div_ceil;
use crate::rate::{TokenRate, least_common_multiple};

/// The state of a window limit.
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
    /// The time at which `deficit` is valid.
    at: u64,
    /// Scaled tokens to be paid before the next request proceeds.
    deficit: i128,
}

/// The current rate, and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowPhase {
    /// The baseline; a burst begins when it is exceeded.
    Ready,
    /// The burst rate.
    Burst { until: u64 },
    /// The baseline, without a burst before its end.
    Rest { until: u64 },
}

impl Window {
    /// `burst` for `burst_ns`, then `base` for `rest_ns`; `None` if the common scale of the rates overflows. Requests
    /// may be up to `slack_ns` ahead, at least one ns, so that rounding to whole ns loses nothing.
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
            deficit: 0,
        })
    }

    /// The first time from `now` on at which the next request may proceed. Begins a burst if the baseline would delay
    /// it. A request without cost never waits.
    pub(crate) fn earliest(&mut self, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        self.pay_deficit_until(now.max(self.at));
        while self.deficit > 0 && self.at < u64::MAX {
            let (gain, end) = match self.phase(self.at) {
                WindowPhase::Ready => {
                    self.skip_whole_turns();
                    self.began = Some(self.at);
                    continue;
                }
                WindowPhase::Burst { until } => (self.gain_burst, until),
                WindowPhase::Rest { until } => (self.gain_base, until),
            };
            let paid = self.at.saturating_add(div_ceil(self.deficit as u128, gain));
            if paid <= end {
                return paid;
            }
            self.pay(gain, end);
        }
        self.at
    }

    /// Charges `cost` at `at`, a time that [`Window::earliest`] returned.
    pub(crate) fn take(&mut self, at: u64, cost: u64) {
        self.pay_deficit_until(at);
        self.deficit += i128::from(cost) * i128::from(self.scale);
    }

    /// The phase at `at`.
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

    /// Pays a deficit of several whole periods of burst and rest in one step.
    fn skip_whole_turns(&mut self) {
        let paid = i128::from(self.gain_burst) * i128::from(self.burst_ns)
            + i128::from(self.gain_base) * i128::from(self.rest_ns);
        let turns = (self.deficit - 1) / paid;
        let turn_ns = u128::from(self.burst_ns) + u128::from(self.rest_ns);
        let skipped = u64::try_from(turns as u128 * turn_ns).unwrap_or(u64::MAX);
        self.at = self.at.saturating_add(skipped);
        self.deficit -= turns * paid;
    }

    /// Drops credit at `at` beyond what `slack_ns` provide.
    pub(crate) fn limit_credit(&mut self, at: u64, slack_ns: u64) {
        self.pay_deficit_until(at.max(self.at));
        self.deficit = self.deficit.max(-i128::from(self.gain_base) * i128::from(slack_ns.max(1)));
    }

    fn pay_deficit_until(&mut self, now: u64) {
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
        self.deficit = (self.deficit - gained).max(-gain * i128::from(self.slack_ns));
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

    /// Requests per minute, with one always waiting.
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
        // 75 and 50 IOPS in turn: the mean is that of the two.
        assert_eq!(saturate(&mut window(50, 75), 4), [4500, 3000, 4500, 3000]);
    }

    #[test]
    fn deficits_of_many_periods_are_paid_in_one_step() {
        // 3 tokens in 2 s, with periods of one ns each: a million of them.
        let rate = |tokens| TokenRate::per_second(tokens).unwrap();
        let mut window = Window::new(rate(1), rate(2), 1, 1, 0).unwrap();
        window.take(0, 1_500_000);
        assert_eq!(window.earliest(0, 1), 1_000_000 * SECOND);
        // A deficit that is never paid gives "never".
        window.take(u64::MAX, 1);
        assert_eq!(window.earliest(0, 1), u64::MAX);
    }

    #[test]
    fn requests_below_the_baseline_begin_no_burst() {
        let mut window = window(50, 75);
        for tick in 0..1000 {
            let now = tick * SECOND / 50;
            assert_eq!(window.earliest(now, 1), now);
            window.take(now, 1);
        }
        assert_eq!(window.phase(20 * SECOND), WindowPhase::Ready);
        // The first early request begins the burst.
        let now = 999 * SECOND / 50 + 1;
        assert_eq!(window.earliest(now, 1), now + 13_333_333);
        assert_eq!(window.phase(now), WindowPhase::Burst { until: now + 60 * SECOND });
    }

    #[test]
    fn a_burst_is_available_again_after_the_rest() {
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
