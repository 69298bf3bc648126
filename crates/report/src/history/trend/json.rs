//! The JSON document of a trend: `fathom.trend/1`.

use std::io;

use fathom_analysis::trend::{
    ERROR, GroupSpread, ShiftRatio, TrendLevel, TrendPoint, TrendSeries, TrendVerdict,
};
use serde::Serialize;

use super::TrendReport;
use crate::document;

#[derive(Serialize)]
struct TrendDocument<'a> {
    schema: &'static str,
    metric: String,
    by: &'a str,
    /// Probability of a change in any series where there is none.
    error: f64,
    series: Vec<SeriesDocument<'a>>,
    groups: Vec<GroupsDocument<'a>>,
}

#[derive(Serialize)]
struct SeriesDocument<'a> {
    test: &'a str,
    group: &'a str,
    verdict: TrendVerdict,
    autocorrelation: f64,
    changes: Vec<ChangeDocument>,
    levels: Vec<LevelDocument>,
    points: Vec<PointDocument<'a>>,
}

#[derive(Serialize)]
struct ChangeDocument {
    /// The last run before it, and the first after it.
    last_before: u64,
    first_after: u64,
    /// When the first run after it began; 0 for simulated runs.
    started_unix_ms: u64,
    median_before: f64,
    median_after: f64,
    ratio: Option<ShiftRatio>,
}

#[derive(Serialize)]
struct LevelDocument {
    first_run: u64,
    last_run: u64,
    runs: usize,
    median: f64,
}

#[derive(Serialize)]
struct PointDocument<'a> {
    run: u64,
    started_unix_ms: u64,
    /// When it began, or was stored where that is unknown.
    dated_unix_ms: u64,
    target: &'a str,
    value: f64,
}

#[derive(Serialize)]
struct GroupsDocument<'a> {
    test: &'a str,
    /// Probability of such differences if there were none.
    p: Option<f64>,
    groups: &'a [GroupSpread],
}

/// Writes the trend.
///
/// # Errors
/// Those of `out`.
pub fn render(report: &TrendReport, out: &mut dyn io::Write) -> io::Result<()> {
    let groups = report
        .groups
        .iter()
        .map(|(test, found)| GroupsDocument { test, p: found.p, groups: &found.groups })
        .collect();
    let written = TrendDocument {
        schema: "fathom.trend/1",
        metric: report.metric.to_string(),
        by: &report.by,
        error: ERROR,
        series: report.series.iter().map(series).collect(),
        groups,
    };
    document::write(&written, out)
}

fn series(series: &TrendSeries) -> SeriesDocument<'_> {
    let run = |index: usize| series.points[index].run;
    let changes = series.analysis.changes.iter().map(|found| ChangeDocument {
        last_before: run(found.at - 1),
        first_after: run(found.at),
        started_unix_ms: series.points[found.at].started_unix_ms,
        median_before: found.before.median,
        median_after: found.after.median,
        ratio: found.ratio,
    });
    let level = |level: &TrendLevel| LevelDocument {
        first_run: run(level.from),
        last_run: run(level.to - 1),
        runs: level.to - level.from,
        median: level.median,
    };
    SeriesDocument {
        test: &series.test,
        group: &series.key,
        verdict: series.analysis.verdict,
        autocorrelation: series.analysis.autocorrelation,
        changes: changes.collect(),
        levels: series.analysis.levels.iter().map(level).collect(),
        points: series.points.iter().map(point).collect(),
    }
}

fn point(point: &TrendPoint) -> PointDocument<'_> {
    PointDocument {
        run: point.run,
        started_unix_ms: point.started_unix_ms,
        dated_unix_ms: point.dated_unix_ms,
        target: &point.target,
        value: point.value,
    }
}
