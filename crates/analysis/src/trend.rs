//! Whether and where a series of runs changed its level.
//!
//! A change is a shift of the median that a test on ranks shows, so no size of it is a threshold and single outliers do not
//! count. The series is cut where its ranks differ most between the parts, less a penalty for each cut (optimal partitioning,
//! Jackson et al. 2005, IEEE Signal Processing Letters 12, on the rank statistic of Kruskal and Wallis). The penalty is the
//! critical value of the maximally selected rank statistic (Lausen and Schumacher 1992, Biometrics 48; the bound for its tail
//! is that of Lausen, Sauerbrei and Schumacher 1994), which accounts for the search over all places. Each part is ranked and
//! searched again, at half the error probability of the whole.
//!
//! Neighbouring runs resemble each other. The lag-1 autocorrelation within the parts, corrected for its bias (Marriott and Pope
//! 1954, Biometrika 41), widens all variances by (1 + r) / (1 - r), as for an autoregressive series.

mod partition;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use fathom_record::confidence::student_975;
use fathom_stats::sample::{median, quantile};
use serde::{Serialize, Serializer};
use statrs::function::gamma::gamma_ur;

use partition::{CriticalValues, MAX_RELATED, PartitionSearch, autocorrelation, beyond_noise};

/// Probability of reporting a change where there is none, for all series of a trend together.
pub const ERROR: f64 = 0.05;
/// Fewest runs in which a change can show.
pub const MIN_RUNS: usize = 8;

/// Runs of one level: from `from` to before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrendLevel {
    /// Index of the first run.
    pub from: usize,
    /// Index after the last run.
    pub to: usize,
    /// Median of its runs.
    pub median: f64,
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Index of the first run after it.
    pub at: usize,
    /// The level before it.
    pub before: TrendLevel,
    /// The level after it.
    pub after: TrendLevel,
    /// Its size; `None` where a run has the value 0.
    pub ratio: Option<ShiftRatio>,
}

/// How many times greater runs after a change are: the median of the ratios of all pairs of a run after and a run before it
/// (Hodges and Lehmann), with its distribution-free 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShiftRatio {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The levels of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendAnalysis {
    /// The result.
    pub verdict: TrendVerdict,
    /// The levels, oldest first; one where nothing changed.
    pub levels: Vec<TrendLevel>,
    /// The changes between them.
    pub changes: Vec<ChangePoint>,
    /// Lag-1 autocorrelation within the levels, which the test accounts for.
    pub autocorrelation: f64,
}

/// Whether a series changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrendVerdict {
    /// The level changed.
    Changed,
    /// No change is significant.
    NoChange,
    /// There are too few runs to show a change.
    Inconclusive,
}

impl TrendVerdict {
    /// The word in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            TrendVerdict::Changed => "changed",
            TrendVerdict::NoChange => "no-change",
            TrendVerdict::Inconclusive => "inconclusive",
        }
    }
}

/// The levels of `values`, oldest first; reports a false change with the probability `error` at most.
pub fn analyse(values: &[f64], error: f64) -> TrendAnalysis {
    analyse_with(&mut CriticalValues::default(), values, error)
}

