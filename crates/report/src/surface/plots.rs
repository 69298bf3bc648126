//! The plots of a surface: over place and over time.

use fathom_analysis::surface::point::{State, SurfacePoint};
use fathom_analysis::surface::{SingleAccess, Surface};
use fathom_model::units;

use crate::axis_text::{offset_axis, time_axis};
use crate::view::{Axis, Block, Plot, PlotForm, PlotMark, PlotPoint, PlotSeries, iops_text};

const MIB: f64 = (1 << 20) as f64;

/// The plots of a surface over an area of `area` bytes.
pub(super) fn plots(surface: &Surface, area: u64) -> Block {
    let mut plots = Vec::new();
    if !surface.points.is_empty() {
        plots.push(rate_by_place(surface, area));
    }
    if surface.points.len() > 1 && !is_in_order(&surface.points) {
        plots.push(rate_by_time(surface));
    }
    if !surface.probes.is_empty() {
        let probe = |probe: &SingleAccess| PlotPoint::at(probe.offset_bytes as f64, probe.lat_ns as f64);
        let points = surface.probes.iter().map(probe).collect();
        let x = offset_axis(area);
        plots.push(steps("Access time by offset", x, Axis::linear("", latency_text), points));
    }
    Block::Plots(plots)
}

/// The transfer rate over the area.
pub(crate) fn rate_by_place(surface: &Surface, area: u64) -> Plot {
    let place = area as f64 / surface.points.len().max(1) as f64;
    let at = |point: &SurfacePoint| (point.offset_bytes as f64, point.offset_bytes as f64 + place);
    let mark = |point: &SurfacePoint| {
        let (from, to) = at(point);
        (point.state != State::Measured).then(|| PlotMark { series: 0, from, to, reason: point.state.name() })
    };
    let mut points: Vec<PlotPoint> = measured(surface).map(|point| rate_point(point, at(point))).collect();
    points.sort_by(|one, other| one.from.total_cmp(&other.from));
    Plot {
        marks: surface.points.iter().filter_map(mark).collect(),
        ..steps("Transfer rate by offset, MiB/s", offset_axis(area), Axis::linear("", rate_text), points)
    }
}

/// The transfer rate over the time of the measurement.
pub(crate) fn rate_by_time(surface: &Surface) -> Plot {
    let time =
        |point: &SurfacePoint| (point.elapsed_ns as f64, (point.elapsed_ns + point.measured_ns) as f64);
    let end = surface.points.iter().map(|point| point.elapsed_ns + point.measured_ns).max().unwrap_or(0);
    let points = measured(surface).map(|point| rate_point(point, time(point))).collect();
    let x = Axis { label: String::new(), ..time_axis(0, end) };
    steps("Transfer rate by time, MiB/s", x, Axis::linear("", rate_text), points)
}

fn steps(title: &str, x: Axis, y: Axis, mut points: Vec<PlotPoint>) -> Plot {
    // Places are measured in an order of their own; a line joins neighbours.
    points.sort_by(|one, other| one.from.total_cmp(&other.from));
    let series = vec![PlotSeries { name: String::new(), points }];
    Plot {
        title: title.to_owned(),
        form: PlotForm::Steps,
        x,
        y,
        series,
        limits: Vec::new(),
        marks: Vec::new(),
    }
}

fn measured(surface: &Surface) -> impl Iterator<Item = &SurfacePoint> {
    surface.points.iter().filter(|point| point.state == State::Measured)
}

fn latency_text(ns: f64) -> String {
    units::latency(ns.round() as u64)
}

fn rate_text(rate: f64) -> String {
    iops_text(rate).trim_end_matches(".0").to_owned()
}

fn rate_point(point: &SurfacePoint, (from, to): (f64, f64)) -> PlotPoint {
    PlotPoint { from, to, y: point.bytes_per_second.unwrap_or(0.0) / MIB, interval: None }
}

/// Time tells no more than the offset does.
fn is_in_order(points: &[SurfacePoint]) -> bool {
    points.windows(2).all(|pair| pair[0].offset_bytes < pair[1].offset_bytes)
        || points.windows(2).all(|pair| pair[0].offset_bytes > pair[1].offset_bytes)
}
