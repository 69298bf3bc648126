//! Finds a JSON document among other lines, and reads its members.

use fathom_record::import::{Figure, FigureNumber};
use serde_json::{Deserializer, Value};

use crate::ImportError;

/// The last document of `text` that `accepts`, whatever stands before or after it; of programs that print one for each
/// interval, the last is the result.
pub(crate) fn last_document(
    text: &str,
    opening: char,
    accepts: impl Fn(&Value) -> bool,
) -> Result<Value, ImportError> {
    let (mut found, mut broken) = (None, None);
    let mut from = 0;
    while let Some(start) = text[from..].find(opening).map(|at| at + from) {
        from = start + 1;
        // A document begins a line.
        if !text[..start].lines().next_back().unwrap_or_default().trim().is_empty()
            && !text[..start].ends_with('\n')
        {
            continue;
        }
        let mut documents = Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match documents.next() {
            Some(Ok(document)) => {
                from = start + documents.byte_offset();
                if accepts(&document) {
                    found = Some(document);
                }
            }
            Some(Err(error)) if broken.is_none() => {
                let line = text[..start].matches('\n').count() + error.line();
                broken = Some((line as u64, error));
            }
            _ => {}
        }
    }
    found.ok_or_else(|| match broken {
        Some((line, error)) => ImportError::new(
            line,
            format!("the JSON document is cut off or damaged: {error}"),
            "import the whole output, from the first brace to the last",
        ),
        None => ImportError::unknown(text),
    })
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
