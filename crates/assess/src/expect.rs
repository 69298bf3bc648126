//! What a test is expected to reach, and whether it did. Pure: compares a number that was measured with one that was said.
//!
//! Metrics are addressed within a test as `direction.metric` (`write.iops`, `read.lat_ns.p99`).

use fathom_model::units::{parse_bytes, parse_duration};
use fathom_record::{ExpectationRecord, LatencySummary, OpSummary, TestSummary};
use serde::Deserialize;

/// As written in a suite.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawExpectation {
    pub(crate) class: String,
    pub(crate) metric: String,
    pub(crate) is: String,
    pub(crate) value: String,
}

/// What a volume of one class is expected to reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The class of machine or volume this holds for (`standard`).
    pub class: String,
    /// `direction.metric`.
    pub metric: String,
    /// How the value is to compare.
    pub is: Comparison,
    /// Requests per second, bytes per second or ns, as the metric has it.
    pub value: f64,
}

/// How a measured value is to compare with an expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`, less the tolerance.
    AtLeast,
    /// `<=`, plus the tolerance.
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
}

impl Comparison {
    /// As it is written.
    pub fn sign(self) -> &'static str {
        COMPARISONS.iter().find(|(_, comparison)| *comparison == self).map_or("", |(sign, _)| *sign)
    }
}

const COMPARISONS: [(&str, Comparison); 4] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

/// The classes of what a use needs: to be served, and to be served at a pinch.
pub(crate) use fathom_analysis::conclusions::{MARGINAL, YES};

/// `sync` are the calls of fsync and fdatasync, which have a rate and a latency of their own.
const DIRECTIONS: [&str; 5] = ["read", "write", "trim", "total", "sync"];
const RATES: [&str; 2] = ["iops", "bytes_per_second"];
const LATENCIES: [&str; 3] = ["slat_ns", "clat_ns", "lat_ns"];
const STATISTICS: [&str; 9] = ["min", "mean", "max", "p50", "p90", "p95", "p99", "p999", "p9999"];

/// Reads an expectation; the error says what is wrong with which field.
pub(crate) fn read(raw: &RawExpectation) -> Result<Expectation, String> {
    let is = COMPARISONS.iter().find(|(sign, _)| *sign == raw.is).map(|&(_, comparison)| comparison);
    let is = is.ok_or_else(|| format!("'{}' is no comparison: use >=, <=, > or <", raw.is))?;
    let parts: Vec<&str> = raw.metric.split('.').collect();
    let is_known = match parts.as_slice() {
        [direction, rate] => DIRECTIONS.contains(direction) && RATES.contains(rate),
        [direction, latency, statistic] => {
            DIRECTIONS.contains(direction) && LATENCIES.contains(latency) && STATISTICS.contains(statistic)
        }
        _ => false,
    };
    if !is_known {
        return Err(format!(
            "'{}' is no metric: write one such as read.iops or write.lat_ns.p99",
            raw.metric
        ));
    }
    let value = match parts[1] {
        "iops" => raw.value.parse::<f64>().map_err(|_| format!("'{}' is not a number", raw.value))?,
        "bytes_per_second" => parse_bytes(&raw.value).map_err(|error| error.to_string())? as f64,
        _ => parse_duration(&raw.value).map_err(|error| error.to_string())?.0 as f64,
    };
    if !(value.is_finite() && value > 0.0) {
        return Err(format!("'{}' is not above 0", raw.value));
    }
    Ok(Expectation { class: raw.class.clone(), metric: raw.metric.clone(), is, value })
}

/// Holds what was measured against what was expected. Nothing measured = no verdict.
pub(crate) fn judge(
    test: &str,
    expected: &[Expectation],
    tolerance_percent: f64,
    summary: &TestSummary,
) -> Vec<ExpectationRecord> {
    let judged = |expectation: &Expectation| {
        let observed = metric(summary, &expectation.metric);
        let (is, tolerance_percent) = match expectation.is {
            Comparison::AtLeast => (">=", tolerance_percent),
            Comparison::AtMost => ("<=", tolerance_percent),
            Comparison::Above => (">", 0.0),
            Comparison::Below => ("<", 0.0),
        };
        ExpectationRecord {
            class: expectation.class.clone(),
            metric: format!("{test}.{}", expectation.metric),
            is: is.to_owned(),
            value: expectation.value,
            tolerance_percent,
            observed,
            met: observed.map(|observed| holds(expectation, tolerance_percent, observed)),
        }
    };
    expected.iter().map(judged).collect()
}

