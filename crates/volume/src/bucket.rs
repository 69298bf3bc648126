//! A token bucket in exact integers: O(1) per request, without events per token and without drift.
//!
//! The level is `gain * t - spent`, limited to the capacity. So the state of a bucket is one number, and reading the
//! level does not change it. Tokens are scaled by the denominator of the rate, so that the gain per ns is a whole
//! number.

use crate::rate::TokenRate;

/// A bucket whose tokens accrue at a rate up to a capacity.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    /// Scaled tokens gained per ns.
    gain: u64,
    /// Scaled tokens per token.
    scale: u64,
    /// Scaled tokens at which the bucket is full.
    capacity: i128,
    /// Tokens that a request needs before it may proceed, or its cost if that is less.
    required: u64,
    /// `gain * t` at the instant the bucket is empty.
    spent: i128,
}

impl TokenBucket {
    /// Spaces requests at `rate`: each proceeds as soon as the earlier ones are paid for. Requests may be up to
    /// `slack_ns` ahead of the rate.
    ///
    /// The capacity is at least the gain of one ns: times are whole ns, and every rounding would otherwise lose a
    /// remainder.
    pub(crate) fn pacing(rate: TokenRate, slack_ns: u64) -> Self {
        let (gain, scale) = (rate.tokens(), rate.per_ns());
        let capacity = i128::from(gain) * i128::from(slack_ns.max(1));
        TokenBucket { gain, scale, capacity, required: 0, spent: 0 }
    }

    /// Drops credit beyond what `slack_ns` provide at `at`.
    pub(crate) fn limit_credit(&mut self, at: u64, slack_ns: u64) {
        self.spent = self.spent.max(self.gained(at) - i128::from(self.gain) * i128::from(slack_ns.max(1)));
    }

    /// A bucket of `capacity` tokens, with `initial` tokens at time 0, refilled at `rate`.
    pub(crate) fn storing(rate: TokenRate, capacity: u64, initial: u64) -> Self {
        let (gain, scale) = (rate.tokens(), rate.per_ns());
        let spent = -i128::from(initial.min(capacity)) * i128::from(scale);
        let required = capacity;
        TokenBucket { gain, scale, capacity: i128::from(capacity) * i128::from(scale), required, spent }
    }

    /// The first time from `now` on at which `cost` tokens may be taken. A request that costs more than the capacity
    /// proceeds when the bucket is full, and is paid for afterwards. A request without cost never waits.
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

    /// Takes `cost` tokens at `at`, a time that [`TokenBucket::earliest`] returned.
    #[inline(always)]
    pub(crate) fn take(&mut self, at: u64, cost: u64) {
        let full = self.gained(at) - self.capacity;
        self.spent = self.spent.max(full) + i128::from(cost) * i128::from(self.scale);
    }

    /// Forgives what remains to be paid for at `at` beyond `tokens`.
    pub(crate) fn limit_debt(&mut self, at: u64, tokens: u64) {
        self.spent = self.spent.min(self.gained(at) + i128::from(tokens) * i128::from(self.scale));
    }

    /// Whole tokens at `at`; 0 while requests remain to be paid for.
    pub(crate) fn level(&self, at: u64) -> u64 {
        let level = (self.gained(at) - self.spent).clamp(0, self.capacity);
        (level / i128::from(self.scale)) as u64
    }

    #[inline(always)]
    fn gained(&self, at: u64) -> i128 {
        i128::from(self.gain) * i128::from(at)
    }
}

/// Rounded up; a time beyond the range of the clock becomes the maximum, "never".
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

    /// Checks when each of `costs`, all requested at 0, proceeds.
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
    fn requests_proceed_once_earlier_ones_are_paid_for() {
        check(TokenBucket::pacing(rate(1000), 0), &[1, 1, 2, 1], &[0, 1_000_000, 2_000_000, 4_000_000]);
        // A third of a second is not a whole number of ns; the third request is still on time.
        check(TokenBucket::pacing(rate(3), 0), &[1; 4], &[0, 333_333_334, 666_666_667, SECOND]);
        check(TokenBucket::storing(rate(1), 3, 2), &[1, 1, 1, 2], &[0, 0, SECOND, 3 * SECOND]);
        // More than the capacity: proceeds when the bucket is full, and is paid for afterwards.
        check(TokenBucket::storing(rate(1), 2, 2), &[5, 1], &[0, 4 * SECOND]);
        // A request without cost proceeds with the one before it.
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
    fn levels_stay_between_zero_and_the_capacity() {
        let mut bucket = TokenBucket::storing(rate(2), 10, 4);
        let levels = |bucket: &TokenBucket| [0, 1, 3, 100].map(|second| bucket.level(second * SECOND));
        assert_eq!(levels(&bucket), [4, 6, 10, 10]);
        bucket.take(3 * SECOND, 10);
        assert_eq!(levels(&bucket), [0, 0, 0, 10]);
    }

    #[test]
    fn a_day_of_an_odd_rate_loses_nothing() {
        // 7 every 3 s are 201,600 per day; the last one is on time to the ns.
        let mut bucket = TokenBucket::pacing(TokenRate::ratio(7, 3 * SECOND).unwrap(), 0);
        let mut now = 0;
        for _ in 0..=201_600 {
            now = bucket.earliest(now, 1);
            bucket.take(now, 1);
        }
        assert_eq!(now, 86_400 * SECOND);
    }
}
