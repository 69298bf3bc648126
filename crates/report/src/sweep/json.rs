//! The document of `sweep --json`: `fathom.sweep/1`.

use std::io::{self, Write};

use fathom_analysis::conclusions::{Conclusion, conclusions};
use fathom_analysis::sweep::Sweep;
use fathom_record::RunRecord;
use serde::Serialize;

use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.sweep/1";

#[derive(Serialize)]
struct SweepDocument<'a> {
    #[serde(flatten)]
    sweep: &'a Sweep,
    conclusions: Vec<Conclusion>,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, sweep: &Sweep, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let document = SweepDocument { sweep, conclusions: conclusions(record) };
    run_json::write(SCHEMA, record, &document, style, out)
}
