//! What was taken from a bucket that is full at first and gains its baseline: nothing depends on when it was exhausted or how
//! often it rested, as long as everything that was asked is counted.

use super::curve::ObservedUnit;
use super::findings::Findings;
use super::level::ProbeLoad;
use super::probe::{IoDirection, ProbeSlice};
use super::script::Script;
use crate::identified::{BucketUnit, IoScope};

/// A bucket that was exhausted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EmptiedBucket {
    pub(crate) account: Account,
    /// By what share its baseline may be wrong.
    pub(crate) error: f64,
    /// The rate before it fell, in what it counts.
    pub(crate) high: f64,
    /// A span in which it was empty, ns.
    pub(crate) dry: (u64, u64),
    /// The load that emptied it.
    pub(crate) load: ProbeLoad,
    /// What an idle period gave back; `None` where none was measured.
    pub(crate) recovery: Option<Recovery>,
    /// It was exhausted while the limits were measured.
    pub(crate) is_early: bool,
    /// What it holds, once that was worked out.
    pub(crate) full: Option<f64>,
}

/// What an idle period that begins with an empty bucket gave back, in what the bucket counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Recovery {
    /// Length of the idle period, s.
    pub(crate) rest_s: f64,
    /// What a bucket gains in it.
    pub(crate) gained: f64,
    /// What completed after it beyond the baseline.
    pub(crate) regained: f64,
    /// How long the rate before the fall was restored, s.
    pub(crate) restored_s: f64,
    /// The rate was the baseline before the idle period, and fell to it again.
    pub(crate) is_used_up: bool,
    /// Under load the rate rose, or did not fall in the time in which a bucket uses up what it gained.
    pub(crate) has_risen: bool,
    /// The idle period may have filled the bucket, and then tells no refill rate.
    pub(crate) may_be_full: bool,
}

/// An idle period gives back what a bucket gains in it, or else it is no bucket: from this part of that, to so many times it and
/// what a limiter releases ahead of its rate in so many s.
const LEAST_REGAINED: f64 = 0.3;
const MOST_REGAINED: f64 = 1.25;
const AHEAD_S: f64 = 0.25;

impl EmptiedBucket {
    /// It counts all of these directions.
    pub(crate) fn draws_on(&self, ways: IoScope) -> bool {
        self.account.scope == IoScope::Both || self.account.scope == ways
    }

    /// The measured recovery whose idle period was long enough to restore the rate before the fall for twice `least` s.
    pub(crate) fn measured_recovery(&self, least: f64) -> Option<Recovery> {
        let beyond = self.high - self.account.base;
        self.recovery.filter(|recovery| recovery.gained > 2.0 * least * beyond)
    }

    /// An idle period restored the rate for longer than `least` s, and by what the bucket gains, as far as that was used up.
    pub(crate) fn comes_back(&self, least: f64) -> bool {
        self.measured_recovery(least).is_some_and(|recovery| {
            let is_gained = recovery.regained > LEAST_REGAINED * recovery.gained;
            recovery.restored_s > least && (is_gained || !recovery.is_used_up)
        })
    }

    /// More came after an idle period than the bucket can have gained in it, or not right after it: the rate rose for another
    /// reason.
    pub(crate) fn has_regained_more(&self) -> bool {
        self.recovery.is_some_and(|recovery| {
            recovery.has_risen || recovery.regained > MOST_REGAINED * recovery.gained + AHEAD_S * self.high
        })
    }

    /// The least that the rate before the fall can have been by itself: it may stand for a single second, and right after an idle
    /// period, when a limiter lets requests through that it has saved up.
    pub(crate) fn least_high(&self) -> f64 {
        (self.high - AHEAD_S * self.account.base).max(self.account.base)
    }

    /// What an idle period gave back, and its length, s, where that tells the refill rate.
    pub(crate) fn refilled(&self) -> Option<(f64, f64)> {
        let counted = self.recovery.filter(|recovery| recovery.is_used_up && !recovery.may_be_full);
        counted.map(|recovery| (recovery.regained, recovery.rest_s))
    }
}

/// A request up to this size counts as one, where nothing is known of it, bytes.
const TAKEN_FOR_ONE: u64 = 4096;

/// Whose requests count, and as what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Account {
    pub(crate) kind: BucketUnit,
    pub(crate) scope: IoScope,
    /// What it gains a second.
    pub(crate) base: f64,
}

