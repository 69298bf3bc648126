//! Each published figure beside the same quantity of the simulated run, and how they compare.

use fathom_catalog::{Catalog, ComparedFigure, FigureVerdict, PublishedFigure, PublishedRun};
use fathom_stats::Latency;

use super::cases::{Measured, Results, after_the_burst, gp2_max_at_gib};
use super::reasons::why;
use crate::AssessError;

/// Largest relative difference of an explained figure.
const TOLERANCE: f64 = 0.05;
const MIB: f64 = (1 << 20) as f64;

/// The figure beside that of the model.
pub(super) fn compare(
    run: &PublishedRun,
    figure: &PublishedFigure,
    results: &mut Results,
) -> Result<ComparedFigure, AssessError> {
    let simulated = simulated(run, figure, results)?;
    let agreement = simulated.and_then(|value| agreement(figure, value));
    let verdict = match agreement {
        None => FigureVerdict::Unexplained,
        Some(_) if is_of_the_load(run, figure) => FigureVerdict::Load,
        Some(_) if is_input(run, figure) => FigureVerdict::Input,
        Some(_) if is_as_measured(run, figure) => FigureVerdict::AsMeasured,
        Some(_) => FigureVerdict::Rule,
    };
    let why = (verdict == FigureVerdict::Unexplained).then(|| why(&run.id, &figure.metric));
    let deviation = agreement.flatten();
    Ok(ComparedFigure { run: run.id.clone(), figure: figure.clone(), simulated, deviation, verdict, why })
}

/// The deviation of the model's figure if it agrees with the published one; `Some(None)` where a bound is met.
fn agreement(figure: &PublishedFigure, value: f64) -> Option<Option<f64>> {
    let bound = |is_met: bool| is_met.then_some(None);
    let upper = figure.metric.ends_with("_lt") || figure.metric.ends_with(".lt");
    match figure.qualifier.as_deref() {
        _ if upper => bound(value < figure.value),
        Some("upper bound") => bound(value < figure.value),
        Some("lower bound") => bound(value > figure.value),
        _ if figure.value == 0.0 => bound(value == 0.0),
        _ => {
            let deviation = value / figure.value - 1.0;
            (deviation.abs() <= TOLERANCE).then_some(Some(deviation))
        }
    }
}

/// True for what the load itself determines: bytes and counts of a run of fixed size, the time of a run of fixed time, and
/// zeros of what it does not do.
fn is_of_the_load(run: &PublishedRun, figure: &PublishedFigure) -> bool {
    let metric = figure.metric.as_str();
    let is_timed = run.id.starts_with("a1-");
    match metric {
        "wall" => run.id.ends_with("ioping"),
        "disk.util" | "bw_samples.per" => true,
        _ if run.tool.starts_with("fio") && figure.value == 0.0 => true,
        _ if metric.starts_with("issued.") || metric.starts_with("disk.ios.") => !is_timed,
        "read.io" | "write.io" => !is_timed,
        "read.runtime" | "write.runtime" => is_timed,
        _ if metric.ends_with(".mint") || metric.ends_with(".maxt") => is_timed,
        _ => false,
    }
}

/// True if a model was fitted to this figure, or to another of the same measurement.
fn is_input(run: &PublishedRun, figure: &PublishedFigure) -> bool {
    let (id, metric) = restated(&run.id, &figure.metric).unwrap_or((&run.id, &figure.metric));
    // fio and ioping report one measurement by many figures; HD Tune measures each of its own.
    let is_one = (run.tool.starts_with("fio") || run.tool.starts_with("ioping") || run.tool == "prose")
        && !metric.starts_with("max.");
    let mut fitted = Catalog::shipped().fitted_figures().filter_map(|name| name.split_once('/'));
    fitted.any(|(of, name)| of == id && (is_one || name == metric))
}

/// True if the types that were measured have no published rule.
fn is_as_measured(run: &PublishedRun, figure: &PublishedFigure) -> bool {
    let types = run.types.iter().filter_map(|id| Catalog::shipped().get(id));
    let is_one = |entry: &fathom_catalog::CatalogEntry| entry.is_as_measured();
    match run.id.as_str() {
        "a0-claims" => figure.metric.starts_with("do."),
        _ => types.clone().next().is_some() && types.into_iter().all(is_one),
    }
}

