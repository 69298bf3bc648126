//! What workloads get from a volume that was identified: how fast, for how long, and then.
//!
//! Only what its figures carry: where the limit that decides is not known, nothing is said.

use fathom_model::Nanos;
use fathom_model::units::duration;

use crate::cap_fit::Estimate;
use crate::identify::{BucketUnit, Burst, Draws, Figure, Identified};
use crate::say;
use crate::sweep_point::Pattern;

/// What is asked of a volume, at full speed.
const WORKLOADS: [(Pattern, u64); 8] = [
    (Pattern::RandRead, 4 << 10),
    (Pattern::RandWrite, 4 << 10),
    (Pattern::RandRead, 16 << 10),
    (Pattern::RandWrite, 16 << 10),
    (Pattern::RandRead, 64 << 10),
    (Pattern::RandWrite, 64 << 10),
    (Pattern::Read, 1 << 20),
    (Pattern::Write, 1 << 20),
];

/// A workload and what it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The workload.
    pub pattern: Pattern,
    /// Bytes per request.
    pub block: u64,
    /// Rates one after the other, from full credit on; the last holds for good. Where it is not known how long one lasts,
    /// it is the last that is told.
    pub phases: Vec<Phase>,
    /// Rest after which it is as at first, s; `None` where nothing runs dry, or it is not known.
    pub refilled_after_s: Option<f64>,
    /// Credit is being used at the last rate, and it is not known how long that goes.
    pub is_open: bool,
    /// The same in words, without the workload's name.
    pub text: String,
}

/// A rate for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Requests a second.
    pub iops: f64,
    /// How long, s; `None` = for good, or nobody knows.
    pub seconds: Option<f64>,
}

impl Prediction {
    /// `4k random reads`.
    pub fn what(&self) -> String {
        format!("{} {}s", say::block(self.block), self.pattern.title())
    }
}

/// How far rates and times may be apart to be called the same.
const SAME: f64 = 0.01;

impl Prediction {
    /// True where both workloads get the same, but for what measuring is wrong by.
    pub fn is_like(&self, other: &Prediction) -> bool {
        let near = |one: f64, other: f64| (one / other - 1.0).abs() <= SAME;
        let alike = |one: &Phase, other: &Phase| {
            let seconds = match (one.seconds, other.seconds) {
                (Some(one), Some(other)) => near(one, other),
                (one, other) => one == other,
            };
            near(one.iops, other.iops) && seconds
        };
        let phases = self.phases.iter().zip(&other.phases);
        self.block == other.block
            && self.is_open == other.is_open
            && self.phases.len() == other.phases.len()
            && phases.into_iter().all(|(one, other)| alike(one, other))
    }
}

/// What every workload gets of which that can be said.
pub fn predictions(found: &Identified) -> Vec<Prediction> {
    WORKLOADS.iter().filter_map(|&(pattern, block)| predict(found, pattern, block)).collect()
}

/// One workload at full speed.
fn predict(found: &Identified, pattern: Pattern, block: u64) -> Option<Prediction> {
    let (units, most_units) = units(found, block)?;
    let load = Load { units, most_units, bytes: block as f64 };
    let each = |each: &'_ crate::identify::EachWay| {
        if pattern.writes() { each.write.clone() } else { each.read.clone() }
    };
    let rate = full_rate(each(&found.iops)?, each(&found.bytes_per_second)?, &load)?;
    let buckets: Vec<&Burst> = found
        .bursts
        .iter()
        .filter(|burst| match burst.draws {
            Draws::Both => true,
            Draws::Reads => !pattern.writes(),
            Draws::Writes => pattern.writes(),
        })
        .collect();
    let mut course = Course { phases: Vec::new(), refill_s: None, is_open: false };
    course.run(rate, &buckets, &load);
    let refilled_after_s = course.refill_s;
    let text = text(&course, block);
    let Course { phases, is_open, .. } = course;
    Some(Prediction { pattern, block, phases, refilled_after_s, is_open, text })
}

/// What one request counts.
struct Load {
    /// As I/Os, at least.
    units: f64,
    /// And at most.
    most_units: f64,
    bytes: f64,
}

