//! What workloads get from a volume that was identified: how fast, for how long, and then.
//!
//! Only what its figures support: where the decisive limit is unknown, there is no prediction.

use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_predict::{CreditBucket, rate_course};
use serde::Serialize;

use crate::estimate::Estimate;
use crate::identified::{BucketUnit, Burst, Figure, Identified, held_s, highest};
use crate::pattern::AccessPattern;
use crate::say;

/// What is asked of a volume, at full speed.
const WORKLOADS: [(AccessPattern, u64); 8] = [
    (AccessPattern::RandRead, 4 << 10),
    (AccessPattern::RandWrite, 4 << 10),
    (AccessPattern::RandRead, 16 << 10),
    (AccessPattern::RandWrite, 16 << 10),
    (AccessPattern::RandRead, 64 << 10),
    (AccessPattern::RandWrite, 64 << 10),
    (AccessPattern::Read, 1 << 20),
    (AccessPattern::Write, 1 << 20),
];

/// A workload and what it gets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadPrediction {
    /// `4k random reads`.
    pub title: String,
    /// The workload.
    pub rw: AccessPattern,
    /// Bytes per request.
    pub block_size_bytes: u64,
    /// Rates one after the other, from full credit on.
    pub phases: Vec<RatePhase>,
    /// Rest after which it is as at first, s; `None` where nothing is exhausted, or it is not known.
    pub seconds_to_refill: Option<f64>,
    /// How long the last of the rates goes on.
    pub last_phase: LastPhase,
    /// The same in words, without the workload's name.
    pub text: String,
}

/// A rate for a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatePhase {
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// How long; `None` in the last one.
    pub seconds: Option<PhaseSeconds>,
}

/// A time, s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PhaseSeconds {
    /// Where only what was seen is exhausted.
    pub value: f64,
    /// The least; `None` where it is not known.
    pub low: Option<f64>,
    /// The most.
    pub high: f64,
}

/// How long the last of some rates goes on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastPhase {
    /// For good: it is a baseline.
    Sustained,
    /// So long at the least, s; it was not watched for longer.
    AtLeastSeconds(f64),
    /// As long as there is credit, and it is not known how long that is.
    WhileCredit,
    /// Unknown.
    Unknown,
}

/// How far rates and times may be apart to be called the same.
const SAME: f64 = 0.01;
/// A time that is known less precisely than this share is reported as an interval.
const SURE: f64 = 0.9;
/// A drain of less than this share of the baseline lies within the confidence interval of a rate.
const NOISE: f64 = 1e-3;

impl WorkloadPrediction {
    /// True where both workloads get the same, but for what measuring is wrong by.
    pub fn is_like(&self, other: &WorkloadPrediction) -> bool {
        let near = |one: f64, other: f64| one == other || (one / other - 1.0).abs() <= SAME;
        let alike = |one: &RatePhase, other: &RatePhase| {
            let lasts = match (one.seconds, other.seconds) {
                (Some(one), Some(other)) => {
                    near(one.value, other.value)
                        && near(one.low.unwrap_or_default(), other.low.unwrap_or_default())
                }
                (one, other) => one == other,
            };
            near(one.iops, other.iops) && lasts
        };
        let is_last_alike = match (self.last_phase, other.last_phase) {
            (LastPhase::AtLeastSeconds(one), LastPhase::AtLeastSeconds(other)) => near(one, other),
            (one, other) => one == other,
        };
        let phases = self.phases.iter().zip(&other.phases);
        self.block_size_bytes == other.block_size_bytes
            && is_last_alike
            && self.phases.len() == other.phases.len()
            && phases.into_iter().all(|(one, other)| alike(one, other))
    }
}

/// The predictions for every workload that has one.
pub fn predictions(found: &Identified) -> Vec<WorkloadPrediction> {
    WORKLOADS.iter().filter_map(|&(pattern, block)| predict(found, pattern, block)).collect()
}

/// One workload at full speed; `None` if its rate does not follow from what was found.
pub fn predict(found: &Identified, pattern: AccessPattern, block: u64) -> Option<WorkloadPrediction> {
    let (units, most_units) = units(found, block)?;
    let load = RequestUnits { units, most_units, bytes: block as f64 };
    let writes = pattern.writes();
    let rate = full_rate(found.iops.of(writes)?, found.bytes_per_second.of(writes)?, &load)?;
    let buckets: Vec<&Burst> = found.bursts.iter().filter(|burst| burst.scope.counts(writes)).collect();
    let known_s = known_s(found, writes, rate.0, &load);
    let mut prediction = WorkloadPrediction {
        title: format!("{} {}s", say::block(block), pattern.title()),
        rw: pattern,
        block_size_bytes: block,
        phases: Vec::new(),
        seconds_to_refill: None,
        last_phase: LastPhase::Sustained,
        text: String::new(),
    };
    prediction.follow(rate, &buckets, &load, known_s);
    prediction.text = prediction.in_words();
    Some(prediction)
}

