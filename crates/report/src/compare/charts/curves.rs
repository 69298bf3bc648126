//! Curves over block sizes, queue depths, percentiles and time.

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::curves::{
    CurveSet, DAY_NS, DayCurve, DayCurves, LatencyCurves, RatePoint, SourceSurface,
};
use fathom_model::{Nanos, units};

use crate::axis_text::{MIB, beyond, latency_text, percentile_text, rate_text};
use crate::surface::{rate_by_place, rate_by_time};
use crate::view::{Axis, AxisEnds, Plot, PlotForm, PlotLimit, PlotPoint, PlotSeries};

/// Tests of which one picture shows the latencies, and the course over a day.
const MAX_TESTS: usize = 8;
const MAX_DAYS: usize = 2;

fn block_text(bytes: f64) -> String {
    units::bytes(bytes as u64).replace(".0 ", " ")
}

fn count_text(count: f64) -> String {
    units::grouped(count as u64)
}

fn percent_text(percent: f64) -> String {
    format!("{percent:.0} %")
}

fn hours_text(ns: f64) -> String {
    if ns == 0.0 { "0".to_owned() } else { units::duration(Nanos(ns as u64)) }
}

/// A plot of the `points` of curves, with a series for each source, so that each has the same colour everywhere.
fn lines(
    title: String,
    [x, y]: [Axis; 2],
    names: &[String],
    points: impl Iterator<Item = (usize, Vec<PlotPoint>)>,
) -> Plot {
    let mut series: Vec<PlotSeries> =
        names.iter().map(|name| PlotSeries { name: name.clone(), points: Vec::new() }).collect();
    points.for_each(|(source, points)| series[source].points = points);
    Plot { title, form: PlotForm::Lines, x, y, series, limits: Vec::new(), marks: Vec::new() }
}

pub(super) fn ladders(comparison: &VolumeComparison, names: &[String]) -> Vec<Plot> {
    let axis = || Axis::logarithmic("block size", block_text);
    comparison.curves.ladders.iter().flat_map(|set| rates(set, names, &axis, false)).collect()
}

pub(super) fn depths(comparison: &VolumeComparison, names: &[String]) -> Vec<Plot> {
    let axis = || Axis::logarithmic("queue depth", count_text);
    comparison.curves.depths.iter().flat_map(|set| rates(set, names, &axis, true)).collect()
}

/// IOPS and bandwidth over one axis.
fn rates(set: &CurveSet, names: &[String], axis: &dyn Fn() -> Axis, has_limits: bool) -> [Plot; 2] {
    let mut ticks: Vec<f64> =
        set.curves.iter().flat_map(|curve| &curve.points).map(|point| point.x).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let plot = |what: &str, unit: &str, of: &dyn Fn(&RatePoint) -> Option<f64>| {
        let axes = [axis().marked(ticks.clone()), Axis::linear(unit, rate_text)];
        let points = set.curves.iter().map(|curve| {
            let points = curve.points.iter().filter_map(|point| Some(PlotPoint::at(point.x, of(point)?)));
            (curve.source, points.collect())
        });
        lines(format!("{what}, {}", set.work), axes, names, points)
    };
    let mut iops = plot("IOPS", "IOPS", &|point| point.iops);
    let bandwidth = plot("Bandwidth", "MiB/s", &|point| Some(point.bytes_per_second? / MIB));
    let limits = set.curves.iter().filter(|_| has_limits);
    let limits = limits.filter_map(|curve| {
        let name = names[curve.source].split(' ').next().unwrap_or_default();
        Some(PlotLimit {
            name: format!("sustained rate of {name}"),
            series: curve.source,
            y: curve.limit_iops?,
        })
    });
    iops.limits = limits.collect();
    [iops, bandwidth]
}

