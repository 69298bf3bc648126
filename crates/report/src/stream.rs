//! The rows of a run as its tests end: the values as they become known, and in text what a reader sees while it goes on.

use std::io;

use fathom_model::units::UnitSystem;
use fathom_record::{RunHeader, RunRecord, TestRecord};

use crate::formats::text::TableStream;
use crate::formats::{Format, csv, jsonl};
use crate::view::{Table, View};
use crate::{Style, TextWriter, text_writer};

/// What the rows of an activity are made of.
#[derive(Clone, Copy, Debug)]
pub struct RowSource {
    /// The table of a run, or of the outline of one: a row for each test that has one.
    pub(crate) table: fn(&RunHeader, &[TestRecord]) -> Table,
    /// The values of a run; `None` where they are not a row for each test in their order.
    pub(crate) data: Option<fn(&RunRecord) -> Table>,
    /// The units of a run, where the run determines them.
    pub(crate) units: fn(&RunRecord) -> Option<UnitSystem>,
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
    /// Writes the heads of the columns. `outline` has the tests that will run, as far as they are known. `None` for a format whose documents
    /// have a beginning and an end.
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
            Format::Text => rows.table.head(out)?,
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
}

#[cfg(test)]
mod tests {
    use fathom_record::{Activity, SweepActivity, TestStatus};

    use super::*;

    #[test]
    fn rows_that_come_one_by_one_are_those_of_the_whole_table() {
        let activities = [
            (crate::sweep::ROWS, Activity::Sweep(SweepActivity::default()), "randread-4k-d8"),
            (crate::surface::ROWS, Activity::Surface, "point-0"),
        ];
        for (source, activity, id) in activities {
            let header = RunHeader { activity, ..RunHeader::default() };
            let status = TestStatus::Failed;
            let (id, title) = (id.to_owned(), id.to_owned());
            let test = TestRecord { id: id.clone(), title, status, ..TestRecord::default() };
            let (style, outline) = (Style { width: 80, ..Style::default() }, RunRecord::default());
            let streamed = text_writer::text(|out| {
                let rows = StreamedRows::begin(source, &header, &outline, &style, Format::Text, out)?;
                rows.expect("text has rows").row(&test, out)
            });
            let whole = text_writer::text(|out| {
                let mut view = View::default();
                view.push(
                    "",
                    [crate::view::Block::Table((source.table)(&header, std::slice::from_ref(&test)))],
                );
                crate::formats::text::render(&view, &style, out)
            });
            assert_eq!(streamed.expect("writing to memory"), whole.expect("writing to memory"));
        }
    }
}
