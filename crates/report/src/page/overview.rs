//! Rates and latencies of all tests side by side.

use fathom_record::{ActivityKind, OpSummary, RunRecord, TestSummary};

use super::axes::plot;
use super::parts;
use crate::axis_text::{MIB, latency_text, rate_text};
use crate::view::{Axis, Plot, PlotForm, PlotMark, PlotPoint, PlotSeries};

/// More tests than this are no overview.
const MAX_TESTS: usize = 40;

/// What a series of bars has of a test.
type Direction = for<'a> fn(&'a TestSummary) -> Option<&'a OpSummary>;

/// The series, by their names. A table on a page may state rates of all I/Os only.
const DIRECTIONS: [(&str, Direction); 4] = [
    ("read", |test| test.read.as_ref()),
    ("write", |test| test.write.as_ref()),
    ("trim", |test| test.trim.as_ref()),
    ("total", |test| {
        let has_own = [&test.read, &test.write, &test.trim].iter().any(|op| op.is_some());
        test.total.as_ref().filter(|_| !has_own)
    }),
];

/// Bars of each test; none where there is only one, and of a sweep or a surface, whose points have charts of their own.
pub(super) fn plots(record: &RunRecord) -> Vec<Plot> {
    if matches!(record.header.activity.kind(), ActivityKind::Sweep | ActivityKind::Surface) {
        return Vec::new();
    }
    let tests = parts::measured(record);
    if !(2..=MAX_TESTS).contains(&tests.len()) {
        return Vec::new();
    }
    let is_imported = record.header.activity.kind() == ActivityKind::Import;
    let unknown = if is_imported { "not stated" } else { "too few I/Os" };
    let missing = |plot: Plot, reason: &'static str| {
        let has_bar = |group: f64| {
            plot.series.iter().any(|series| series.points.iter().any(|point| point.from == group))
        };
        let mark = |group: f64| PlotMark { series: 0, from: group, to: group, reason };
        let groups = (0..tests.len()).map(|group| group as f64);
        let marks = groups.filter(|group| !has_bar(*group)).map(mark).collect();
        Plot { marks, ..plot }
    };
    let bars = |title: &str, y: Axis, of: &dyn Fn(&OpSummary) -> Option<f64>| {
        let series = DIRECTIONS.map(|(name, direction)| {
            let point = |(place, (_, summary)): (usize, &(String, TestSummary))| {
                Some(PlotPoint::at(place as f64, of(direction(summary)?)?))
            };
            PlotSeries { name: name.to_owned(), points: tests.iter().enumerate().filter_map(point).collect() }
        });
        let x = Axis::named(tests.iter().map(|(name, _)| name.clone()).collect());
        plot(title, PlotForm::Bars, x, y, series.into()).map(|plot| missing(plot, unknown))
    };
    let rate = |op: &OpSummary| (op.iops > 0.0).then_some(op.iops);
    let bandwidth = |op: &OpSummary| (op.bytes_per_second > 0.0).then_some(op.bytes_per_second / MIB);
    let p99 = |op: &OpSummary| Some(op.latency().p99? as f64);
    let logarithmic = |label: &str| Axis::logarithmic(label, latency_text);
    [
        bars("IOPS of each test", Axis::logarithmic("IOPS", rate_text), &rate),
        bars("Bandwidth of each test", Axis::linear("MiB/s", rate_text), &bandwidth),
        bars("Median latency of each test", logarithmic("latency"), &|op| Some(op.latency().p50? as f64)),
        bars("99th percentile of latency of each test", logarithmic("latency"), &p99),
    ]
    .into_iter()
    .flatten()
    .collect()
}