/// The same for one of several series, which share what is known of critical values.
fn analyse_with(critical: &mut CriticalValues, values: &[f64], error: f64) -> TrendAnalysis {
    let (cuts, autocorrelation) = cuts(critical, values, error);
    let bounds: Vec<usize> = [&[0][..], &cuts, &[values.len()]].concat();
    let level = |pair: &[usize]| TrendLevel {
        from: pair[0],
        to: pair[1],
        median: median(&values[pair[0]..pair[1]]).unwrap_or(0.0),
    };
    let levels: Vec<TrendLevel> =
        if values.is_empty() { Vec::new() } else { bounds.windows(2).map(level).collect() };
    // The autocorrelation is estimated too: the interval allows for half its standard error.
    let careful = (autocorrelation + 0.5 / (values.len().max(1) as f64).sqrt()).min(MAX_RELATED);
    let change = |pair: &[TrendLevel]| {
        let (before, after) = (pair[0], pair[1]);
        let ratio = ratio(&values[before.from..before.to], &values[after.from..after.to], inflation(careful));
        ChangePoint { at: after.from, before, after, ratio }
    };
    let changes: Vec<ChangePoint> = levels.windows(2).map(change).collect();
    let verdict = match (values.len() < MIN_RUNS, changes.is_empty()) {
        (true, _) => TrendVerdict::Inconclusive,
        (false, true) => TrendVerdict::NoChange,
        (false, false) => TrendVerdict::Changed,
    };
    TrendAnalysis { verdict, levels, changes, autocorrelation }
}

/// Most rounds of estimating the autocorrelation within levels and the levels under it.
const MAX_ROUNDS: usize = 8;

/// The cuts between levels, and the autocorrelation within them. Each depends on the other: a shift of level looks like
/// autocorrelation, and autocorrelation like shifts. The first cuts assume none. Those whose shift is greater than such noise can
/// make stay; the others and the autocorrelation are made again until they agree.
fn cuts(critical: &mut CriticalValues, values: &[f64], error: f64) -> (Vec<usize>, f64) {
    if values.len() < MIN_RUNS {
        return (Vec::new(), 0.0);
    }
    let mut search = PartitionSearch::new(values, critical);
    let mut cuts = search.partition(error, 1.0);
    let mut related = search.autocorrelation(&cuts);
    if cuts.is_empty() {
        // Nor does a search that allows for more noise find any.
        return (cuts, related);
    }
    let certain = beyond_noise(values, &cuts, related);
    for _ in 0..MAX_ROUNDS {
        cuts = search.partition_between(&certain, error, inflation(related));
        let found = search.autocorrelation(&cuts);
        if found <= related {
            break;
        }
        related = found;
    }
    (cuts, related)
}

/// How many runs stand for one.
fn inflation(autocorrelation: f64) -> f64 {
    (1.0 + autocorrelation) / (1.0 - autocorrelation)
}

/// The value of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendPoint {
    /// Number of the run.
    pub run: u64,
    /// When it began, ms since the epoch; 0 for simulated runs.
    pub started_unix_ms: u64,
    /// When it ran, ms since the epoch; of a simulated run when it was stored; 0 where that is unknown.
    pub dated_unix_ms: u64,
    /// The target as the user named it.
    #[serde(serialize_with = "write_text")]
    pub target: Arc<str>,
    /// IOPS, bytes per second or ns.
    pub value: f64,
}

fn write_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// A value with its test and group.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendRow {
    /// Id of the test.
    pub test: Arc<str>,
    /// The group: a device, a host.
    pub key: Arc<str>,
    /// The value.
    pub point: TrendPoint,
}

/// The values of one test in one group, and what they show.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendSeries {
    /// Id of the test.
    pub test: Arc<str>,
    /// The group.
    pub key: Arc<str>,
    /// The values, oldest first.
    pub points: Vec<TrendPoint>,
    /// Levels and changes.
    pub analysis: TrendAnalysis,
}

impl TrendSeries {
    /// The level of the point at `index`.
    pub fn level(&self, index: usize) -> Option<&TrendLevel> {
        self.analysis.levels.iter().find(|level| (level.from..level.to).contains(&index))
    }
}

/// The series of `rows`, which are sorted by test, group and time. All together report a change where there is none with the
/// probability [`ERROR`] at most.
pub fn series(rows: Vec<TrendRow>) -> Vec<TrendSeries> {
    let mut found: Vec<TrendSeries> = Vec::new();
    for TrendRow { test, key, point } in rows {
        match found.last_mut() {
            Some(series) if series.test == test && series.key == key => series.points.push(point),
            _ => found.push(TrendSeries { test, key, points: vec![point], analysis: analyse(&[], ERROR) }),
        }
    }
    let tested = found.iter().filter(|series| series.points.len() >= MIN_RUNS).count().max(1);
    let mut critical = CriticalValues::default();
    for series in &mut found {
        let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
        series.analysis = analyse_with(&mut critical, &values, ERROR / tested as f64);
    }
    found
}

