//! The document of `compare --json`: `fathom.compare/1`.

use std::io::{self, Write};

use fathom_analysis::compare::source::LABELS;
use fathom_analysis::compare::{VolumeComparison, ranking};
use serde_json::json;

use crate::document::{self, object};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.compare/1";

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(comparison: &VolumeComparison, out: &mut dyn Write) -> io::Result<()> {
    let head = json!({ "schema": SCHEMA, "verdict": comparison.verdict, "base": LABELS[comparison.base] });
    let rest = json!({ "ranking_rule": ranking::RULE, "failed": comparison.is_failed() });
    document::write(&object([head, json!(comparison), rest]), out)
}
