//! How JSON documents are written: indented, with an end of line behind them.

use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde_json::Value;

/// Bytes that are passed on at a time.
const PASSED_ON: usize = 1 << 15;

/// Writes `document`.
///
/// # Errors
/// Those of `out`.
pub fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    // The serializer writes each bracket and name by itself, and `out` looks at the characters of each piece. Whole pieces are
    // passed on, and so whole characters.
    let mut pieces = BufWriter::with_capacity(PASSED_ON, out);
    // One type of output for all documents, or each kind of document would have code of its own for this one.
    let taker: &mut dyn Write = &mut pieces;
    serde_json::to_writer_pretty(&mut *taker, document)?;
    pieces.write_all(b"\n")?;
    pieces.into_inner().map(drop).map_err(io::IntoInnerError::into_error)
}

/// One object with the members of `parts`, in their order. What is no object has none.
pub fn object(parts: impl IntoIterator<Item = Value>) -> Value {
    let members = |part| if let Value::Object(members) = part { members } else { Default::default() };
    Value::Object(parts.into_iter().flat_map(members).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_writer;

    /// A character of several bytes at every place, and one that a terminal would obey.
    #[test]
    fn long_documents_keep_their_characters() {
        let texts: Vec<String> = (0..20_000).map(|at| format!("{}µ\u{9b}é", "x".repeat(at % 7))).collect();
        let written = text_writer::text(|out| write(&texts, &mut out.json())).unwrap();
        assert!(written.len() > 4 * PASSED_ON && !written.contains('\u{9b}'), "{}", written.len());
        assert_eq!(serde_json::from_str::<Vec<String>>(&written).unwrap(), texts);
    }
}
