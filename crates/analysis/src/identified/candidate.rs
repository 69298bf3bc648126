//! How far a volume that was identified is from one that a provider sells.
//!
//! The distance of two figures is the natural logarithm of their ratio; that of two volumes is the root of the mean of the
//! squares over the figures that were seen: at 0.05 they differ by about 5 % each. A figure of which only a bound is known
//! counts where it is contradicted. What the medium takes is left out: providers seldom publish it.

use fathom_volume::{Limit, LimitStage, VolumeModel};
use serde::Serialize;

use crate::estimate::Estimate;
use crate::identified::{BucketUnit, Burst, EachWay, Figure, Identified, IoScope, held_s};
use crate::say::{count, mebibytes};

/// What it counts where one of both has what the other does not have: a limit, a bucket, a unit.
const ABSENT: f64 = std::f64::consts::LN_10;
/// What it counts where one shares between reads and writes and the other does not.
const UNLIKE: f64 = std::f64::consts::LN_2;
/// Added to the distance where the size that the figures imply is not the target's.
pub const OTHER_SIZE: f64 = 0.1;
/// Added for each figure that was chosen so that it fits.
pub const CHOSEN: f64 = 0.01;
/// Beyond this a type is not called likely.
pub const LIKELY: f64 = 0.1;

/// A volume of a type that is sold, beside one that was identified.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Candidate {
    /// The type's name in the catalogue.
    pub id: String,
    /// Who sells it.
    pub provider: String,
    /// What the provider calls it.
    pub type_name: String,
    /// `current`, `previous` or `historical`.
    pub lifecycle: String,
    /// How far its figures are from those seen.
    pub distance: f64,
    /// Its size; `None` where figures of this type do not depend on it.
    pub size: Option<SizeImplied>,
    /// IOPS to be chosen; `None` where none are chosen.
    pub provisioned_iops: Option<u64>,
    /// Bandwidth to be chosen, bytes a second; `None` where none is chosen.
    pub provisioned_bytes_per_second: Option<u64>,
    /// Tier to be chosen.
    pub tier: Option<String>,
    /// Bursts that are billed have to be ordered.
    pub on_demand: bool,
}

/// A size that figures imply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeImplied {
    /// The one that fits best, or the smallest of those that do, bytes.
    pub bytes: u64,
    /// The smallest that fits about as well, bytes.
    pub low_bytes: u64,
    /// The largest, bytes.
    pub high_bytes: u64,
    /// Whether the target has that size; `None` where its size is not known.
    pub is_target_size: Option<bool>,
}

/// How far `found` is from a volume with this model; `None` where nothing was found to go by.
pub fn distance(found: &Identified, model: &VolumeModel) -> Option<f64> {
    let sides = [Side::of(model, &model.reads), Side::of(model, &model.writes)];
    let mut sum = Sum::default();
    for (each, level) in [
        (&found.iops, sides.each_ref().map(|side| side.iops)),
        (&found.bytes_per_second, sides.each_ref().map(|side| side.bytes)),
    ] {
        let EachWay { read, write } = each;
        for (figure, level) in [read, write].into_iter().zip(level) {
            figure.iter().for_each(|figure| sum.figure(figure, level));
        }
    }
    sum.figure(&found.io_unit_bytes, unit(model).map(f64::from));
    if let (Some(found), Some(has)) = (found.shares_limits, is_shared(model)) {
        sum.known(if found == has { 0.0 } else { UNLIKE });
    }
    buckets(found, model, &mut sum);
    sum.mean()
}

/// The rates and credits of `found` that are not those of `model`: `40,000 IOPS found, 16,000 IOPS published`.
pub fn differing(found: &Identified, model: &VolumeModel) -> Vec<String> {
    let sides = [Side::of(model, &model.reads), Side::of(model, &model.writes)];
    let mut texts: Vec<String> = Vec::new();
    let mut add = |value: f64, expected: Option<f64>, text: &dyn Fn(f64) -> String| {
        let text = match expected {
            Some(expected) if (value / expected).ln().abs() <= LIKELY => return,
            Some(expected) => format!("{} found, {} published", text(value), text(expected)),
            None => format!("{} found, no such limit published", text(value)),
        };
        if !texts.contains(&text) {
            texts.push(text);
        }
    };
    let ios = |value: f64| format!("{} IOPS", count(value));
    let of_way = |each: &EachWay, place: usize| {
        let figure = if place == 0 { &each.read } else { &each.write };
        figure.as_ref().and_then(Figure::value)
    };
    for (place, side) in sides.iter().enumerate() {
        if let Some(value) = of_way(&found.iops, place) {
            add(value, side.iops, &ios);
        }
        if let Some(value) = of_way(&found.bytes_per_second, place) {
            add(value, side.bytes, &mebibytes);
        }
    }
    let published = buckets_of(model);
    let text = |unit: BucketUnit| {
        move |value: f64| match unit {
            BucketUnit::Ios => format!("a baseline of {} IOPS", count(value)),
            BucketUnit::Bytes => format!("a baseline of {}", mebibytes(value)),
        }
    };
    for burst in &found.bursts {
        let same = published.iter().find(|(bucket, _)| bucket.unit == burst.unit);
        if let Some(value) = burst.baseline_rate.value() {
            add(value, same.map(|(bucket, _)| bucket.base), &text(burst.unit));
        }
        let credits = |value: f64| format!("{} burst credits", count(value));
        if let Some((value, (bucket, _))) = burst.capacity.value().zip(same) {
            add(value, Some(bucket.capacity), &credits);
        }
    }
    texts
}

