//! The limits that providers apply, and their state.

use crate::bucket::TokenBucket;
use crate::rate::TokenRate;
use crate::stage::LimitStage;
use crate::window::{Window, WindowPhase};

/// A limit on I/Os or bytes; the field that contains it says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A constant rate.
    Rate(TokenRate),
    /// Unused baseline accrues as burst credits, which permit a rate above the baseline. At the rate `d` the credits
    /// change by `base - d`, so a full bucket lasts for `capacity / (burst - base)`.
    Credit {
        /// The baseline: the refill rate, and the rate when credits are exhausted.
        base: TokenRate,
        /// The burst rate; `None` = no limit.
        burst: Option<TokenRate>,
        /// Capacity of the bucket, tokens.
        capacity: u64,
        /// Initial credits, tokens.
        initial: u64,
    },
    /// The burst rate for a fixed time once the baseline is exceeded, then the baseline for a fixed time.
    Window {
        /// The rate outside bursts.
        base: TokenRate,
        /// The rate in bursts.
        burst: TokenRate,
        /// Length of a burst, ns.
        burst_ns: u64,
        /// Time after a burst without another, ns.
        rest_ns: u64,
    },
    /// The burst rate at any time; I/O beyond the baseline is billed (see [`crate::Billing`]).
    OnDemand {
        /// The baseline, paid in advance.
        base: TokenRate,
        /// The maximum.
        burst: TokenRate,
    },
}

impl Limit {
    /// One of `count` equal parts of it; `None` where that is less than a rate can be.
    fn part(self, count: u64) -> Option<Limit> {
        let of = |rate: TokenRate| TokenRate::ratio(rate.tokens(), rate.per_ns().checked_mul(count)?);
        Some(match self {
            Limit::Rate(rate) => Limit::Rate(of(rate)?),
            Limit::Credit { base, burst, capacity, initial } => Limit::Credit {
                base: of(base)?,
                burst: burst.map(of).map_or(Some(None), |burst| Some(Some(burst?)))?,
                capacity: (capacity / count).max(1),
                initial: initial / count,
            },
            Limit::Window { base, burst, burst_ns, rest_ns } => {
                Limit::Window { base: of(base)?, burst: of(burst)?, burst_ns, rest_ns }
            }
            Limit::OnDemand { base, burst } => Limit::OnDemand { base: of(base)?, burst: of(burst)? },
        })
    }

    /// The rate that is always available without extra cost.
    pub fn baseline(&self) -> TokenRate {
        match *self {
            Limit::Rate(base)
            | Limit::Credit { base, .. }
            | Limit::Window { base, .. }
            | Limit::OnDemand { base, .. } => base,
        }
    }

    /// The peak rate; `None` = no limit.
    pub fn peak(&self) -> Option<TokenRate> {
        match *self {
            Limit::Rate(rate) => Some(rate),
            Limit::Credit { burst, .. } => burst,
            Limit::Window { burst, .. } | Limit::OnDemand { burst, .. } => Some(burst),
        }
    }

    /// Time until `credit` tokens are exhausted at the full burst rate, ns rounded up. `None` if they never are, or
    /// without a burst rate.
    pub fn time_to_empty_ns(&self, credit: u64) -> Option<u64> {
        match *self {
            Limit::Credit { base, burst, .. } => Some(burst?.minus(base)?.time_for(credit)),
            Limit::Window { burst_ns, .. } => Some(burst_ns),
            Limit::Rate(_) | Limit::OnDemand { .. } => None,
        }
    }

    /// Time to refill an empty bucket when idle, ns rounded up.
    pub fn time_to_refill_ns(&self) -> Option<u64> {
        match *self {
            Limit::Credit { base, capacity, .. } => Some(base.time_for(capacity)),
            Limit::Window { rest_ns, .. } => Some(rest_ns),
            Limit::Rate(_) | Limit::OnDemand { .. } => None,
        }
    }

