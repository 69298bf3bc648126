//! The rows of a bench as its tests end: the first part of its report. [`view_below_rows`](super::view_below_rows) is the rest.

use std::io;
use std::slice;

use fathom_model::units::UnitSystem;
use fathom_record::{RunHeader, RunRecord, TestRecord, TestSummary};

use super::expectations;
use super::view::{columns, data, row, table};
use crate::formats::text::{TableStream, render_head};
use crate::formats::{Format, csv, jsonl};
use crate::view::{Table, View};
use crate::{Style, TextWriter, run_view, text_writer};

/// Writes a row for each test that has ended.
#[derive(Debug)]
pub struct BenchRows {
    format: Format,
    table: TableStream,
    units: Option<UnitSystem>,
    columns: usize,
}

impl BenchRows {
    /// Writes what stands above the rows: the head of the report for `header`, and those of the columns. `outline` has the tests that
    /// will run. `None` for a format whose documents have a beginning and an end.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(
        header: &RunHeader,
        outline: &RunRecord,
        style: &Style,
        format: Format,
        out: &mut TextWriter,
    ) -> io::Result<Option<BenchRows>> {
        if matches!(format, Format::Json | Format::Markdown) {
            return Ok(None);
        }
        let run = RunRecord { header: header.clone(), ..RunRecord::default() };
        let units = style.units.or(expectations::units(&run));
        let summaries: Vec<TestSummary> = outline.tests.iter().map(TestSummary::new).collect();
        let mut planned = table(header, &outline.tests, &summaries);
        units.into_iter().for_each(|system| planned.set_units(system));
        let table = TableStream::new(&planned, style);
        let rows = BenchRows { format, table, units, columns: columns(header) };
        match format {
            Format::Text => {
                let view = View { units, ..run_view::of_run(&run) };
                let view = view.in_units_of(style);
                view.head.iter().try_for_each(|head| render_head(head, style, out))?;
                rows.table.head(out)?;
            }
            Format::Csv => csv::render(&View { data: data(&run, &[]), ..View::default() }, out)?,
            _ => {}
        }
        Ok(Some(rows))
    }

    /// Writes the row of `test`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn row(&self, test: &TestRecord, out: &mut TextWriter) -> io::Result<()> {
        let summary = TestSummary::new(test);
        let values = || {
            let run = RunRecord { tests: vec![test.clone()], ..RunRecord::default() };
            View { data: data(&run, slice::from_ref(&summary)), ..View::default() }
        };
        match self.format {
            Format::Csv => {
                let lines = text_writer::text(|out| csv::render(&values(), out))?;
                let mut out = out.verbatim();
                lines.lines().skip(1).try_for_each(|line| writeln!(out, "{line}"))
            }
            Format::Jsonl => jsonl::render(&values(), out),
            _ => {
                let mut table = Table::new([], [row(test, &summary, self.columns)]);
                self.units.into_iter().for_each(|system| table.set_units(system));
                table.rows.iter().try_for_each(|row| self.table.row(row, out))
            }
        }
    }

    /// Writes what stands below the rows.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(&self, record: &RunRecord, style: &Style, out: &mut TextWriter) -> io::Result<()> {
        if self.format != Format::Text {
            return Ok(());
        }
        writeln!(out)?;
        crate::formats::text::render(&super::view_below_rows(record, style.show_fio), style, out)
    }
}
