//! The points of a scaling curve: the rate of all ranks with its interval, by their number.

use std::collections::BTreeSet;

use fathom_record::confidence::{NORMAL_975, student_975};
use fathom_record::{RunRecord, TestRecord, TestSummary};
use fathom_stats::sample;
use serde::Serialize;

use super::ScalingRun;
use crate::plateau::RUN_TO_RUN;

/// A rate between two ends, with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateInterval {
    /// Lower end, I/Os per second.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What some number of ranks reached together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScalingPoint {
    /// Ranks that took part.
    pub ranks: u32,
    /// Hosts that they were on.
    pub hosts: u32,
    /// Ranks of the job whose records are missing.
    pub missing: u32,
    /// Runs with so many ranks.
    pub runs: u32,
    /// I/Os per second of all ranks; `None` where they have no time in common.
    pub iops: Option<f64>,
    /// Its 95 % confidence interval; `None` where the runs are too short for one.
    pub iops_interval: Option<RateInterval>,
    /// Bytes per second of all ranks.
    pub bytes_per_second: Option<f64>,
    /// The rate of each rank, as a share of that of each rank at the fewest.
    pub efficiency: Option<f64>,
    /// Gain of the rate since the point before, per doubling of the ranks (1 = twice the rate).
    pub gain_per_doubling: Option<f64>,
    /// Mean latency of all I/Os, ns. Latencies are those of the run with the median rate.
    pub lat_mean_ns: Option<f64>,
    /// Median latency, ns.
    pub lat_p50_ns: Option<u64>,
    /// 99th percentile of latency, ns.
    pub lat_p99_ns: Option<u64>,
    /// From the first start of a rank to the last, in the run where it is longest, ns.
    pub start_spread_ns: u64,
}

impl ScalingPoint {
    /// Half of the interval as a share of the rate.
    pub(super) fn half_fraction(&self) -> Option<f64> {
        let (iops, interval) = self.iops.zip(self.iops_interval)?;
        (iops > 0.0).then(|| (interval.high - interval.low) / 2.0 / iops)
    }
}

/// A test of one run, as far as its point needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured<'a> {
    pub(super) ranks: u32,
    pub(super) record: &'a RunRecord,
    pub(super) test: &'a TestRecord,
}

impl<'a> Measured<'a> {
    pub(super) fn of(run: &ScalingRun<'a>, test: &'a TestRecord) -> Measured<'a> {
        Measured { ranks: ranks(run.record), record: run.record, test }
    }
}

/// The ranks that a record was merged from.
pub(super) fn ranks(record: &RunRecord) -> u32 {
    record.header.fleet.as_ref().map_or(1, |fleet| u32::try_from(fleet.members.len()).unwrap_or(u32::MAX))
}

