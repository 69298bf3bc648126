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

use fathom_record::{ExpectationRecord, RunRecord};

pub use interval::ConfidenceInterval;
use serde::Serialize;
pub use share::of_year;

use crate::criterion::CriterionVerdict;
use crate::rows::rows;

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
pub fn judge(record: &RunRecord) -> Vec<ExpectationResult> {
    let rows = rows(record);
    record
        .header
        .expectations
        .iter()
        .map(|expectation| judge::judge_one(record, &rows, expectation))
        .collect()
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

/// True where an expectation is inconclusive.
pub fn is_inconclusive(record: &RunRecord) -> bool {
    judge(record).iter().any(|one| one.verdict.is_inconclusive())
}

/// True where an expectation is missed. Classes are alternatives, and a measurement cannot tell which one a volume has, so
/// expectations of several classes count where every class misses one.
pub fn is_missed(record: &RunRecord) -> bool {
    let judged = judge(record);
    let misses =
        |class: &str| judged.iter().any(|one| one.expectation.class == class && one.verdict.is_missed());
    let classes = classes(&record.header.expectations);
    misses("") || !classes.is_empty() && classes.iter().all(|class| misses(class))
}
