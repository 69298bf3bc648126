//! The document of `sweep --json`: `fathom.sweep/1`.

use std::io::{self, Write};

use fathom_analysis::sweep::Sweep;
use fathom_record::RunRecord;

use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.sweep/1";

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, sweep: &Sweep, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    run_json::write(SCHEMA, record, sweep, style, out)
}