    /// The first invalid field, and the reason.
    pub(crate) fn invalid_field(&self) -> Option<(&'static str, String)> {
        let slower = |base: TokenRate, burst: TokenRate| {
            (burst < base).then(|| ("burst", format!("{burst} is below the baseline of {base}")))
        };
        let too_long = |ns: u64| format!("{ns} ns exceed {} days", LONGEST_NS / (86_400 * 1_000_000_000));
        match *self {
            Limit::Rate(_) => None,
            Limit::Credit { capacity: 0, .. } => Some(("capacity", "is 0".to_owned())),
            Limit::Credit { capacity, .. } if capacity > MAX_TOKENS => {
                Some(("capacity", format!("{capacity} is above {MAX_TOKENS}")))
            }
            Limit::Credit { capacity, initial, .. } if initial > capacity => {
                Some(("initial", format!("{initial} is above the capacity of {capacity}")))
            }
            Limit::Credit { base, burst, .. } => burst.and_then(|burst| slower(base, burst)),
            Limit::Window { burst_ns: 0, .. } => Some(("burst_ns", "is 0".to_owned())),
            Limit::Window { rest_ns: 0, .. } => Some(("rest_ns", "is 0: the burst never ends".to_owned())),
            Limit::Window { burst_ns, .. } if burst_ns > LONGEST_NS => Some(("burst_ns", too_long(burst_ns))),
            Limit::Window { rest_ns, .. } if rest_ns > LONGEST_NS => Some(("rest_ns", too_long(rest_ns))),
            Limit::Window { base, burst, burst_ns, rest_ns } => slower(base, burst).or_else(|| {
                let fits = Window::new(base, burst, burst_ns, rest_ns, 0).is_some();
                (!fits).then(|| ("burst", "has no common measure with the baseline".to_owned()))
            }),
            Limit::OnDemand { base, burst } => slower(base, burst),
        }
    }
}

impl LimitStage {
    /// One of `count` equal parts of its limits; `None` where that is less than a rate can be.
    pub fn part(&self, count: u64) -> Option<LimitStage> {
        let of = |limit: Option<Limit>| limit.map_or(Some(None), |limit| Some(Some(limit.part(count)?)));
        Some(LimitStage { ios: of(self.ios)?, bytes: of(self.bytes)?, ..self.clone() })
    }
}

/// Upper bound of a capacity: above any volume's, and small enough for exact arithmetic.
pub(crate) const MAX_TOKENS: u64 = 1 << 62;
/// Upper bound of the length of a window.
const LONGEST_NS: u64 = 1 << 55;

/// The state of a limit.
#[derive(Clone, Debug)]
pub(crate) enum Limiter {
    Pace(TokenBucket),
    Credit { pace: Option<TokenBucket>, store: TokenBucket },
    Window(Box<Window>),
}

/// The state of a limit for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitState {
    /// A constant rate, without credits.
    Steady,
    /// Remaining burst credits, in whole tokens, after all requests accepted so far.
    Credit {
        /// Tokens left.
        left: u64,
        /// Tokens when full.
        capacity: u64,
    },
    /// A window: the burst rate applies until this time.
    Burst {
        /// ns on the volume's clock.
        until_ns: u64,
    },
    /// A window: the baseline applies, and no burst begins before this time.
    Rest {
        /// ns on the volume's clock.
        until_ns: u64,
    },
    /// A window: a burst begins as soon as the baseline is exceeded.
    Ready,
}

impl Limiter {
    /// `limit` at time 0; it must be valid. Requests may be `slack_ns` ahead of its rates.
    pub(crate) fn new(limit: Limit, slack_ns: u64) -> Self {
        let pacing = |rate| TokenBucket::pacing(rate, slack_ns);
        match limit {
            Limit::Rate(rate) | Limit::OnDemand { burst: rate, .. } => Limiter::Pace(pacing(rate)),
            Limit::Credit { base, burst, capacity, initial } => Limiter::Credit {
                pace: burst.map(pacing),
                store: TokenBucket::storing(base, capacity, initial),
            },
            Limit::Window { base, burst, burst_ns, rest_ns } => {
                match Window::new(base, burst, burst_ns, rest_ns, slack_ns) {
                    Some(window) => Limiter::Window(Box::new(window)),
                    // `Limit::invalid_field` refuses such windows.
                    None => Limiter::Pace(pacing(base)),
                }
            }
        }
    }

