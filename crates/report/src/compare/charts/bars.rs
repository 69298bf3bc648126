//! Bars: a plot for each kind of figure, with a group for each test and direction.

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::cell::FigureCell;
use fathom_analysis::compare::figure::Figure;
use fathom_analysis::compare::matrix::{MatrixFigure, MatrixTest};
use fathom_analysis::criterion::{LatencySpan, Metric, MetricKind, Statistic};
use fathom_record::import::FigureBound;

use crate::axis_text::{MIB, latency_text, rate_text};
use crate::view::{Axis, AxisEnds, Plot, PlotForm, PlotMark, PlotPoint, PlotSeries};

/// The kinds of figures, with the scale of their values.
const KINDS: [(&str, MetricKind, f64); 4] = [
    ("IOPS", MetricKind::Iops, 1.0),
    ("Bandwidth", MetricKind::BytesPerSecond, MIB),
    ("Mean latency", MetricKind::Latency(LatencySpan::Total, Statistic::Mean), 1.0),
    ("p99 latency", MetricKind::Latency(LatencySpan::Total, Statistic::Percentile(990_000)), 1.0),
];

pub(super) fn plots(comparison: &VolumeComparison, names: &[String], is_logarithmic: bool) -> Vec<Plot> {
    let axis = |label: &str, text: fn(f64) -> String| match is_logarithmic {
        true => Axis::logarithmic(label, text),
        false => Axis::linear(label, text),
    };
    let of_tests = of_tests(comparison, names, &axis);
    after_bursts(comparison, names, &axis).into_iter().chain(of_tests).collect()
}

/// What remains after the bursts beside what they reach, where a volume bursts: the tests have run on credits.
fn after_bursts(
    comparison: &VolumeComparison,
    names: &[String],
    axis: &impl Fn(&str, fn(f64) -> String) -> Axis,
) -> Option<Plot> {
    let volumes = &comparison.sources;
    volumes.iter().find(|volume| volume.burst.is_some())?;
    let series = volumes.iter().zip(names).map(|(volume, name)| {
        let burst = volume.burst.as_ref().map(|burst| burst.iops).or(volume.sustained_iops);
        let groups = [(0.0, volume.sustained_iops), (1.0, burst)];
        let points = groups.into_iter().filter_map(|(group, iops)| Some(PlotPoint::at(group, iops?)));
        PlotSeries { name: name.clone(), points: points.collect() }
    });
    Some(Plot {
        title: "IOPS, sustained and with burst credits".to_owned(),
        form: PlotForm::Bars,
        x: Axis::named(["sustained", "with credits"].map(str::to_owned).to_vec()),
        y: axis("IOPS", rate_text),
        series: series.collect(),
        limits: Vec::new(),
        marks: Vec::new(),
    })
}

fn of_tests(
    comparison: &VolumeComparison,
    names: &[String],
    axis: &impl Fn(&str, fn(f64) -> String) -> Axis,
) -> Vec<Plot> {
    let plot = |(title, kind, scale): (&str, MetricKind, f64)| {
        let (label, text): (&str, fn(f64) -> String) = match kind {
            MetricKind::Iops => ("IOPS", rate_text),
            MetricKind::BytesPerSecond => ("MiB/s", rate_text),
            MetricKind::Latency(..) => ("latency", latency_text),
        };
        let y = axis(label, text);
        let groups: Vec<(&MatrixTest, &MatrixFigure)> = comparison
            .tests
            .iter()
            .flat_map(|test| test.figures.iter().map(move |figure| (test, figure)))
            .filter(|(_, figure)| is_kind(figure, kind))
            .collect();
        let mut plot = Plot {
            title: title.to_owned(),
            form: PlotForm::Bars,
            x: Axis::named(groups.iter().map(|(test, figure)| group_name(test, figure)).collect()),
            y,
            series: names.iter().map(|name| PlotSeries { name: name.clone(), points: Vec::new() }).collect(),
            limits: Vec::new(),
            marks: Vec::new(),
        };
        for (group, (_, figure)) in groups.iter().enumerate() {
            for (place, cell) in figure.cells.iter().enumerate() {
                add(&mut plot, group as f64, place, cell, scale);
            }
        }
        plot
    };
    let plots = KINDS.into_iter().map(plot);
    plots.filter(|plot| plot.series.iter().any(|series| !series.points.is_empty())).collect()
}

fn is_kind(figure: &MatrixFigure, kind: MetricKind) -> bool {
    let is_it = matches!(figure.figure, Figure::Metric(metric) if metric.kind == kind);
    is_it && figure.direction != Some("sync") && figure.cells.iter().any(|cell| cell.value.is_some())
}

/// The test, with the direction where it has several.
fn group_name(test: &MatrixTest, figure: &MatrixFigure) -> String {
    let rates = test.figures.iter().filter(|figure| {
        matches!(figure.figure, Figure::Metric(Metric { kind: MetricKind::BytesPerSecond, .. }))
    });
    match figure.direction.filter(|_| rates.count() > 1) {
        Some(direction) => format!("{} {direction}", test.test),
        None => test.test.clone(),
    }
}

fn add(plot: &mut Plot, group: f64, place: usize, cell: &FigureCell, scale: f64) {
    match cell.value {
        Some(value) if cell.bound == FigureBound::Exact => {
            let interval =
                cell.low.zip(cell.high).map(|(low, high)| AxisEnds { from: low / scale, to: high / scale });
            let point = PlotPoint { interval, ..PlotPoint::at(group, value / scale) };
            plot.series[place].points.push(point);
        }
        Some(_) => {
            plot.marks.push(PlotMark { series: place, from: group, to: group, reason: "stated as a bound" })
        }
        None => {
            plot.marks.push(PlotMark { series: place, from: group, to: group, reason: cell.state.text() });
        }
    }
}
