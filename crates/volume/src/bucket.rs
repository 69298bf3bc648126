//! A token bucket in exact integers, answered in O(1): no event per token, nothing that drifts.
//!
//! The level is the line `gain * t - spent`, cut off at the capacity. So a bucket is one number, and asking for the
//! level at an instant changes nothing. Tokens are scaled by the denominator of the rate, which makes the gain of a ns whole.

use crate::rate::TokenRate;

/// Tokens that accrue at a rate up to a capacity.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    /// Scaled tokens gained in a ns.
    gain: u64,
    /// Scaled tokens in a token.
    scale: u64,
    /// Scaled tokens at which the bucket is full.
    capacity: i128,
    /// Tokens that must be there before a request may go, unless the request costs less.
    required: u64,
    /// `gain * t` at the instant the bucket is empty.
    spent: i128,
}

impl TokenBucket {
    /// Spaces requests at `rate`: each goes as soon as those before it are paid for, which may have been up to `slack_ns`
    /// ahead.
    ///
    /// It holds at least what one ns brings, because instants are whole ns: else each rounding would lose its rest for good.
    pub(crate) fn pacing(rate: TokenRate, slack_ns: u64) -> Self {
        let (gain, scale) = (rate.tokens(), rate.per_ns());
        let capacity = i128::from(gain) * i128::from(slack_ns.max(1));
        TokenBucket { gain, scale, capacity, required: 0, spent: 0 }
    }

    /// Holds `capacity` tokens, `initial` of them at the instant 0, and gains them at `rate`.
    pub(crate) fn storing(rate: TokenRate, capacity: u64, initial: u64) -> Self {
        let (gain, scale) = (rate.tokens(), rate.per_ns());
        let spent = -i128::from(initial.min(capacity)) * i128::from(scale);
        let required = capacity;
        TokenBucket { gain, scale, capacity: i128::from(capacity) * i128::from(scale), required, spent }
    }

    /// The first instant from `now` on at which `cost` tokens may be taken. One request that costs more than the
    /// bucket holds goes when it is full, and is paid for afterwards. What costs nothing waits for nothing.
    #[inline(always)]
    pub(crate) fn earliest(&self, now: u64, cost: u64) -> u64 {
        if cost == 0 {
            return now;
        }
        let required = i128::from(cost.min(self.required)) * i128::from(self.scale);
        let missing = self.spent + required - self.gained(now);
        if missing <= 0 {
            return now;
        }
        now.saturating_add(div_ceil(missing as u128, self.gain))
    }

    /// Takes `cost` tokens at `at`, which [`Bucket::earliest`] has allowed.
    #[inline(always)]
    pub(crate) fn take(&mut self, at: u64, cost: u64) {
        let full = self.gained(at) - self.capacity;
        self.spent = self.spent.max(full) + i128::from(cost) * i128::from(self.scale);
    }

    /// Whole tokens there are at `at`; 0 while something is still to be paid for.
    pub(crate) fn level(&self, at: u64) -> u64 {
        let level = (self.gained(at) - self.spent).clamp(0, self.capacity);
        (level / i128::from(self.scale)) as u64
    }

    #[inline(always)]
    fn gained(&self, at: u64) -> i128 {
        i128::from(self.gain) * i128::from(at)
    }
}

/// Rounded up; what takes longer than the clock reaches is never.
#[inline(always)]
pub(crate) fn div_ceil(dividend: u128, divisor: u64) -> u64 {
    match u64::try_from(dividend) {
        Ok(dividend) => dividend.div_ceil(divisor),
        Err(_) => u64::try_from(dividend.div_ceil(u128::from(divisor))).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn rate(tokens: u64) -> TokenRate {
        TokenRate::per_second(tokens).unwrap()
    }

    /// When each of `costs`, all asked for at 0, goes.
    fn check(mut bucket: TokenBucket, costs: &[u64], expected: &[u64]) {
        let went: Vec<u64> = costs
            .iter()
            .map(|&cost| {
                let at = bucket.earliest(0, cost);
                bucket.take(at, cost);
                at
            })
            .collect();
        assert_eq!(went, expected);
    }

    #[test]
    fn requests_go_when_they_are_paid_for() {
        check(TokenBucket::pacing(rate(1000), 0), &[1, 1, 2, 1], &[0, 1_000_000, 2_000_000, 4_000_000]);
        // A third of a second is no whole ns; the third request is on time all the same.
        check(TokenBucket::pacing(rate(3), 0), &[1; 4], &[0, 333_333_334, 666_666_667, SECOND]);
        check(TokenBucket::storing(rate(1), 3, 2), &[1, 1, 1, 2], &[0, 0, SECOND, 3 * SECOND]);
        // More than it holds: when full, and paid for afterwards.
        check(TokenBucket::storing(rate(1), 2, 2), &[5, 1], &[0, 4 * SECOND]);
        // What costs nothing is part of what went before it.
        check(TokenBucket::pacing(rate(1), 0), &[4, 0, 1], &[0, 0, 4 * SECOND]);
    }

    #[test]
    fn slack_lets_requests_catch_up() {
        let mut bucket = TokenBucket::pacing(rate(10), SECOND / 2);
        let mut went = Vec::new();
        for asked in
            [0, 0, 2 * SECOND, 2 * SECOND, 2 * SECOND, 2 * SECOND, 2 * SECOND, 2 * SECOND, 2 * SECOND]
        {
            let at = bucket.earliest(asked, 1);
            bucket.take(at, 1);
            went.push(at / (SECOND / 10));
        }
        assert_eq!(went, [0, 1, 20, 20, 20, 20, 20, 20, 21]);
    }

    #[test]
    fn levels_rise_to_the_capacity_and_never_below_nothing() {
        let mut bucket = TokenBucket::storing(rate(2), 10, 4);
        let levels = |bucket: &TokenBucket| [0, 1, 3, 100].map(|second| bucket.level(second * SECOND));
        assert_eq!(levels(&bucket), [4, 6, 10, 10]);
        bucket.take(3 * SECOND, 10);
        assert_eq!(levels(&bucket), [0, 0, 0, 10]);
    }

    #[test]
    fn a_day_of_an_odd_rate_loses_nothing() {
        // 7 every 3 s: a day brings 201,600, and the one at its end is on time to the ns.
        let mut bucket = TokenBucket::pacing(TokenRate::ratio(7, 3 * SECOND).unwrap(), 0);
        let mut now = 0;
        for _ in 0..=201_600 {
            now = bucket.earliest(now, 1);
            bucket.take(now, 1);
        }
        assert_eq!(now, 86_400 * SECOND);
    }
}
