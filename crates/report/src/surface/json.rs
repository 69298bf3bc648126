//! The document of `surface --json`: `fathom.surface/1`.

use std::io::{self, Write};

use fathom_analysis::surface::Surface;
use fathom_record::RunRecord;

use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.surface/1";

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, surface: &Surface, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    run_json::write(SCHEMA, record, surface, style, out)
}
