//! Figures of an identified volume as rows of a table.

use fathom_analysis::estimate::Estimate;
use fathom_analysis::identified::Figure;
use fathom_model::Nanos;
use fathom_model::units::{self, duration};

use crate::view::{Cell, Column, Row, decimal, iops_text};

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FigureScale {
    /// A number, or a rate whose unit stands elsewhere.
    Count,
    /// Bytes per second.
    Bandwidth,
    /// ns.
    Latency,
    /// Bytes, rounded.
    Size,
    /// Bytes, to the last one.
    ExactSize,
    /// s.
    Seconds,
    /// A fraction of one.
    Percent,
}

/// The columns of [`FigureScale::row`].
pub(super) const COLUMNS: [Column; 4] = [
    Column::left(""),
    Column::right("value"),
    Column::left("95 % interval"),
    Column::right("±%").dispensable(0),
];

impl FigureScale {
    /// With its unit.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            FigureScale::Count => iops_text(value),
            FigureScale::Bandwidth => format!("{} MiB/s", decimal(value / f64::from(1 << 20))),
            FigureScale::Latency => units::latency(value.max(0.0).round() as u64),
            FigureScale::Size if value < 10_240.0 => format!("{} B", units::grouped(value.round() as u64)),
            FigureScale::Size => units::bytes(value.round() as u64),
            FigureScale::ExactSize => exact_bytes(value.round() as u64),
            FigureScale::Seconds => duration(Nanos((value.max(0.0) * 1e9) as u64)),
            FigureScale::Percent => format!("{:.0} %", value * 100.0),
        }
    }

    /// Name, value, range, and half of the range in percent; a bound stands in place of the value.
    pub(super) fn row(self, name: impl Into<Cell>, figure: &Figure) -> Row {
        let (value, range, half) = match figure.estimate {
            Some(Estimate::Known { value, low, high }) if low == high => {
                (Cell::real(value, self.text(value)), "exact".to_owned(), Cell::default())
            }
            Some(Estimate::Known { value, low, high }) => {
                let half = (high - low) / 2.0 / value;
                let digits = if half < 0.009_95 { 2 } else { 1 };
                let half = Cell::real(half, format!("{:.digits$}", half * 100.0));
                let range = format!("{} to {}", self.text(low), self.text(high));
                (Cell::real(value, self.text(value)), range, half)
            }
            Some(Estimate::AtLeast(low)) => {
                (format!("at least {}", self.text(low)).into(), String::new(), Cell::default())
            }
            Some(Estimate::AtMost(high)) => {
                (format!("at most {}", self.text(high)).into(), String::new(), Cell::default())
            }
            None => ("unknown".into(), String::new(), Cell::default()),
        };
        Row::new([name.into(), value, range.into(), half])
    }
}

/// `256 KiB`, `40,960 B`.
pub(super) fn exact_bytes(bytes: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{} B", units::grouped(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_in_cells() {
        let check = |scale: FigureScale, figure: Figure, expected: [&str; 3]| {
            let row = scale.row("", &figure);
            let cells: Vec<&str> = row.cells[1..].iter().map(|cell| cell.text.as_str()).collect();
            assert_eq!(cells, expected);
        };
        check(FigureScale::Count, Figure::known(3000.0, 2990.0, 3010.0), ["3,000", "2,990 to 3,010", "0.33"]);
        let exact = |bytes: f64| Figure::known(bytes, bytes, bytes);
        check(FigureScale::ExactSize, exact(262_144.0), ["256 KiB", "exact", ""]);
        check(FigureScale::ExactSize, exact(3584.0), ["3,584 B", "exact", ""]);
        let bound = Figure::bound(Estimate::AtLeast(134_217_728.0), "hidden");
        check(FigureScale::Bandwidth, bound, ["at least 128.0 MiB/s", "", ""]);
        check(FigureScale::Latency, Figure::unknown("no time"), ["unknown", "", ""]);
        check(
            FigureScale::Size,
            Figure::known(44_739.0, 44_000.0, 45_000.0),
            ["43.7 KiB", "43.0 KiB to 43.9 KiB", "1.1"],
        );
    }
}
