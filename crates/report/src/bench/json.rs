//! The document of `bench --json`: `fathom.bench/1`.

use std::io::{self, Write};

use serde::Serialize;

use fathom_analysis::conclusions::{Conclusion, conclusions};
use fathom_analysis::expectation::{self, ExpectationResult};
use fathom_analysis::recommendation::{FollowedRecommendation, followed};
use fathom_analysis::steady::rate_duration::{RateDuration, rate_duration};
use fathom_analysis::together::{Together, together};
use fathom_record::{PrecisionRecord, RoundsRecord, RunRecord, TestRecord, TestStatus, TestSummary};

use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.bench/1";

#[derive(Serialize)]
struct BenchDocument<'a> {
    tests: Vec<Test<'a>>,
    /// What the source of the suite recommends, and what the result lacks of it; left out where it recommends nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    recommendation: Option<FollowedRecommendation>,
    /// Left out where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    expectations: Option<Vec<ExpectationResult>>,
    /// Whether one is missed, in every class where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    expectation_missed: Option<bool>,
    conclusions: Vec<Conclusion>,
    /// What several targets do together; left out where there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    together: Vec<Together>,
}

#[derive(Serialize)]
struct Test<'a> {
    id: &'a str,
    title: &'a str,
    status: TestStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    fio: &'a str,
    /// How long the rate lasts; null where nothing was measured.
    rate_duration: Option<RateDuration>,
    /// Left out where the test was not repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds: Option<&'a RoundsRecord>,
    /// Left out where no precision was to end the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<PrecisionRecord>,
    #[serde(flatten)]
    summary: TestSummary,
    notes: &'a [String],
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let header = &record.header;
    let is_checked = !header.expectations.is_empty();
    let document = BenchDocument {
        tests: record.tests.iter().map(test).collect(),
        recommendation: followed(record),
        expectations: is_checked.then(|| expectation::judge(record)),
        expectation_missed: is_checked.then(|| expectation::is_missed(record)),
        conclusions: conclusions(record),
        together: together(record),
    };
    run_json::write(SCHEMA, record, &document, style, out)
}

fn test(test: &TestRecord) -> Test<'_> {
    Test {
        id: &test.id,
        title: &test.title,
        status: test.status,
        reason: test.reason.as_deref(),
        fio: &test.fio,
        rate_duration: (!test.jobs.is_empty()).then(|| rate_duration(test)),
        rounds: test.rounds.as_ref(),
        precision: test.precision,
        summary: TestSummary::new(test),
        notes: &test.notes,
    }
}