/// Squares of the distances of single figures.
#[derive(Default)]
struct Sum {
    squares: f64,
    known: u32,
}

impl Sum {
    fn known(&mut self, distance: f64) {
        self.known += 1;
        self.squares += distance.powi(2);
    }

    /// A figure beside what it should be; `None` = there is no such limit.
    fn figure(&mut self, figure: &Figure, expected: Option<f64>) {
        let apart = |value: f64, expected: f64| (value / expected).ln().clamp(-ABSENT, ABSENT);
        match (figure.estimate, expected) {
            (Some(Estimate::Known { value, .. }), Some(expected)) => self.known(apart(value, expected)),
            (Some(Estimate::Known { .. }), None) => self.known(ABSENT),
            (Some(Estimate::AtLeast(low)), Some(expected)) if expected < low => {
                self.squares += apart(low, expected).powi(2);
            }
            (Some(Estimate::AtMost(high)), Some(expected)) if expected > high => {
                self.squares += apart(high, expected).powi(2);
            }
            (Some(Estimate::AtMost(_)), None) => self.squares += ABSENT.powi(2),
            _ => {}
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.known > 0).then(|| (self.squares / f64::from(self.known)).sqrt())
    }
}

/// The most that a direction gets.
struct Side {
    iops: Option<f64>,
    bytes: Option<f64>,
}

impl Side {
    fn of(model: &VolumeModel, own: &[LimitStage]) -> Side {
        let stages = || model.shared.iter().chain(own);
        let peak = |limit: Option<Limit>| limit.and_then(|limit| limit.peak()).map(|rate| rate.as_f64());
        let bytes = stages().filter_map(|stage| peak(stage.bytes)).min_by(f64::total_cmp);
        // Where a random request costs a whole unit of bytes, that limits their number.
        let by_unit = stages().filter_map(|stage| {
            let unit = stage.accounting.unit_bytes.filter(|_| stage.accounting.whole_units)?;
            Some(peak(stage.bytes)? / f64::from(unit))
        });
        let iops = stages().filter_map(|stage| peak(stage.ios)).chain(by_unit).min_by(f64::total_cmp);
        Side { iops, bytes }
    }
}

fn stages(model: &VolumeModel) -> impl Iterator<Item = (&LimitStage, IoScope)> {
    let shared = model.shared.iter().map(|stage| (stage, IoScope::Both));
    let reads = model.reads.iter().map(|stage| (stage, IoScope::Reads));
    shared.chain(reads).chain(model.writes.iter().map(|stage| (stage, IoScope::Writes)))
}

/// The unit that shows where both limits let it.
fn unit(model: &VolumeModel) -> Option<u32> {
    stages(model).filter(|(stage, _)| stage.ios.is_some()).find_map(|(stage, _)| stage.accounting.unit_bytes)
}

/// Whether all limits are for both directions together; `None` where some are and some are not.
fn is_shared(model: &VolumeModel) -> Option<bool> {
    match (model.shared.is_empty(), model.reads.is_empty() && model.writes.is_empty()) {
        (false, true) => Some(true),
        (true, false) => Some(false),
        _ => None,
    }
}

/// A bucket of the model.
#[derive(Clone, Copy)]
struct ModelBucket {
    unit: BucketUnit,
    scope: IoScope,
    base: f64,
    capacity: f64,
    /// Full to empty at the highest rate, s.
    lasts_s: Option<f64>,
}