pub(super) fn latencies(comparison: &VolumeComparison, names: &[String]) -> Vec<Plot> {
    let sets = &comparison.curves.latencies;
    // All plots go as far as the one with most samples.
    let points = sets.iter().flat_map(|set| &set.curves).flat_map(|curve| &curve.points);
    let last = points.map(|(percent, _)| *percent).fold(90.0, f64::max);
    let plot = |set: &LatencyCurves| {
        let ticks = [50.0, 90.0, 99.0, 99.9, 99.99].map(beyond);
        let ticks = ticks.into_iter().filter(|tick| *tick <= beyond(last) * 1.001).collect();
        let x = Axis::logarithmic("percentile", percentile_text).marked(ticks);
        let y = Axis::logarithmic("latency", latency_text);
        let points = set.curves.iter().map(|curve| {
            let points = curve.points.iter().map(|(percent, ns)| PlotPoint::at(beyond(*percent), *ns));
            (curve.source, points.collect())
        });
        lines(format!("{}, {}s", set.test, set.direction), [x, y], names, points)
    };
    let mut plots: Vec<Plot> = sets.iter().take(MAX_TESTS).map(plot).collect();
    share_axis(&mut plots);
    plots
}

/// Plots of one kind have one axis of values.
fn share_axis(plots: &mut [Plot]) {
    let ends = plots
        .iter()
        .filter(|plot| plot.series.iter().any(|series| !series.points.is_empty()))
        .map(Plot::y_ends)
        .reduce(|one, other| AxisEnds { from: one.from.min(other.from), to: one.to.max(other.to) });
    plots.iter_mut().for_each(|plot| plot.y.ends = ends);
}

pub(super) fn days(comparison: &VolumeComparison, names: &[String]) -> Vec<Plot> {
    const HOUR: f64 = 3.6e12;
    let plot =
        |test: &str, what: &str, y: Axis, curves: &[DayCurve], of: &dyn Fn(&DayCurve) -> Vec<PlotPoint>| {
            let ticks = (0..=8).map(|step| f64::from(step) * 3.0 * HOUR).collect();
            let x = Axis::linear("time at full load", hours_text).marked(ticks);
            let points = curves.iter().map(|curve| (curve.source, of(curve)));
            lines(format!("{what}, {test}"), [x, y], names, points)
        };
    let rate = |curve: &DayCurve| {
        let of_stretch = |(from, to, iops): &(u64, u64, f64)| {
            [PlotPoint::at(*from as f64, *iops), PlotPoint::at(*to as f64, *iops)]
        };
        curve.stretches.iter().flat_map(of_stretch).collect()
    };
    let credits = |curve: &DayCurve| {
        let Some(exhausted) = curve.exhausted_ns else { return Vec::new() };
        let points = [(0.0, 100.0), (exhausted as f64, 0.0), (DAY_NS as f64, 0.0)];
        points.map(|(x, y)| PlotPoint::at(x, y)).to_vec()
    };
    let of_test = |day: &DayCurves| {
        let iops = Axis::logarithmic("IOPS", rate_text);
        let percent = Axis::linear("burst credits", percent_text).ending(0.0, 100.0);
        [
            plot(&day.test, "IOPS", iops, &day.curves, &rate),
            plot(&day.test, "Burst credits", percent, &day.curves, &credits),
        ]
    };
    comparison.curves.days.iter().take(MAX_DAYS).flat_map(of_test).collect()
}

/// Two small plots for each source, over the same axes of values.
pub(super) fn surfaces(comparison: &VolumeComparison, names: &[String]) -> Vec<Plot> {
    // The sources stand below the picture.
    let letter = |source: usize| names[source].split(' ').next().unwrap_or_default();
    let named =
        |plot: Plot, source: usize| Plot { title: format!("{}: {}", letter(source), plot.title), ..plot };
    let of_source = |one: &SourceSurface| {
        [
            named(rate_by_place(&one.surface, one.area), one.source),
            named(rate_by_time(&one.surface), one.source),
        ]
    };
    let mut plots: Vec<Plot> = comparison.curves.surfaces.iter().flat_map(of_source).collect();
    share_axis(&mut plots);
    plots
}