/// The series of one test, and the greatest of their autocorrelations.
#[derive(Default)]
struct SeriesOfTest {
    groups: Vec<(String, Vec<f64>)>,
    autocorrelation: f64,
}

/// The series of each test compared with each other.
pub fn by_key(series: &[TrendSeries]) -> Vec<(Arc<str>, GroupDifference)> {
    let mut tests: BTreeMap<Arc<str>, SeriesOfTest> = BTreeMap::new();
    for one in series {
        let of_test = tests.entry(one.test.clone()).or_default();
        let values = one.points.iter().map(|point| point.value).collect();
        of_test.groups.push((one.key.to_string(), values));
        of_test.autocorrelation = of_test.autocorrelation.max(one.analysis.autocorrelation);
    }
    let compared = |(test, SeriesOfTest { groups, autocorrelation })| {
        (test, difference(&groups, inflation(autocorrelation)))
    };
    tests.into_iter().map(compared).collect()
}

/// A run with its time of day.
struct TimedRun {
    group: String,
    value: f64,
    /// The value as a multiple of the level of its series.
    share: f64,
}

/// The runs of each test by the time of day that `group` finds for their start. Values count relative to the level that their
/// series had, so that neither changes nor differences between series look like hours. The resemblance of neighbouring runs counts
/// as far as the time of day does not explain it.
pub fn by_time(series: &[TrendSeries], group: impl Fn(u64) -> String) -> Vec<(Arc<str>, GroupDifference)> {
    let mut tests: BTreeMap<Arc<str>, Vec<Vec<TimedRun>>> = BTreeMap::new();
    for one in series {
        let dated = one.points.iter().enumerate().filter(|(_, point)| point.started_unix_ms > 0);
        let timed = dated.filter_map(|(index, point)| {
            let level = one.level(index).map(|level| level.median).filter(|&level| level > 0.0)?;
            let (group, value) = (group(point.started_unix_ms), point.value);
            Some(TimedRun { group, value, share: value / level })
        });
        tests.entry(one.test.clone()).or_default().push(timed.collect());
    }
    tests.into_iter().map(|(test, series)| (test, of_times(&series))).collect()
}

/// The runs of several series by their time of day.
fn of_times(series: &[Vec<TimedRun>]) -> GroupDifference {
    let all: Vec<f64> = series.iter().flatten().map(|run| run.value).collect();
    let whole = median(&all).unwrap_or(0.0);
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for run in series.iter().flatten() {
        groups.entry(&run.group).or_default().push(run.share);
    }
    let medians: BTreeMap<&str, f64> =
        groups.iter().filter_map(|(key, shares)| Some((*key, median(shares)?))).collect();
    let related = series.iter().map(|runs| {
        let rest = runs.iter().filter_map(|run| Some(run.share - medians.get(&*run.group)?));
        autocorrelation(&rest.collect::<Vec<f64>>())
    });
    let related = related.fold(0.0, f64::max);
    let scaled = |(key, shares): (&str, Vec<f64>)| {
        (key.to_owned(), shares.into_iter().map(|share| share * whole).collect())
    };
    let groups: Vec<(String, Vec<f64>)> = groups.into_iter().map(scaled).collect();
    difference(&groups, inflation(related))
}

/// Runs on either side of a change that its ratio is estimated from: those nearest to it.
const MAX_PAIRED: usize = 300;

