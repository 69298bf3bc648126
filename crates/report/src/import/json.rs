//! The document of an imported run: `fathom.import/1`.

use std::io::{self, Write};

use fathom_record::import::ImportedTest;
use fathom_record::{RunRecord, TestRecord, TestSummary};
use serde::Serialize;

use crate::Style;
use crate::run_json::{self, TestHead};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.import/1";

#[derive(Serialize)]
struct ImportedTests<'a> {
    tests: Vec<TestResult<'a>>,
}

#[derive(Serialize)]
struct TestResult<'a> {
    #[serde(flatten)]
    head: TestHead<'a>,
    summary: TestSummary,
    /// Every figure with its resolution, and what is missing.
    imported: Option<&'a ImportedTest>,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let result = |test| TestResult {
        head: TestHead::of(test),
        summary: TestSummary::new(test),
        imported: TestRecord::imported(test),
    };
    let tests = ImportedTests { tests: record.tests.iter().map(result).collect() };
    run_json::write(SCHEMA, record, &tests, style, out)
}
