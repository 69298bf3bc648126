//! Stored values as series: one for each test and group, each analysed.

use std::collections::BTreeMap;
use std::sync::Arc;

use fathom_stats::sample::median;

use super::partition::{CriticalValues, autocorrelation};
use super::{
    ERROR, GroupDifference, LEAST_RUNS, TrendAnalysis, TrendLevel, analyse, analyse_with, difference,
    inflation,
};

/// The value of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendPoint {
    /// Number of the run.
    pub run: u64,
    /// When it ran, ms since the epoch; of a simulated run when it was stored; 0 where that is unknown.
    pub dated_unix_ms: u64,
    /// When it began, ms since the epoch; 0 for simulated runs.
    pub started_unix_ms: u64,
    /// The target as the user named it.
    pub target: Arc<str>,
    /// IOPS, bytes per second or ns.
    pub value: f64,
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
    let tested = found.iter().filter(|series| series.points.len() >= LEAST_RUNS).count().max(1);
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

#[cfg(test)]
mod tests {
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