/// The ranks of `values` less their mean; equal values share the mean of their ranks.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    // Pairs, because a sort of indices alone reads all over the values.
    let mut order: Vec<(f64, usize)> = values.iter().copied().zip(0..).collect();
    order.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let value = order[start].0;
        let end = start + order[start..].iter().take_while(|(other, _)| *other == value).count().max(1);
        let rank = (start + end - 1) as f64 / 2.0 - middle;
        order[start..end].iter().for_each(|&(_, index)| ranks[index] = rank);
        start = end;
    }
    ranks
}

/// How many times greater `after` is than `before`, with variances `inflation` times those of independent values.
fn ratio(before: &[f64], after: &[f64], inflation: f64) -> Option<ShiftRatio> {
    let (before, after) =
        (&before[before.len().saturating_sub(MAX_PAIRED)..], &after[..after.len().min(MAX_PAIRED)]);
    if before.iter().chain(after).any(|value| *value <= 0.0) {
        return None;
    }
    let mut ratios: Vec<f64> =
        after.iter().flat_map(|after| before.iter().map(move |before| after / before)).collect();
    let value = median(&ratios)?;
    let (few, many) = (before.len() as f64, after.len() as f64);
    let deviation = (few * many * (few + many + 1.0) / 12.0 * inflation).sqrt();
    let independent = (few + many) / inflation - 2.0;
    // So many pairs lie outside the interval on either side.
    let outside = (few * many / 2.0 - student_975(independent) * deviation - 1.0).floor().max(0.0) as usize;
    let last = ratios.len() - 1;
    let mut nth = |index: usize| *ratios.select_nth_unstable_by(index, f64::total_cmp).1;
    Some(ShiftRatio { value, low: nth(outside.min(last)), high: nth(last.saturating_sub(outside)) })
}

/// The runs of one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupSpread {
    /// The group: an hour, a host, a device.
    pub key: String,
    /// Runs in it.
    pub runs: usize,
    /// A quarter of its runs is below this.
    pub quartile_low: f64,
    /// Median.
    pub median: f64,
    /// A quarter of its runs is above this.
    pub quartile_high: f64,
    /// Its median as a multiple of that of all runs; `None` where that is 0.
    pub ratio: Option<f64>,
}

/// How groups differ: the test of Kruskal and Wallis (1952, J. Am. Stat. Assoc. 47) on ranks finds many small differences, the rank
/// sum of each group against the others a single large one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupDifference {
    /// Probability of groups as different as these if all had the same distribution; `None` with fewer than two groups of
    /// [`MIN_OF_GROUP`] runs.
    pub p: Option<f64>,
    /// Share of the variance of the ranks that lies between the groups, corrected for their number (epsilon squared); `None`
    /// where `p` is.
    pub explained: Option<f64>,
    /// The groups, in the order given.
    pub groups: Vec<GroupSpread>,
}

/// Runs that a group needs to count in the test.
pub const MIN_OF_GROUP: usize = 3;

/// Compares groups of values, each under its key. Values that follow one another resemble each other, so that `inflation` of them
/// stand for one.
pub fn difference(groups: &[(String, Vec<f64>)], inflation: f64) -> GroupDifference {
    let all: Vec<f64> = groups.iter().flat_map(|(_, values)| values).copied().collect();
    let whole = median(&all).unwrap_or(0.0);
    let spread = |(key, values): &(String, Vec<f64>)| {
        let at = |share: f64| quantile(values, share);
        Some(GroupSpread {
            key: key.clone(),
            runs: values.len(),
            quartile_low: at(0.25)?,
            median: at(0.5)?,
            quartile_high: at(0.75)?,
            ratio: (whole > 0.0).then(|| at(0.5).map(|median| median / whole)).flatten(),
        })
    };
    let tested = between_groups(groups);
    GroupDifference {
        p: tested.map(|tested| tested.probability(inflation)),
        explained: tested.map(|tested| {
            ((tested.statistic - tested.degrees) / (tested.runs - tested.degrees - 1.0)).clamp(0.0, 1.0)
        }),
        groups: groups.iter().filter_map(spread).collect(),
    }
}

