//! JSON Lines: the values behind a report, one object for each row, under the names of the CSV columns. For log pipelines, which
//! take a line at a time.

use std::io::{self, Write};

use serde::Serializer as _;
use serde_json::{Serializer, Value};

use crate::TextWriter;
use crate::view::{Cell, CellValue, Column, Row, View};

/// Writes the data of `view`. Cells without content are left out.
///
/// # Errors
/// Those of `out`.
pub fn render(view: &View, out: &mut TextWriter) -> io::Result<()> {
    let mut out = out.json();
    view.data.rows.iter().try_for_each(|row| writeln!(out, "{}", object(&view.data.columns, row)))
}

/// One row as an object, in the order of the columns, which a `Map` would not keep.
fn object(columns: &[Column], row: &Row) -> String {
    let named = columns.iter().zip(&row.cells).filter(|(column, _)| !column.id.is_empty());
    let fields = named.filter_map(|(column, cell)| Some((column.id, value(cell)?)));
    let mut text = Vec::new();
    // Neither a vector nor a value of these kinds refuses anything.
    let _ = Serializer::new(&mut text).collect_map(fields);
    String::from_utf8(text).unwrap_or_default()
}

fn value(cell: &Cell) -> Option<Value> {
    match cell.value {
        Some(CellValue::Integer(value)) => Some(value.into()),
        // JSON has no infinity.
        Some(CellValue::Real(value)) => value.is_finite().then(|| value.into()),
        None => (!cell.text.is_empty()).then(|| cell.text.as_str().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_writer::text;
    use crate::view::{Column, Row, Table};

    #[test]
    fn each_row_is_one_object_with_the_csv_columns_as_keys() {
        let columns = [Column::left("test"), Column::left("").id(""), Column::right("p99").id("lat_p99_ns")];
        let row = |name: &str, cell: Cell| Row::new([name.into(), "x".into(), cell]);
        let rows = [
            row("a \"b\"\nc", Cell::latency(1_440_000)),
            row("d", Cell::default()),
            row("e", Cell::iops(0.5)),
            row("f", Cell::real(f64::INFINITY, "-")),
        ];
        let view = View { data: Table::new(columns, rows), ..View::default() };
        assert_eq!(
            text(|out| render(&view, out)).expect("writing to memory"),
            "{\"test\":\"a \\\"b\\\"\\nc\",\"lat_p99_ns\":1440000}\n{\"test\":\"d\"}\n{\"test\":\"e\",\"lat_p99_ns\":0.5}\n{\"test\":\"f\"}\n"
        );
    }
}