/// How long `rate` of `load` is known to last as far as buckets go that were not seen, s; infinite where all were.
fn known_s(found: &Identified, writes: bool, rate: f64, load: &RequestUnits) -> f64 {
    let is_seen =
        |unit: BucketUnit| found.bursts.iter().any(|burst| burst.unit == unit && burst.scope.counts(writes));
    let of = |unit: BucketUnit| {
        let held = held_s(found, unit, writes).unwrap_or(0.0);
        let used = rate
            * match unit {
                BucketUnit::Ios => load.most_units,
                BucketUnit::Bytes => load.bytes,
            };
        // What uses up less of it goes on for longer by that much at the least.
        held * (highest(found, unit, writes).unwrap_or(0.0) / used).max(1.0)
    };
    let unseen = [BucketUnit::Ios, BucketUnit::Bytes].into_iter().filter(|&unit| !is_seen(unit));
    unseen.map(of).fold(f64::INFINITY, f64::min)
}

impl WorkloadPrediction {
    /// Enters the rates of `load` from full buckets on, the highest of which is known to last for `known_s`, whatever else is exhausted.
    fn follow(&mut self, (rate, error): UncertainRate, bursts: &[&Burst], load: &RequestUnits, known_s: f64) {
        let mut known: Vec<(&Burst, CreditBucket)> = Vec::new();
        for burst in bursts {
            let (capacity, base) = (burst.capacity.value(), burst.baseline_rate.value());
            let bucket = base.map(|baseline| CreditBucket {
                baseline,
                capacity: capacity.unwrap_or_default(),
                tokens: load.of(burst.unit),
            });
            // It is not known how long it lasts, or what comes then.
            let may_run_dry = match bucket {
                Some(bucket) if load.may_drain(rate, bucket.baseline, burst.unit) => true,
                Some(bucket) if capacity.is_some() => {
                    known.push((burst, bucket));
                    false
                }
                bucket => bucket.is_none_or(|bucket| bucket.drain(rate, NOISE) > 0.0),
            };
            if may_run_dry {
                self.last_phase = LastPhase::WhileCredit;
            }
        }
        let buckets: Vec<CreditBucket> = known.iter().map(|(_, bucket)| *bucket).collect();
        let course = rate_course(rate, &buckets, NOISE);
        let exhausted = course.iter().filter_map(|phase| Some(known[phase.until?.0].0));
        self.seconds_to_refill =
            exhausted.filter_map(|burst| burst.seconds_to_refill.value()).reduce(f64::max);
        let phases = course.iter().map(|phase| RatePhase {
            iops: phase.iops,
            bytes_per_second: phase.iops * load.bytes,
            seconds: phase.until.map(|(place, s)| lasts(known[place].0, s, phase.iops * error, load)),
        });
        self.phases = phases.collect();
        let known = (known_s > 0.0).then_some(known_s);
        match self.phases.first_mut().and_then(|phase| phase.seconds.as_mut()) {
            Some(lasts) if known_s < lasts.value => lasts.low = known,
            None if self.last_phase == LastPhase::Sustained && known_s.is_finite() => {
                self.last_phase = known.map_or(LastPhase::Unknown, LastPhase::AtLeastSeconds);
            }
            _ => {}
        }
    }

    /// The rates in words.
    fn in_words(&self) -> String {
        let rate = |phase: &RatePhase| match self.block_size_bytes {
            0..=65_535 => format!("{} IOPS", say::count(phase.iops)),
            _ => say::mebibytes(phase.bytes_per_second),
        };
        let time = |seconds: f64| duration(Nanos((seconds * 1e9) as u64));
        let mut text = String::new();
        for (index, phase) in self.phases.iter().enumerate() {
            if index > 0 {
                text.push_str(", then ");
            }
            text.push_str(&rate(phase));
            text += &match phase.seconds {
                Some(PhaseSeconds { value, low: None, .. }) => format!(" for at most {}", time(value)),
                Some(PhaseSeconds { value, low: Some(low), .. }) if low < value * SURE => {
                    format!(" for {} to {}", time(low), time(value))
                }
                Some(PhaseSeconds { value, .. }) => format!(" for {}", time(value)),
                None => String::new(),
            };
        }
        text += &match self.last_phase {
            LastPhase::Sustained => String::new(),
            LastPhase::AtLeastSeconds(seconds) => format!(" for at least {}", time(seconds)),
            LastPhase::WhileCredit => " while burst credits remain (duration unknown)".to_owned(),
            LastPhase::Unknown => " initially (duration unknown)".to_owned(),
        };
        if let Some(refill) = self.seconds_to_refill {
            text.push_str(&format!("; refills in {} when idle", time(refill)));
        }
        text
    }
}

