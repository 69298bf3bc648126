//! Rates that changed while they were measured: once and for good, as when a burst credit is spent, or up and down.

use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_record::{Finding, RunRecord};
use fathom_record::{FindingId, stability::Second};
use fathom_stats::sample::mean;

use crate::findings::client;
use crate::findings::passes;
use crate::findings::pauses::waited_ns;
use crate::findings::stalled;
use crate::rows::{MIN_SECONDS as MIN_VARIED, RecordRow, RowKind};
use crate::say::{count, finding, mebibytes, percent, seconds};
use crate::steady::course::{alternation, steady_drift};
use crate::steady::levels::{EVEN, FinalDrop, Segment, fall, segments};
use crate::steady::run_fall::{Fell, RowCourse};
use crate::steady::{self, FigureSpread, ROUNDS, SCREENED, coefficient_of_variation, fifths};

/// Full seconds below which a fifth of a run is too short.
const MIN_SECONDS: usize = 10;
/// Levels within this share of a published rate are that rate.
const AS_PUBLISHED: f64 = 0.05;
/// Coefficient of variation between the seconds of a shorter run from which on its mean says little.
const VARIED: f64 = 0.20;
/// Rounds differ by more where the rate fell between them.
const FELL: f64 = 1.1;
/// Requests in a fifth below which their number is a matter of chance.
const MIN_REQUESTS: f64 = 100.0;

/// What there is to say of one row.
pub(crate) fn findings(record: &RunRecord, row: &RecordRow<'_>) -> Option<Finding> {
    let rates: Vec<f64> = row.seconds.iter().map(Second::iops).collect();
    // A fall of the whole run has a finding of its own.
    if matches!(&row.course, RowCourse::Burst(fall, Fell::Within) if fall.is_shared) {
        return None;
    }
    // So has a stall.
    if row.is_paced() || stalled::findings(record, row).is_some() {
        return None;
    }
    if rates.len() < MIN_SECONDS {
        // First accesses or a cache explain why the rate changed.
        let is_explained = || passes::findings(record, row).is_some() || is_of_client(row, &rates);
        return varied(row).filter(|_| !is_explained());
    }
    let too_few = mean(&rates) * (rates.len() / ROUNDS) as f64 <= MIN_REQUESTS;
    if too_few {
        return None;
    }
    let spans = fifths(&rates);
    by_published_rule(row, &rates)
        .or_else(|| burst(row, &rates))
        .or_else(|| fell_before_rounds(row))
        .or_else(|| alternating(row, &rates).filter(|_| !is_of_client(row, &rates)))
        .or_else(|| not_steady(row, &rates).filter(|_| !is_of_client(row, &spans)))
        .or_else(|| drifting(row, &rates).filter(|_| !is_of_client(row, &spans)))
        .or_else(|| varied(row).filter(|_| !is_of_client(row, &rates)))
}

/// The client was the limit, or threads waited for a CPU for a share of the time by which the rates differ.
fn is_of_client(row: &RecordRow<'_>, rates: &[f64]) -> bool {
    let waited = waited_ns(row) / row.summary.measured_ns.max(1) as f64;
    client::is_bound(row) || FigureSpread::of(rates).range_fraction <= waited
}

/// Something takes a share of the device from time to time, which means of longer windows hide.
fn alternating(row: &RecordRow<'_>, rates: &[f64]) -> Option<Finding> {
    let ios: u64 = row.seconds.iter().map(|second| second.ios).sum();
    let found = alternation(rates, rates.len() as f64 / ios.max(1) as f64)?;
    let period_ns =
        found.period.map(|period| elapsed_ns(&row.seconds) / row.seconds.len() as u64 * period as u64);
    let when = period_ns.map(|ns| format!(", with a period of {}", seconds(ns))).unwrap_or_default();
    let claim = format!("IOPS alternate between {} and {}{when}.", count(found.low), count(found.high));
    let remedy = "Look for what shares the device at these times: another client or volume, a scheduled task (`fathom monitor`).";
    Some(
        finding(FindingId::NotSteady, [row], claim, remedy)
            .with("low_iops", found.low)
            .with("high_iops", found.high)
            .with("period_ns", period_ns),
    )
}

/// A slope that windows of a fifth do not call too large, but that no chance explains: it goes on in a longer run.
fn drifting(row: &RecordRow<'_>, rates: &[f64]) -> Option<Finding> {
    let drift = steady_drift(rates)?;
    let length_ns = elapsed_ns(&row.seconds);
    let a_minute = drift * 60e9 / length_ns as f64;
    let verb = if drift < 0.0 { "fell" } else { "rose" };
    let claim = format!(
        "IOPS {verb} steadily, by {} in {}: {} a minute.",
        percent(drift.abs()),
        seconds(length_ns),
        percent(a_minute.abs()),
    );
    let remedy = row.words.longer().to_owned();
    Some(finding(FindingId::NotSteady, [row], claim, remedy).with("drift_fraction", drift))
}