/// The variance of the ranks between groups.
#[derive(Clone, Copy)]
struct BetweenGroups {
    /// As a chi-square value where there is no difference.
    statistic: f64,
    /// Its degrees of freedom: one less than the groups.
    degrees: f64,
    /// Runs in all groups; more than the groups.
    runs: f64,
    /// The greatest square of a standardised rank sum of a group.
    greatest: f64,
}

impl BetweenGroups {
    /// Either test may find a difference, and each group may be the one that differs: both are accounted for.
    fn probability(&self, inflation: f64) -> f64 {
        let together = chi_square_tail(self.statistic / inflation, self.degrees);
        if self.degrees < 2.0 {
            return together;
        }
        let single = (self.degrees + 1.0) * chi_square_tail(self.greatest / inflation, 1.0);
        (2.0 * together.min(single)).min(1.0)
    }
}

fn between_groups(groups: &[(String, Vec<f64>)]) -> Option<BetweenGroups> {
    let counted: Vec<&[f64]> =
        groups.iter().map(|(_, values)| &values[..]).filter(|values| values.len() >= MIN_OF_GROUP).collect();
    let all: Vec<f64> = counted.concat();
    if counted.len() < 2 {
        return None;
    }
    let ranks = centred_ranks(&all);
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let (degrees, runs) = ((counted.len() - 1) as f64, all.len() as f64);
    if squares <= 0.0 {
        return Some(BetweenGroups { statistic: 0.0, degrees, runs, greatest: 0.0 });
    }
    let mut rest = &ranks[..];
    let (mut between, mut greatest) = (0.0, 0.0_f64);
    for values in counted {
        let (of_group, others) = rest.split_at(values.len());
        rest = others;
        let count = values.len() as f64;
        let square = of_group.iter().sum::<f64>().powi(2) / count;
        between += square;
        greatest = greatest.max(square * runs * (runs - 1.0) / (squares * (runs - count)));
    }
    Some(BetweenGroups { statistic: between * (runs - 1.0) / squares, degrees, runs, greatest })
}

/// The probability that a chi-square value with so many degrees of freedom exceeds `value`.
fn chi_square_tail(value: f64, degrees: f64) -> f64 {
    if value <= 0.0 { 1.0 } else { gamma_ur(degrees / 2.0, value / 2.0) }
}

#[cfg(test)]
mod series_tests {
    use super::*;
    use crate::trend::TrendVerdict;

    fn row(key: &str, run: u64, value: f64) -> TrendRow {
        let point = TrendPoint {
            run,
            dated_unix_ms: run * 3_600_000,
            started_unix_ms: run * 3_600_000,
            target: "/mnt".into(),
            value,
        };
        TrendRow { test: "t".into(), key: key.into(), point }
    }

    /// Noise of two percent, the same every time.
    fn noisy(run: u64) -> f64 {
        1.0 + ((run * 7919 % 101) as f64 / 50.0 - 1.0) * 0.02
    }

    #[test]
    fn rows_become_series_with_levels() {
        let of = |key: &str, level: fn(u64) -> f64| -> Vec<TrendRow> {
            (1..=40).map(|run| row(key, run, level(run) * noisy(run))).collect()
        };
        let halved = of("a", |run| if run <= 20 { 1000.0 } else { 500.0 });
        let steady = of("b", |_| 1000.0);
        let found = series([halved, steady, vec![row("c", 1, 5.0)]].concat());
        let verdicts: Vec<TrendVerdict> = found.iter().map(|series| series.analysis.verdict).collect();
        assert_eq!(verdicts, [TrendVerdict::Changed, TrendVerdict::NoChange, TrendVerdict::Inconclusive]);
        assert_eq!(found[0].analysis.changes[0].at, 20);
        let groups = &by_key(&found)[0].1;
        assert_eq!(groups.groups.iter().map(|group| group.runs).collect::<Vec<_>>(), [40, 40, 1]);
        assert!(groups.p.is_some_and(|p| p < 0.01));
    }