    /// The first time from `now` on at which `cost` tokens may be taken.
    #[inline(always)]
    pub(crate) fn earliest(&mut self, now: u64, cost: u64) -> u64 {
        match self {
            Limiter::Pace(pace) => pace.earliest(now, cost),
            Limiter::Credit { pace, store } => {
                let paced = pace.as_ref().map_or(now, |pace| pace.earliest(now, cost));
                store.earliest(paced, cost)
            }
            Limiter::Window(window) => window.earliest(now, cost),
        }
    }

    /// Takes `cost` tokens at `at`, not before the time that [`Limiter::earliest`] returned.
    #[inline(always)]
    pub(crate) fn take(&mut self, at: u64, cost: u64) {
        match self {
            Limiter::Pace(pace) => pace.take(at, cost),
            Limiter::Credit { pace, store } => {
                if let Some(pace) = pace {
                    pace.take(at, cost);
                }
                store.take(at, cost);
            }
            Limiter::Window(window) => window.take(at, cost),
        }
    }

    /// Drops credit at `at` beyond what `slack_ns` provide; burst credits stay.
    pub(crate) fn limit_credit(&mut self, at: u64, slack_ns: u64) {
        match self {
            Limiter::Pace(pace) | Limiter::Credit { pace: Some(pace), .. } => pace.limit_credit(at, slack_ns),
            Limiter::Credit { pace: None, .. } => {}
            Limiter::Window(window) => window.limit_credit(at, slack_ns),
        }
    }

    /// Forgives what is owed at `at` beyond `tokens` and what `owed_ns` provide.
    pub(crate) fn limit_debt(&mut self, at: u64, tokens: u64, owed_ns: u64) {
        if let Limiter::Credit { store, .. } = self {
            store.limit_debt(at.saturating_add(owed_ns), tokens);
        }
    }

    /// Burst credits left at `at`, in whole tokens; `None` without a bucket.
    pub(crate) fn credits(&self, at: u64) -> Option<u64> {
        match self {
            Limiter::Credit { store, .. } => Some(store.level(at)),
            Limiter::Pace(_) | Limiter::Window(_) => None,
        }
    }

