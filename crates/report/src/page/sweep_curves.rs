//! The curves of a sweep: rates by queue depth with their knees, and by block size with limits and crossover.

use fathom_analysis::pattern::{AccessPattern, block_name};
use fathom_analysis::sweep::Sweep;
use fathom_analysis::sweep::limits::DirectionLimits;
use fathom_analysis::sweep::point::SweepPoint;
use fathom_model::units;

use super::axes::plot;
use crate::axis_text::{MIB, latency_text, rate_text};
use crate::columns::capital;
use crate::view::{Axis, Plot, PlotForm, PlotLimit, PlotMark, PlotPoint, PlotSeries};

/// All curves that have two points or more.
pub(super) fn plots(sweep: &Sweep) -> Vec<Plot> {
    let mut grids: Vec<(AccessPattern, u32)> =
        sweep.points.iter().map(|point| (point.spot.rw, point.spot.numjobs)).collect();
    grids.sort_unstable();
    grids.dedup();
    let mut plots = Vec::new();
    for (rw, jobs) in grids {
        let of_grid =
            |point: &&SweepPoint| (point.spot.rw, point.spot.numjobs) == (rw, jobs) && point.ios > 0;
        let points: Vec<&SweepPoint> = sweep.points.iter().filter(of_grid).collect();
        let name = capital(rw.title());
        let name = if jobs > 1 { format!("{name}, {jobs} jobs") } else { name };
        let limits = if rw.name().contains("write") { &sweep.limits.write } else { &sweep.limits.read };
        plots.extend(by_depth(sweep, &points, (rw, jobs), &name, limits));
        plots.extend(by_block(&points, &name, limits));
    }
    plots
}

/// The values of one coordinate, each once.
fn values(points: &[&SweepPoint], of: impl Fn(&SweepPoint) -> u64) -> Vec<u64> {
    let mut values: Vec<u64> = points.iter().map(|point| of(point)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Rate and latency over the depth, a curve for each block size.
fn by_depth(
    sweep: &Sweep,
    points: &[&SweepPoint],
    grid: (AccessPattern, u32),
    name: &str,
    limits: &DirectionLimits,
) -> Vec<Plot> {
    let depths = values(points, |point| u64::from(point.spot.iodepth));
    if depths.len() < 2 {
        return Vec::new();
    }
    let blocks = values(points, |point| point.spot.block_size_bytes);
    let series = |of: &dyn Fn(&SweepPoint) -> Option<f64>| -> Vec<PlotSeries> {
        let of_block = |block: &u64| {
            let mut curve: Vec<PlotPoint> = points
                .iter()
                .filter(|point| point.spot.block_size_bytes == *block)
                .filter_map(|point| Some(PlotPoint::at(f64::from(point.spot.iodepth), of(point)?)))
                .collect();
            curve.sort_by(|one, other| one.from.total_cmp(&other.from));
            PlotSeries { name: block_name(*block), points: curve }
        };
        blocks.iter().map(of_block).collect()
    };
    let axis = || {
        let ticks = depths.iter().map(|depth| *depth as f64).collect();
        Axis::logarithmic("queue depth", |depth| units::grouped(depth as u64)).marked(ticks)
    };
    let rate = plot(
        format!("{name}: IOPS by queue depth"),
        PlotForm::Lines,
        axis(),
        Axis::linear("IOPS", rate_text),
        series(&|point| Some(point.iops)),
    );
    let latency = plot(
        format!("{name}: mean latency by queue depth"),
        PlotForm::Lines,
        axis(),
        Axis::logarithmic("latency", latency_text),
        series(&|point| point.lat_ns.mean),
    );
    let with_limits = rate.map(|plot| {
        let limit = limits.iops.and_then(|limit| limit.value());
        let of_grid = sweep.knees.iter().filter(|knee| (knee.rw, knee.numjobs) == grid);
        let mark = |depth: u32, reason| {
            let depth = f64::from(depth);
            PlotMark { series: 0, from: depth, to: depth, reason }
        };
        let marks = of_grid.flat_map(|knee| {
            let throughput = knee.iodepth_throughput.map(|depth| mark(depth, "knee: enough for the rate"));
            let latency = mark(knee.iodepth_latency, "knee: best ratio of rate to latency");
            std::iter::once(latency).chain(throughput.filter(|other| other.from != latency.from))
        });
        Plot {
            limits: limit
                .map(|y| PlotLimit { name: "IOPS limit".to_owned(), series: 0, y })
                .into_iter()
                .collect(),
            marks: marks.collect(),
            ..plot
        }
    });
    with_limits.into_iter().chain(latency).collect()
}

/// The highest rate and bandwidth of each block size.
fn by_block(points: &[&SweepPoint], name: &str, limits: &DirectionLimits) -> Vec<Plot> {
    let blocks = values(points, |point| point.spot.block_size_bytes);
    if blocks.len() < 2 {
        return Vec::new();
    }
    let highest = |of: fn(&SweepPoint) -> f64| {
        let of_block = |block: &u64| {
            let rates =
                points.iter().filter(|point| point.spot.block_size_bytes == *block).map(|point| of(point));
            PlotPoint::at(*block as f64, rates.fold(0.0, f64::max))
        };
        vec![PlotSeries { name: String::new(), points: blocks.iter().map(of_block).collect() }]
    };
    let axis = || {
        let ticks = blocks.iter().map(|block| *block as f64).collect();
        Axis::logarithmic("block size", |bytes| block_name(bytes as u64)).marked(ticks)
    };
    let crossover = limits.crossover_block_size_bytes.and_then(|block| block.value());
    let marks: Vec<PlotMark> = crossover
        .map(|block| PlotMark { series: 0, from: block, to: block, reason: "crossover" })
        .into_iter()
        .collect();
    let limit = |name: &str, y: Option<f64>| -> Vec<PlotLimit> {
        y.map(|y| PlotLimit { name: name.to_owned(), series: 0, y }).into_iter().collect()
    };
    let iops = plot(
        format!("{name}: highest IOPS by block size"),
        PlotForm::Lines,
        axis(),
        Axis::linear("IOPS", rate_text),
        highest(|point| point.iops),
    );
    let bandwidth = plot(
        format!("{name}: highest bandwidth by block size"),
        PlotForm::Lines,
        axis(),
        Axis::linear("MiB/s", rate_text),
        highest(|point| point.bytes_per_second / MIB),
    );
    let of_iops = limit("IOPS limit", limits.iops.and_then(|limit| limit.value()));
    let of_bandwidth = limit(
        "bandwidth limit",
        limits.bytes_per_second.and_then(|limit| limit.value()).map(|rate| rate / MIB),
    );
    [
        iops.map(|plot| Plot { limits: of_iops, marks: marks.clone(), ..plot }),
        bandwidth.map(|plot| Plot { limits: of_bandwidth, marks, ..plot }),
    ]
    .into_iter()
    .flatten()
    .collect()
}
