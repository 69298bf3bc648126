//! How long the rate of a test can be held: indefinitely, while burst credits remain, or unknown.
//!
//! Minutes at an even rate prove nothing about credits. A rate is sustained where it was held after an observed fall, where
//! it is within the published baseline of a volume of a known type, or where the test lasted longer than the burst of any
//! volume that gives such a rate.

use fathom_model::units;
use fathom_record::OwnRates;
use fathom_record::stability::Second;
use serde::Serialize;

use crate::rows::RecordRow;
use crate::say::count;
use crate::steady::levels::{FinalDrop, fall};
use crate::steady::run_fall::{Fell, RowCourse, RunFall};
use crate::steady::{FigureSpread, fifths, is_worst_so_far};

/// How long a rate lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lasting {
    /// Indefinitely.
    Sustained,
    /// Only while burst credits remain, or a cache has room.
    Burst,
    /// Unknown.
    #[default]
    Inconclusive,
}

/// The evidence for how long a rate lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DurationBasis {
    /// The published rule of the volume's type.
    PublishedRule,
    /// The rate fell while it was measured.
    ObservedFall,
    /// The test lasted longer than the burst of any volume in the catalogue that gives such a rate.
    LongerThanAnyBurst,
}

/// How long the rate of a test lasts, and the rate after that.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RateDuration {
    /// The answer.
    pub label: Lasting,
    /// Its evidence; `None` where it is inconclusive.
    pub basis: Option<DurationBasis>,
    /// The volume whose published rule it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Length of the measurement, ns.
    pub measured_ns: u64,
    /// The rate that can be held indefinitely, IOPS, where it is known.
    pub sustained_iops: Option<f64>,
    /// Time for which the measured rate lasts, ns: from full credits by the published rule, else as observed.
    pub lasts_ns: Option<u64>,
    /// Time to refill the credits when idle, ns, where it is published.
    pub refill_ns: Option<u64>,
    /// The most that was left after a fall that no published rule explains, IOPS, however long that was measured.
    #[serde(skip)]
    pub(crate) left_iops: Option<f64>,
}

/// Length of an even rate that is a condition of calling it sustained from measurements alone, s.
pub const SUSTAINED_SECONDS: u64 = 300;
/// Share of it that has to be measured: a run's first and last second are cut.
const MEASURED: f64 = 0.98;
/// Length of the level after a fall that makes it the sustained rate, s.
const AFTER_FALL_SECONDS: u64 = 60;
/// A measured rate may exceed a published limit by this share.
const WITHIN: f64 = 0.02;
/// A level within this share of a published rate is that rate.
const AS_PUBLISHED: f64 = 0.05;
/// Rounds before a fall are faster by this share.
const FALLEN: f64 = 1.1;

/// How long the rate of `test` lasts.
pub(crate) fn rate_duration(row: &RecordRow<'_>) -> RateDuration {
    let rates: Vec<f64> = row.seconds.iter().map(Second::iops).collect();
    let unknown = RateDuration { measured_ns: row.summary.measured_ns, ..RateDuration::default() };
    let own = row.test.published.as_ref().and_then(|published| published.own.as_ref());
    if let RowCourse::Burst(run, fell) = &row.course
        && (run.is_shared || *fell == Fell::Later)
    {
        return before_fall_of_run(row, run, unknown);
    }
    if let Some(drop) = fall(&rates) {
        return after_fall(&drop, &row.seconds, own, unknown);
    }
    // What a limiter saved up before a short test is no part of the rate that a rule is about.
    own.and_then(|own| by_rule(own, row.settled_iops(), &unknown))
        .or_else(|| after_fall_of_run(row, &unknown))
        .unwrap_or_else(|| by_length(row, &rates, unknown))
}

/// A rate that the run did not reach any more.
fn before_fall_of_run(row: &RecordRow<'_>, fall: &RunFall, unknown: RateDuration) -> RateDuration {
    let left = fall.left(row).min(row.iops());
    RateDuration {
        label: Lasting::Burst,
        basis: Some(DurationBasis::ObservedFall),
        sustained_iops: (fall.held_ns >= AFTER_FALL_SECONDS * 1_000_000_000).then_some(left),
        lasts_ns: Some(fall.burst_ns),
        left_iops: Some(left),
        ..unknown
    }
}

