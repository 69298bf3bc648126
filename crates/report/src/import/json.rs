//! The document of an imported run: `fathom.import/1`.

use std::io::{self, Write};

use fathom_record::import::ImportedTest;
use fathom_record::{RunRecord, TestRecord, TestStatus, TestSummary};
use serde::Serialize;

use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.import/1";

#[derive(Serialize)]
struct ImportDocument<'a> {
    tests: Vec<ImportedTestDocument<'a>>,
}

#[derive(Serialize)]
struct ImportedTestDocument<'a> {
    id: &'a str,
    title: &'a str,
    status: TestStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    fio: &'a str,
    summary: TestSummary,
    /// Every figure with its resolution, and what is missing.
    imported: Option<&'a ImportedTest>,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let document = ImportDocument { tests: record.tests.iter().map(test).collect() };
    run_json::write(SCHEMA, record, &document, style, out)
}

fn test(test: &TestRecord) -> ImportedTestDocument<'_> {
    ImportedTestDocument {
        id: &test.id,
        title: &test.title,
        status: test.status,
        reason: test.reason.as_deref(),
        fio: &test.fio,
        summary: TestSummary::new(test),
        imported: test.imported(),
    }
}