/// The measurement that a statement of a text repeats.
fn restated(run: &str, metric: &str) -> Option<(&'static str, &'static str)> {
    Some(match (run, metric) {
        ("a0-claims", "aws.latency") => ("a0-aws-ioping", "latency.avg"),
        ("a0-claims", "aws.randrw.time") => ("a0-aws-randrw", "read.runtime"),
        ("a0-claims", "do.randrw.time") => ("a0-do-randrw", "read.runtime"),
        ("a0-claims", "do.randrw.iops_total") => ("a0-do-randrw", "read.iops"),
        ("a0-claims", "do.randread.iops") => ("a0-do-randread", "read.iops"),
        ("a0-claims", "do.randwrite.iops") => ("a0-do-randwrite", "write.iops"),
        ("a0-claims", "do.randwrite.time") => ("a0-do-randwrite", "write.runtime"),
        ("a0-claims", "do.latency") => ("a0-do-ioping", "latency.avg"),
        ("a3-claims", "perf.randrw.read_iops") => ("a3-perf-randrw", "read.iops"),
        ("a3-claims", "perf.randrw.write_iops") => ("a3-perf-randrw", "write.iops"),
        ("a3-claims", "perf.randrw.time") => ("a3-perf-randrw", "read.runtime"),
        ("a3-claims", "cap.randrw.read_iops") => ("a3-cap-randrw", "read.iops"),
        ("a3-claims", "cap.randrw.write_iops") => ("a3-cap-randrw", "write.iops"),
        ("a3-claims", "cap.randrw.time") => ("a3-cap-randrw", "read.runtime"),
        ("a3-claims", "perf.randread.iops") => ("a3-perf-randread", "read.iops"),
        ("a3-claims", "perf.randread.time") => ("a3-perf-randread", "read.runtime"),
        ("a3-claims", "cap.randread.iops") => ("a3-cap-randread", "read.iops"),
        ("a3-claims", "cap.randread.time") => ("a3-cap-randread", "read.runtime"),
        ("a3-claims", "perf.randwrite.iops") => ("a3-perf-randwrite", "write.iops"),
        ("a3-claims", "perf.randwrite.time") => ("a3-perf-randwrite", "write.runtime"),
        ("a3-claims", "cap.randwrite.iops") => ("a3-cap-randwrite", "write.iops"),
        ("a3-claims", "cap.randwrite.time") => ("a3-cap-randwrite", "write.runtime"),
        _ => return None,
    })
}

/// The figure as the simulated run has it; `None` if the model has no such quantity.
fn simulated(
    run: &PublishedRun,
    figure: &PublishedFigure,
    results: &mut Results,
) -> Result<Option<f64>, AssessError> {
    let metric = figure.metric.as_str();
    if let Some((of, original)) = restated(&run.id, metric) {
        let unit = if figure.unit == "s" { "s" } else { "us" };
        return Ok(results.of(of)?.and_then(|measured| match original {
            "latency.avg" => Some(measured.all_lat().moments.mean() / 1e3),
            "read.runtime" | "write.runtime" if unit == "s" => Some(measured.seconds * measured.scale),
            _ if metric.ends_with("iops_total") => Some(measured.iops()),
            "read.iops" => Some(measured.ios[0] / measured.seconds),
            "write.iops" => Some(measured.ios[1] / measured.seconds),
            _ => None,
        }));
    }
    match run.id.as_str() {
        "a0-claims" => claims(metric, results),
        "a1-do-expectations" => expectations(metric, results),
        "a1-do-crossover" => crossover(metric, results),
        id if id.starts_with("a2-") => hd_tune(id, metric, results),
        id if metric.starts_with("max.") => Ok(match metric {
            "max.bw" => results.of(&format!("{id}:bw"))?.map(|measured| measured.bytes_per_second() / MIB),
            "max.iops" => results.of(&format!("{id}:iops"))?.map(|measured| measured.iops()),
            _ => None,
        }),
        id if id.starts_with("a4-premium-3t") => {
            Ok(results.of(id)?.and_then(|measured| match metric.split_once('.')?.1 {
                "bw" => Some(measured.bytes_per_second() / MIB),
                "iops" => Some(measured.iops()),
                "latency" => Some(measured.all_lat().moments.mean() / 1e6),
                _ => None,
            }))
        }
        id if id.ends_with("ioping") => Ok(results.of(id)?.and_then(|measured| ioping(metric, &measured))),
        id => Ok(results.of(id)?.and_then(|measured| fio(figure, &measured))),
    }
}