    #[test]
    fn hours_are_compared_without_the_changes_of_level() {
        // A fall half way, and every third of eight hours a tenth slower.
        let slow = |run: u64| if run % 8 == 3 { 0.9 } else { 1.0 };
        let level = |run: u64| if run <= 80 { 1000.0 } else { 400.0 };
        let rows = (1..=160).map(|run| row("a", run, level(run) * slow(run) * noisy(run))).collect();
        let hour = |ms: u64| format!("{:02}", ms / 3_600_000 % 8);
        let found = by_time(&series(rows), hour);
        let slowest = found[0].1.groups.iter().min_by(|a, b| a.median.total_cmp(&b.median)).unwrap();
        assert_eq!(slowest.key, "03");
        assert!(found[0].1.p.is_some_and(|p| p < 0.001), "{found:?}");
    }

    #[test]
    fn slow_changes_are_no_hours() {
        // Each run resembles the one before it, whatever the hour.
        let claims = (1..=60_u64).filter(|seed| {
            let (mut state, mut drift) = (seed * 7_919, 0.0);
            let rows = (1..=168).map(|run| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                drift = 0.9 * drift + ((state >> 33) as f64 / f64::from(1_u32 << 31) - 0.5);
                row("a", run, 1000.0 + 10.0 * drift)
            });
            let found = by_time(&series(rows.collect()), |ms| format!("{:02}", ms / 3_600_000 % 24));
            found[0].1.p.is_some_and(|p| p < 0.05)
        });
        let claims = claims.count();
        assert!(claims <= 5, "{claims} of 60 series without hours show some");
    }
}

#[cfg(test)]
mod rank_tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(centred_ranks(&[5.0, 1.0, 5.0, 9.0]), [0.0, -1.5, 0.0, 1.5]);
        assert_eq!(centred_ranks(&[2.0; 3]), [0.0; 3]);
        assert_eq!(centred_ranks(&[]), [0.0; 0]);
    }

    #[test]
    fn the_ratio_is_that_of_the_pairs() {
        let before: Vec<f64> = (0..20).map(|at| 1000.0 + f64::from(at)).collect();
        let after: Vec<f64> = before.iter().map(|value| value * 0.88).collect();
        let found = ratio(&before, &after, 1.0).unwrap();
        assert!((found.value - 0.88).abs() < 0.001, "{found:?}");
        assert!(found.low > 0.87 && found.low < 0.88 && found.high > 0.88 && found.high < 0.89, "{found:?}");
        let wider = ratio(&before, &after, 3.0).unwrap();
        assert!(wider.low < found.low && wider.high > found.high);
        assert_eq!(ratio(&[0.0, 1.0], &[1.0, 2.0], 1.0), None);
    }
}

#[cfg(test)]
mod groups_tests {
    use super::*;

    #[test]
    fn groups_that_differ_are_told_from_those_that_do_not() {
        let group = |key: &str, level: f64| {
            (key.to_owned(), (0..10).map(|at| level + f64::from(at * 7 % 10)).collect::<Vec<f64>>())
        };
        let same = difference(&[group("00", 100.0), group("01", 100.0), group("02", 100.0)], 1.0);
        assert!(same.p.is_some_and(|p| p > 0.9), "{same:?}");
        let differs = difference(&[group("00", 100.0), group("01", 100.0), group("02", 120.0)], 1.0);
        assert!(differs.p.is_some_and(|p| p < 0.001), "{differs:?}");
        assert!(differs.explained.is_some_and(|share| share > 0.5) && same.explained == Some(0.0));
        let last = &differs.groups[2];
        assert_eq!((last.runs, last.median), (10, 124.5));
        assert!(last.ratio.is_some_and(|ratio| ratio > 1.15));
        assert_eq!(difference(&[group("00", 100.0)], 1.0).p, None);
    }
}
