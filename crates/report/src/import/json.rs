//! The document of an imported run: `fathom.import/1`.

use std::io::{self, Write};

use fathom_record::{RunRecord, TestRecord, TestSummary};
use serde_json::{Value, json};

use crate::Style;
use crate::document::object;
use crate::run_json::{self, test_head};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.import/1";

/// Writes the document, indented; `imported` has every figure with its resolution, and what is missing.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let test = |test: &TestRecord| {
        let figures = json!({ "summary": TestSummary::new(test), "imported": test.imported() });
        object([test_head(test), figures])
    };
    let tests: Vec<Value> = record.tests.iter().map(test).collect();
    let verdict = json!({ "tests": record.tests.len() });
    run_json::write(SCHEMA, record, &verdict, json!({ "tests": tests }), style, out)
}