fn crossover(metric: &str, results: &mut Results) -> Result<Option<f64>, AssessError> {
    let Some((block, what)) = metric.split_once('.') else { return Ok(None) };
    let measured = results.of(&format!("a1-do:{block}"))?;
    Ok(measured.map(|measured| match what {
        "iops" => measured.iops(),
        _ => measured.bytes_per_second() / 1e6,
    }))
}

/// What HD Tune prints: KB are KiB, MB are 10^6 bytes.
fn hd_tune(run: &str, metric: &str, results: &mut Results) -> Result<Option<f64>, AssessError> {
    let mut of = |load: &str| results.of(&format!("{run}:{load}"));
    let kib = |measured: Measured| measured.bytes_per_second() / 1024.0;
    let iops = |measured: Measured| measured.iops();
    Ok(match metric {
        "seq_read" => of("seq-read")?.map(kib),
        "seq_write" => of("seq-write")?.map(kib),
        "rand4k_read_iops" => of("read-d1")?.map(iops),
        "rand4k_write_iops" => of("write-d1")?.map(iops),
        "rand4k_qd32_read_iops" => of("read-d32")?.map(iops),
        "rand4k_qd32_write_iops" => of("write-d32")?.map(iops),
        "access_time" => of("access")?.map(|measured| measured.all_lat().moments.mean() / 1e6),
        "avg_transfer" => of("transfer")?.map(|measured| measured.bytes_per_second() / 1e6),
        _ => None,
    })
}

fn claims(metric: &str, results: &mut Results) -> Result<Option<f64>, AssessError> {
    let mut iops = |run: &str| Ok(results.of(run)?.map(|measured| measured.iops()));
    match metric {
        "aws.randrw.iops_total" => iops("a0-aws-randrw"),
        "aws.randread.iops" | "aws.gp2.burst" => iops("a0-aws-randread"),
        "aws.randwrite.iops" => iops("a0-aws-randwrite"),
        "aws.gp2.max" => iops("a0-claims:max"),
        "aws.gp2_50gib.baseline" => after_the_burst().map(Some),
        "aws.gp2.max_at_gib" => gp2_max_at_gib().map(Some),
        _ => Ok(None),
    }
}

fn expectations(metric: &str, results: &mut Results) -> Result<Option<f64>, AssessError> {
    let mut of = |load: &str| results.of(&format!("a1-do:{load}"));
    let mean_ms = |measured: Measured| measured.all_lat().moments.mean() / 1e6;
    let megabytes = |measured: Measured| measured.bytes_per_second() / 1e6;
    Ok(match metric {
        "bw_test.standard" => results.of("a1-do-bw-test")?.map(megabytes),
        "bw_test.high_cpu" => of("high-cpu-bw")?.map(megabytes),
        "rand_r.standard.iops" => of("rand-r")?.map(|measured| measured.iops()),
        "rand_w.standard.iops" => of("rand-w")?.map(|measured| measured.iops()),
        "rand_r.high_cpu.iops_gt" => of("high-cpu-r")?.map(|measured| measured.iops()),
        "rand_w.high_cpu.iops_gt" => of("high-cpu-w")?.map(|measured| measured.iops()),
        "lat_read.lt" => results.of("a1-do-lat-read")?.map(mean_ms),
        "lat_write.lt" => of("lat-write")?.map(mean_ms),
        "saturation_qd.4k" => saturating(&[(2.0, "4k-d2"), (4.0, "4k-d4")], "bs4k", results)?,
        "saturation_qd.256k" => saturating(&[(2.0, "256k-d2")], "bs256k", results)?,
        _ => None,
    })
}

/// The first depth that reaches the rate of depth 64.
fn saturating(depths: &[(f64, &str)], most: &str, results: &mut Results) -> Result<Option<f64>, AssessError> {
    let mut iops = |load: &str| -> Result<f64, AssessError> {
        Ok(results.of(&format!("a1-do:{load}"))?.map_or(0.0, |measured| measured.iops()))
    };
    let enough = iops(most)? * 0.99;
    for (depth, load) in depths {
        if iops(load)? >= enough {
            return Ok(Some(*depth));
        }
    }
    Ok(Some(0.0))
}

