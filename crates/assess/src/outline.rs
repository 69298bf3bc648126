//! The record of a bench before it has run: its tests without figures, for a table that begins before the first of them has ended.

use fathom_record::{JobRecord, PlanRecord, RunHeader, RunRecord, TestRecord};

use crate::machine::engine_rows;
use crate::plan::BenchPlan;

impl BenchPlan {
    /// The tests with the plans of their jobs, under the expectations; nothing is measured yet.
    pub fn outline(&self) -> RunRecord {
        let engines = engine_rows();
        let tests = self.tests.iter().map(|test| {
            let plan = self.resolve(test, self.size, &engines);
            let jobs = plan.iter().flat_map(|plan| &plan.jobs).flat_map(|job| {
                let record = JobRecord { plan: PlanRecord::of(job), ..JobRecord::default() };
                job.clones.iter().map(move |_| record.clone())
            });
            let (id, title) = (test.id.clone(), test.title.clone());
            TestRecord { id, title, jobs: jobs.collect(), ..TestRecord::default() }
        });
        let header = RunHeader { expectations: self.expectations.clone(), ..RunHeader::default() };
        RunRecord { header, tests: tests.collect(), ..RunRecord::default() }
    }
}
