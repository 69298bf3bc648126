//! The rows of a run as its tests end: the first part of its report. What stands below them follows at the end.

use std::io;

use fathom_analysis::Analysis;
use fathom_model::units::UnitSystem;
use fathom_record::{RunHeader, RunRecord, TestRecord};

use crate::formats::text::{TableStream, render_head};
use crate::formats::{Format, csv, jsonl};
use crate::view::{Table, View};
use crate::{Style, TextWriter, run_view, text_writer};

/// What the rows of an activity are made of.
#[derive(Clone, Copy, Debug)]
pub struct RowSource {
    /// The table of a run, or of the outline of one: a row for each test that has one.
    pub(crate) table: fn(&RunHeader, &[TestRecord]) -> Table,
    /// The values of a run; `None` where they are not a row for each test in their order.
    pub(crate) data: Option<fn(&RunRecord) -> Table>,
    /// The units of a run, where the run determines them.
    pub(crate) units: fn(&RunRecord) -> Option<UnitSystem>,
    /// What stands below the rows; the fio command of each test where that is asked for.
    pub(crate) below: fn(&Analysis<'_>, bool) -> View,
    /// Rows are named by the titles of their tests, else by their ids.
    pub has_titles: bool,
}

/// Writes a row for each test that has ended.
#[derive(Debug)]
pub struct StreamedRows {
    source: RowSource,
    header: RunHeader,
    format: Format,
    table: TableStream,
    units: Option<UnitSystem>,
}

impl StreamedRows {
    /// Writes what stands above the rows: the head of the report for `header`, and those of the columns. `outline` has the tests that
    /// will run, as far as they are known. `None` for a format whose documents have a beginning and an end.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(
        source: RowSource,
        header: &RunHeader,
        outline: &RunRecord,
        style: &Style,
        format: Format,
        out: &mut TextWriter,
    ) -> io::Result<Option<StreamedRows>> {
        let has_rows = match format {
            Format::Json | Format::Markdown => false,
            Format::Csv | Format::Jsonl => source.data.is_some(),
            Format::Text => true,
        };
        if !has_rows {
            return Ok(None);
        }
        let run = RunRecord { header: header.clone(), ..RunRecord::default() };
        let units = style.units.or((source.units)(&run));
        let mut planned = (source.table)(header, &outline.tests);
        units.into_iter().for_each(|system| planned.set_units(system));
        let table = TableStream::new(&planned, style);
        let rows = StreamedRows { source, header: header.clone(), format, table, units };
        match format {
            Format::Text => {
                let view = View { units, ..run_view::of_run(&run) };
                let view = view.in_units_of(style);
                view.head.iter().try_for_each(|head| render_head(head, style, out))?;
                rows.table.head(out)?;
            }
            Format::Csv => csv::render(&rows.values(Vec::new()), out)?,
            _ => {}
        }
        Ok(Some(rows))
    }

    /// The values of these tests.
    fn values(&self, tests: Vec<TestRecord>) -> View {
        let run = RunRecord { header: self.header.clone(), tests, ..RunRecord::default() };
        let data = self.source.data.map(|data| data(&run)).unwrap_or_default();
        View { data, ..View::default() }
    }

    /// Writes the row of `test`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn row(&self, test: &TestRecord, out: &mut TextWriter) -> io::Result<()> {
        match self.format {
            Format::Csv => {
                let values = self.values(vec![test.clone()]);
                let lines = text_writer::text(|out| csv::render(&values, out))?;
                let mut out = out.verbatim();
                lines.lines().skip(1).try_for_each(|line| writeln!(out, "{line}"))
            }
            Format::Jsonl => jsonl::render(&self.values(vec![test.clone()]), out),
            _ => {
                let mut table = (self.source.table)(&self.header, std::slice::from_ref(test));
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
        let below = (self.source.below)(&Analysis::of(record), style.show_fio);
        crate::formats::text::render(&below, style, out)
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::{Activity, SweepActivity, TestStatus};

    use super::*;

    #[test]
    fn a_row_is_written_as_it_comes_and_not_again_below() {
        let activities = [
            (crate::sweep::ROWS, Activity::Sweep(SweepActivity::default()), "randread-4k-d8"),
            (crate::surface::ROWS, Activity::Surface, "point-0"),
        ];
        for (source, activity, id) in activities {
            let header = RunHeader { activity, ..RunHeader::default() };
            let status = TestStatus::Failed;
            let (id, title) = (id.to_owned(), id.to_owned());
            let test = TestRecord { id: id.clone(), title, status, ..TestRecord::default() };
            let record =
                RunRecord { header: header.clone(), tests: vec![test.clone()], ..Default::default() };
            let (style, outline) = (Style { width: 80, ..Style::default() }, RunRecord::default());
            let mut rows = None;
            let head = text_writer::text(|out| {
                rows = StreamedRows::begin(source, &header, &outline, &style, Format::Text, out)?;
                Ok(())
            });
            let rows = rows.expect("text has rows");
            let row = text_writer::text(|out| rows.row(&test, out)).expect("writing to memory");
            assert!(row.contains(&id) && row.contains("failed"), "{row}");
            let below =
                text_writer::text(|out| rows.finish(&record, &style, out)).expect("writing to memory");
            let table = (source.table)(&header, &record.tests);
            let whole = text_writer::text(|out| {
                let mut view = run_view::of_run(&record);
                view.push("", [crate::view::Block::Table(table)]);
                crate::formats::text::render(&view, &style, out)
            });
            let (head, whole) = (head.expect("writing to memory"), whole.expect("writing to memory"));
            assert_eq!(format!("{head}{row}"), whole);
            assert!(!below.contains(&row), "{below}");
        }
    }
}
