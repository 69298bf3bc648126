//! Comma-separated values (RFC 4180): the values behind a report, one row each, under the names and units of their columns.

use std::io;

use csv::Writer;
use fathom_model::text::defused;

use crate::TextWriter;
use crate::view::{Cell, View};

/// Writes the data of `view` under its head.
///
/// # Errors
/// Those of `out`.
pub fn render(view: &View, out: &mut TextWriter) -> io::Result<()> {
    let columns: Vec<usize> =
        (0..view.data.columns.len()).filter(|&index| !view.data.columns[index].id.is_empty()).collect();
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(|&index| view.data.columns[index].id))?;
    for row in &view.data.rows {
        let cell = |&index: &usize| row.cells.get(index).map(inert).unwrap_or_default();
        // An end of line in a name would be read as one more row by many programs.
        writer.write_record(columns.iter().map(cell).map(|text| defused(&text).into_owned()))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    let text = String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let mut out = out.verbatim();
    text.lines().try_for_each(|line| writeln!(out, "{line}"))
}

/// The value; a text that a spreadsheet would compute begins with an apostrophe.
fn inert(cell: &Cell) -> String {
    let raw = cell.raw();
    let is_formula =
        cell.value.is_none() && raw.starts_with(['=', '+', '-', '@']) && raw.parse::<f64>().is_err();
    if is_formula { format!("'{raw}") } else { raw }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_writer::text;
    use crate::view::{Column, Row, Table};

    #[test]
    fn values_are_raw_and_names_are_quoted_where_they_must() {
        let columns = [Column::left("test"), Column::left("").id(""), Column::right("p99").id("lat_p99_ns")];
        let row = |name: &str, cell: Cell| Row::new([name.into(), "x".into(), cell]);
        let rows = [row("a, \"b\"\nc", Cell::latency(1_440_000)), row("d", Cell::default())];
        let view = View { data: Table::new(columns, rows), ..View::default() };
        assert_eq!(
            text(|out| render(&view, out)).expect("writing to memory"),
            "test,lat_p99_ns\n\"a, \"\"b\"\"\\x0ac\",1440000\nd,\n"
        );
    }

    #[test]
    fn no_text_is_a_formula() {
        let formulas = ["=1+1", "@SUM(A1)", "+cmd", "-1", "a=b"].map(|text| Row::new([text]));
        let view = View { data: Table::new([Column::left("test")], formulas), ..View::default() };
        assert_eq!(
            text(|out| render(&view, out)).expect("writing to memory"),
            "test\n'=1+1\n'@SUM(A1)\n'+cmd\n-1\na=b\n"
        );
    }
}
