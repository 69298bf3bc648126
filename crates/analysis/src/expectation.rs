//! Checks the expectations of a run: each against the measured value, its confidence interval, and its own conditions.
//!
//! A pure function of the record, so that the history gives the same verdicts. Where a run cannot decide an expectation, the
//! verdict is inconclusive, with the reason and a remedy.

mod burst;
mod conditions;
mod interval;
mod judge;
mod share;
mod share_text;

use fathom_record::ExpectationRecord;

pub use interval::ConfidenceInterval;
use serde::Serialize;
pub use share::of_year;

use crate::Analysis;
use crate::criterion::CriterionVerdict;

/// An expectation and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectationResult {
    /// The expectation.
    #[serde(flatten)]
    pub expectation: ExpectationRecord,
    /// The measured value in the unit of the metric; the share of the seconds where a share of the time is expected.
    pub measured: Option<f64>,
    /// Its 95 % confidence interval.
    pub interval: Option<ConfidenceInterval>,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: CriterionVerdict,
    /// What a verdict of met or missed rests on: by how much it is missed, or how much time a share covers.
    pub basis: Option<String>,
    /// How long the rate lasts that the value is, and what remains, where that is known and misses the expectation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasting: Option<String>,
    /// Full seconds that were measured.
    #[serde(rename = "full_seconds")]
    pub seconds: u64,
}

/// Checks every expectation of a run.
pub(crate) fn judge(analysis: &Analysis<'_>) -> Vec<ExpectationResult> {
    let judge = |expectation| judge::judge_one(analysis.record, analysis.rows(), expectation);
    analysis.record.header.expectations.iter().map(judge).collect()
}

/// The classes that expectations apply to, in their order.
pub fn classes(expectations: &[ExpectationRecord]) -> Vec<&str> {
    let mut classes: Vec<&str> = Vec::new();
    for expectation in expectations.iter().filter(|expectation| !expectation.class.is_empty()) {
        if !classes.contains(&expectation.class.as_str()) {
            classes.push(&expectation.class);
        }
    }
    classes
}
