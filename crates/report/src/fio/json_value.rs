//! JSON in fio's layout: two spaces per level, ` : ` after keys, six decimals, the outer braces alone on their lines.

use std::io::{self, Write};

/// A JSON value that keeps the order of its keys and tells integers from floats.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Object(Object),
}

/// Keys and values in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object(Vec<(String, Value)>);

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::Unsigned(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, T::into)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Value::Unsigned(value.into())
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Value::Int(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}

impl From<Object> for Value {
    fn from(value: Object) -> Self {
        Value::Object(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(value: Vec<Value>) -> Self {
        Value::List(value)
    }
}

impl Object {
    /// True where it has no key.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a key.
    pub(crate) fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.0.push((key.into(), value.into()));
    }

    /// An object of these pairs.
    pub(crate) fn of<K: Into<String>, V: Into<Value>>(pairs: impl IntoIterator<Item = (K, V)>) -> Object {
        Object(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }

    /// Writes the object as a document of its own.
    pub(crate) fn write_document(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write(out, 0)?;
        out.write_all(b"\n")
    }

    fn write(&self, out: &mut dyn Write, level: usize) -> io::Result<()> {
        let inner = 2 * (level + 1);
        write!(out, "{{")?;
        for (index, (key, value)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}\n{:inner$}{} : ", "", quoted(key))?;
            value.write(out, level + 1)?;
        }
        write!(out, "\n{:width$}}}", "", width = 2 * level)
    }
}

impl Value {
    fn write(&self, out: &mut dyn Write, level: usize) -> io::Result<()> {
        match self {
            Value::Null => write!(out, "null"),
            Value::Bool(value) => write!(out, "{value}"),
            Value::Int(value) => write!(out, "{value}"),
            Value::Unsigned(value) => write!(out, "{value}"),
            Value::Float(value) => write!(out, "{value:.6}"),
            Value::Text(text) => write!(out, "{}", quoted(text)),
            Value::Object(object) => object.write(out, level),
            Value::List(items) => {
                write!(out, "[")?;
                for (index, item) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(out, "{comma}\n{:inner$}", "", inner = 2 * (level + 1))?;
                    item.write(out, level + 1)?;
                }
                write!(out, "\n{:width$}]", "", width = 2 * level)
            }
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_fios() {
        let mut object = Object::default();
        object.set("text", "a \"b\" \\ é\n");
        object.set("int", -1);
        object.set("none", None::<u64>);
        object.set("bool", true);
        object.set("float", 0.5);
        object.set("inner", Object::of([("key", 1u64)]));
        object.set("list", vec![Value::from(1u64), Value::Object(Object::of([("k", 2.0)]))]);
        let mut out = Vec::new();
        object.write_document(&mut out).expect("writing to memory");
        let expected = r#"{
  "text" : "a \"b\" \\ é\n",
  "int" : -1,
  "none" : null,
  "bool" : true,
  "float" : 0.500000,
  "inner" : {
    "key" : 1
  },
  "list" : [
    1,
    {
      "k" : 2.000000
    }
  ]
}
"#;
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
