//! What the numbers of a record tell: findings, each a claim with its evidence and a remedy.
//!
//! Pure functions of a record, so that every finding can be made again from the history. Nothing here runs, reads or
//! prints anything. A claim says no more than its evidence carries; thresholds stand with the reason for them.

#![forbid(unsafe_code)]

mod async_is_not;
pub mod cap_fit;
pub mod knee;
pub mod sweep;
pub mod sweep_goal;
pub mod sweep_plan;
pub mod sweep_point;

use fathom_record::{Finding, RunRecord};

/// Everything that the record tells, test by test.
pub fn findings(record: &RunRecord) -> Vec<Finding> {
    let words = Words::of(record);
    record.tests.iter().flat_map(|test| async_is_not::findings(test, words)).collect()
}

/// Whose options a remedy names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    /// Those of fio.
    Fio,
    /// Those of `bench`, whose suites say the rest.
    Bench,
}

impl Words {
    fn of(record: &RunRecord) -> Words {
        if record.header.kind == "bench" { Words::Bench } else { Words::Fio }
    }
}