/// The points of a test by their number of ranks.
pub(super) fn points(measured: &[Measured<'_>]) -> Vec<ScalingPoint> {
    let counts: BTreeSet<u32> = measured.iter().map(|one| one.ranks).collect();
    let of_count = |&ranks: &u32| {
        let runs: Vec<&Measured<'_>> = measured.iter().filter(|one| one.ranks == ranks).collect();
        point(ranks, &runs)
    };
    let mut points: Vec<ScalingPoint> = counts.iter().map(of_count).collect();
    let first = points.iter().find_map(|point| Some(point.iops? / f64::from(point.ranks)));
    for point in &mut points {
        let each = point.iops.map(|iops| iops / f64::from(point.ranks));
        point.efficiency =
            each.zip(first).filter(|(_, first)| *first > 0.0).map(|(each, first)| each / first);
    }
    for place in 1..points.len() {
        points[place].gain_per_doubling = gain(&points[place - 1], &points[place]);
    }
    points
}

/// Gain of the rate per doubling of the ranks.
pub(super) fn gain(from: &ScalingPoint, to: &ScalingPoint) -> Option<f64> {
    let (before, after) = from.iops.zip(to.iops).filter(|(before, _)| *before > 0.0)?;
    Some((after / before).powf(1.0 / doublings(from, to)) - 1.0)
}

/// How often the ranks double from one point to another.
pub(super) fn doublings(from: &ScalingPoint, to: &ScalingPoint) -> f64 {
    (f64::from(to.ranks) / f64::from(from.ranks)).log2()
}

/// What the runs with one number of ranks have in sum.
fn point(ranks: u32, runs: &[&Measured<'_>]) -> ScalingPoint {
    let summaries: Vec<TestSummary> = runs.iter().map(|run| TestSummary::new(run.test)).collect();
    let total = |summary: &TestSummary| {
        let total = summary.total.clone()?;
        (total.iops > 0.0).then_some(total)
    };
    let mut totals: Vec<(fathom_record::OpSummary, Option<f64>)> = summaries
        .iter()
        .filter_map(|summary| {
            let half = summary.stability.as_ref().map(|stability| stability.mean_ci95_fraction);
            Some((total(summary)?, half))
        })
        .collect();
    totals.sort_by(|one, other| one.0.iops.total_cmp(&other.0.iops));
    let rates: Vec<f64> = totals.iter().map(|(total, _)| total.iops).collect();
    let iops = mean(&rates);
    let halves: Option<Vec<f64>> = totals.iter().map(|(_, half)| *half).collect();
    let half = halves.and_then(|halves| half_fraction(&rates, &halves));
    let hosts = |run: &&Measured<'_>| {
        let names = run.record.header.hosts.iter().map(|host| host.hostname.as_str());
        names.collect::<BTreeSet<_>>().len().max(1) as u32
    };
    let missing =
        |run: &&Measured<'_>| run.record.header.fleet.as_ref().map_or(0, |fleet| fleet.missing.len() as u32);
    let spread = |run: &&Measured<'_>| run.test.fleet.as_ref().map_or(0, |fleet| fleet.start_spread_ns());
    let latency = totals.get(totals.len().saturating_sub(1) / 2).map(|(total, _)| total.latency().clone());
    let bytes: Vec<f64> = totals.iter().map(|(total, _)| total.bytes_per_second).collect();
    ScalingPoint {
        ranks,
        hosts: runs.iter().map(hosts).max().unwrap_or(1),
        missing: runs.iter().map(missing).max().unwrap_or(0),
        runs: runs.len() as u32,
        iops,
        iops_interval: iops.zip(half).map(|(iops, half)| RateInterval {
            low: iops * (1.0 - half).max(0.0),
            high: iops * (1.0 + half),
        }),
        bytes_per_second: mean(&bytes),
        lat_mean_ns: latency.as_ref().and_then(|latency| latency.mean),
        lat_p50_ns: latency.as_ref().and_then(|latency| latency.p50),
        lat_p99_ns: latency.as_ref().and_then(|latency| latency.p99),
        start_spread_ns: runs.iter().map(spread).max().unwrap_or(0),
        ..ScalingPoint::default()
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| sample::mean(values))
}

/// Half of the interval of the mean of runs, as a share of it: by how the rate varied within each, by what runs differ without a
/// cause, and where there are several by how they differ.
fn half_fraction(rates: &[f64], halves: &[f64]) -> Option<f64> {
    let mean = mean(rates).filter(|mean| *mean > 0.0)?;
    let count = rates.len() as f64;
    let within = halves.iter().map(|half| half * half).sum::<f64>().sqrt() / count;
    let between = NORMAL_975 * RUN_TO_RUN / count.sqrt();
    let known = within.hypot(between);
    if rates.len() < 2 {
        return Some(known);
    }
    let squares: f64 = rates.iter().map(|rate| (rate / mean - 1.0).powi(2)).sum();
    let seen = student_975(count - 1.0) * (squares / (count - 1.0) / count).sqrt();
    Some(known.max(seen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_widen_the_interval() {
        let one = half_fraction(&[1000.0], &[0.01]).unwrap();
        assert!((0.01..0.02).contains(&one), "{one}");
        let alike = half_fraction(&[1000.0, 1000.0], &[0.01, 0.01]).unwrap();
        assert!(alike < one, "{alike}");
        let apart = half_fraction(&[900.0, 1100.0], &[0.01, 0.01]).unwrap();
        assert!(apart > 0.5, "{apart}");
        assert_eq!(half_fraction(&[], &[]), None);
    }
}
