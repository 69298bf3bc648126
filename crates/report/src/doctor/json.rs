//! The document of `doctor`: `fathom.doctor/1`.

use std::io::{self, Write};

use fathom_analysis::doctor::{CheckResult, has_problem};
use fathom_record::{HostRecord, RunHeader, TargetRecord};
use serde::Serialize;

use crate::document;

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.doctor/1";

#[derive(Serialize)]
struct DoctorDocument<'a> {
    schema: &'static str,
    tool_version: &'a str,
    target: &'a str,
    started_unix_ms: u64,
    conditions: ConditionsDocument<'a>,
    /// How long machine and devices were observed.
    observed_ns: u64,
    /// Something would spoil figures.
    has_problem: bool,
    checks: &'a [CheckResult],
}

#[derive(Serialize)]
struct ConditionsDocument<'a> {
    host: &'a HostRecord,
    target: &'a TargetRecord,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(
    header: &RunHeader,
    observed_ns: u64,
    checks: &[CheckResult],
    out: &mut dyn Write,
) -> io::Result<()> {
    let document = DoctorDocument {
        schema: SCHEMA,
        tool_version: &header.tool_version,
        target: &header.target,
        started_unix_ms: header.started_unix_ms,
        conditions: ConditionsDocument { host: header.host(), target: &header.conditions.target },
        observed_ns,
        has_problem: has_problem(checks),
        checks,
    };
    document::write(&document, out)
}
