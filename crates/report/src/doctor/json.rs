//! The document of `doctor`: `fathom.doctor/1`.

use std::io::{self, Write};

use fathom_analysis::doctor::{CheckResult, has_problem};
use fathom_record::RunHeader;
use serde_json::json;

use crate::document;

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.doctor/1";

/// Writes the document, indented; machine and devices were observed for `observed_ns`.
///
/// # Errors
/// Those of `out`.
pub fn render(
    header: &RunHeader,
    observed_ns: u64,
    checks: &[CheckResult],
    out: &mut dyn Write,
) -> io::Result<()> {
    let document = json!({
        "schema": SCHEMA,
        "tool_version": header.tool_version,
        "target": header.target,
        "started_unix_ms": header.started_unix_ms,
        "conditions": { "host": header.host(), "target": header.conditions.target },
        "observed_ns": observed_ns,
        "has_problem": has_problem(checks),
        "checks": checks,
    });
    document::write(&document, out)
}
