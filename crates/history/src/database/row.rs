//! Values of statements, and the rows that they return.

use fathom_record::RecordError;
use fathom_sys::libpq::{Parameter, PqCell, PqRows};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use serde::de::Error as _;

use crate::RunId;

/// A value of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Int(i64),
    Real(Option<f64>),
    Text(Option<&'a str>),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<Option<f64>> for Value<'_> {
    fn from(number: Option<f64>) -> Self {
        Value::Real(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Some(text))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Value::Text(text)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Real(number) => number.map_or(ValueRef::Null, ValueRef::Real),
            Value::Text(text) => text.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes())),
        }))
    }
}

impl Value<'_> {
    pub(super) fn to_parameter(self) -> Parameter {
        match self {
            Value::Int(number) => Parameter::Int(number),
            Value::Real(number) => Parameter::Real(number),
            // Servers store no NUL. Records have none: their JSON escapes it.
            Value::Text(text) => Parameter::Text(text.map(|text| text.replace('\0', "\u{2400}"))),
        }
    }
}

/// A row of an answer.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Server(&'a PqRows, usize),
}

/// A value of a row.
enum Cell<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a [u8]),
    Other,
}

impl Row<'_> {
    fn cell(&self, index: usize) -> Cell<'_> {
        match self {
            Row::Sqlite(row) => match row.get_ref(index) {
                Ok(ValueRef::Null) => Cell::Null,
                Ok(ValueRef::Integer(number)) => Cell::Int(number),
                Ok(ValueRef::Real(number)) => Cell::Real(number),
                Ok(ValueRef::Text(text)) => Cell::Text(text),
                Ok(ValueRef::Blob(_)) | Err(_) => Cell::Other,
            },
            Row::Server(rows, row) => match rows.cell(*row, index) {
                PqCell::Null => Cell::Null,
                PqCell::Int(number) => Cell::Int(number),
                PqCell::Real(number) => Cell::Real(number),
                PqCell::Text(text) => Cell::Text(text),
                PqCell::Other => Cell::Other,
            },
        }
    }

    /// The run whose number is in a column.
    pub(crate) fn run(&self, index: usize) -> RunId {
        RunId(self.int(index).unwrap_or_default())
    }

    /// The integer in a column.
    pub(crate) fn int(&self, index: usize) -> Option<i64> {
        match self.cell(index) {
            Cell::Int(number) => Some(number),
            _ => None,
        }
    }

    /// The number in a column.
    pub(crate) fn real(&self, index: usize) -> Option<f64> {
        match self.cell(index) {
            Cell::Int(number) => Some(number as f64),
            Cell::Real(number) => Some(number),
            _ => None,
        }
    }

    /// The text in a column.
    pub(crate) fn text(&self, index: usize) -> Option<&str> {
        match self.cell(index) {
            Cell::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// The text in a column, which is the `name` of a run; anything else gives an error.
    pub(crate) fn part(&self, index: usize, name: &str) -> Result<&str, RecordError> {
        let wrong = |what: &str| {
            RecordError::Malformed(serde_json::Error::custom(format!("the {name} is {what}, not a text")))
        };
        match self.cell(index) {
            Cell::Text(text) => std::str::from_utf8(text).map_err(|_| wrong("no valid UTF-8")),
            Cell::Null => Err(wrong("missing")),
            Cell::Int(_) | Cell::Real(_) => Err(wrong("a number")),
            Cell::Other => Err(wrong("of another type")),
        }
    }
}
