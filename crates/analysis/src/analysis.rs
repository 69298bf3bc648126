//! A record with what follows from it. Reports, comparisons and exports borrow one, so that each part is computed once, when it is
//! first asked for. Nothing here judges: each part is made by the module of its name.

use std::cell::OnceCell;

use fathom_record::{Finding, RunRecord, TestRecord};

use crate::conclusions::{Conclusion, conclude};
use crate::expectation::{ExpectationResult, classes, judge};
use crate::rows::{self, RecordRow};
use crate::together::{Together, compare_together};

/// A record with what follows from it.
pub struct Analysis<'a> {
    pub record: &'a RunRecord,
    tests: OnceCell<Vec<RecordRow<'a>>>,
    rows: OnceCell<Vec<RecordRow<'a>>>,
    conclusions: OnceCell<Vec<Conclusion>>,
    expectations: OnceCell<Vec<ExpectationResult>>,
    together: OnceCell<Vec<Together>>,
}

impl<'a> Analysis<'a> {
    pub fn of(record: &'a RunRecord) -> Analysis<'a> {
        Analysis {
            record,
            tests: OnceCell::new(),
            rows: OnceCell::new(),
            conclusions: OnceCell::new(),
            expectations: OnceCell::new(),
            together: OnceCell::new(),
        }
    }

    /// The tests with their figures, in the order they ran.
    pub fn tests(&self) -> &[RecordRow<'a>] {
        self.tests.get_or_init(|| rows::tests(self.record))
    }

    /// What ran together, in order: the tests, or their phases where a test has several.
    pub fn rows(&self) -> &[RecordRow<'a>] {
        let has_phases = |test: &TestRecord| test.jobs.windows(2).any(|pair| pair[0].phase != pair[1].phase);
        self.rows.get_or_init(|| match self.record.tests.iter().any(has_phases) {
            true => rows::rows(self.record),
            false => self.tests().to_vec(),
        })
    }

    /// What its numbers tell, by the rules that all commands share.
    pub fn findings(&self) -> Vec<Finding> {
        crate::findings::findings(self)
    }

    /// The verdict on every use, from the tests of a bench or the points of a sweep; nothing for records of other commands, of
    /// several targets or hosts, and of no measurement.
    pub fn conclusions(&self) -> &[Conclusion] {
        self.conclusions.get_or_init(|| conclude(self))
    }

    /// The result of every expectation of the run.
    pub fn expectations(&self) -> &[ExpectationResult] {
        self.expectations.get_or_init(|| judge(self))
    }

    /// True where an expectation is inconclusive.
    pub fn is_inconclusive(&self) -> bool {
        self.expectations().iter().any(|one| one.verdict.is_inconclusive())
    }

    /// True where an expectation is missed. Classes are alternatives, and a measurement cannot tell which one a volume has, so
    /// expectations of several classes count where every class misses one.
    pub fn is_missed(&self) -> bool {
        let misses = |class: &str| {
            self.expectations().iter().any(|one| one.expectation.class == class && one.verdict.is_missed())
        };
        let classes = classes(&self.record.header.expectations);
        misses("") || !classes.is_empty() && classes.iter().all(|class| misses(class))
    }

    /// What it tells of targets that were measured apart and together, test by test.
    pub fn together(&self) -> &[Together] {
        self.together.get_or_init(|| compare_together(self))
    }
}