/// The rate of a whole test that includes a fall cannot be held.
fn after_fall(
    drop: &FinalDrop,
    seconds: &[Second],
    own: Option<&OwnRates>,
    unknown: RateDuration,
) -> RateDuration {
    let length = |seconds: &[Second]| seconds.iter().map(|second| second.elapsed_ns).sum::<u64>();
    let after_ns = length(&seconds[seconds.len() - drop.after.length..]);
    let held = (after_ns >= AFTER_FALL_SECONDS * 1_000_000_000).then_some(drop.after.median);
    let published = own.and_then(|own| own.burst);
    if let Some(known) = own.and_then(|own| by_rule_after_fall(own, drop, &unknown)) {
        return known;
    }
    RateDuration {
        label: Lasting::Burst,
        basis: Some(DurationBasis::ObservedFall),
        volume: own.map(|own| own.volume.clone()),
        sustained_iops: own.and_then(|own| own.sustained_iops).or(held),
        lasts_ns: Some(length(&seconds[..drop.before.length])),
        refill_ns: published.and_then(|burst| burst.refill_ns),
        left_iops: own.is_none().then_some(drop.after.median),
        ..unknown
    }
}

/// A fall between the levels of the published rule: full credits last as it says, however many there were at the start.
fn by_rule_after_fall(own: &OwnRates, drop: &FinalDrop, unknown: &RateDuration) -> Option<RateDuration> {
    let burst = own.burst.filter(|burst| drop.before.median <= burst.iops * (1.0 + WITHIN))?;
    let is_left = |left: &f64| (drop.after.median / left - 1.0).abs() <= AS_PUBLISHED;
    let is_exhausted = own.exhausted_iops.iter().chain(&own.sustained_iops).any(is_left);
    is_exhausted.then(|| RateDuration {
        label: Lasting::Burst,
        basis: Some(DurationBasis::PublishedRule),
        volume: Some(own.volume.clone()),
        sustained_iops: own.sustained_iops,
        lasts_ns: burst.lasts_ns,
        refill_ns: burst.refill_ns,
        ..unknown.clone()
    })
}

/// By the published rule of the volume's type; `None` where the rate is above all that it allows.
fn by_rule(own: &OwnRates, iops: f64, unknown: &RateDuration) -> Option<RateDuration> {
    let known = RateDuration {
        basis: Some(DurationBasis::PublishedRule),
        volume: Some(own.volume.clone()),
        sustained_iops: own.sustained_iops,
        ..unknown.clone()
    };
    let is_simulated = own.known_by == fathom_record::KnownBy::Simulated;
    let sustained = own.sustained_iops.or(is_simulated.then_some(f64::INFINITY))?;
    // Whole I/Os are counted, over as little as half of a short run. Figures of other programs have no time.
    let one = if unknown.measured_ns > 0 { 2e9 / unknown.measured_ns as f64 } else { 0.0 };
    let iops = iops - one;
    if iops <= sustained * (1.0 + WITHIN) {
        return Some(RateDuration { label: Lasting::Sustained, ..known });
    }
    let burst = own.burst.filter(|burst| iops <= burst.iops * (1.0 + WITHIN))?;
    let (lasts_ns, refill_ns) = (burst.lasts_ns, burst.refill_ns);
    Some(RateDuration { label: Lasting::Burst, lasts_ns, refill_ns, ..known })
}

/// Under a level that was held for long enough after the run fell.
fn after_fall_of_run(row: &RecordRow<'_>, unknown: &RateDuration) -> Option<RateDuration> {
    let RowCourse::Lasting(fall) = &row.course else { return None };
    (fall.held_ns >= AFTER_FALL_SECONDS * 1_000_000_000).then(|| RateDuration {
        label: Lasting::Sustained,
        basis: Some(DurationBasis::ObservedFall),
        sustained_iops: Some(row.iops()),
        ..unknown.clone()
    })
}

