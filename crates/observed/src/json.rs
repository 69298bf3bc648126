//! Values of JSON documents that know where they stand, so that an error names the field and its line.

use serde_json::{Deserializer, Value};

use crate::LoadError;
use crate::json_place::line_of;

/// A step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonStep {
    /// A member of an object.
    Key(String),
    /// An item of an array, from 0.
    Index(usize),
}

/// A value with the way to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonNode<'a> {
    value: &'a Value,
    step: BorrowedStep<'a>,
    parent: Option<&'a JsonNode<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum BorrowedStep<'a> {
    /// A document of the text, from 0.
    Document(usize),
    Key(&'a str),
    Index(usize),
}

/// A value that has no meaning.
#[derive(Clone, Debug)]
pub(crate) struct JsonFault {
    document: usize,
    path: Vec<JsonStep>,
    problem: String,
    hint: String,
}

/// The documents of a text, one after the other.
pub(crate) struct JsonText<'a> {
    text: &'a str,
    documents: Vec<(usize, Value)>,
}

const HINT: &str = "export it again, and import the whole output";

impl<'a> JsonText<'a> {
    /// Parses them.
    ///
    /// # Errors
    /// The text is no JSON; the error has the line.
    pub fn parse(text: &'a str) -> Result<JsonText<'a>, LoadError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut documents = Vec::new();
        let mut from = 0;
        while !text[from..].trim().is_empty() {
            let mut stream = Deserializer::from_str(&text[from..]).into_iter::<Value>();
            match stream.next() {
                Some(Ok(document)) => {
                    documents.push((from, document));
                    from += stream.byte_offset();
                }
                Some(Err(error)) => {
                    let line = text[..from].matches('\n').count() + error.line();
                    let problem = format!("the JSON document is cut off or damaged: {error}");
                    return Err(LoadError::new(line as u64, problem, HINT));
                }
                None => break,
            }
        }
        Ok(JsonText { text, documents })
    }

    /// The documents.
    pub fn roots(&self) -> impl Iterator<Item = JsonNode<'_>> {
        self.documents.iter().enumerate().map(|(index, (_, value))| JsonNode {
            value,
            step: BorrowedStep::Document(index),
            parent: None,
        })
    }

    /// The error of a fault in this text.
    pub fn error(&self, fault: &JsonFault) -> LoadError {
        let from = self.documents.get(fault.document).map_or(0, |(from, _)| *from);
        let before = self.text[..from].matches('\n').count() as u64;
        let line = line_of(&self.text[from..], &fault.path).map_or(0, |line| before + line);
        LoadError::new(line, fault.problem.clone(), fault.hint.clone()).in_field(field(&fault.path))
    }
}

