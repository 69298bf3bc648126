//! How JSON documents are written: indented, with an end of line behind them.

use std::io::{self, Write};

use serde::Serialize;

/// Writes `document`.
///
/// # Errors
/// Those of `out`.
pub fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    out.write_all(b"\n")
}
