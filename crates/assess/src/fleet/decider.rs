//! Who decides on the next point of a sweep: the run itself, or rank 0 for all ranks, from what all of them measured.

use std::sync::mpsc::Sender;

use fathom_analysis::sweep::offered::{OfferedPoint, next_offer};
use fathom_analysis::sweep::plan::{NextPoint, next};
use fathom_analysis::sweep::point::SweepPoint;
use fathom_analysis::sweep::spec::SweepSpec;
use fathom_record::{
    Activity, BenchActivity, FleetMerger, LaunchRecord, MergeRules, RunHeader, RunRecord, TestRecord,
};
use fathom_runner::StopHandle;
use serde::{Deserialize, Serialize};

use super::coordinator::{Question, Request, meet};
use super::exchange::to_json;
use super::meeting::{RankState, RunPoint};

/// Rank 0's answer to the results of the ranks that ask.
pub(super) type RankAnswers = Box<dyn FnMut(&[(u32, Vec<u8>)]) -> Vec<u8> + Send>;

/// What a sweep has measured.
#[derive(Clone, Debug, Default)]
pub struct SweepSoFar {
    /// Points of the grid.
    pub points: Vec<SweepPoint>,
    /// Rates that were offered.
    pub offered: Vec<OfferedPoint>,
}

impl SweepSoFar {
    /// Takes in a test. Whatever came of it, it counts as tried.
    pub fn add(&mut self, test: &TestRecord) {
        self.points.extend(SweepPoint::of(test));
        self.offered.extend(OfferedPoint::of(test));
    }

    /// What to measure next.
    pub fn next(&self, spec: &SweepSpec) -> NextPoint {
        match next(spec, &self.points) {
            NextPoint::Done => next_offer(spec, &self.points, &self.offered),
            step => step,
        }
    }
}

/// Decides on the points of a sweep.
pub trait PointDecider {
    /// What to measure next; `so_far` is what this run measured, `last` its last test.
    fn next(
        &mut self,
        spec: &SweepSpec,
        so_far: &SweepSoFar,
        last: Option<&TestRecord>,
        stop: &StopHandle,
    ) -> NextPoint;
}

/// Decides from what the run itself measured.
#[derive(Clone, Copy, Debug)]
pub struct AloneDecider;

impl PointDecider for AloneDecider {
    fn next(
        &mut self,
        spec: &SweepSpec,
        so_far: &SweepSoFar,
        _last: Option<&TestRecord>,
        _stop: &StopHandle,
    ) -> NextPoint {
        so_far.next(spec)
    }
}

/// Asks rank 0, which decides from what all ranks measured.
pub struct LedDecider {
    requests: Sender<Request>,
    /// Of rank 0: how it answers.
    answers: Option<RankAnswers>,
    leads: bool,
    step: u32,
}

/// What a rank puts beside a question.
#[derive(Serialize, Deserialize)]
struct RankResult {
    /// Time that is left for the points, ns; known once the target is ready.
    budget_ns: u64,
    last: Option<TestRecord>,
}

impl LedDecider {
    pub(super) fn new(requests: Sender<Request>, leads: bool) -> LedDecider {
        LedDecider { requests, answers: None, leads, step: 0 }
    }
}

impl PointDecider for LedDecider {
    fn next(
        &mut self,
        spec: &SweepSpec,
        _so_far: &SweepSoFar,
        last: Option<&TestRecord>,
        stop: &StopHandle,
    ) -> NextPoint {
        self.step += 1;
        if self.leads && self.answers.is_none() {
            self.answers = Some(answers(spec.clone()));
        }
        let result = RankResult { budget_ns: spec.budget_ns, last: last.cloned() };
        let state = RankState::Asks { point: RunPoint { step: self.step, stage: 0 } };
        let question = Question { result: to_json(&result), answers: self.answers.take() };
        let Some((answered, answers)) = meet(&self.requests, state, Some(question), stop) else {
            return NextPoint::Done;
        };
        self.answers = answers;
        let parsed = answered.and_then(|answer| {
            serde_json::from_slice(&answer).map_err(|_| "rank 0 has ended its sweep".to_owned())
        });
        parsed.unwrap_or_else(|reason: String| {
            stop.request(&reason);
            NextPoint::Done
        })
    }
}

/// How rank 0 answers in a sweep of `spec`.
fn answers(spec: SweepSpec) -> RankAnswers {
    let (mut spec, mut so_far) = (spec, SweepSoFar::default());
    Box::new(move |results| {
        let parsed: Vec<(u32, RankResult)> = results
            .iter()
            .filter_map(|(rank, text)| Some((*rank, serde_json::from_slice(text).ok()?)))
            .collect();
        for (_, result) in &parsed {
            // The budget of the rank whose file layout took longest.
            spec.budget_ns = spec.budget_ns.min(result.budget_ns);
        }
        if let Some(test) = merged(parsed) {
            so_far.add(&test);
        }
        to_json(&so_far.next(&spec))
    })
}

/// One test of all ranks, as if it were of one.
fn merged(results: Vec<(u32, RankResult)>) -> Option<TestRecord> {
    let mut merger = FleetMerger::new(MergeRules { records: results.len(), ..MergeRules::default() });
    for (rank, result) in results {
        let Some(test) = result.last else { continue };
        let launch = LaunchRecord { rank, ..LaunchRecord::default() };
        // The tests of a sweep merge like those of a bench.
        let activity = Activity::Bench(BenchActivity::default());
        let header = RunHeader { activity, launch: Some(launch), ..RunHeader::default() };
        let record = RunRecord { header, status: test.status, tests: vec![test], ..RunRecord::default() };
        // Ranks whose points differ are left out of the decision; the final merge names them.
        let _ = merger.add(&format!("rank {rank}"), record);
    }
    merger.finish()?.tests.pop()
}