fn bucket_of(limit: Option<Limit>, unit: BucketUnit, scope: IoScope) -> Option<ModelBucket> {
    let limit = limit?;
    let Limit::Credit { base, capacity, .. } = limit else { return None };
    let lasts_s = limit.time_to_empty_ns(capacity).map(|ns| ns as f64 / 1e9);
    Some(ModelBucket { unit, scope, base: base.as_f64(), capacity: capacity as f64, lasts_s })
}

/// Buckets of the model, each with itself as requests see it that all cost a whole unit of its bytes: a number of them.
fn buckets_of(model: &VolumeModel) -> Vec<(ModelBucket, Option<ModelBucket>)> {
    let of_stage = |(stage, scope): (&LimitStage, IoScope)| {
        let ios = bucket_of(stage.ios, BucketUnit::Ios, scope).map(|bucket| (bucket, None));
        let whole = stage.accounting.unit_bytes.filter(|_| stage.accounting.whole_units).map(f64::from);
        let bytes = bucket_of(stage.bytes, BucketUnit::Bytes, scope).map(|bucket| {
            let counted = |unit: f64| ModelBucket {
                unit: BucketUnit::Ios,
                base: bucket.base / unit,
                capacity: bucket.capacity / unit,
                ..bucket
            };
            (bucket, whole.map(counted))
        });
        [ios, bytes]
    };
    stages(model).flat_map(of_stage).flatten().collect()
}

