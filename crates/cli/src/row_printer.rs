//! Prints the row of each test of a run as it ends, on a terminal as in a pipe.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use fathom_assess::MeasurementStep;
use fathom_record::{RunHeader, RunRecord, TestRecord};
use fathom_report::formats::Format;
use fathom_report::{RowSource, StreamedRows, Style, TextWriter};

use crate::commands::format_arguments::FormatArguments;
use crate::output;

/// The rows that have been printed.
#[derive(Clone)]
pub struct RowPrinter(Rc<RefCell<PrintedRows>>);

struct PrintedRows {
    source: RowSource,
    outline: RunRecord,
    style: Style,
    format: Format,
    /// `None` before the first, and where the format has no rows of its own.
    rows: Option<StreamedRows>,
    count: usize,
    /// Nothing is printed.
    is_silent: bool,
}

impl RowPrinter {
    /// Rows of the tests in `outline`, in this form.
    pub fn new(source: RowSource, outline: RunRecord, form: &FormatArguments) -> RowPrinter {
        let (style, format) = (form.style(), form.format());
        RowPrinter(Rc::new(RefCell::new(PrintedRows {
            source,
            outline,
            style,
            format,
            rows: None,
            count: 0,
            is_silent: false,
        })))
    }

    /// Prints nothing if `is_silent`: the report of many processes has rows of all of them.
    pub fn silent_if(self, is_silent: bool) -> RowPrinter {
        self.0.borrow_mut().is_silent = is_silent;
        self
    }

    /// The name that the row of `step` has.
    pub fn name<'a>(&self, step: &'a MeasurementStep) -> &'a str {
        if self.0.borrow().source.has_titles { &step.title } else { &step.id }
    }

    /// Prints what stands above the rows. What cannot be written fails again at the end, and is reported then.
    pub fn begin(&self, header: &RunHeader) {
        let mut printed = self.0.borrow_mut();
        if printed.is_silent {
            return;
        }
        let mut rows = None;
        let _ = output::print(|out| {
            let source = printed.source;
            rows =
                StreamedRows::begin(source, header, &printed.outline, &printed.style, printed.format, out)?;
            Ok(())
        });
        printed.rows = rows;
    }

    /// Prints the row of `test`.
    pub fn row(&self, test: &TestRecord) {
        let mut printed = self.0.borrow_mut();
        let Some(rows) = &printed.rows else { return };
        let _ = output::print(|out| rows.row(test, out));
        printed.count += 1;
    }

    /// Writes the rest of the report of `record`; false where rows are missing, so that it has to be written as a whole.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(&self, record: &RunRecord, style: &Style, out: &mut TextWriter) -> io::Result<bool> {
        let printed = self.0.borrow();
        match &printed.rows {
            Some(rows) if printed.count == record.tests.len() && printed.count > 0 => {
                rows.finish(record, style, out).map(|()| true)
            }
            _ => Ok(false),
        }
    }
}
