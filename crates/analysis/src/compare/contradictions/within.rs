//! Figures of one run of a test that cannot all be right.

use fathom_model::units;
use fathom_record::import::FigureBound;
use fathom_record::{LatencySummary, OpSummary};

use super::super::figure::Figure;
use super::super::rows::RunTest;
use super::super::work::Work;
use super::ContradictionKind;
use crate::criterion::{Metric, MetricDirection, MetricKind};
use crate::say::{count, mebibytes, percent};

/// Printed figures are rounded, and a run ends with what is in flight.
const ROUNDING: f64 = 0.05;
/// A mean number of outstanding I/Os above the depth by more than this is impossible.
const LITTLE: f64 = 0.10;
/// A job that only does I/O spends at least this share of its time waiting for it.
const IDLE: f64 = 0.10;
/// The same of a job that may have waited, as far as its source says.
const LONG_IDLE: f64 = 0.01;

/// What contradicts itself in one run of a test.
pub(super) fn of_run(run: &RunTest) -> Vec<(ContradictionKind, String)> {
    if run.hosts > 1 {
        // Their counters are those of all the time, their rates those of the time they have in common.
        return Vec::new();
    }
    let mut found = Vec::new();
    let summary = &run.summary;
    let directions = [
        ("reads", MetricDirection::Read, &summary.read),
        ("writes", MetricDirection::Write, &summary.write),
        ("trims", MetricDirection::Trim, &summary.trim),
    ];
    let is_told_apart = directions.iter().any(|(_, _, op)| op.is_some());
    let total = (!is_told_apart).then_some(("I/Os", MetricDirection::Total, &summary.total));
    let mut outstanding = 0.0;
    for (name, direction, op) in directions.into_iter().chain(total) {
        let Some(op) = op else { continue };
        found.extend(rate_and_bandwidth(run, name, direction, op));
        found.extend(bytes_and_runtime(summary.measured_ns, name, op));
        found.extend(disordered(name, latency(op)));
        outstanding += op.iops * latency(op).mean.unwrap_or(0.0) / 1e9;
    }
    found.extend(little(run, outstanding));
    found
}

/// Rate times latency against the number of I/Os that the jobs can and do keep outstanding (Little's law).
fn little(run: &RunTest, outstanding: f64) -> Option<(ContradictionKind, String)> {
    let Work { iodepth, jobs, sync, rate, .. } = &run.work;
    // A source that names no jobs has one.
    let depth = iodepth.map(|depth| f64::from(depth) * f64::from(jobs.unwrap_or(1)));
    let iops = count(run.summary.total.as_ref().map_or(0.0, |total| total.iops));
    let at = format!("{iops} IOPS at the stated mean latency");
    if let Some(depth) = depth.filter(|depth| outstanding > depth * (1.0 + LITTLE) + 0.05) {
        let text =
            format!("{at} take {} outstanding I/Os, and the test has {}", count(outstanding), count(depth));
        return Some((ContradictionKind::Little, text));
    }
    // A job that neither waits nor syncs has an I/O outstanding nearly all the time.
    let waits = [sync, rate].map(|part| part.as_deref().map(|part| part != "none"));
    let least = match waits {
        [Some(false), Some(false)] => IDLE,
        [Some(true), _] | [_, Some(true)] => return None,
        _ => LONG_IDLE,
    };
    let jobs = f64::from(jobs.unwrap_or(1));
    (outstanding > 0.0 && outstanding < jobs * least).then(|| {
        let share = percent(outstanding / jobs);
        (
            ContradictionKind::Little,
            format!("{at} keep the device busy for {share} of the time: rate and latency do not go together"),
        )
    })
}

fn latency(op: &OpSummary) -> &LatencySummary {
    if op.lat_ns.mean.is_some() { &op.lat_ns } else { &op.clat_ns }
}

/// The rate times the block size against the bandwidth, beyond the resolution of both.
fn rate_and_bandwidth(
    run: &RunTest,
    name: &str,
    direction: MetricDirection,
    op: &OpSummary,
) -> Option<(ContradictionKind, String)> {
    let block = units::parse_bytes(run.work.block_size.as_deref()?).ok()? as f64;
    let by_rate = op.iops * block;
    let printed = |kind| Figure::Metric(Metric { direction: Some(direction), kind }).printed(run);
    let printed = [printed(MetricKind::Iops), printed(MetricKind::BytesPerSecond)];
    let is_bound = printed.iter().flatten().any(|figure| figure.bound != FigureBound::Exact);
    let resolution: f64 =
        printed.iter().flatten().map(|figure| figure.resolution / figure.value.max(1e-9)).sum();
    let allowed = ROUNDING + resolution;
    let differs =
        by_rate > 0.0 && op.bytes_per_second > 0.0 && (by_rate / op.bytes_per_second).ln().abs() > allowed;
    // An end of the range may be a smaller request.
    (differs && !is_bound).then(|| {
        let claim = format!(
            "{} IOPS of {} are {}, but the bandwidth of its {name} is {}",
            count(op.iops),
            run.work.block_size.as_deref().unwrap_or_default(),
            mebibytes(by_rate),
            mebibytes(op.bytes_per_second)
        );
        (ContradictionKind::RateAndBandwidth, claim)
    })
}

/// Bytes over the runtime against the bandwidth.
fn bytes_and_runtime(measured_ns: u64, name: &str, op: &OpSummary) -> Option<(ContradictionKind, String)> {
    let by_runtime = op.bytes as f64 * 1e9 / measured_ns as f64;
    let is_stated = op.bytes > 0 && measured_ns > 0 && op.bytes_per_second > 0.0;
    (is_stated && (by_runtime / op.bytes_per_second).ln().abs() > ROUNDING).then(|| {
        let claim = format!(
            "{} of {name} in {} are {}, but the stated bandwidth is {}",
            units::bytes(op.bytes),
            units::duration(fathom_model::Nanos(measured_ns)),
            mebibytes(by_runtime),
            mebibytes(op.bytes_per_second)
        );
        (ContradictionKind::BytesAndRuntime, claim)
    })
}

/// Percentiles, and the mean, that are out of order.
fn disordered(name: &str, latency: &LatencySummary) -> Option<(ContradictionKind, String)> {
    let percentiles = [
        ("min", latency.min),
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p95", latency.p95),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    let known: Vec<(&str, f64)> =
        percentiles.iter().filter_map(|(name, ns)| Some((*name, (*ns)? as f64))).collect();
    let pair = known.windows(2).find(|pair| pair[0].1 > pair[1].1 * (1.0 + ROUNDING))?;
    let text = |(name, ns): (&str, f64)| format!("{name} {}", units::latency(ns as u64));
    Some((
        ContradictionKind::Percentiles,
        format!("latency of {name}: {} is above {}", text(pair[0]), text(pair[1])),
    ))
}
