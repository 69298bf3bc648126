//! Prints the row of each test of a bench as it ends, on a terminal as in a pipe.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use fathom_record::{RunHeader, RunRecord, TestRecord};
use fathom_report::bench::BenchRows;
use fathom_report::formats::Format;
use fathom_report::{Style, TextWriter};

use crate::commands::format_arguments::FormatArguments;
use crate::output;

/// The rows that have been printed.
#[derive(Clone)]
pub struct RowPrinter(Rc<RefCell<PrintedRows>>);

struct PrintedRows {
    outline: RunRecord,
    style: Style,
    format: Format,
    /// `None` before the first, and where the format has no rows of its own.
    rows: Option<BenchRows>,
    count: usize,
}

impl RowPrinter {
    /// Rows of the tests in `outline`, in this form.
    pub fn new(outline: RunRecord, form: &FormatArguments) -> RowPrinter {
        let (style, format) = (form.style(), form.format());
        RowPrinter(Rc::new(RefCell::new(PrintedRows { outline, style, format, rows: None, count: 0 })))
    }

    /// Prints what stands above the rows. What cannot be written fails again at the end, and is reported then.
    pub fn begin(&self, header: &RunHeader) {
        let mut printed = self.0.borrow_mut();
        let mut rows = None;
        let _ = output::print(|out| {
            rows = BenchRows::begin(header, &printed.outline, &printed.style, printed.format, out)?;
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