/// A series whose levels are all those of the volume's own published rule needs no other explanation.
fn by_published_rule(row: &RecordRow<'_>, rates: &[f64]) -> Option<Finding> {
    let own = row.test.published.as_ref()?.own.as_ref()?;
    let (burst, baseline) = (own.burst?, own.sustained_iops?);
    let is_near = |level: &Segment, iops: f64| (level.median / iops - 1.0).abs() <= AS_PUBLISHED;
    let levels = segments(rates);
    let are_published = levels.iter().all(|level| is_near(level, burst.iops) || is_near(level, baseline));
    if levels.len() < 2 || !are_published {
        return None;
    }
    let spans: Vec<Nanos> = burst.lasts_ns.into_iter().chain(burst.refill_ns).map(Nanos).collect();
    let rule = match spans.as_slice() {
        [lasts, refill] => {
            format!(": a burst lasts {} and is available again after {}", duration(*lasts), duration(*refill))
        }
        _ => String::new(),
    };
    let claim = format!(
        "IOPS changed between {} and {} by the published rule of {}{rule}.",
        count(burst.iops),
        count(baseline),
        own.volume,
    );
    let remedy = format!("Plan with {} IOPS, the sustained rate.", count(baseline));
    let windows: Vec<f64> = levels.iter().map(|level| level.median).collect();
    Some(
        finding(FindingId::BurstSuspected, [row], claim, remedy)
            .with("burst_iops", burst.iops)
            .with("baseline_iops", baseline)
            .with("volume", own.volume.as_str())
            .with("levels_iops", windows),
    )
}

