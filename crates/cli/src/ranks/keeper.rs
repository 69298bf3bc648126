//! Keeps the tests of a rank while it runs, and the report of rank 0 in the history.

use std::io;

use fathom_assess::TestKeeper;
use fathom_assess::fleet::Fleet;
use fathom_history::{HistoryPath, Kept};
use fathom_record::{RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_report::formats::Format;
use fathom_report::{Style, TextWriter};

use crate::commands::format_arguments::FormatArguments;
use crate::store::HistoryKeeper;

/// Keeps the record so far of a rank in the directory of its job.
pub struct RankKeeper<'a> {
    fleet: &'a Fleet,
    record: RunRecord,
}

impl<'a> RankKeeper<'a> {
    /// Keeps what this rank of `fleet` has measured.
    pub fn new(fleet: &'a Fleet) -> RankKeeper<'a> {
        let record = RunRecord { status: TestStatus::Incomplete, ..RunRecord::default() };
        RankKeeper { fleet, record }
    }
}

impl TestKeeper for RankKeeper<'_> {
    fn begin(&mut self, header: &RunHeader) {
        self.record.header = header.clone();
    }

    fn append(&mut self, test: &TestRecord) {
        if self.fleet.keeps_partial() {
            self.record.tests.push(test.clone());
            self.fleet.keep_partial(self.record.clone());
        }
    }
}

/// Keeps a merged record in `place`, if it `keeps`, and prints its report by `show`.
///
/// # Errors
/// Standard output cannot be written to.
pub fn keep_and_print(
    record: &RunRecord,
    place: HistoryPath,
    keeps: bool,
    form: &FormatArguments,
    show: impl FnOnce(&RunRecord, &Style, Format, &mut TextWriter) -> io::Result<()>,
) -> io::Result<Kept> {
    let mut keeper = HistoryKeeper::new(place, None);
    if keeps {
        keeper.begin(&record.header);
        record.tests.iter().for_each(|test| keeper.append(test));
    }
    keeper.finish_and_print(record, form, show)
}
