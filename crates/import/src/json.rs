//! Finds a JSON document among other lines, and reads its members.

use std::ops::Range;

use fathom_record::import::{Figure, FigureNumber};
use serde_json::{Deserializer, Value};

use crate::ImportError;

/// A document in a text.
pub(crate) struct FoundDocument {
    /// Its bytes.
    pub range: Range<usize>,
    /// The line of its beginning.
    pub line: u64,
    pub value: Value,
}

/// The beginning of a document that cannot be parsed.
pub(crate) struct BrokenDocument {
    pub start: usize,
    pub error: ImportError,
}

/// The documents of a text, whatever stands before or after them: each begins a line.
pub(crate) fn documents(text: &str) -> Vec<Result<FoundDocument, BrokenDocument>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 0);
    let mut end = 0;
    for text_line in text.split_inclusive('\n') {
        line += 1;
        let start = at + text_line.len() - text_line.trim_start().len();
        at += text_line.len();
        if start < end || !text_line.trim_start().starts_with(['{', '[']) {
            continue;
        }
        let mut documents = Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match documents.next() {
            Some(Ok(value)) => {
                end = start + documents.byte_offset();
                found.push(Ok(FoundDocument { range: start..end, line, value }));
            }
            Some(Err(error)) => {
                let why = format!("the JSON document is cut off or damaged: {error}");
                let hint = "import the whole output, from the first brace to the last";
                let error = ImportError::new(line + error.line() as u64 - 1, why, hint);
                found.push(Err(BrokenDocument { start, error }));
            }
            None => {}
        }
    }
    found
}

/// The last document of `text` that `accepts`.
pub(crate) fn last_document(text: &str, accepts: impl Fn(&Value) -> bool) -> Result<Value, ImportError> {
    let (mut last, mut broken) = (None, None);
    for found in documents(text) {
        match found {
            Ok(found) if accepts(&found.value) => last = Some(found.value),
            Ok(_) => {}
            Err(found) => broken = broken.or(Some(found.error)),
        }
    }
    last.ok_or_else(|| broken.unwrap_or_else(|| ImportError::unknown(text)))
}

/// How exactly numbers are printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonDigits {
    /// Base units of one unit of the number.
    pub scale: f64,
    /// Resolution of whole numbers, in the unit of the number.
    pub whole: f64,
    /// Resolution of others.
    pub real: f64,
}

impl JsonDigits {
    /// Counts.
    pub const EXACT: JsonDigits = JsonDigits { scale: 1.0, whole: 0.0, real: 5e-7 };

    /// The figure in a member; `None` where it is no number.
    pub fn figure<T: FigureNumber>(self, object: &Value, key: &str) -> Option<Figure<T>> {
        let number = &object[key];
        let resolution = if number.is_f64() { self.real } else { self.whole };
        Figure::printed(number.as_f64()? * self.scale, resolution * self.scale)
    }
}

/// A text member, empty where there is none.
pub(crate) fn text(object: &Value, key: &str) -> String {
    object[key].as_str().unwrap_or_default().to_owned()
}