fn holds(expectation: &Expectation, tolerance_percent: f64, observed: f64) -> bool {
    let slack = expectation.value * tolerance_percent / 100.0;
    match expectation.is {
        Comparison::AtLeast => observed >= expectation.value - slack,
        Comparison::AtMost => observed <= expectation.value + slack,
        Comparison::Above => observed > expectation.value,
        Comparison::Below => observed < expectation.value,
    }
}

/// The value of a metric; `None` where nothing was measured or the sample does not carry it.
fn metric(summary: &TestSummary, address: &str) -> Option<f64> {
    let mut parts = address.split('.');
    if let Some(metric) = address.strip_prefix("sync.") {
        let sync = summary.sync.as_ref()?;
        return match metric.split_once('.') {
            None => (metric == "iops").then_some(sync.iops),
            Some(("lat_ns", statistic)) => of_latency(&sync.lat_ns, statistic),
            Some(_) => None,
        };
    }
    let op: &OpSummary = match parts.next()? {
        "read" => summary.read.as_ref(),
        "write" => summary.write.as_ref(),
        "trim" => summary.trim.as_ref(),
        _ => summary.total.as_ref(),
    }?;
    let latency: &LatencySummary = match parts.next()? {
        "iops" => return Some(op.iops),
        "bytes_per_second" => return Some(op.bytes_per_second),
        "slat_ns" => &op.slat_ns,
        "clat_ns" => &op.clat_ns,
        _ => &op.lat_ns,
    };
    of_latency(latency, parts.next()?)
}

fn of_latency(latency: &LatencySummary, statistic: &str) -> Option<f64> {
    let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
    match statistic {
        "min" => whole(latency.min),
        "mean" => latency.mean,
        "max" => whole(latency.max),
        "p50" => whole(latency.p50),
        "p90" => whole(latency.p90),
        "p95" => whole(latency.p95),
        "p99" => whole(latency.p99),
        "p999" => whole(latency.p999),
        _ => whole(latency.p9999),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(metric: &str, is: &str, value: &str) -> RawExpectation {
        let owned = |text: &str| text.to_owned();
        RawExpectation { class: owned("c"), metric: owned(metric), is: owned(is), value: owned(value) }
    }

    #[test]
    fn values_are_read_in_the_unit_of_their_metric() {
        for (metric, value, expected) in [
            ("read.iops", "5000", Some(5000.0)),
            ("read.iops", "5k", None),
            ("write.bytes_per_second", "200MB", Some(200e6)),
            ("write.bytes_per_second", "200MiB", Some(209_715_200.0)),
            ("read.lat_ns.p99", "5ms", Some(5e6)),
            ("total.clat_ns.mean", "250us", Some(250e3)),
            ("read.iops", "0", None),
            ("read.iops", "nan", None),
            ("read.lat_ns", "5ms", None),
            ("iops", "1", None),
            ("read.iops.mean", "1", None),
        ] {
            let read = read(&raw(metric, ">=", value));
            assert_eq!(
                read.as_ref().ok().map(|expectation| expectation.value),
                expected,
                "{metric} {value}: {read:?}"
            );
        }
    }

    #[test]
    fn verdicts() {
        let op = OpSummary {
            iops: 4_950.0,
            lat_ns: LatencySummary { mean: Some(5e6), ..Default::default() },
            ..Default::default()
        };
        let summary = TestSummary { read: Some(op), ..Default::default() };
        for (metric, is, value, met) in [
            ("read.iops", ">=", "5000", Some(true)),
            ("read.iops", ">=", "5100", Some(false)),
            ("read.iops", "<=", "4900", Some(true)),
            ("read.iops", ">", "4950", Some(false)),
            ("read.lat_ns.mean", "<", "5ms", Some(false)),
            ("read.lat_ns.mean", "<", "6ms", Some(true)),
            ("read.lat_ns.p99", "<", "6ms", None),
            ("write.iops", ">", "1", None),
        ] {
            let expectation = read(&raw(metric, is, value)).unwrap();
            let judged = judge("t", &[expectation], 2.0, &summary).remove(0);
            assert_eq!(judged.met, met, "{metric} {is} {value}");
            assert_eq!(judged.metric, format!("t.{metric}"));
        }
    }
}
