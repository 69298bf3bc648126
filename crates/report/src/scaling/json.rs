//! The document of scaling: `fathom.scaling/1`.

use std::io::{self, Write};

use fathom_analysis::scaling::Scaling;
use serde::Serialize;

use crate::document;

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.scaling/1";

#[derive(Serialize)]
struct ScalingDocument<'a> {
    schema: &'static str,
    target: &'a str,
    #[serde(flatten)]
    scaling: &'a Scaling,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(scaling: &Scaling, target: &str, out: &mut dyn Write) -> io::Result<()> {
    document::write(&ScalingDocument { schema: SCHEMA, target, scaling }, out)
}
