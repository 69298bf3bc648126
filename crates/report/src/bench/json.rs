//! The document of `bench --json`: `fathom.bench/1`.

use std::io::{self, Write};

use fathom_analysis::recommendation::followed;
use fathom_analysis::verdict::VolumeVerdict;
use fathom_analysis::{Analysis, RecordRow};
use serde_json::{Value, json};

use crate::Style;
use crate::document::object;
use crate::run_json::{self, test_head};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.bench/1";

/// Writes the document, indented. What was not asked for is left out: the recommendation of a suite, expectations, what several
/// targets do together.
///
/// # Errors
/// Those of `out`.
pub fn render(analysis: &Analysis<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut result = json!({ "tests": analysis.tests().iter().map(test).collect::<Vec<Value>>() });
    if let Some(followed) = followed(analysis) {
        result["recommendation"] = json!(followed);
    }
    if !analysis.record.header.expectations.is_empty() {
        result["expectations"] = json!(analysis.expectations());
        result["expectation_missed"] = json!(analysis.is_missed());
    }
    result["conclusions"] = json!(analysis.conclusions());
    if !analysis.together().is_empty() {
        result["together"] = json!(analysis.together());
    }
    run_json::write(SCHEMA, analysis.record, VolumeVerdict::of_tests(analysis), &result, style, out)
}

/// `rate_duration` is null where nothing was measured; rounds and precision are left out where they did not end the test.
fn test(row: &RecordRow<'_>) -> Value {
    let test = &row.test;
    let mut head = test_head(test);
    head["rate_duration"] = json!((!test.jobs.is_empty()).then(|| row.duration()));
    if let Some(rounds) = &test.rounds {
        head["rounds"] = json!(rounds);
    }
    if let Some(precision) = &test.precision {
        head["precision"] = json!(precision);
    }
    object([head, json!(*row.summary), json!({ "notes": test.notes })])
}
