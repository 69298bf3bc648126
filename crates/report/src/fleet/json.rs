//! The document of a run of several hosts: `fathom.fleet/1`; under fio's name the member `fathom.fleet` of fio's document.

use std::io::{self, Write};

use fathom_analysis::Analysis;
use fathom_analysis::fleet::assess;
use fathom_analysis::verdict::VolumeVerdict;
use fathom_record::{RunRecord, TestRecord, TestSummary};
use serde_json::{Value, json};

use crate::Style;
use crate::document::object;
use crate::run_json::{self, test_head};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.fleet/1";

/// Writes the document, indented; `fleet` is null where the record is of one host.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let test = |test: &TestRecord| {
        object([test_head(test), json!(TestSummary::new(test)), json!({ "notes": test.notes })])
    };
    let tests: Vec<Value> = record.tests.iter().map(test).collect();
    let verdict = VolumeVerdict::of_tests(&Analysis::of(record));
    run_json::write(SCHEMA, record, &verdict, json!({ "tests": tests, "fleet": assess(record) }), style, out)
}

/// What the hosts of a record tell, with the findings, as a member of another document; `None` where it is of one host.
pub(crate) fn member(record: &RunRecord) -> Option<Value> {
    let mut member = serde_json::to_value(assess(record)?).ok()?;
    member["findings"] = serde_json::to_value(&record.findings).ok()?;
    Some(member)
}
