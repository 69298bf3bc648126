//! The plots of a surface: over place and over time.

use fathom_analysis::surface::point::{State, SurfacePoint};
use fathom_analysis::surface::{SingleAccess, Surface};
use fathom_model::{Nanos, units};

use crate::view::{Block, Cell, Plot, PlotMark, PlotPoint, iops_text};

const MIB: f64 = (1 << 20) as f64;

/// The plots of a surface over an area of `area` bytes.
pub(super) fn plots(surface: &Surface, area: u64) -> Block {
    let place = area as f64 / surface.points.len().max(1) as f64;
    let x_labels = ("0".to_owned(), units::bytes(area));
    let at = |point: &SurfacePoint| (point.offset_bytes as f64, point.offset_bytes as f64 + place);
    let measured = || surface.points.iter().filter(|point| point.state == State::Measured);
    let mut plots = Vec::new();
    if !surface.points.is_empty() {
        let mark = |point: &SurfacePoint| {
            let (from, to) = at(point);
            (point.state != State::Measured).then(|| PlotMark { from, to, reason: point.state.name() })
        };
        plots.push(Plot {
            title: "Transfer rate by offset, MiB/s".to_owned(),
            points: measured().map(|point| rate_point(point, at(point))).collect(),
            marks: surface.points.iter().filter_map(mark).collect(),
            x_end: area as f64,
            x_labels: x_labels.clone(),
            y_cell: mebibytes,
        });
    }
    if surface.points.len() > 1 && !is_in_order(&surface.points) {
        let time =
            |point: &SurfacePoint| (point.elapsed_ns as f64, (point.elapsed_ns + point.measured_ns) as f64);
        let end = surface.points.iter().map(|point| point.elapsed_ns + point.measured_ns).max().unwrap_or(0);
        plots.push(Plot {
            title: "Transfer rate by time, MiB/s".to_owned(),
            points: measured().map(|point| rate_point(point, time(point))).collect(),
            marks: Vec::new(),
            x_end: end as f64,
            x_labels: ("0".to_owned(), units::duration(Nanos(end))),
            y_cell: mebibytes,
        });
    }
    if !surface.probes.is_empty() {
        let probe = |probe: &SingleAccess| {
            let at = probe.offset_bytes as f64;
            PlotPoint { from: at, to: at, y: probe.lat_ns as f64 }
        };
        plots.push(Plot {
            title: "Access time by offset".to_owned(),
            points: surface.probes.iter().map(probe).collect(),
            marks: Vec::new(),
            x_end: area as f64,
            x_labels,
            y_cell: |ns| Cell::latency(ns.round() as u64),
        });
    }
    Block::Plots(plots)
}

fn rate_point(point: &SurfacePoint, (from, to): (f64, f64)) -> PlotPoint {
    PlotPoint { from, to, y: point.bytes_per_second.unwrap_or(0.0) / MIB }
}

fn mebibytes(rate: f64) -> Cell {
    Cell::real(rate * MIB, iops_text(rate).trim_end_matches(".0"))
}

/// Time tells no more than the offset does.
fn is_in_order(points: &[SurfacePoint]) -> bool {
    points.windows(2).all(|pair| pair[0].offset_bytes < pair[1].offset_bytes)
        || points.windows(2).all(|pair| pair[0].offset_bytes > pair[1].offset_bytes)
}
