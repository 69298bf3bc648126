//! Stored values as series: one for each test and group, each analysed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::rank::median;
use super::{ERROR, GroupDifference, LEAST_RUNS, TrendAnalysis, TrendLevel, analyse, difference};

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
    for series in &mut found {
        let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
        series.analysis = analyse(&values, ERROR / tested as f64);
    }
    found
}

/// The series of each test compared with each other.
pub fn by_key(series: &[TrendSeries]) -> Vec<(Arc<str>, GroupDifference)> {
    let mut tests: BTreeMap<Arc<str>, Vec<(String, Vec<f64>)>> = BTreeMap::new();
    for one in series {
        let values = one.points.iter().map(|point| point.value).collect();
        tests.entry(one.test.clone()).or_default().push((one.key.to_string(), values));
    }
    tests.into_iter().map(|(test, groups)| (test, difference(&groups))).collect()
}

/// The runs of one test.
#[derive(Default)]
struct RunsByTime {
    all: Vec<f64>,
    /// Values as multiples of their level.
    groups: BTreeMap<String, Vec<f64>>,
}

/// The runs of each test by the time of day that `group` finds for their start. Values count relative to the level that their
/// series had, so that neither changes nor differences between series look like hours.
pub fn by_time(series: &[TrendSeries], group: impl Fn(u64) -> String) -> Vec<(Arc<str>, GroupDifference)> {
    let mut tests: BTreeMap<Arc<str>, RunsByTime> = BTreeMap::new();
    for one in series {
        let RunsByTime { all, groups } = tests.entry(one.test.clone()).or_default();
        for (index, point) in one.points.iter().enumerate().filter(|(_, point)| point.started_unix_ms > 0) {
            let level = one.level(index).map_or(0.0, |level| level.median);
            all.push(point.value);
            if level > 0.0 {
                groups.entry(group(point.started_unix_ms)).or_default().push(point.value / level);
            }
        }
    }
    let of_test = |(test, RunsByTime { all, groups }): (Arc<str>, RunsByTime)| {
        let whole = median(&all).unwrap_or(0.0);
        let scaled = |(key, values): (String, Vec<f64>)| {
            (key, values.into_iter().map(|value| value * whole).collect())
        };
        let groups: Vec<(String, Vec<f64>)> = groups.into_iter().map(scaled).collect();
        (test, difference(&groups))
    };
    tests.into_iter().map(of_test).collect()
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
}