    /// The state at `at` without further requests.
    pub(crate) fn state(&self, limit: &Limit, at: u64) -> LimitState {
        match (self, limit) {
            (Limiter::Credit { store, .. }, Limit::Credit { capacity, .. }) => {
                LimitState::Credit { left: store.level(at), capacity: *capacity }
            }
            (Limiter::Window(window), _) => match window.phase(at) {
                WindowPhase::Ready => LimitState::Ready,
                WindowPhase::Burst { until } => LimitState::Burst { until_ns: until },
                WindowPhase::Rest { until } => LimitState::Rest { until_ns: until },
            },
            _ => LimitState::Steady,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn rate(tokens: u64) -> TokenRate {
        TokenRate::per_second(tokens).unwrap()
    }

    /// gp2's rule at a baseline.
    fn gp2(base: u64) -> Limit {
        let capacity = 5_400_000;
        Limit::Credit { base: rate(base), burst: Some(rate(3000)), capacity, initial: capacity }
    }

    #[test]
    fn full_buckets_last_as_long_as_published() {
        // 1, 100, 250, 334 (as printed, 2,703 s), 500 and 750 GiB; 50 GiB, where 1,894.7 s follow from the rule.
        for (base, seconds) in
            [(100, 1862), (300, 2000), (750, 2400), (1002, 2703), (1500, 3600), (2250, 7200), (150, 1895)]
        {
            let exact = gp2(base).time_to_empty_ns(5_400_000).unwrap();
            assert_eq!((exact + SECOND / 2) / SECOND, seconds, "{base}");
        }
        // 214 GiB: 8,411.2 s to refill, while the provider's table has 8,412.
        assert_eq!(gp2(642).time_to_refill_ns(), Some(8_411_214_953_272));
        assert_eq!(gp2(150).time_to_refill_ns(), Some(36_000 * SECOND));
        assert_eq!(gp2(642).time_to_empty_ns(5_400_000).unwrap() / SECOND, 2290);
    }

    #[test]
    fn hdd_and_dual_buckets_last_as_long_as_published() {
        let mib = |count: u64| TokenRate::per_second(count << 20).unwrap();
        let hdd = |base, burst| Limit::Credit {
            base: mib(base),
            burst: Some(mib(burst)),
            capacity: 1 << 40,
            initial: 1 << 40,
        };
        assert_eq!(hdd(40, 250).time_to_empty_ns(1 << 40).unwrap() / SECOND, 4993);
        assert_eq!(hdd(12, 80).time_to_empty_ns(1 << 40).unwrap() / SECOND, 15_420);
        // Azure P1 and P20: half an hour at most, refilled at the baseline.
        for (base, capacity, refill) in [(120, 6_084_000, 50_700), (2300, 2_160_000, 939)] {
            assert_eq!((3500 - base) * 1800, capacity);
            let burst = Some(rate(3500));
            let limit = Limit::Credit { base: rate(base), burst, capacity, initial: capacity };
            assert_eq!(limit.time_to_empty_ns(capacity), Some(1800 * SECOND));
            assert_eq!(limit.time_to_refill_ns().unwrap() / SECOND, refill);
        }
    }

    #[test]
    fn parts_of_a_limit_last_as_long() {
        let stage =
            LimitStage { ios: Some(gp2(150)), bytes: Some(Limit::Rate(rate(100))), ..LimitStage::default() };
        let part = stage.part(3).unwrap();
        let ios = part.ios.unwrap();
        assert_eq!((ios.baseline(), ios.peak()), (rate(50), Some(rate(1000))));
        assert_eq!(ios.time_to_empty_ns(1_800_000), gp2(150).time_to_empty_ns(5_400_000));
        assert_eq!(part.bytes, TokenRate::ratio(100, 3 * SECOND).map(Limit::Rate));
        let slowest = LimitStage { ios: Some(Limit::Rate(rate(1))), ..LimitStage::default() };
        assert_eq!(slowest.part(u64::MAX), None);
    }

    #[test]
    fn limits_have_a_baseline_and_a_peak() {
        let window = |base, burst| {
            let (base, burst) = (rate(base), rate(burst));
            Limit::Window { base, burst, burst_ns: 60 * SECOND, rest_ns: 60 * SECOND }
        };
        for (limit, baseline, peak) in [
            (window(5000, 7500), 5000, 7500),
            (gp2(150), 150, 3000),
            (Limit::Rate(rate(5000)), 5000, 5000),
            (Limit::OnDemand { base: rate(5000), burst: rate(30_000) }, 5000, 30_000),
        ] {
            assert_eq!((limit.baseline(), limit.peak()), (rate(baseline), Some(rate(peak))), "{limit:?}");
        }
    }

    #[test]
    fn invalid_limits_are_refused_by_field() {
        let credit = |burst, capacity, initial| Limit::Credit { base: rate(100), burst, capacity, initial };
        let window = |burst, burst_ns, rest_ns| Limit::Window {
            base: rate(100),
            burst: rate(burst),
            burst_ns,
            rest_ns,
        };
        for (limit, expected) in [
            (gp2(150), None),
            (credit(None, 1, 0), None),
            (credit(Some(rate(100)), 1, 1), None),
            (credit(Some(rate(99)), 1, 1), Some("burst")),
            (credit(None, 0, 0), Some("capacity")),
            (credit(None, u64::MAX, 0), Some("capacity")),
            (credit(None, 5, 6), Some("initial")),
            (window(150, 1, 1), None),
            (window(99, 1, 1), Some("burst")),
            (window(150, 0, 1), Some("burst_ns")),
            (window(150, 1, 0), Some("rest_ns")),
            (window(150, u64::MAX, 1), Some("burst_ns")),
            (window(150, 1, u64::MAX), Some("rest_ns")),
            (Limit::OnDemand { base: rate(2), burst: rate(1) }, Some("burst")),
        ] {
            assert_eq!(limit.invalid_field().map(|(field, _)| field), expected, "{limit:?}");
        }
    }
}
