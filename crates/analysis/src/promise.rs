//! Whether what was promised held: each promise against what was measured, its interval, and its own conditions.
//!
//! A pure function of the record, so that it can be told again from the history. A promise is judged where the run can
//! speak of it; everywhere else it is said why not, and what would change that.

mod burst;
mod conditions;
mod interval;
mod judge;
mod share;
mod words;

use fathom_record::{PromiseRecord, RunRecord};

pub use interval::ConfidenceInterval;
pub use share::of_year;
pub use words::{figure, quantity_name, span};

use crate::criterion::CriterionVerdict;
use crate::rows::rows;

/// A promise and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What was promised.
    pub promise: PromiseRecord,
    /// What was measured, in the unit of the metric; the share of the seconds where a share was promised.
    pub measured: Option<f64>,
    /// Within what it lies.
    pub interval: Option<ConfidenceInterval>,
    /// The verdict.
    pub verdict: CriterionVerdict,
    /// Why it is missed or inconclusive; of a share always, what it speaks for.
    pub why: Option<String>,
    /// What would make it possible to judge.
    pub remedy: Option<String>,
    /// Full seconds that were watched.
    pub seconds: u64,
}

/// Judges every promise of a run.
pub fn judge(record: &RunRecord) -> Vec<Judged> {
    let rows = rows(record);
    record.header.promises.iter().map(|promise| judge::judge_one(record, &rows, promise)).collect()
}

/// How many of a list have this verdict.
pub fn count(judged: &[Judged], verdict: CriterionVerdict) -> usize {
    judged.iter().filter(|one| one.verdict == verdict).count()
}

/// The classes that promises are made for, in their order.
pub fn classes(promises: &[PromiseRecord]) -> Vec<&str> {
    let mut classes: Vec<&str> = Vec::new();
    for promise in promises.iter().filter(|promise| !promise.class.is_empty()) {
        if !classes.contains(&promise.class.as_str()) {
            classes.push(&promise.class);
        }
    }
    classes
}

/// True where something that was promised did not hold. Classes are alternatives: which one a volume is of cannot be seen
/// from within, so that what is promised to several counts where it is broken in each of them.
pub fn is_broken(record: &RunRecord) -> bool {
    let judged = judge(record);
    let broken = |class: &str| {
        judged.iter().any(|one| one.promise.class == class && one.verdict == CriterionVerdict::Missed)
    };
    let classes = classes(&record.header.promises);
    broken("") || !classes.is_empty() && classes.iter().all(|class| broken(class))
}