/// By what was measured alone.
fn by_length(row: &RecordRow<'_>, rates: &[f64], unknown: RateDuration) -> RateDuration {
    let test = &row.test;
    let measured_ns: u64 = row.seconds.iter().map(|second| second.elapsed_ns).sum();
    let is_long = measured_ns as f64 >= SUSTAINED_SECONDS as f64 * 1e9 * MEASURED;
    let rounds = test.rounds.as_ref().filter(|rounds| rounds.steady);
    let is_even = match rounds {
        Some(rounds) => is_worst_so_far(&rounds.values, rounds.tracked == "lat_ns"),
        None => FigureSpread::of(&fifths(rates)).is_steady(),
    };
    if !is_long || !is_even {
        return unknown;
    }
    let has_fallen = rounds.is_some_and(|rounds| {
        let last = rounds.values.last().copied().unwrap_or_default();
        rounds.tracked != "lat_ns" && rounds.values.iter().any(|earlier| *earlier > last * FALLEN)
    });
    let outlasts = test.published.as_ref().is_some_and(|published| {
        published.own.is_none() && published.longest_burst_ns.is_none_or(|longest| measured_ns > longest)
    });
    let basis = match (has_fallen, outlasts) {
        (true, _) => DurationBasis::ObservedFall,
        (false, true) => DurationBasis::LongerThanAnyBurst,
        (false, false) => return unknown,
    };
    let sustained_iops = row.summary.total.as_ref().map(|total| total.iops);
    RateDuration { label: Lasting::Sustained, basis: Some(basis), sustained_iops, ..unknown }
}

impl RateDuration {
    /// The rate that remains after a burst, where it is known.
    pub fn after_burst(&self) -> Option<f64> {
        self.sustained_iops.filter(|_| self.label == Lasting::Burst)
    }

    /// The same in words: `burst for 31 min 35 s from full credits, then 150 IOPS (aws-gp2?size=50GiB)`.
    pub fn text(&self) -> String {
        self.text_with(|iops| format!("{} IOPS", count(iops)))
    }

