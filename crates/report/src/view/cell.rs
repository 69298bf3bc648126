//! A value with its unit, as a reader sees it and as a program reads it.

use fathom_model::Nanos;
use fathom_model::units::{self, UnitSystem};
use serde_json::Value;

/// Text, and the value behind it where there is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// As a reader sees it; the unit stands here or in the head of the column.
    pub text: String,
    /// In the base unit: requests per second, bytes per second, ns, bytes, or a fraction of one.
    pub value: Option<CellValue>,
    /// What the value measures, where its text depends on the units that were asked for.
    pub measure: CellMeasure,
}

/// Quantities whose text is in powers of 1024 unless other units are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellMeasure {
    /// Any other.
    #[default]
    Other,
    /// Bytes per second.
    Rate,
    /// Bytes.
    Amount,
}

/// A number as it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellValue {
    /// A count, bytes or ns.
    Integer(u64),
    /// A rate or a fraction.
    Real(f64),
}

impl Cell {
    /// A number shown as `text`.
    pub fn real(value: f64, text: impl Into<String>) -> Cell {
        Cell { text: text.into(), value: Some(CellValue::Real(value)), ..Cell::default() }
    }

    /// A whole number shown as `text`.
    pub fn integer(value: u64, text: impl Into<String>) -> Cell {
        Cell { text: text.into(), value: Some(CellValue::Integer(value)), ..Cell::default() }
    }

    /// A count: `1,024`.
    pub fn count(value: u64) -> Cell {
        Cell::integer(value, units::grouped(value))
    }

    /// Requests per second: `3,001`, `0.5`.
    pub fn iops(rate: f64) -> Cell {
        Cell::real(rate, iops_text(rate))
    }

    /// Bytes per second, in MiB/s: `11.7`.
    pub fn mebibytes(bytes_per_second: f64) -> Cell {
        let text = decimal(bytes_per_second / UnitSystem::Iec.mega());
        Cell { measure: CellMeasure::Rate, ..Cell::real(bytes_per_second, text) }
    }

    /// The same with its unit: `11.7 MiB/s`.
    pub fn rate(bytes_per_second: f64) -> Cell {
        let cell = Cell::mebibytes(bytes_per_second);
        Cell { text: format!("{} {}", cell.text, UnitSystem::Iec.rate_unit()), ..cell }
    }

    /// A latency in ns: `1.44 ms`.
    pub fn latency(ns: u64) -> Cell {
        Cell::integer(ns, units::latency(ns))
    }

    /// A mean latency in ns.
    pub fn mean_latency(ns: f64) -> Cell {
        Cell::real(ns, units::latency(ns.max(0.0) as u64))
    }

    /// A length of time in ns: `31 min 35 s`.
    pub fn duration(ns: u64) -> Cell {
        Cell::integer(ns, units::duration(Nanos(ns)))
    }

    /// Bytes: `50 GiB`.
    pub fn bytes(bytes: u64) -> Cell {
        Cell { measure: CellMeasure::Amount, ..Cell::integer(bytes, units::bytes(bytes)) }
    }

    /// A fraction of one in percent: `0.4 %`, `1,819 %`.
    pub fn percent(fraction: f64) -> Cell {
        let percent = fraction * 100.0;
        let text = match percent.round() {
            whole if whole >= 1000.0 => units::grouped(whole as u64),
            _ => format!("{percent:.1}"),
        };
        Cell::real(fraction, format!("{text} %"))
    }

    /// An amount of money: `1,234.57`.
    pub fn money(amount: f64) -> Cell {
        let cents = (amount * 100.0).round() as u64;
        Cell::real(amount, format!("{}.{:02}", units::grouped(cents / 100), cents % 100))
    }

    /// The value as CSV and other programs read it; the text where there is none.
    pub fn raw(&self) -> String {
        match self.value {
            Some(CellValue::Integer(value)) => value.to_string(),
            Some(CellValue::Real(value)) => value.to_string(),
            None => self.text.clone(),
        }
    }

    /// The value as a number.
    pub fn number(&self) -> Option<f64> {
        self.value.map(|value| match value {
            CellValue::Integer(value) => value as f64,
            CellValue::Real(value) => value,
        })
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, ..Cell::default() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        text.to_owned().into()
    }
}

impl From<&Value> for Cell {
    fn from(value: &Value) -> Cell {
        match (value, value.as_u64(), value.as_f64()) {
            (_, Some(count), _) => Cell::count(count),
            (_, None, Some(real)) => Cell::real(real, real.to_string()),
            (Value::String(text), ..) => text.as_str().into(),
            (Value::Bool(yes), ..) => yes.to_string().into(),
            (Value::Array(texts), ..) => {
                texts.iter().filter_map(Value::as_str).collect::<Vec<&str>>().join("; ").into()
            }
            _ => Cell::default(),
        }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Cell {
        cell.map(Into::into).unwrap_or_default()
    }
}

/// A rate: whole from 10 on, with one decimal below.
pub(crate) fn iops_text(rate: f64) -> String {
    if rate < 9.95 { format!("{rate:.1}") } else { units::grouped(rate.round() as u64) }
}

/// Whole from 1000 on, with one decimal below, and with three below a tenth.
pub(crate) fn decimal(value: f64) -> String {
    match value {
        999.95.. => units::grouped(value.round() as u64),
        0.0005..0.1 => format!("{value:.3}"),
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_the_value_behind_their_text() {
        for (cell, text, raw) in [
            (Cell::iops(3000.6), "3,001", "3000.6"),
            (Cell::iops(0.5), "0.5", "0.5"),
            (Cell::mebibytes(12_288_000.0), "11.7", "12288000"),
            (Cell::count(1_024), "1,024", "1024"),
            (Cell::bytes(50 << 30), "50.0 GiB", "53687091200"),
            (Cell::percent(0.004), "0.4 %", "0.004"),
            (Cell::money(1234.567), "1,234.57", "1234.567"),
            (Cell::money(0.999), "1.00", "0.999"),
            (Cell::from("a"), "a", "a"),
            (Cell::from(None::<Cell>), "", ""),
        ] {
            assert_eq!((cell.text.as_str(), cell.raw().as_str()), (text, raw));
        }
    }
}