/// The time that a bucket lasts, which is `seconds` as far as known, at a rate that may be wrong by so much.
fn lasts(burst: &Burst, seconds: f64, error: f64, load: &RequestUnits) -> PhaseSeconds {
    let half = |figure: &Figure| match figure.estimate {
        Some(Estimate::Known { low, high, .. }) => (high - low) / 2.0,
        _ => 0.0,
    };
    let credit = burst.capacity.value().unwrap_or_default();
    let drain = credit / seconds;
    let amiss = half(&burst.baseline_rate) + error * load.of(burst.unit);
    let share = half(&burst.capacity) / credit + amiss / drain;
    // A rate hardly above the baseline uses up credit so slowly that its duration is unknown.
    let high = if share < 1.0 { seconds / (1.0 - share) } else { f64::INFINITY };
    PhaseSeconds { value: seconds, low: Some(seconds / (1.0 + share)), high }
}

/// What one request counts.
struct RequestUnits {
    /// As I/Os, at least.
    units: f64,
    /// And at most.
    most_units: f64,
    bytes: f64,
}

impl RequestUnits {
    fn of(&self, unit: BucketUnit) -> f64 {
        match unit {
            BucketUnit::Ios => self.units,
            BucketUnit::Bytes => self.bytes,
        }
    }

    /// It is not known how much of a bucket it uses, and it may use it up.
    fn may_drain(&self, rate: f64, base: f64, unit: BucketUnit) -> bool {
        unit == BucketUnit::Ios && self.most_units > self.units && rate * self.most_units > base
    }
}

/// As how many I/Os a request of so many bytes counts, at least and at most; `None` where the rate does not follow from
/// what is known of it.
fn units(found: &Identified, block: u64) -> Option<(f64, f64)> {
    match found.io_unit_bytes.estimate {
        Some(Estimate::Known { value, .. }) => {
            let units = (block as f64 / value.max(1.0)).ceil();
            Some((units, units))
        }
        Some(Estimate::AtLeast(low)) if block as f64 <= low => Some((1.0, 1.0)),
        // All sizes that meet no other limit first were looked at.
        Some(Estimate::AtLeast(low)) if is_byte_limited(found, block) => {
            Some((1.0, (block as f64 / low.max(1.0)).ceil()))
        }
        _ => (block <= 4 << 10).then_some((1.0, 1.0)),
    }
}

/// True where the limit on bytes is known and lower than that on I/Os would be.
fn is_byte_limited(found: &Identified, block: u64) -> bool {
    let crossover = found.crossover_block_size_bytes.estimate;
    matches!(crossover, Some(Estimate::Known { high, .. } | Estimate::AtMost(high)) if block as f64 > high)
}

/// A rate, and by what share it may be wrong.
type UncertainRate = (f64, f64);

/// Requests a second while there is credit, where it is known which limit decides.
fn full_rate(iops: &Figure, bytes: &Figure, load: &RequestUnits) -> Option<UncertainRate> {
    let by_count = scaled(iops.estimate?, load.units);
    let by_bytes = scaled(bytes.estimate?, load.bytes);
    let decisive = match (by_count, by_bytes) {
        (Estimate::Known { value, .. }, Estimate::Known { value: of_bytes, .. }) => {
            if value <= of_bytes {
                by_count
            } else {
                by_bytes
            }
        }
        (Estimate::Known { value, .. }, Estimate::AtLeast(least)) if value <= least * 1.01 => by_count,
        (Estimate::AtLeast(least), Estimate::Known { value, .. }) if value <= least * 1.01 => by_bytes,
        _ => return None,
    };
    match decisive {
        Estimate::Known { value, low, high } => Some((value, (high - low) / 2.0 / value)),
        _ => None,
    }
}

