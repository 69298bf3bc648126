//! The curves of scaling: rate and latency by the number of ranks.

use fathom_analysis::scaling::{ScalingPoint, ScalingTest};
use fathom_model::units;

use crate::axis_text::{latency_text, rate_text};
use crate::page::axes::plot;
use crate::view::{Axis, AxisEnds, Plot, PlotForm, PlotLimit, PlotMark, PlotPoint, PlotSeries};

/// The total with its intervals beside the line of proportion, and the latency.
pub fn plots(test: &ScalingTest) -> Vec<Plot> {
    let axis = || {
        let ticks = test.points.iter().map(|point| f64::from(point.ranks)).collect();
        Axis::logarithmic("ranks", |ranks| units::grouped(ranks as u64)).marked(ticks)
    };
    let measured = test.points.iter().filter_map(|point| {
        let x = f64::from(point.ranks);
        let interval = point.iops_interval.map(|ends| AxisEnds { from: ends.low, to: ends.high });
        Some(PlotPoint { interval, ..PlotPoint::at(x, point.iops?) })
    });
    let measured: Vec<PlotPoint> = measured.collect();
    let linear: Vec<PlotPoint> = match measured.first() {
        Some(first) => {
            let each = first.y / first.from;
            measured.iter().map(|point| PlotPoint::at(point.from, each * point.from)).collect()
        }
        None => Vec::new(),
    };
    let series = [("measured", measured), ("linear", linear)]
        .map(|(name, points)| PlotSeries { name: name.to_owned(), points });
    let rate =
        plot("IOPS by ranks", PlotForm::Lines, axis(), Axis::logarithmic("IOPS", rate_text), series.into());
    let latency_of = |name: &str, of: fn(&ScalingPoint) -> Option<u64>| {
        let at = |point: &ScalingPoint| Some(PlotPoint::at(f64::from(point.ranks), of(point)? as f64));
        PlotSeries { name: name.to_owned(), points: test.points.iter().filter_map(at).collect() }
    };
    let latencies =
        vec![latency_of("p50", |point| point.lat_p50_ns), latency_of("p99", |point| point.lat_p99_ns)];
    let latency = plot(
        "Latency by ranks",
        PlotForm::Lines,
        axis(),
        Axis::logarithmic("latency", latency_text),
        latencies,
    );
    let verdict = &test.verdict;
    let limits = verdict.iops.map(|y| PlotLimit { name: "limit".to_owned(), series: 0, y });
    let mark = |ranks: u32| {
        let x = f64::from(ranks);
        PlotMark { series: 0, from: x, to: x, reason: "reaches the limit" }
    };
    let marks = verdict.ranks.map(mark);
    let rate = rate.map(|plot| Plot {
        limits: limits.into_iter().collect(),
        marks: marks.into_iter().collect(),
        ..plot
    });
    rate.into_iter().chain(latency).collect()
}
