//! How the total of a run grows with the ranks that take part, and where more of them stop helping.
//!
//! A gain counts by its interval: more ranks have stopped helping at the least number after which every larger one is shown to gain
//! less than 5 % per doubling, as the plateau of a curve over queue depth. They still help where the last step is shown to gain more.
//! Where neither is shown the answer is that it is not: no curve is drawn through the points.

mod point;
mod verdict;

use fathom_record::{RunRecord, TestRecord};
use serde::Serialize;

pub use point::{RateInterval, ScalingPoint};
pub use verdict::{FallenRate, ScalingCause, ScalingOutcome, ScalingVerdict};

use point::Measured;

/// A run with some number of ranks.
#[derive(Clone, Copy, Debug)]
pub struct ScalingRun<'a> {
    /// Where it was read from.
    pub source: &'a str,
    /// A merged record, or that of a single host.
    pub record: &'a RunRecord,
}

/// Runs that differ in the number of ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scaling {
    /// Each test that at least two of them have with different ranks.
    pub tests: Vec<ScalingTest>,
}

/// How one test scales.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingTest {
    /// The test.
    pub id: String,
    /// What each rank did.
    pub work: String,
    /// By the number of ranks.
    pub points: Vec<ScalingPoint>,
    /// Where more ranks stop helping.
    pub verdict: ScalingVerdict,
}

/// Runs make no curve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalingRefusal {
    /// Why.
    pub reason: String,
    /// What to do about it.
    pub hint: &'static str,
}

/// How the tests of these runs scale.
///
/// # Errors
/// All of them have the same number of ranks, no test in common, or did different work.
pub fn scaling(runs: &[ScalingRun<'_>]) -> Result<Scaling, ScalingRefusal> {
    let refused = |reason: String, hint| ScalingRefusal { reason, hint };
    let mut counts: Vec<u32> = runs.iter().map(|run| point::ranks(run.record)).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.len() < 2 {
        let ranks = counts.first().copied().unwrap_or(0);
        let hint = "measure with other numbers of ranks: fathom fleet run --fleet-scale";
        return Err(refused(format!("every run has the same number of ranks ({ranks})"), hint));
    }
    let mut ids: Vec<&str> = Vec::new();
    for test in runs.iter().flat_map(|run| &run.record.tests) {
        if !ids.contains(&test.id.as_str()) {
            ids.push(&test.id);
        }
    }
    let mut tests = Vec::new();
    for id in ids {
        tests.extend(of_test(id, runs)?);
    }
    if tests.is_empty() {
        let hint = "merge runs of the same suite or job file";
        return Err(refused("no test was run with two numbers of ranks".to_owned(), hint));
    }
    Ok(Scaling { tests })
}

/// One test; `None` where fewer than two numbers of ranks have it.
fn of_test(id: &str, runs: &[ScalingRun<'_>]) -> Result<Option<ScalingTest>, ScalingRefusal> {
    let mut measured: Vec<Measured<'_>> = Vec::new();
    let mut work: Option<(String, &str)> = None;
    for run in runs {
        let Some(test) = run.record.tests.iter().find(|test| test.id == id) else { continue };
        let theirs = work_of(test);
        match &work {
            Some((known, source)) if *known != theirs => {
                return Err(ScalingRefusal {
                    reason: format!(
                        "test '{id}' did different work: {known} in {source}, {theirs} in {}",
                        run.source
                    ),
                    hint: "use runs that differ in the number of ranks only",
                });
            }
            Some(_) => {}
            None => work = Some((theirs, run.source)),
        }
        measured.push(Measured::of(run, test));
    }
    let points = point::points(&measured);
    if points.len() < 2 {
        return Ok(None);
    }
    let verdict = ScalingVerdict::of(&points, &measured);
    let work = work.map(|(work, _)| work).unwrap_or_default();
    Ok(Some(ScalingTest { id: id.to_owned(), work, points, verdict }))
}

/// What each rank does in a test: `randread 4k, QD 8`, or `several jobs`.
fn work_of(test: &TestRecord) -> String {
    let mut texts: Vec<String> = Vec::new();
    for job in &test.jobs {
        let blocks = job.largest_blocks();
        let block = crate::say::block(blocks.read.max(blocks.write).max(blocks.trim));
        let jobs = if job.plan.numjobs > 1 { format!(", {} jobs", job.plan.numjobs) } else { String::new() };
        let text = format!("{} {block}, QD {}{jobs}", job.rw(), job.iodepth());
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join("; ")
}