fn buckets(found: &Identified, model: &VolumeModel, sum: &mut Sum) {
    let mut missing = buckets_of(model);
    for Burst { unit, scope, baseline_rate, capacity, .. } in &found.bursts {
        // Whose credit it is has been counted as sharing.
        let is_same = |bucket: &ModelBucket| {
            bucket.unit == *unit
                && (bucket.scope == *scope || [bucket.scope, *scope].contains(&IoScope::Both))
        };
        let same = missing.iter().enumerate().find_map(|(index, (bucket, counted))| {
            let seen = [Some(bucket), counted.as_ref()].into_iter().flatten().find(|one| is_same(one))?;
            Some((index, *seen))
        });
        match same {
            Some((index, bucket)) => {
                missing.swap_remove(index);
                sum.figure(baseline_rate, Some(bucket.base));
                sum.figure(capacity, Some(bucket.capacity));
            }
            None => sum.known(ABSENT),
        }
    }
    let is_contradicted = |bucket: &ModelBucket| {
        let held = [false, true].into_iter().filter(|&writes| bucket.scope.counts(writes));
        let held = held.filter_map(|writes| held_s(found, bucket.unit, writes)).fold(0.0, f64::max);
        bucket.lasts_s.is_some_and(|lasts| lasts < held)
    };
    let contradicted = missing.iter().filter(|(bucket, _)| is_contradicted(bucket));
    contradicted.for_each(|_| sum.squares += ABSENT.powi(2));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identified::tests::{both, burst, exactly};
    use fathom_volume::{Accounting, TokenRate};

    fn rate(per_second: u64) -> TokenRate {
        TokenRate::per_second(per_second).unwrap()
    }

    /// 3,000 IOPS and 128 MiB/s; 150 once 5.4 million are used up.
    fn model() -> VolumeModel {
        let ios = Limit::Credit {
            base: rate(150),
            burst: Some(rate(3000)),
            capacity: 5_400_000,
            initial: 5_400_000,
        };
        let accounting = Accounting { unit_bytes: Some(256 << 10), ..Accounting::default() };
        let bytes = Some(Limit::Rate(rate(128 << 20)));
        let stage = LimitStage { accounting, ios: Some(ios), bytes, ..LimitStage::default() };
        VolumeModel { shared: vec![stage], ..VolumeModel::unlimited(50 << 30) }
    }

    fn found() -> Identified {
        Identified {
            iops: both(3000.0),
            bytes_per_second: both(134_217_728.0),
            shares_limits: Some(true),
            bursts: vec![burst(BucketUnit::Ios, 3000.0, 150.0, 5.4e6)],
            longest_peak_ns: Some(60_000_000_000),
            ..Identified::default()
        }
    }

    fn check(change: impl FnOnce(&mut Identified), expected: f64) {
        let mut found = found();
        change(&mut found);
        let distance = distance(&found, &model()).unwrap();
        assert!((distance - expected).abs() < 1e-6, "{distance}, not {expected}");
    }

    #[test]
    fn distances_are_logarithms_of_ratios() {
        check(|_| {}, 0.0);
        // Seven figures were seen: four levels, sharing, baseline and capacity.
        let seventh = |distance: f64| distance / 7f64.sqrt();
        check(|found| found.bursts[0].baseline_rate = exactly(300.0), seventh(2f64.ln()));
        check(|found| found.shares_limits = Some(false), seventh(UNLIKE));
        check(|found| found.iops.write = None, 0.0);
        check(|found| found.iops.read = Some(Figure::bound(Estimate::AtLeast(2000.0), "")), 0.0);
        check(
            |found| found.iops.read = Some(Figure::bound(Estimate::AtLeast(6000.0), "")),
            2f64.ln() / 6f64.sqrt(),
        );
        check(|found| found.bytes_per_second.read = Some(Figure::bound(Estimate::AtMost(1e9), "")), 0.0);
        check(|found| found.io_unit_bytes = exactly(262_144.0), 0.0);
        check(|found| found.io_unit_bytes = exactly(131_072.0), 2f64.ln() / 8f64.sqrt());
        check(|found| found.bursts[0].unit = BucketUnit::Bytes, ABSENT / 6f64.sqrt());
    }

    #[test]
    fn a_bucket_that_did_not_run_dry_in_time_is_not_there() {
        let none = |longest_peak_ns| Identified { bursts: Vec::new(), longest_peak_ns, ..found() };
        assert_eq!(distance(&none(None), &model()), Some(0.0));
        assert_eq!(distance(&none(Some(1_800_000_000_000)), &model()), Some(0.0));
        let much = distance(&none(Some(1_900_000_000_000)), &model()).unwrap();
        assert!(much > 1.0, "{much}");
    }

    #[test]
    fn a_bucket_that_could_not_run_dry_may_be_there() {
        // Bytes as well, for half an hour at their fastest.
        let mut model = model();
        let (base, burst) = (rate(25_000_000), Some(rate(128 << 20)));
        let capacity = 197_000_000_000;
        model.shared[0].bytes = Some(Limit::Credit { base, burst, capacity, initial: capacity });
        // 150 requests a second, as large as one may be, are not 128 MiB/s, however long they go on.
        let beside = Identified {
            longest_peak_ns: Some(10_000_000_000_000),
            io_unit_bytes: Figure::bound(Estimate::AtLeast(80_384.0), ""),
            ..found()
        };
        assert_eq!(distance(&beside, &model), Some(0.0));
        let known = Identified { io_unit_bytes: exactly(1_048_576.0), ..beside };
        assert!(distance(&known, &model).unwrap() > 0.8);
    }

    #[test]
    fn bytes_of_whole_units_are_a_number_of_requests() {
        // Requests that each cost a MiB of 128 MiB/s, and of 40 MiB/s once 500,000 MiB are used up.
        let mib = |count: u64| count << 20;
        let bytes = Limit::Credit {
            base: rate(mib(40)),
            burst: Some(rate(mib(128))),
            capacity: mib(500_000),
            initial: mib(500_000),
        };
        let accounting = Accounting { unit_bytes: Some(1 << 20), whole_units: true, ..Accounting::default() };
        let stage = LimitStage { accounting, bytes: Some(bytes), ..LimitStage::default() };
        let model = VolumeModel { shared: vec![stage], ..VolumeModel::unlimited(50 << 30) };
        let mut seen = Identified { iops: both(128.0), shares_limits: Some(true), ..found() };
        seen.bytes_per_second = EachWay::default();
        seen.bursts[0].baseline_rate = exactly(40.0);
        seen.bursts[0].capacity = exactly(500_000.0);
        assert_eq!(distance(&seen, &model), Some(0.0));
        seen.bursts[0].unit = BucketUnit::Bytes;
        seen.bursts[0].baseline_rate = exactly(mib(40) as f64);
        seen.bursts[0].capacity = exactly(mib(500_000) as f64);
        assert_eq!(distance(&seen, &model), Some(0.0));
    }

    #[test]
    fn nothing_found_is_near_to_nothing() {
        assert_eq!(distance(&Identified::default(), &model()), None);
    }

    #[test]
    fn figures_that_differ_are_told_beside_what_is_published() {
        assert_eq!(differing(&found(), &model()), [""; 0]);
        let other = Identified {
            iops: both(16_000.0),
            bursts: vec![burst(BucketUnit::Ios, 16_000.0, 300.0, 5.4e6)],
            ..found()
        };
        assert_eq!(
            differing(&other, &model()),
            [
                "16,000 IOPS found, 3,000 IOPS published",
                "a baseline of 300 IOPS found, a baseline of 150 IOPS published",
            ]
        );
        let unlimited = VolumeModel::unlimited(1 << 30);
        assert_eq!(differing(&found(), &unlimited)[0], "3,000 IOPS found, no such limit published");
    }
}
