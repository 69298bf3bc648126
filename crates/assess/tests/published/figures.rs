//! Each published figure beside the same quantity of the simulated run, and whether they agree.

use fathom_stats::Latency;

use crate::cases::{Measured, Results};
use crate::data::{Figure, Published};
use crate::reasons::why;

/// A figure and what became of it.
#[derive(Debug)]
pub struct Judged {
    pub run: String,
    pub figure: Figure,
    pub verdict: Verdict,
}

#[derive(Debug)]
pub enum Verdict {
    /// The model gives it within 5 %; no deviation where a bound is kept.
    Explained { simulated: f64, deviation: Option<f64> },
    /// It does not, or has no such quantity.
    Not { simulated: Option<f64>, why: &'static str },
}

/// How far a simulated figure may be from a published one.
const TOLERANCE: f64 = 0.05;

pub fn judge(published: &Published, results: &Results) -> Vec<Judged> {
    let figures = published.runs.iter().flat_map(|run| run.figures.iter().map(move |figure| (run, figure)));
    figures
        .map(|(run, figure)| {
            let simulated = simulated(&run.id, figure, results);
            let verdict = verdict(&run.id, figure, simulated);
            Judged { run: run.id.clone(), figure: figure.clone(), verdict }
        })
        .collect()
}

fn verdict(run: &str, figure: &Figure, simulated: Option<f64>) -> Verdict {
    let Some(value) = simulated else { return Verdict::Not { simulated, why: why(run, &figure.metric) } };
    let bound = |kept: bool| kept.then_some(Verdict::Explained { simulated: value, deviation: None });
    let explained = match () {
        () if figure.metric.ends_with("_lt") || figure.metric.ends_with(".lt") => bound(value < figure.value),
        () if figure.value == 0.0 => bound(value == 0.0),
        () => {
            let deviation = value / figure.value - 1.0;
            (deviation.abs() <= TOLERANCE)
                .then_some(Verdict::Explained { simulated: value, deviation: Some(deviation) })
        }
    };
    explained.unwrap_or_else(|| Verdict::Not { simulated, why: why(run, &figure.metric) })
}

/// The figure as the simulated run has it; `None` where the model has no such quantity.
fn simulated(run: &str, figure: &Figure, results: &Results) -> Option<f64> {
    let metric = figure.metric.as_str();
    match run {
        "a0-aws-randrw" | "a0-aws-randread" | "a0-aws-randwrite" => fio(figure, results.of(run)),
        "a0-aws-ioping" => ioping(metric, results.of(run)),
        "a0-claims" => claims(metric, results),
        "a1-do-bw-test" | "a1-do-lat-read" => fio(figure, results.of(run)),
        "a1-do-expectations" => expectations(metric, results),
        "a1-do-crossover" => {
            let (block, what) = metric.split_once('.')?;
            let measured = results.of(&format!("a1-do:{block}"));
            Some(if what == "iops" { measured.iops() } else { measured.bytes_per_second() / 1e6 })
        }
        "a2-aws-E-file" | "a2-aws-F-file" => {
            let of = |load: &str| results.of(&format!("{run}:{load}"));
            match metric {
                "seq_read" => Some(of("seq-read").bytes_per_second() / 1024.0),
                "seq_write" => Some(of("seq-write").bytes_per_second() / 1024.0),
                "rand4k_read_iops" => Some(of("read-d1").iops()),
                "rand4k_write_iops" => Some(of("write-d1").iops()),
                "rand4k_qd32_read_iops" => Some(of("read-d32").iops()),
                "rand4k_qd32_write_iops" => Some(of("write-d32").iops()),
                _ => None,
            }
        }
        "a4-premium-3t-seqwrite" | "a4-premium-3t-randread" => {
            let measured = results.of(run);
            match metric.split_once('.')?.1 {
                "bw" => Some(measured.bytes_per_second() / MIB),
                "iops" => Some(measured.iops()),
                "latency" => Some(measured.all_lat().moments.mean() / 1e6),
                _ => None,
            }
        }
        "a4-tencent_cbs_premium-1tib" => tencent(metric, "a4-premium-1t", results),
        "a4-tencent_cbs_ssd-1tib" => tencent(metric, "a4-ssd", results),
        "a4-tencent_cbs_enhanced_ssd-1tib" => tencent(metric, "a4-enhanced", results),
        _ => None,
    }
}

const MIB: f64 = (1 << 20) as f64;

fn tencent(metric: &str, key: &str, results: &Results) -> Option<f64> {
    match metric {
        "max.bw" => Some(results.of(&format!("{key}:bw")).bytes_per_second() / MIB),
        "max.iops" => Some(results.of(&format!("{key}:iops")).iops()),
        _ => None,
    }
}

fn claims(metric: &str, results: &Results) -> Option<f64> {
    let of = |run: &str| results.of(run);
    Some(match metric {
        "aws.randrw.time" => of("a0-aws-randrw").seconds * of("a0-aws-randrw").scale,
        "aws.randrw.iops_total" => of("a0-aws-randrw").iops(),
        "aws.randread.iops" | "aws.gp2.burst" => of("a0-aws-randread").iops(),
        "aws.randwrite.iops" => of("a0-aws-randwrite").iops(),
        "aws.latency" => of("a0-aws-ioping").all_lat().moments.mean() / 1e3,
        "aws.gp2_50gib.baseline" => results.after_the_bucket,
        "aws.gp2.max" => of("a0-claims:max").iops(),
        "aws.gp2.max_at_gib" => results.gp2_max_at_gib,
        _ => return None,
    })
}

fn expectations(metric: &str, results: &Results) -> Option<f64> {
    let of = |load: &str| results.of(&format!("a1-do:{load}"));
    // At the published depth all of the cap is reached: that depth then, else none.
    let saturates = |load: &str, cap: &str, depth: f64| {
        if of(load).iops() >= of(cap).iops() * 0.99 { depth } else { 0.0 }
    };
    Some(match metric {
        "bw_test.standard" => results.of("a1-do-bw-test").bytes_per_second() / 1e6,
        "bw_test.high_cpu" => of("high-cpu-bw").bytes_per_second() / 1e6,
        "rand_r.standard.iops" => of("rand-r").iops(),
        "rand_w.standard.iops" => of("rand-w").iops(),
        "rand_r.high_cpu.iops_gt" => of("high-cpu-r").iops(),
        "rand_w.high_cpu.iops_gt" => of("high-cpu-w").iops(),
        "lat_read.lt" => results.of("a1-do-lat-read").all_lat().moments.mean() / 1e6,
        "lat_write.lt" => of("lat-write").all_lat().moments.mean() / 1e6,
        "saturation_qd.4k" => {
            let below = of("4k-d2").iops() < of("bs4k").iops() * 0.99;
            if below { saturates("4k-d4", "bs4k", 4.0) } else { 2.0 }
        }
        "saturation_qd.256k" => saturates("256k-d2", "bs256k", 2.0),
        _ => return None,
    })
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
fn fio(figure: &Figure, measured: &Measured) -> Option<f64> {
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
        // Something was under way all the time; the job's bandwidth is the group's.
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
