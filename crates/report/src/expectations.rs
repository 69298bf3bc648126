//! Expectations in `bench --json`.

use fathom_analysis::expectation::{self, ExpectationResult};
use fathom_record::RunRecord;
use serde::Serialize;

/// An expectation in `bench --json`.
#[derive(Serialize)]
pub(crate) struct ExpectationDocument {
    source: String,
    /// Left out where it applies to any.
    #[serde(skip_serializing_if = "String::is_empty")]
    class: String,
    test: String,
    metric: String,
    comparison: String,
    expected: f64,
    tolerance_percent: f64,
    /// The expected share of the time; null where the mean is expected to meet the value.
    time_fraction: Option<f64>,
    /// In the unit of the metric, or the share of the seconds that met the value.
    measured: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: &'static str,
    /// Why it is inconclusive.
    reason: Option<String>,
    /// What would decide it.
    remedy: Option<String>,
    /// What a verdict of met or missed rests on.
    basis: Option<String>,
    full_seconds: u64,
}

/// Every expectation of a record as data.
pub(crate) fn documents(record: &RunRecord) -> Vec<ExpectationDocument> {
    expectation::judge(record).into_iter().map(document).collect()
}

fn document(result: ExpectationResult) -> ExpectationDocument {
    let ExpectationResult { expectation, measured, interval, verdict, basis, seconds } = result;
    let (reason, remedy) = verdict.reason().unzip();
    ExpectationDocument {
        source: expectation.source,
        class: expectation.class,
        test: expectation.test,
        metric: expectation.metric,
        comparison: expectation.is,
        expected: expectation.value,
        tolerance_percent: expectation.tolerance_percent,
        time_fraction: expectation.share.map(|share| share.fraction),
        measured,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        verdict: verdict.name(),
        reason: reason.map(str::to_owned),
        remedy: remedy.flatten().map(str::to_owned),
        basis,
        full_seconds: seconds,
    }
}