/// A path as people write it: `hosts[0].rkB/s`.
fn field(path: &[JsonStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            JsonStep::Key(key) if text.is_empty() => text.push_str(key),
            JsonStep::Key(key) => text.push_str(&format!(".{key}")),
            JsonStep::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

impl<'a> JsonNode<'a> {
    /// The member `key`, unless it is absent or null.
    pub fn get<'b>(&'b self, key: &'b str) -> Option<JsonNode<'b>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(JsonNode { value, step: BorrowedStep::Key(key), parent: Some(self) })
    }

    /// The member `key`.
    ///
    /// # Errors
    /// The member is missing.
    pub fn need<'b>(&'b self, key: &'b str) -> Result<JsonNode<'b>, JsonFault> {
        self.get(key).ok_or_else(|| self.fault(format!("'{key}' is missing")))
    }

    /// The items of an array; none of another value.
    pub fn items<'b>(&'b self) -> impl Iterator<Item = JsonNode<'b>> {
        let items = self.value.as_array().into_iter().flatten();
        items.enumerate().map(move |(index, value)| JsonNode {
            value,
            step: BorrowedStep::Index(index),
            parent: Some(self),
        })
    }

    /// The items of the array `key`.
    ///
    /// # Errors
    /// The member is missing, or not an array.
    pub fn need_array<'b>(&'b self, key: &'b str) -> Result<JsonNode<'b>, JsonFault> {
        let array = self.need(key)?;
        if array.value.is_array() { Ok(array) } else { Err(array.fault("it is not an array")) }
    }

    /// Items of an array.
    pub fn len(&self) -> usize {
        self.value.as_array().map_or(0, Vec::len)
    }

    /// True for an array.
    pub fn is_array(&self) -> bool {
        self.value.is_array()
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    /// The text of the member `key`, empty where there is none.
    pub fn text_of(&self, key: &str) -> &'a str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text at the end of a way of members, empty where there is none.
    pub fn member_text(&self, way: &[&str]) -> &'a str {
        let end = way.iter().try_fold(self.value, |value, key| value.get(key));
        end.and_then(Value::as_str).unwrap_or_default()
    }

    /// A number, or a string that is one.
    ///
    /// # Errors
    /// It is neither.
    pub fn number(&self) -> Result<f64, JsonFault> {
        let number = match self.value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| self.fault(format!("{} is not a number", excerpt(self.value))))
    }

    /// The number of the member `key`; `None` where there is none.
    ///
    /// # Errors
    /// It is no number.
    pub fn number_of(&self, key: &str) -> Result<Option<f64>, JsonFault> {
        let value = self.value.get(key).filter(|value| !value.is_null());
        let Some(value) = value else { return Ok(None) };
        JsonNode { value, step: BorrowedStep::Key(key), parent: Some(self) }.number().map(Some)
    }

    /// This value has no meaning.
    pub fn fault(&self, problem: impl Into<String>) -> JsonFault {
        self.fault_with(problem, HINT)
    }

    /// The same with another remedy.
    pub fn fault_with(&self, problem: impl Into<String>, hint: impl Into<String>) -> JsonFault {
        let (mut path, mut node, mut document) = (Vec::new(), Some(self), 0);
        while let Some(JsonNode { step, parent, .. }) = node {
            match step {
                BorrowedStep::Document(index) => document = *index,
                BorrowedStep::Key(key) => path.push(JsonStep::Key((*key).to_owned())),
                BorrowedStep::Index(index) => path.push(JsonStep::Index(*index)),
            }
            node = *parent;
        }
        path.reverse();
        JsonFault { document, path, problem: problem.into(), hint: hint.into() }
    }

    /// The value as it stands in the document, shortened.
    pub fn excerpt(&self) -> String {
        excerpt(self.value)
    }
}

fn excerpt(value: &Value) -> String {
    const MOST: usize = 40;
    let text = match value {
        Value::String(text) => format!("'{text}'"),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_the_line_and_the_path() {
        let text = "{\"a\": 1}\n\n{\"b\": [1,\n  {\"c d\": \"x\",\n   \"e\": null}]}\n";
        let json = JsonText::parse(text).unwrap();
        let root = json.roots().nth(1).unwrap();
        let array = root.need_array("b").unwrap();
        let object = array.items().nth(1).unwrap();
        let fault = object.number_of("c d").unwrap_err();
        let error = json.error(&fault);
        assert_eq!(error.to_string(), "line 4: b[1].c d: 'x' is not a number");
        assert_eq!(object.number_of("e").unwrap(), None);
        assert_eq!(json.error(&object.need("f").unwrap_err()).to_string(), "line 4: b[1]: 'f' is missing");
        assert_eq!(array.items().next().unwrap().number().unwrap(), 1.0);
        assert!(root.need_array("x").is_err());
    }

    #[test]
    fn damaged_documents_are_refused_by_line() {
        let error = JsonText::parse("{\"a\": 1}\n{\"b\":\n").err().unwrap();
        assert!(error.to_string().starts_with("line 3: the JSON document is cut off"), "{error}");
    }
}
