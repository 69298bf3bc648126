//! The document of a run of several hosts: `fathom.fleet/1`; under fio's name the member `fathom.fleet` of fio's document.

use std::io::{self, Write};

use fathom_analysis::fleet::{FleetAssessment, assess};
use fathom_record::{RunRecord, TestRecord, TestSummary};
use serde::Serialize;
use serde_json::Value;

use crate::Style;
use crate::run_json::{self, TestHead};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.fleet/1";

#[derive(Serialize)]
struct FleetDocument<'a> {
    tests: Vec<Test<'a>>,
    /// Null where the record is of one host.
    fleet: Option<FleetAssessment>,
}

#[derive(Serialize)]
struct Test<'a> {
    #[serde(flatten)]
    head: TestHead<'a>,
    #[serde(flatten)]
    summary: TestSummary,
    notes: &'a [String],
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let document = FleetDocument { tests: record.tests.iter().map(test).collect(), fleet: assess(record) };
    run_json::write(SCHEMA, record, &document, style, out)
}

fn test(test: &TestRecord) -> Test<'_> {
    Test { head: TestHead::of(test), summary: TestSummary::new(test), notes: &test.notes }
}

/// What the hosts of a record tell, with the findings, as a member of another document; `None` where it is of one host.
pub(crate) fn member(record: &RunRecord) -> Option<Value> {
    let mut member = serde_json::to_value(assess(record)?).ok()?;
    member["findings"] = serde_json::to_value(&record.findings).ok()?;
    Some(member)
}
