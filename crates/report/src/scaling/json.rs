//! The document of scaling: `fathom.scaling/1`.

use std::io::{self, Write};

use fathom_analysis::scaling::Scaling;
use serde_json::json;

use crate::document::{self, object};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.scaling/1";

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(scaling: &Scaling, target: &str, out: &mut dyn Write) -> io::Result<()> {
    document::write(&object([json!({ "schema": SCHEMA, "target": target }), json!(scaling)]), out)
}
