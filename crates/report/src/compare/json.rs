//! The document of `compare --json`: `fathom.compare/1`.

use std::io::{self, Write};

use fathom_analysis::compare::source::LABELS;
use fathom_analysis::compare::{VolumeComparison, ranking};
use serde::Serialize;

use crate::document;

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.compare/1";

#[derive(Serialize)]
struct CompareDocument<'a> {
    schema: &'static str,
    /// The source that the others are compared with, by its letter.
    base: &'static str,
    #[serde(flatten)]
    comparison: &'a VolumeComparison,
    /// By which rule the ranking is made.
    ranking_rule: &'static str,
    /// A condition under which the comparison fails holds.
    failed: bool,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(comparison: &VolumeComparison, out: &mut dyn Write) -> io::Result<()> {
    let document = CompareDocument {
        schema: SCHEMA,
        base: LABELS[comparison.base],
        comparison,
        ranking_rule: ranking::RULE,
        failed: comparison.is_failed(),
    };
    document::write(&document, out)
}