impl Account {
    pub(crate) fn counts(&self, way: IoDirection) -> bool {
        way.is_in(self.scope)
    }

    /// The direction that it counts, reads where it counts both.
    pub(crate) fn way(&self) -> IoDirection {
        if self.counts(IoDirection::Read) { IoDirection::Read } else { IoDirection::Write }
    }

    /// What a request of `block` bytes costs at the most: where the unit could not show, it may be as small as the largest
    /// request that is known to count as one.
    fn cost_at_most(&self, found: &Findings, way: IoDirection, block: u64) -> f64 {
        let as_one = match found.unit(way) {
            Some(ObservedUnit::Above(bytes)) => Some(bytes),
            None => Some(TAKEN_FOR_ONE),
            Some(ObservedUnit::Hidden) => found.curves[way as usize].as_ref().and_then(|curve| curve.flat_to),
            _ => None,
        };
        match (self.kind, as_one) {
            (BucketUnit::Ios, Some(as_one)) => block.div_ceil(as_one.max(1)) as f64,
            _ => self.cost(found, way, block),
        }
    }

    /// What a request of `block` bytes costs; at the least, where its unit is not known.
    pub(crate) fn cost(&self, found: &Findings, way: IoDirection, block: u64) -> f64 {
        match self.kind {
            BucketUnit::Bytes => block as f64,
            BucketUnit::Ios => match found.unit(way) {
                Some(ObservedUnit::Exactly(unit)) => block.div_ceil(unit) as f64,
                _ => 1.0,
            },
        }
    }
}

impl Script<'_> {
    /// What is missing from the bucket at the end of each slice of time: `(instant, ns; missing)`.
    pub(crate) fn missing(&self, account: &Account) -> Vec<(u64, f64)> {
        self.missing_by(account, Account::cost)
    }

    /// The same, every request costing as much as it may.
    pub(crate) fn missing_at_most(&self, account: &Account) -> Vec<(u64, f64)> {
        self.missing_by(account, Account::cost_at_most)
    }

    fn missing_by(
        &self,
        account: &Account,
        cost: fn(&Account, &Findings, IoDirection, u64) -> f64,
    ) -> Vec<(u64, f64)> {
        let mut spent: Vec<(u64, u64, f64)> = Vec::new();
        for (probe, began, seen) in self.answers() {
            for way in [IoDirection::Read, IoDirection::Write] {
                if !account.counts(way) {
                    continue;
                }
                let cost = cost(account, &self.found, way, probe.block);
                let slice = |slice: &ProbeSlice| {
                    (began + slice.start_ns, began + slice.end_ns, slice.ios as f64 * cost)
                };
                spent.extend(seen.done(way).slices.iter().map(slice));
            }
        }
        spent.sort_by_key(|slice| slice.1);
        let mut missing = Vec::with_capacity(spent.len());
        let (mut at, mut now) = (0, 0.0f64);
        for (start, end, cost) in spent {
            // A rest may fill it.
            if start > at {
                now = (now - account.base * (start - at) as f64 / 1e9).max(0.0);
                at = start;
            }
            now = (now + cost - account.base * end.saturating_sub(at) as f64 / 1e9).max(0.0);
            at = at.max(end);
            missing.push((end, now));
        }
        missing
    }

    /// What is missing now.
    pub(crate) fn missing_now(&self, account: &Account) -> f64 {
        let missing = self.missing(account);
        let Some(&(at, now)) = missing.last() else { return 0.0 };
        (now - account.base * self.spent.time_ns.saturating_sub(at) as f64 / 1e9).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_right_after_an_idle_period_includes_what_a_limiter_saved_up() {
        let account = Account { kind: BucketUnit::Bytes, scope: IoScope::Reads, base: 7_712_678.0 };
        let load =
            ProbeLoad { aim: "after idling", ways: IoScope::Reads, block: 65_536, depth: 8, guess: None };
        let least = |high: f64| {
            let (dry, recovery, full) = ((0, 1), None, None);
            EmptiedBucket { account, error: 0.0, high, dry, load, recovery, is_early: false, full }
                .least_high()
        };
        // A limiter of 7,712,678 B/s released 8,679,000 bytes in the first second after it.
        assert_eq!(least(8_679_000.0), 7_712_678.0);
        assert_eq!(least(20_000_000.0), 20_000_000.0 - 0.25 * 7_712_678.0);
    }
}
