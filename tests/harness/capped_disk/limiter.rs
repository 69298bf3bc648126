//! When requests are admitted: paced by rates, and by the credits of a burst bucket.

use super::DiskLimits;
use crate::fuse_file::{FileModel, FileOperation, FileRequest};

const SECOND_NS: f64 = 1e9;
/// An idle disk may use the allowance of this time at once, ns.
const SLACK_NS: f64 = 10_000_000.0;
/// Credits below this share of the bucket are exhausted.
const EXHAUSTED: f64 = 0.001;

/// The state of limits. Times are those of the monotonic clock, ns; a fraction keeps rates exact.
#[derive(Debug)]
pub(super) struct Limiter {
    requests: RatePacer,
    bytes: Option<RatePacer>,
    credits: Option<CreditBucket>,
    /// What an admitted request takes at least, less what lies before the disk.
    latency_ns: f64,
    /// What it takes more on average.
    spread_ns: f64,
    /// Requests so far.
    count: u64,
    /// When the last request was admitted: none overtakes.
    last_ns: f64,
    first_ns: Option<f64>,
    exhausted_ns: Option<f64>,
    /// How late each answer was, ns.
    late_ns: Vec<u64>,
}

#[derive(Debug)]
struct RatePacer {
    ns_per_unit: f64,
    /// When everything so far is paid for.
    paid_ns: f64,
}

#[derive(Debug)]
struct CreditBucket {
    ns_per_credit: f64,
    capacity: f64,
    level: f64,
    at_ns: f64,
}

impl RatePacer {
    fn new(per_second: u64) -> RatePacer {
        RatePacer { ns_per_unit: SECOND_NS / per_second as f64, paid_ns: 0.0 }
    }

    fn earliest(&self, at_ns: f64) -> f64 {
        at_ns.max(self.paid_ns)
    }

    fn take(&mut self, at_ns: f64, units: f64) {
        self.paid_ns = self.paid_ns.max(at_ns - SLACK_NS) + units * self.ns_per_unit;
    }
}

impl CreditBucket {
    /// When there is a whole credit; the level is then that of this time.
    fn earliest(&mut self, at_ns: f64) -> f64 {
        let gained = (at_ns - self.at_ns).max(0.0) / self.ns_per_credit;
        self.level = (self.level + gained).min(self.capacity);
        self.at_ns = self.at_ns.max(at_ns);
        if self.level < 1.0 {
            self.at_ns += (1.0 - self.level) * self.ns_per_credit;
            self.level = 1.0;
        }
        self.at_ns
    }
}

impl Limiter {
    /// `limits` of a disk that `way_ns` lie before.
    pub(super) fn new(limits: &DiskLimits, way_ns: u64) -> Limiter {
        let credits = limits.burst.map(|burst| CreditBucket {
            ns_per_credit: SECOND_NS / limits.iops as f64,
            capacity: burst.capacity as f64,
            level: burst.capacity as f64,
            at_ns: 0.0,
        });
        Limiter {
            requests: RatePacer::new(limits.burst.map_or(limits.iops, |burst| burst.iops)),
            bytes: limits.bytes_per_second.map(RatePacer::new),
            credits,
            latency_ns: (limits.latency.as_nanos() as f64 - way_ns as f64).max(0.0),
            spread_ns: limits.latency.as_nanos() as f64 * f64::from(limits.spread_percent) / 100.0,
            count: 0,
            last_ns: 0.0,
            first_ns: None,
            exhausted_ns: None,
            late_ns: Vec::new(),
        }
    }

    /// When a request of `bytes` that arrives at `now_ns`, not before the previous one, is complete.
    pub(super) fn complete_ns(&mut self, now_ns: u64, bytes: u32) -> u64 {
        let arrival_ns = now_ns as f64;
        self.first_ns = self.first_ns.or(Some(arrival_ns));
        let mut at_ns = self.requests.earliest(arrival_ns.max(self.last_ns));
        if let Some(bytes) = &self.bytes {
            at_ns = bytes.earliest(at_ns);
        }
        if let Some(credits) = &mut self.credits {
            at_ns = credits.earliest(at_ns);
            credits.level -= 1.0;
            if credits.level < credits.capacity * EXHAUSTED {
                self.exhausted_ns = self.exhausted_ns.or(Some(at_ns));
            }
        }
        self.requests.take(at_ns, 1.0);
        if let Some(pacer) = &mut self.bytes {
            pacer.take(at_ns, f64::from(bytes));
        }
        self.last_ns = at_ns;
        self.count += 1;
        (at_ns + self.latency_ns - self.spread_ns * (1.0 - uniform(self.count)).ln()) as u64
    }

