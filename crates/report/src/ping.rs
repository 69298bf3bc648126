//! Reports of `ping`.

pub mod json;
pub mod text;
mod view;

use std::sync::LazyLock;

use fathom_analysis::criterion::ObjectiveVerdict;
use fathom_analysis::ping::{Ping, verdicts};
use fathom_record::{RunRecord, TestRecord};

pub use view::{closing, verdict, view};

/// The ping of a run.
struct PingReport<'a> {
    test: &'a TestRecord,
    ping: &'a Ping,
    slo: Vec<ObjectiveVerdict>,
}

impl PingReport<'_> {
    /// That of `record`; an empty one where it was killed before it ended.
    fn of(record: &RunRecord) -> PingReport<'_> {
        static NONE: LazyLock<(TestRecord, Ping)> = LazyLock::new(Default::default);
        let (test, ping) =
            record.tests.iter().find_map(|test| Some((test, test.ping()?))).unwrap_or((&NONE.0, &NONE.1));
        PingReport { test, ping, slo: verdicts(&record.header, ping) }
    }
}
