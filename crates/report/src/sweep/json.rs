//! The document of `sweep --json`: `fathom.sweep/1`.

use std::io::{self, Write};

use fathom_analysis::Analysis;
use fathom_analysis::conclusions::Conclusion;
use fathom_analysis::sweep::Sweep;
use serde::Serialize;

use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.sweep/1";

#[derive(Serialize)]
struct SweepDocument<'a> {
    #[serde(flatten)]
    sweep: &'a Sweep,
    conclusions: &'a [Conclusion],
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(analysis: &Analysis<'_>, sweep: &Sweep, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let document = SweepDocument { sweep, conclusions: analysis.conclusions() };
    run_json::write(SCHEMA, analysis.record, &document, style, out)
}
