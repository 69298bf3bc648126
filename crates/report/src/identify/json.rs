//! The document of `identify --json`: `fathom.identify/1`.

use std::io::{self, Write};

use crate::identify::IdentifyReport;
use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.identify/1";

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(report: &IdentifyReport<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    run_json::write(SCHEMA, report.record, report, style, out)
}
