//! Promises in `bench --json`.

use fathom_analysis::promise::{self, Judged};
use fathom_record::RunRecord;
use serde::Serialize;

/// A promise in `bench --json`.
#[derive(Serialize)]
pub(crate) struct PromiseDocument {
    source: String,
    /// Left out where it holds for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    class: String,
    test: String,
    metric: String,
    comparison: String,
    promised: f64,
    tolerance_percent: f64,
    /// The share of the time it is promised for; null where it is promised of the mean.
    time_fraction: Option<f64>,
    /// What was measured: in the unit of the metric, or the share of the seconds that were as good as promised.
    measured: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: &'static str,
    why: Option<String>,
    remedy: Option<String>,
    full_seconds: u64,
}

/// Every promise of a record as data.
pub(crate) fn documents(record: &RunRecord) -> Vec<PromiseDocument> {
    promise::judge(record).into_iter().map(document).collect()
}

fn document(judged: Judged) -> PromiseDocument {
    let Judged { promise, measured, interval, verdict, why, remedy, seconds } = judged;
    PromiseDocument {
        source: promise.source,
        class: promise.class,
        test: promise.test,
        metric: promise.metric,
        comparison: promise.is,
        promised: promise.value,
        tolerance_percent: promise.tolerance_percent,
        time_fraction: promise.share.map(|share| share.fraction),
        measured,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        verdict: verdict.name(),
        why,
        remedy,
        full_seconds: seconds,
    }
}
