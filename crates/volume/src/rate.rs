//! Rates as exact fractions: tokens per ns. Only times are rounded.

use std::cmp::Ordering;
use std::fmt;

/// ns per second.
const SECOND: u64 = 1_000_000_000;

/// `tokens` (I/Os, bytes, ns of CPU time) in every `per_ns` ns, in lowest terms. Neither is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenRate {
    tokens: u64,
    per_ns: u64,
}

impl TokenRate {
    /// Upper bound of a rate, so that a day at the maximum is still counted exactly.
    pub const MAX_PER_SECOND: u64 = 1 << 50;

    /// `tokens` per second; `None` at 0 and above [`TokenRate::MAX_PER_SECOND`].
    pub fn per_second(tokens: u64) -> Option<TokenRate> {
        TokenRate::ratio(tokens, SECOND)
    }

    /// `tokens` in every `per_ns` ns; `None` if either is 0, or if the rate is too high or the fraction too fine.
    pub fn ratio(tokens: u64, per_ns: u64) -> Option<TokenRate> {
        if tokens == 0 || per_ns == 0 {
            return None;
        }
        let divisor = greatest_common_divisor(tokens, per_ns);
        let rate = TokenRate { tokens: tokens / divisor, per_ns: per_ns / divisor };
        let most = u128::from(TokenRate::MAX_PER_SECOND) * u128::from(rate.per_ns);
        let is_fast = u128::from(rate.tokens) * u128::from(SECOND) > most;
        (!is_fast && rate.per_ns <= 1 << 50 && rate.tokens <= 1 << 62).then_some(rate)
    }

    /// Tokens gained in [`TokenRate::per_ns`] ns.
    pub fn tokens(self) -> u64 {
        self.tokens
    }

    /// ns in which [`TokenRate::tokens`] are gained.
    pub fn per_ns(self) -> u64 {
        self.per_ns
    }

    /// Whole tokens gained in `span_ns`.
    pub fn in_ns(self, span_ns: u64) -> u128 {
        u128::from(self.tokens) * u128::from(span_ns) / u128::from(self.per_ns)
    }

    /// Whole ns, rounded up, in which `tokens` are gained.
    pub fn time_for(self, tokens: u64) -> u64 {
        let ns = (u128::from(tokens) * u128::from(self.per_ns)).div_ceil(u128::from(self.tokens));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// This rate minus `slower`; `None` if nothing remains.
    pub fn minus(self, slower: TokenRate) -> Option<TokenRate> {
        let per_ns = least_common_multiple(self.per_ns, slower.per_ns)?;
        let gained = u128::from(self.tokens) * u128::from(per_ns / self.per_ns);
        let spent = u128::from(slower.tokens) * u128::from(per_ns / slower.per_ns);
        TokenRate::ratio(u64::try_from(gained.checked_sub(spent)?).ok()?, per_ns)
    }

    /// For printing only; calculations use the fraction.
    pub fn as_f64(self) -> f64 {
        self.tokens as f64 * SECOND as f64 / self.per_ns as f64
    }
}

impl Ord for TokenRate {
    fn cmp(&self, other: &Self) -> Ordering {
        let (left, right) = (
            u128::from(self.tokens) * u128::from(other.per_ns),
            u128::from(other.tokens) * u128::from(self.per_ns),
        );
        left.cmp(&right)
    }
}

impl PartialOrd for TokenRate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for TokenRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.as_f64())
    }
}

fn greatest_common_divisor(mut left: u64, mut right: u64) -> u64 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

/// The least common multiple; `None` on overflow.
pub(crate) fn least_common_multiple(left: u64, right: u64) -> Option<u64> {
    (left / greatest_common_divisor(left, right)).checked_mul(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_lowest_terms_and_bounded() {
        for (tokens, per_ns, expected) in [
            (3000, SECOND, Some((3, 1_000_000))),
            (7, 3 * SECOND, Some((7, 3 * SECOND))),
            (1 << 50, SECOND, Some((1 << 41, SECOND >> 9))),
            ((1 << 50) + 1, SECOND, None),
            (0, SECOND, None),
            (5, 0, None),
            (1, u64::MAX, None),
            // 2^13 per ns is below the bound, but would overflow with the clock.
            ((1 << 63) - 1, 1 << 50, None),
        ] {
            let rate = TokenRate::ratio(tokens, per_ns).map(|rate| (rate.tokens(), rate.per_ns()));
            assert_eq!(rate, expected, "{tokens} in {per_ns}");
        }
    }

    #[test]
    fn differences_and_times_are_exact() {
        let rate = |tokens| TokenRate::per_second(tokens).unwrap();
        assert_eq!(rate(3000).minus(rate(150)), Some(rate(2850)));
        assert_eq!(rate(150).minus(rate(150)), None);
        assert_eq!(rate(100).minus(rate(150)), None);
        assert_eq!(TokenRate::ratio(7, 3 * SECOND).unwrap().minus(rate(2)), TokenRate::ratio(1, 3 * SECOND));
        assert_eq!(rate(2850).time_for(5_400_000), 1_894_736_842_106);
        assert_eq!(rate(150).time_for(5_400_000), 36_000 * SECOND);
        assert_eq!(rate(150).in_ns(36_000 * SECOND), 5_400_000);
        assert!(rate(150) < rate(151) && TokenRate::ratio(7, 3 * SECOND).unwrap() > rate(2));
    }
}