/// How far its seconds lie apart, beyond the chance of their numbers of I/Os.
fn varied(row: &RecordRow<'_>) -> Option<Finding> {
    let stability = row.summary.stability?;
    let rates: Vec<f64> = row.settled().iter().map(Second::iops).collect();
    let ios: u64 = row.settled().iter().map(|second| second.ios).sum();
    let by_chance = rates.len() as f64 / ios.max(1) as f64;
    let cv = coefficient_of_variation(&rates);
    if rates.len() < MIN_VARIED || cv * cv - by_chance <= VARIED * VARIED {
        return None;
    }
    let least = rates.iter().copied().fold(f64::MAX, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let claim = format!(
        "IOPS ranged from {} to {} between seconds: the mean of {} is known to within {} only.",
        count(least),
        count(most),
        seconds(row.summary.measured_ns),
        percent(stability.mean_ci95_fraction),
    );
    let remedy = row.words.longer().to_owned();
    Some(
        finding(FindingId::NotSteady, [row], claim, remedy)
            .with("cv", cv)
            .with("mean_ci95_fraction", stability.mean_ci95_fraction),
    )
}

/// The whole run is judged, since its mean is what the row shows; one of 30 s is cut as the screening rule has it.
fn not_steady(row: &RecordRow<'_>, rates: &[f64]) -> Option<Finding> {
    let spans = fifths(rates);
    let spread = FigureSpread::of(&spans);
    if spread.is_steady() {
        return None;
    }
    let course = match spread.direction() {
        // By how much is in the spans: the drift is a share of the mean, and can be more than all of it.
        1 => "the trend is rising",
        -1 => "the trend is falling",
        _ => "there is no trend",
    };
    let settled = steady::screening(rates).filter(|last| rates.len() > SCREENED && last.is_steady());
    let last_ns = elapsed_ns(&row.seconds[row.seconds.len().saturating_sub(SCREENED)..]);
    let end = settled
        .map(|last| format!(", steady at {} IOPS over the last {}", count(last.mean), seconds(last_ns)));
    let least = spans.iter().copied().fold(f64::MAX, f64::min);
    let most = spans.iter().copied().fold(0.0, f64::max);
    let claim = format!(
        "IOPS ranged from {} to {} ({} windows); {course}{}.",
        count(least),
        count(most),
        seconds(elapsed_ns(&row.seconds[..rates.len() / ROUNDS])),
        end.unwrap_or_default(),
    );
    let remedy = "Check for other load (snapshot, scrub, noisy neighbour), or run until the rate is steady: `fathom \
         bench --until-steady`.";
    let found = finding(FindingId::NotSteady, [row], claim, remedy)
        .with("range_fraction", spread.range_fraction)
        .with("drift_fraction", spread.drift_fraction)
        .with("windows_iops", spans);
    Some(match settled {
        Some(last) => found.with("last_30_seconds_iops", last.mean),
        None => found,
    })
}

fn burst(row: &RecordRow<'_>, rates: &[f64]) -> Option<Finding> {
    let FinalDrop { before: high, after: low } = fall(rates)?;
    let held_back =
        row.test.host_load.iter().any(|load| load.counters.throttled_ns > 0) || client::is_bound(row);
    if low.cv > EVEN || held_back {
        return None;
    }
    let above =
        |interval: &Second| (interval.iops() - low.median).max(0.0) * interval.elapsed_ns as f64 / 1e9;
    let before = &row.seconds[..high.length];
    let (used, burst_ns) = (before.iter().map(above).sum::<f64>(), elapsed_ns(before));
    let cache = if row.kind() == Some(RowKind::Read) { "" } else { ", or the write cache is full" };
    let claim = format!(
        "the rate fell from {} to {} IOPS after {} and stayed there: burst credits are probably \
         exhausted{cache}.",
        count(high.median),
        count(low.median),
        seconds(burst_ns),
    );
    let remedy = "Let the volume idle and run again: burst credits end after the same number of I/Os, noisy \
         neighbours do not.";
    Some(
        finding(FindingId::BurstSuspected, [row], claim, remedy)
            .with("burst_iops", high.median)
            .with("baseline_iops", low.median)
            .with("credit_used_requests", used)
            .with("burst_ns", burst_ns),
    )
}

/// A step in the rounds before those that count, which agree.
fn fell_before_rounds(row: &RecordRow<'_>) -> Option<Finding> {
    let rounds = row.test.rounds.as_ref().filter(|rounds| rounds.steady)?;
    let is_latency = rounds.tracked == "lat_ns";
    let rate = |value: &f64| if is_latency { 1e9 / value } else { *value };
    let (earlier, counted) =
        rounds.values.split_at(rounds.values.len().checked_sub(rounds.counted as usize)?);
    let left = mean(&counted.iter().map(rate).collect::<Vec<f64>>());
    let rates: Vec<f64> = earlier.iter().map(rate).collect();
    let fell_in = rates.iter().rposition(|rate| *rate > left * FELL)?;
    let before = rates.iter().copied().fold(0.0, f64::max);
    // The round of the fall is a mean of both levels.
    let is_step = rates[..fell_in].iter().all(|rate| *rate * FELL >= before);
    let text = |rate: f64| match rounds.tracked.as_str() {
        "bytes_per_second" => mebibytes(rate),
        _ => format!("{} IOPS", count(rate)),
    };
    let at_least = if fell_in == 0 { "at least " } else { "" };
    let claim = format!(
        "the rate fell from {at_least}{} to {} in round {}, before the {} rounds that count, and stayed there: burst credits may be \
         exhausted, or a cache is full.",
        text(before),
        text(left),
        fell_in + 1,
        rounds.counted,
    );
    let remedy = "Let the volume idle and run again: burst credits end after the same number of I/Os, noisy neighbours do not.";
    let [high, low] = match rounds.tracked.as_str() {
        "bytes_per_second" => ["burst_bytes_per_second", "baseline_bytes_per_second"],
        _ => ["burst_iops", "baseline_iops"],
    };
    is_step
        .then(|| finding(FindingId::BurstSuspected, [row], claim, remedy).with(high, before).with(low, left))
}

/// The length of all of `intervals`: in a long run each is longer than a second.
fn elapsed_ns(intervals: &[Second]) -> u64 {
    intervals.iter().map(|interval| interval.elapsed_ns).sum()
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;
    use fathom_record::Interval;
    use fathom_stats::series;
    use proptest::prelude::*;

    use super::*;
    use crate::fixture::{TestLoad, plan, record};
    use crate::rows::rows;

    fn told(seconds: Vec<f64>, iops: f64) -> Option<String> {
        let run = record(&[TestLoad { seconds, iops, ..TestLoad::default() }]);
        findings(&run, &rows(&run)[0]).map(|finding| finding.id.to_string())
    }

    fn fall(high: usize, low: usize, to: f64) -> Vec<f64> {
        [vec![1.0; high], vec![to; low]].concat()
    }

    #[test]
    fn the_course_of_a_rate_is_told_without_a_share_of_more_than_all() {
        let check = |seconds: Vec<f64>, expected: &str| {
            let run = record(&[TestLoad { seconds, iops: 1000.0, ..TestLoad::default() }]);
            let claim = findings(&run, &rows(&run)[0]).expect("it is not steady").claim;
            assert!(claim.contains(expected) && !claim.contains('%'), "{claim}");
        };
        // An uneven end is no baseline; the drift is 1.8 times the mean.
        check([vec![1.0; 8], [0.1, 0.2].repeat(6)].concat(), "the trend is falling");
        check((1..=20).map(|second| f64::from(second) * 0.1).collect(), "the trend is rising");
        check([vec![1.0; 8], vec![0.5; 8]].concat().repeat(3)[..40].to_vec(), "with a period of 16 s");
        check([[0.5; 3], [0.9; 3], [1.0; 3], [0.9; 3], [0.5; 3]].concat(), "there is no trend");
    }

    #[test]
    fn rates_that_change() {
        let check = |seconds: Vec<f64>, expected: Option<&str>| {
            assert_eq!(told(seconds.clone(), 3000.0).as_deref(), expected, "{seconds:?}");
        };
        check(vec![1.0; 60], None);
        check([0.95, 1.05].repeat(6), None);
        check(fall(30, 30, 0.1), Some("burst-suspected"));
        check(fall(6, 6, 0.5), Some("burst-suspected"));
        // Too short for windows or levels, but not for seconds.
        check(fall(5, 4, 0.5), Some("not-steady"));
        check(vec![1.0, 0.2, 1.9, 1.0], Some("not-steady"));
        check(vec![1.0, 0.9, 1.1, 1.0], None);
        // Up, or down and up again, is no credit; nor is a slow decline.
        check(fall(30, 30, 3.0), Some("not-steady"));
        check([fall(12, 12, 0.5), vec![1.0; 12]].concat(), Some("not-steady"));
        check((0..30).map(|second| 1.0 - f64::from(second) * 0.01).collect(), Some("not-steady"));
        check((0..20).map(|second| 0.99_f64.powi(second)).collect(), Some("not-steady"));
        check([vec![1.0; 12], vec![0.0; 3], vec![1.0; 5]].concat(), Some("not-steady"));
        // Ten requests a second vary by chance.
        assert_eq!(told(vec![0.7, 1.2], 10.0), None);
        assert_eq!(told(vec![0.7, 1.2, 1.0, 0.7, 1.3], 10.0), None);
    }

    #[test]
    fn a_run_that_settled_says_where() {
        let last = |seconds: Vec<f64>| {
            let run = record(&[TestLoad { seconds, iops: 3000.0, ..TestLoad::default() }]);
            let found = findings(&run, &rows(&run)[0]).unwrap();
            found.evidence.get("last_30_seconds_iops").and_then(|value| value.as_f64())
        };
        assert_eq!(last(fall(30, 30, 3.0)), Some(9000.0));
        assert_eq!(last([fall(12, 12, 0.5), vec![1.0; 12]].concat()), None);
    }

    #[test]
    fn a_job_that_holds_itself_back_is_not_judged() {
        let mut run = record(&[TestLoad { seconds: fall(10, 10, 0.5), ..TestLoad::default() }]);
        plan(&mut run, |plan| plan.time.think_time.pause = Nanos(1000));
        assert_eq!(findings(&run, &rows(&run)[0]), None);
    }

    #[test]
    fn the_credit_that_was_used() {
        let run = record(&[TestLoad { seconds: fall(20, 40, 0.1), iops: 3000.0, ..TestLoad::default() }]);
        let found = findings(&run, &rows(&run)[0]).unwrap();
        let number = |name: &str| found.evidence[name].as_f64().unwrap();
        assert_eq!((number("burst_iops"), number("baseline_iops")), (3000.0, 300.0));
        assert_eq!((number("credit_used_requests"), number("burst_ns")), (54_000.0, 20e9));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Long runs keep fewer, longer intervals: 200 s at the burst rate stay 200 s, and the credit stays what it was.
        #[test]
        fn duration_and_credit_of_a_burst_do_not_depend_on_the_length_of_the_run(
            length in 230_usize..10_000, burst in 6_usize..200,
        ) {
            let mut run = record(&[TestLoad {
                seconds: fall(burst, length - burst, 0.05),
                iops: 3000.0,
                ..TestLoad::default()
            }]);
            let series = &mut run.tests[0].jobs[0].measured.series;
            while series.len() > 1200 {
                series::halve(series);
            }
            let longest = series.iter().map(Interval::elapsed_ns).max().unwrap() as f64;
            let rows = rows(&run);
            // A burst of fewer intervals than make a level is not found.
            prop_assume!(burst as f64 * 1e9 > 6.0 * longest);
            let found = findings(&run, &rows[0]).expect("the rate fell");
            let number = |name: &str| found.evidence[name].as_f64().unwrap();
            prop_assert!((number("burst_ns") - burst as f64 * 1e9).abs() <= longest, "{found:?}");
            let credit = burst as f64 * 2850.0;
            prop_assert!((number("credit_used_requests") / credit - 1.0).abs() < 0.02, "{found:?}");
            let stability = rows[0].summary.stability.expect("a long run");
            prop_assert!((stability.measured_ns as f64 - length as f64 * 1e9).abs() <= 2.0 * longest);
        }
    }
}
