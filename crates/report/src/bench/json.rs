//! The document of `bench --json`: `fathom.bench/1`.

use std::io::{self, Write};

use serde::Serialize;

use fathom_analysis::conclusions::Conclusion;
use fathom_analysis::expectation::ExpectationResult;
use fathom_analysis::recommendation::{FollowedRecommendation, followed};
use fathom_analysis::steady::rate_duration::RateDuration;
use fathom_analysis::together::Together;
use fathom_analysis::{Analysis, RecordRow};
use fathom_record::{PrecisionRecord, RoundsRecord, TestSummary};

use crate::Style;
use crate::run_json::{self, TestHead};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.bench/1";

#[derive(Serialize)]
struct BenchResult<'a> {
    tests: Vec<TestResult<'a>>,
    /// What the source of the suite recommends, and what the result lacks of it; left out where it recommends nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    recommendation: Option<FollowedRecommendation>,
    /// Left out where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    expectations: Option<&'a [ExpectationResult]>,
    /// Whether one is missed, in every class where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    expectation_missed: Option<bool>,
    conclusions: &'a [Conclusion],
    /// What several targets do together; left out where there is one.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    together: &'a [Together],
}

#[derive(Serialize)]
struct TestResult<'a> {
    #[serde(flatten)]
    head: TestHead<'a>,
    /// How long the rate lasts; null where nothing was measured.
    rate_duration: Option<&'a RateDuration>,
    /// Left out where the test was not repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds: Option<&'a RoundsRecord>,
    /// Left out where no precision was to end the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<PrecisionRecord>,
    #[serde(flatten)]
    summary: &'a TestSummary,
    notes: &'a [String],
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(analysis: &Analysis<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let is_checked = !analysis.record.header.expectations.is_empty();
    let result = BenchResult {
        tests: analysis.tests().iter().map(test).collect(),
        recommendation: followed(analysis),
        expectations: is_checked.then(|| analysis.expectations()),
        expectation_missed: is_checked.then(|| analysis.is_missed()),
        conclusions: analysis.conclusions(),
        together: analysis.together(),
    };
    run_json::write(SCHEMA, analysis.record, &result, style, out)
}

fn test<'a>(row: &'a RecordRow<'_>) -> TestResult<'a> {
    TestResult {
        head: TestHead::of(&row.test),
        rate_duration: (!row.test.jobs.is_empty()).then(|| row.duration()),
        rounds: row.test.rounds.as_ref(),
        precision: row.test.precision,
        summary: &row.summary,
        notes: &row.test.notes,
    }
}