    /// The same with the rate after a burst as `rate` writes it, of I/Os per second.
    pub fn text_with(&self, rate: impl Fn(f64) -> String) -> String {
        let measured = units::duration(fathom_model::Nanos(self.measured_ns));
        let by = self.volume.as_ref().map(|volume| format!(" ({volume})")).unwrap_or_default();
        let then = self.after_burst().map(|iops| format!(", then {}", rate(iops))).unwrap_or_default();
        match (self.label, self.basis, self.lasts_ns.map(|ns| units::duration(fathom_model::Nanos(ns)))) {
            (Lasting::Burst, Some(DurationBasis::ObservedFall), Some(lasts)) => {
                format!("burst for {lasts} as observed{then}{by}")
            }
            (Lasting::Burst, _, Some(lasts)) => format!("burst for {lasts} from full credits{then}{by}"),
            (Lasting::Burst, _, None) => format!("billed burst{then}{by}"),
            (Lasting::Sustained, Some(DurationBasis::PublishedRule), _) => {
                format!("sustained by the published rule{by}")
            }
            (Lasting::Sustained, Some(DurationBasis::ObservedFall), _) => {
                "sustained: steady after a fall".to_owned()
            }
            (Lasting::Sustained, ..) => {
                format!("sustained: steady for {measured}, longer than any known burst at this rate")
            }
            (Lasting::Inconclusive, ..) => format!("measured for {measured}; burst not ruled out"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};
    use fathom_record::{BurstRate, KnownBy, PublishedRates, RoundsRecord};

    fn of(seconds: Vec<f64>, published: Option<PublishedRates>) -> RateDuration {
        let mut run = record(&[TestLoad { seconds, iops: 1000.0, ..TestLoad::default() }]);
        run.tests[0].published = published;
        RecordRow::of(&run.tests[0]).duration().clone()
    }

    fn unknown_type(longest_burst_s: Option<u64>) -> Option<PublishedRates> {
        let longest_burst_ns = longest_burst_s.map(|seconds| seconds * 1_000_000_000);
        Some(PublishedRates { longest_burst_ns, ..PublishedRates::default() })
    }

    fn known(sustained_iops: Option<f64>, burst: Option<f64>) -> Option<PublishedRates> {
        let of_burst =
            |iops| BurstRate { iops, lasts_ns: Some(60_000_000_000), refill_ns: Some(600_000_000_000) };
        let own = OwnRates {
            volume: "some-type".to_owned(),
            known_by: KnownBy::Label,
            sustained_iops,
            burst: burst.map(of_burst),
            ..OwnRates::default()
        };
        Some(PublishedRates { own: Some(own), ..PublishedRates::default() })
    }

    #[test]
    fn an_even_rate_alone_is_never_sustained() {
        for (length, published, expected) in [
            (12, None, Lasting::Inconclusive),
            (3000, None, Lasting::Inconclusive),
            (300, unknown_type(Some(1800)), Lasting::Inconclusive),
            (2000, unknown_type(Some(1800)), Lasting::Sustained),
            // No bucket of the catalogue gives such a rate.
            (300, unknown_type(None), Lasting::Sustained),
            (290, unknown_type(None), Lasting::Inconclusive),
        ] {
            let found = of(vec![1.0; length], published);
            assert_eq!(found.label, expected, "{length}: {found:?}");
        }
        let found = of([vec![1.0; 200], vec![0.5; 100]].concat().repeat(2), unknown_type(None));
        assert_eq!(found.label, Lasting::Inconclusive);
        assert_eq!(of(Vec::new(), unknown_type(None)).label, Lasting::Inconclusive);
    }

    #[test]
    fn a_known_type_decides_whatever_the_length() {
        for (sustained, burst, expected) in [
            (Some(1000.0), None, "sustained by the published rule (some-type)"),
            (Some(985.0), Some(3000.0), "sustained by the published rule (some-type)"),
            (Some(150.0), Some(1000.0), "burst for 1 min from full credits, then 150 IOPS (some-type)"),
            // Faster than the type allows: the rule explains nothing.
            (Some(150.0), Some(500.0), "measured for 20 s; burst not ruled out"),
            (Some(150.0), None, "measured for 20 s; burst not ruled out"),
            (None, None, "measured for 20 s; burst not ruled out"),
        ] {
            assert_eq!(of(vec![1.0; 20], known(sustained, burst)).text(), expected);
        }
    }

    #[test]
    fn an_observed_fall_outweighs_all_else() {
        let fell = |after: usize, published| of([vec![1.0; 20], vec![0.1; after]].concat(), published);
        let found = fell(400, unknown_type(None));
        assert_eq!(found.text(), "burst for 20 s as observed, then 100 IOPS");
        assert_eq!(found.sustained_iops, Some(100.0));
        // Too short to be the sustained rate.
        assert_eq!(fell(30, None).sustained_iops, None);
        assert_eq!(fell(400, known(Some(5000.0), None)).label, Lasting::Burst);
    }

    #[test]
    fn a_short_run_counts_whole_ios() {
        let of = |ios: f64| {
            let mut run = record(&[TestLoad { seconds: vec![1.0; 2], iops: ios, ..TestLoad::default() }]);
            run.tests[0].published = known(Some(20.0), None);
            RecordRow::of(&run.tests[0]).duration().label
        };
        assert_eq!((of(20.9), of(23.0)), (Lasting::Sustained, Lasting::Inconclusive));
    }

    #[test]
    fn a_fall_by_the_published_rule_lasts_as_the_rule_says() {
        let fell = |seconds: usize, after: f64, left: f64| {
            let mut run = record(&[TestLoad {
                seconds: [vec![1.0; seconds], vec![after; 100]].concat(),
                iops: 1000.0,
                ..TestLoad::default()
            }]);
            run.tests[0].published = known(Some(left), Some(1000.0));
            RecordRow::of(&run.tests[0]).duration().text()
        };
        let by_rule = "burst for 1 min from full credits, then 150 IOPS (some-type)";
        // Credits that others had used in part make no difference.
        assert_eq!([fell(60, 0.15, 150.0), fell(20, 0.15, 150.0)], [by_rule, by_rule]);
        // A fall to another rate is none of the rule's.
        assert_eq!(fell(20, 0.5, 150.0), "burst for 20 s as observed, then 150 IOPS (some-type)");
    }

    #[test]
    fn rounds_are_sustained_after_a_fall() {
        let check = |seconds: usize, values: &[f64], steady: bool, expected: Lasting| {
            let mut run = record(&[TestLoad { seconds: vec![1.0; seconds], ..TestLoad::default() }]);
            let (tracked, values) = ("iops".to_owned(), values.to_vec());
            run.tests[0].rounds =
                Some(RoundsRecord { tracked, values, steady, counted: 5, ..RoundsRecord::default() });
            assert_eq!(RecordRow::of(&run.tests[0]).duration().label, expected);
        };
        check(297, &[3000.0, 1000.0, 300.0, 300.0, 300.0, 300.0, 300.0], true, Lasting::Sustained);
        check(297, &[300.0; 5], true, Lasting::Inconclusive);
        check(297, &[200.0, 300.0, 300.0, 300.0, 300.0, 300.0], true, Lasting::Inconclusive);
        // Short rounds may agree and still be on credit.
        check(50, &[3000.0, 300.0, 300.0, 300.0, 300.0, 300.0], true, Lasting::Inconclusive);
    }
}
