//! JSON in fio's layout: two spaces per level, ` : ` after keys, six decimals, the outer braces alone on their lines.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Writes `value` as a document of its own.
pub(crate) fn write_document(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, FioLayout::default()))?;
    out.write_all(b"\n")
}

#[derive(Default)]
struct FioLayout {
    level: usize,
}

impl FioLayout {
    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level += 1;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level -= 1;
        self.next(out, true)?;
        out.write_all(bracket)
    }

    /// The end of the line before a member, or before the end of them all.
    fn next<W: ?Sized + Write>(&self, out: &mut W, is_first: bool) -> io::Result<()> {
        write!(out, "{}\n{:2$}", if is_first { "" } else { "," }, "", 2 * self.level)
    }
}

impl Formatter for FioLayout {
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        write!(out, "{value:.6}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.next(out, is_first)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.next(out, is_first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b" : ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn layout_is_fios() {
        let value = json!({
            "text": "a \"b\" \\ é\n",
            "int": -1,
            "none": None::<u64>,
            "bool": true,
            "float": 0.5,
            "inner": { "key": 1u64 },
            "list": [1u64, { "k": 2.0 }],
            "empty": {},
        });
        let mut out = Vec::new();
        write_document(&value, &mut out).expect("writing to memory");
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
  ],
  "empty" : {
  }
}
"#;
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
