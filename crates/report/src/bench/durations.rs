//! How long the rates of a bench last.

use fathom_analysis::steady::rate_duration::{Lasting, rate_duration};
use fathom_record::{RunRecord, TestRecord, TestStatus};

use crate::run_view::id;
use crate::view::Block;

/// One line for all tests of the same duration, those that are known first.
pub(super) fn lines(record: &RunRecord) -> Block {
    let mut groups: Vec<(Lasting, String, Vec<&str>)> = Vec::new();
    let complete = |test: &&TestRecord| test.status == TestStatus::Complete && !test.jobs.is_empty();
    for test in record.tests.iter().filter(complete) {
        let duration = rate_duration(test);
        let text = duration.text();
        match groups.iter_mut().find(|(_, known, _)| *known == text) {
            Some((.., tests)) => tests.push(id(test)),
            None => groups.push((duration.label, text, vec![id(test)])),
        }
    }
    groups.sort_by_key(|(label, ..)| *label == Lasting::Inconclusive);
    Block::Notes(match groups.as_slice() {
        [(_, text, tests)] if tests.len() > 1 => vec![format!("all tests: {text}.")],
        _ => groups.iter().map(|(_, text, tests)| format!("{}: {text}.", tests.join(", "))).collect(),
    })
}