/// What ioping prints of one request a second.
fn ioping(metric: &str, measured: &Measured) -> Option<f64> {
    let moments = measured.all_lat().moments;
    let mean_us = moments.mean() / 1e3;
    match metric {
        "latency.avg" => Some(mean_us),
        "latency.mdev" => Some(moments.stdev() / 1e3),
        "iops" => Some(1e6 / mean_us),
        "bw" => Some(1e6 / mean_us * 4096.0 / MIB),
        // Nine intervals from the first of ten requests to the last.
        "wall" => Some(measured.seconds * 1e3 / moments.count as f64 * 9.0),
        _ => None,
    }
}

/// What fio prints of a run.
fn fio(figure: &PublishedFigure, measured: &Measured) -> Option<f64> {
    let metric = figure.metric.strip_prefix("group.").unwrap_or(&figure.metric);
    let index = if metric.contains("read") { 0 } else { 1 };
    let per_second = |count: f64| count / measured.seconds;
    let unit = if figure.unit == "kB/s(10^3)" { 1000.0 } else { 1024.0 };
    let bandwidth = per_second(measured.bytes[index]) / unit;
    let milliseconds = measured.seconds * 1e3 * measured.scale;
    let in_flight_ms = |lat: &Latency| lat.moments.mean() * lat.moments.count as f64 / 1e6 * measured.scale;
    match metric {
        "last_status.read.bw" | "last_status.write.bw" | "read.bw" | "write.bw" => Some(bandwidth),
        "read.aggrb" | "write.aggrb" | "read.minb" | "read.maxb" | "write.minb" | "write.maxb" => {
            Some(bandwidth)
        }
        "last_status.read.iops" | "last_status.write.iops" | "read.iops" | "write.iops" => {
            Some(per_second(measured.ios[index]))
        }
        "read.io" | "write.io" => {
            let unit = if figure.unit == "KiB" { 1024.0 } else { MIB };
            Some(measured.bytes[index] * measured.scale / unit)
        }
        "read.runtime" | "write.runtime" | "read.mint" | "read.maxt" | "write.mint" | "write.maxt" => {
            Some(milliseconds)
        }
        "issued.read" | "disk.ios.read" => Some(measured.ios[0] * measured.scale),
        "issued.write" | "disk.ios.write" => Some(measured.ios[1] * measured.scale),
        "issued.trim" => Some(measured.ios[2]),
        "disk.ticks.read" => Some(in_flight_ms(&measured.lat[0])),
        "disk.ticks.write" => Some(in_flight_ms(&measured.lat[1])),
        "disk.in_queue" => Some(in_flight_ms(&measured.all_lat())),
        // I/Os were in flight all the time; the job's bandwidth is the group's.
        "disk.util" => Some((in_flight_ms(&measured.all_lat()) / milliseconds).min(1.0) * 100.0),
        "bw_samples.per" => Some(100.0),
        "bw_samples.avg" => Some(per_second(measured.bytes.iter().sum()) / 1024.0),
        _ => latency(metric, &figure.unit, &measured.all_lat()),
    }
}

/// clat and lat are the same on a simulated volume, as submitting takes no time.
fn latency(metric: &str, unit: &str, all: &Latency) -> Option<f64> {
    let ns = if unit == "ms" { 1e6 } else { 1e3 };
    if let Some(bucket) = metric.strip_prefix("lat_bucket_ms.") {
        const EDGES: [f64; 11] = [0.0, 2.0, 4.0, 10.0, 20.0, 50.0, 100.0, 250.0, 500.0, 750.0, 1000.0];
        let upper: f64 = bucket.parse().ok()?;
        let lower = EDGES.into_iter().rfind(|edge| *edge < upper)?;
        let within = |ns: u64| (lower..upper).contains(&(ns as f64 / 1e6));
        let bins = all.histogram.sparse();
        let count: u64 = bins
            .filter(|(bin, _)| within(fathom_stats::histogram::midpoint(*bin)))
            .map(|(_, count)| count)
            .sum();
        return Some(count as f64 * 100.0 / all.moments.count as f64);
    }
    let name = metric.strip_prefix("clat.").or_else(|| metric.strip_prefix("lat."))?;
    match name {
        "avg" => Some(all.moments.mean() / ns),
        "min" => Some(all.moments.min as f64 / ns),
        "max" => Some(all.moments.max as f64 / ns),
        "stdev" => Some(all.moments.stdev() / ns),
        _ => all.histogram.percentile(name.strip_prefix('p')?.parse().ok()?).map(|value| value as f64 / ns),
    }
}