fn scaled(estimate: Estimate, by: f64) -> Estimate {
    match estimate {
        Estimate::Known { value, low, high } => {
            Estimate::Known { value: value / by, low: low / by, high: high / by }
        }
        Estimate::AtLeast(low) => Estimate::AtLeast(low / by),
        Estimate::AtMost(high) => Estimate::AtMost(high / by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identified::tests::{both, burst, exactly};

    /// gp2 of 50 GiB.
    fn gp2() -> Identified {
        Identified {
            iops: both(3000.0),
            bytes_per_second: both(134_217_728.0),
            crossover_block_size_bytes: exactly(134_217_728.0 / 3000.0),
            io_unit_bytes: exactly(262_144.0),
            bursts: vec![burst(BucketUnit::Ios, 3000.0, 150.0, 5.4e6)],
            ..Identified::default()
        }
    }

    fn check(found: &Identified, pattern: AccessPattern, block: u64, expected: &str) {
        let text = predict(found, pattern, block).map(|prediction| prediction.text);
        assert_eq!(text.as_deref().unwrap_or("nothing"), expected, "{pattern:?} {block}");
    }

    #[test]
    fn a_bucket_of_io_credit() {
        let mut found = gp2();
        let small = predict(&found, AccessPattern::RandRead, 4096).unwrap();
        assert!((small.phases[0].seconds.unwrap().value - 1894.7).abs() < 0.1, "{small:?}");
        assert_eq!(
            (small.phases[1], small.last_phase, small.seconds_to_refill),
            (
                RatePhase { iops: 150.0, bytes_per_second: 614_400.0, seconds: None },
                LastPhase::Sustained,
                Some(36_000.0)
            )
        );
        assert_eq!(small.title, "4k random reads");
        let usual = "3,000 IOPS for 31 min 35 s, then 150 IOPS; refills in 10 h when idle";
        check(&found, AccessPattern::RandRead, 4096, usual);
        check(&found, AccessPattern::RandWrite, 16_384, usual);
        // 128 MiB/s are 512 I/Os of 256 KiB: the credit lasts longer, and 150 of them are 37.5 MiB/s. But it is not known
        // whether bytes need credit as well: they went on for no longer than I/Os lasted.
        check(
            &found,
            AccessPattern::Read,
            1 << 20,
            "128 MiB/s for 28 min 25 s to 4 h 09 min, then 37.5 MiB/s; refills in 10 h when idle",
        );
        // Beside 1,700 I/Os a second of 80 KiB they went on for long.
        found.bursts = vec![burst(BucketUnit::Ios, 3000.0, 1700.0, 270_000.0)];
        found.io_unit_bytes = Figure::bound(Estimate::AtLeast(81_920.0), "hidden");
        found.longest_peak_ns = Some(3_000_000_000_000);
        check(
            &found,
            AccessPattern::RandRead,
            65_536,
            "128 MiB/s for 12 min 56 s, then 106.2 MiB/s; refills in 2 min 39 s when idle",
        );
    }

    #[test]
    fn two_buckets_run_dry_one_after_the_other() {
        let mut found = gp2();
        found.bursts = vec![
            burst(BucketUnit::Ios, 3000.0, 300.0, 270_000.0),
            burst(BucketUnit::Bytes, 134_217_728.0, 13_107_200.0, 1e10),
        ];
        // 3,000 of 16 KiB are 49 MB/s: I/Os last 100 s and bytes 277.8 s, of which 178 s are left at 4.9 MB/s: they refill.
        check(
            &found,
            AccessPattern::RandRead,
            16_384,
            "3,000 IOPS for 1 min 40 s, then 300 IOPS; refills in 15 min when idle",
        );
        // 2,048 of 64 KiB are 128 MiB/s: bytes last 82.6 s; then 200 a second, which is below the baseline of I/Os.
        check(
            &found,
            AccessPattern::RandRead,
            65_536,
            "128 MiB/s for 1 min 23 s, then 12.5 MiB/s; refills in 12 min 43 s when idle",
        );
    }

    #[test]
    fn predictions_state_only_what_is_known() {
        let mut found = gp2();
        found.bursts.clear();
        check(&found, AccessPattern::RandRead, 4096, "3,000 IOPS initially (duration unknown)");
        found.longest_peak_ns = Some(2_400_000_000_000);
        check(&found, AccessPattern::RandRead, 4096, "3,000 IOPS for at least 40 min");
        found.iops.read = Some(Figure::bound(Estimate::AtLeast(2000.0), "hidden"));
        check(&found, AccessPattern::RandRead, 4096, "nothing");
        check(&found, AccessPattern::Read, 1 << 20, "128 MiB/s for at least 40 min");
        found.io_unit_bytes = Figure::bound(Estimate::AtLeast(45_000.0), "hidden");
        check(&found, AccessPattern::Read, 1 << 20, "128 MiB/s for at least 40 min");
        found.io_unit_bytes = Figure::unknown("not looked at");
        check(&found, AccessPattern::Read, 1 << 20, "nothing");
        found.iops.write = None;
        check(&found, AccessPattern::RandWrite, 4096, "nothing");
        let mut found = gp2();
        found.io_unit_bytes = Figure::bound(Estimate::AtLeast(89_088.0), "hidden");
        check(
            &found,
            AccessPattern::Read,
            1 << 20,
            "128 MiB/s while burst credits remain (duration unknown)",
        );
        let mut found = gp2();
        found.bursts[0].capacity = Figure::bound(Estimate::AtLeast(1e6), "the time was over");
        found.bursts[0].baseline_rate = Figure::unknown("the time was over");
        check(
            &found,
            AccessPattern::RandRead,
            4096,
            "3,000 IOPS while burst credits remain (duration unknown)",
        );
        assert_eq!(predictions(&Identified::default()), []);
    }
}