impl Load {
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
    match found.io_unit.estimate {
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
    let crossover = found.crossover.estimate;
    matches!(crossover, Some(Estimate::Known { high, .. } | Estimate::AtMost(high)) if block as f64 > high)
}

/// Requests a second while there is credit, where it is known which limit decides.
fn full_rate(iops: Figure, bytes: Figure, load: &Load) -> Option<f64> {
    let by_count = iops.estimate.map(|estimate| scaled(estimate, load.units));
    let by_bytes = bytes.estimate.map(|estimate| scaled(estimate, load.bytes));
    match (by_count, by_bytes) {
        (Some(Estimate::Known { value: one, .. }), Some(Estimate::Known { value: other, .. })) => {
            Some(one.min(other))
        }
        (Some(Estimate::Known { value, .. }), Some(Estimate::AtLeast(low)))
        | (Some(Estimate::AtLeast(low)), Some(Estimate::Known { value, .. }))
            if value <= low * 1.01 =>
        {
            Some(value)
        }
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

/// Rates one after the other.
struct Course {
    phases: Vec<Phase>,
    refill_s: Option<f64>,
    is_open: bool,
}

impl Course {
    /// From full buckets on, until none is left that would run dry.
    fn run(&mut self, full: f64, buckets: &[&Burst], load: &Load) {
        let mut rate = full;
        let mut left: Vec<(&Burst, f64)> = Vec::new();
        for burst in buckets {
            match (burst.capacity.value(), burst.baseline_rate.value()) {
                (_, Some(base)) if load.may_drain(rate, base, burst.unit) => self.is_open = true,
                (Some(capacity), Some(_)) => left.push((burst, capacity)),
                // It is not known how long it lasts, or what comes then.
                _ => {
                    self.is_open |=
                        burst.baseline_rate.value().is_none_or(|base| drain(rate, base, burst, load) > 0.0)
                }
            }
        }
        loop {
            let base = |burst: &Burst| burst.baseline_rate.value().unwrap_or_default();
            let draining = left.iter().enumerate().filter_map(|(index, (burst, credit))| {
                let drain = drain(rate, base(burst), burst, load);
                (drain > 0.0).then(|| (index, credit / drain))
            });
            let Some((first, seconds)) = draining.min_by(|one, other| one.1.total_cmp(&other.1)) else {
                break;
            };
            self.phases.push(Phase { iops: rate, seconds: Some(seconds) });
            for (burst, credit) in &mut left {
                let spent = drain(rate, base(burst), burst, load) * seconds;
                *credit = (*credit - spent).min(burst.capacity.value().unwrap_or_default());
            }
            let (burst, _) = left.remove(first);
            if let Some(refill) = burst.seconds_to_refill.value() {
                self.refill_s = Some(self.refill_s.unwrap_or(0.0).max(refill));
            }
            rate = rate.min(base(burst) / load.of(burst.unit));
        }
        self.phases.push(Phase { iops: rate, seconds: None });
    }
}

/// Credit that is used a second; below 0 where it is gained.
fn drain(rate: f64, base: f64, burst: &Burst, load: &Load) -> f64 {
    // What is less than the interval of a rate is none.
    let drain = rate * load.of(burst.unit) - base;
    if drain > base * 1e-3 { drain } else { drain.min(0.0) }
}

fn text(course: &Course, block: u64) -> String {
    let rate = |phase: &Phase| match block {
        0..=65_535 => format!("{} IOPS", say::count(phase.iops)),
        _ => say::mebibytes(phase.iops * block as f64),
    };
    let seconds = |seconds: f64| duration(Nanos((seconds * 1e9) as u64));
    let mut text = String::new();
    for (index, phase) in course.phases.iter().enumerate() {
        if index > 0 {
            text.push_str(", then ");
        }
        text.push_str(&rate(phase));
        if let Some(lasts) = phase.seconds {
            text.push_str(&format!(" for {}", seconds(lasts)));
        }
    }
    if course.is_open {
        text.push_str(" as long as there is credit; how long is not known");
    }
    if let Some(refill) = course.refill_s {
        text.push_str(&format!("; refilled after {} of rest", seconds(refill)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::EachWay;

    fn exactly(value: f64) -> Figure {
        Figure::known(value, value, value)
    }

    fn both(value: f64) -> EachWay {
        EachWay { read: Some(exactly(value)), write: Some(exactly(value)) }
    }

    fn burst(unit: BucketUnit, burst: f64, base: f64, capacity: f64) -> Burst {
        Burst {
            unit,
            draws: Draws::Both,
            burst_rate: exactly(burst),
            baseline_rate: exactly(base),
            capacity: exactly(capacity),
            refill_rate: exactly(base),
            seconds_to_empty: exactly(capacity / (burst - base)),
            seconds_to_refill: exactly(capacity / base),
        }
    }

    /// gp2 of 50 GiB.
    fn gp2() -> Identified {
        Identified {
            iops: both(3000.0),
            bytes_per_second: both(134_217_728.0),
            crossover: exactly(134_217_728.0 / 3000.0),
            io_unit: exactly(262_144.0),
            bursts: vec![burst(BucketUnit::Ios, 3000.0, 150.0, 5.4e6)],
            ..Identified::default()
        }
    }

    fn check(found: &Identified, pattern: Pattern, block: u64, expected: &str) {
        let text = predict(found, pattern, block).map(|prediction| prediction.text);
        assert_eq!(text.as_deref().unwrap_or("nothing"), expected, "{pattern:?} {block}");
    }

    #[test]
    fn a_bucket_of_io_credit() {
        let found = gp2();
        let small = predict(&found, Pattern::RandRead, 4096).unwrap();
        assert!((small.phases[0].seconds.unwrap() - 1894.7).abs() < 0.1, "{small:?}");
        assert_eq!(
            (small.phases[1], small.refilled_after_s),
            (Phase { iops: 150.0, seconds: None }, Some(36_000.0))
        );
        assert_eq!(small.what(), "4k random reads");
        let usual = "3,000 IOPS for 31 min 35 s, then 150 IOPS; refilled after 10 h of rest";
        check(&found, Pattern::RandRead, 4096, usual);
        check(&found, Pattern::RandWrite, 16_384, usual);
        // 128 MiB/s are 512 I/Os of 256 KiB: the credit lasts longer, and 150 of them are 37.5 MiB/s.
        check(
            &found,
            Pattern::Read,
            1 << 20,
            "128 MiB/s for 4 h 09 min, then 37.5 MiB/s; refilled after 10 h of rest",
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
            Pattern::RandRead,
            16_384,
            "3,000 IOPS for 1 min 40 s, then 300 IOPS; refilled after 15 min of rest",
        );
        // 2,048 of 64 KiB are 128 MiB/s: bytes last 82.6 s; then 200 a second, which is below the baseline of I/Os.
        check(
            &found,
            Pattern::RandRead,
            65_536,
            "128 MiB/s for 1 min 23 s, then 12.5 MiB/s; refilled after 12 min 43 s of rest",
        );
    }

    #[test]
    fn only_what_is_known_is_said() {
        let mut found = gp2();
        found.bursts.clear();
        check(&found, Pattern::RandRead, 4096, "3,000 IOPS");
        found.iops.read = Some(Figure::bound(Estimate::AtLeast(2000.0), "hidden"));
        check(&found, Pattern::RandRead, 4096, "nothing");
        check(&found, Pattern::Read, 1 << 20, "128 MiB/s");
        found.io_unit = Figure::bound(Estimate::AtLeast(45_000.0), "hidden");
        check(&found, Pattern::Read, 1 << 20, "128 MiB/s");
        found.io_unit = Figure::unknown("not looked at");
        check(&found, Pattern::Read, 1 << 20, "nothing");
        found.iops.write = None;
        check(&found, Pattern::RandWrite, 4096, "nothing");
        let mut found = gp2();
        found.io_unit = Figure::bound(Estimate::AtLeast(89_088.0), "hidden");
        check(&found, Pattern::Read, 1 << 20, "128 MiB/s as long as there is credit; how long is not known");
        let mut found = gp2();
        found.bursts[0].capacity = Figure::bound(Estimate::AtLeast(1e6), "the time was over");
        found.bursts[0].baseline_rate = Figure::unknown("the time was over");
        check(
            &found,
            Pattern::RandRead,
            4096,
            "3,000 IOPS as long as there is credit; how long is not known",
        );
        assert_eq!(predictions(&Identified::default()), []);
    }
}