    /// By how much at most `percent` of the answers were late; 0 before the first.
    pub(super) fn lateness_ns(&self, percent: usize) -> u64 {
        let mut sorted = self.late_ns.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or(0)
    }

    /// From the first request to the one for which credits were exhausted.
    pub(super) fn exhausted_after_ns(&self) -> Option<u64> {
        Some((self.exhausted_ns? - self.first_ns?) as u64)
    }
}

impl FileModel for Limiter {
    /// Syncs and discards pass at once.
    fn complete_ns(&mut self, request: &FileRequest, now_ns: u64) -> Result<u64, i32> {
        match request.operation {
            FileOperation::Read | FileOperation::Write => Ok(self.complete_ns(now_ns, request.bytes)),
            FileOperation::Flush | FileOperation::Discard(_) => Ok(now_ns),
        }
    }

    fn answered_late(&mut self, late_ns: u64) {
        self.late_ns.push(late_ns);
    }
}

/// From 0 to below 1: the `index`th of a fixed sequence (SplitMix64: Steele, Lea and Flood, 2014).
fn uniform(index: u64) -> f64 {
    let mut bits = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::capped_disk::BurstCredits;

    const MS: u64 = 1_000_000;
    const PLAIN: DiskLimits = DiskLimits {
        latency: Duration::from_millis(2),
        spread_percent: 0,
        iops: 1000,
        bytes_per_second: None,
        burst: None,
    };

    /// When requests of 4 KiB that come every `gap_ns` from the first second on are complete.
    fn completions(limiter: &mut Limiter, count: u64, gap_ns: u64) -> Vec<u64> {
        (0..count).map(|index| limiter.complete_ns(1_000 * MS + index * gap_ns, 4096)).collect()
    }

    #[test]
    fn rates_are_exact_behind_a_hundredth_of_a_second() {
        let all = completions(&mut Limiter::new(&PLAIN, 500_000), 2_000, 0);
        // Less what lies before the disk.
        assert_eq!((all[0], all[9]), (1_001_500_000, 1_001_500_000));
        let last = all[1_999] as f64 - all[0] as f64;
        assert!((last - 1_989e6).abs() < 1.5e6, "{last}");
        let spaced = completions(&mut Limiter::new(&PLAIN, 0), 100, 2 * MS);
        assert!(spaced.iter().zip(0..).all(|(end, index): (&u64, u64)| *end == (1_002 + 2 * index) * MS));
    }

    #[test]
    fn latencies_vary_exponentially() {
        let limits = DiskLimits { spread_percent: 50, ..PLAIN };
        let all = completions(&mut Limiter::new(&limits, 0), 10_000, 2 * MS);
        let took = all.iter().zip(0..).map(|(end, index)| end - (1_000 + 2 * index) * MS);
        let mut took: Vec<u64> = took.collect();
        took.sort_unstable();
        let mean = took.iter().sum::<u64>() as f64 / 10_000.0;
        assert!((mean - 3e6).abs() < 0.03e6 && took[0] >= 2 * MS, "{mean} {}", took[0]);
        // ln 2 of the mean excess.
        assert!((took[5_000] as f64 - 2.693e6).abs() < 0.03e6, "{}", took[5_000]);
    }

    #[test]
    fn late_answers_are_counted_since_the_limits_were_set() {
        let mut limiter = Limiter::new(&PLAIN, 0);
        assert_eq!(limiter.lateness_ns(99), 0);
        (1..=200).rev().for_each(|ns| limiter.answered_late(ns));
        assert_eq!((limiter.lateness_ns(50), limiter.lateness_ns(99)), (100, 198));
    }

    #[test]
    fn bytes_are_limited_too() {
        let limits = DiskLimits { bytes_per_second: Some(409_600), ..PLAIN };
        let all = completions(&mut Limiter::new(&limits, 0), 201, 0);
        let seconds = (all[200] - all[0]) as f64 / 1e9;
        assert!((seconds - 2.0).abs() < 0.03, "{seconds}");
    }

    #[test]
    fn credits_run_out_by_the_rule() {
        let burst = Some(BurstCredits { iops: 3_000, capacity: 20_000 });
        let mut limiter = Limiter::new(&DiskLimits { burst, ..PLAIN }, 0);
        // 2,000 a second against a baseline of 1,000.
        let all = completions(&mut limiter, 60_000, MS / 2);
        let seconds = limiter.exhausted_after_ns().unwrap() as f64 / 1e9;
        assert!((seconds - 20.0).abs() < 0.1, "{seconds}");
        let rate = 10_000.0 / ((all[59_999] - all[49_999]) as f64 / 1e9);
        assert!((rate - 1_000.0).abs() < 1.0, "{rate}");
        assert_eq!(Limiter::new(&PLAIN, 0).exhausted_after_ns(), None);
    }
}
