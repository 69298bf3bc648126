//! The progress of a preparation at a terminal. In a pipe only that nothing completes.

use std::sync::Arc;

use fathom_analysis::prepare::{CompletedPiece, place};
use fathom_assess::prepare::PreparePlan;
use fathom_assess::{MeasurementStep, StepObserver};
use fathom_model::Nanos;
use fathom_model::units::grouped;
use fathom_record::{PrepareStage, RoundsRecord, TestRecord};
use fathom_runner::RunObserver;
use fathom_stats::Snapshot;

use crate::run_display::RunDisplay;

/// Shows how far it has come.
pub struct PrepareProgress {
    plan: Arc<PreparePlan>,
    display: RunDisplay,
    at: PreparePosition,
}

/// Where it is.
#[derive(Default)]
struct PreparePosition {
    stage: Option<PrepareStage>,
    /// Bytes before the piece, and moved in it.
    before: u64,
    moved: f64,
    /// Since the start of the piece or round, ns.
    elapsed_ns: u64,
    /// What this run has done of the stage: bytes and ns.
    paced: (u64, u64),
    /// Of the rounds that have ended, ns.
    rounds_ns: u64,
}

/// What follows a stage.
struct LaterStages {
    passes: usize,
    time: Nanos,
}

impl PrepareProgress {
    /// Nothing is shown before it begins.
    pub fn new(plan: Arc<PreparePlan>, display: RunDisplay) -> PrepareProgress {
        PrepareProgress { plan, display, at: PreparePosition::default() }
    }

    /// What follows the present stage: passes over the whole target at its pace, and the most time of the workload.
    fn later_stages(&self) -> LaterStages {
        let stages = &self.plan.stages;
        let at = stages.iter().position(|stage| Some(*stage) == self.at.stage).map_or(0, |at| at + 1);
        let later = &stages[at.min(stages.len())..];
        let has_workload = later.contains(&PrepareStage::Workload);
        let budget = self.plan.rounds.filter(|_| has_workload).map_or(Nanos::ZERO, |rounds| rounds.budget);
        LaterStages { passes: later.len() - usize::from(has_workload), time: budget }
    }

    fn prefix(&self, stage: PrepareStage, more: &str) -> String {
        let number = self.plan.stages.iter().position(|known| *known == stage).unwrap_or(0) + 1;
        format!("{number}/{} {}{more}", self.plan.stages.len(), stage.title())
    }
}

impl RunObserver for PrepareProgress {
    fn snapshot(&mut self, snapshot: &Snapshot) {
        let is_stalled = self.display.working(snapshot);
        let rate: f64 = snapshot.bytes_per_second.iter().sum();
        let at = &mut self.at;
        at.moved += rate * snapshot.elapsed_ns.saturating_sub(at.elapsed_ns) as f64 / 1e9;
        at.elapsed_ns = snapshot.elapsed_ns;
        let is_workload = at.stage == Some(PrepareStage::Workload);
        let size = self.plan.target.size;
        let done = (at.before + at.moved as u64).min(size);
        if is_stalled {
            return;
        }
        if is_workload {
            let iops: f64 = snapshot.iops.iter().sum();
            let budget = self.plan.rounds.map_or(Nanos::ZERO, |rounds| rounds.budget);
            let left = budget.0.saturating_sub(at.rounds_ns + at.elapsed_ns);
            let left = self.display.time_left(Nanos(left));
            self.display
                .bar
                .set_message(format!("{} IOPS  {left} left at most", grouped(iops.round() as u64)));
            return;
        }
        let (paced, paced_ns) = (at.paced.0 + at.moved as u64, at.paced.1 + at.elapsed_ns);
        let later = self.later_stages();
        let left = (paced > 0).then(|| {
            let bytes = (size - done) as f64 + size as f64 * later.passes as f64;
            let left_ns = bytes * paced_ns as f64 / paced as f64;
            format!("{} left  ", self.display.time_left(Nanos(left_ns as u64).plus(later.time)))
        });
        // What matters least stands where a narrow terminal cuts.
        let left = left.unwrap_or_default();
        let [rate, done, size] = [rate as u64, done, size].map(|count| self.display.units.amount(count));
        self.display.bar.set_message(format!("{left}{rate}/s  {done} of {size}"));
    }
}

impl StepObserver for PrepareProgress {
    fn step_begun(&mut self, step: &MeasurementStep) {
        // Rounds are reported one by one.
        let Some((stage, offset)) = place(&step.id) else { return };
        let same = self.at.stage == Some(stage);
        let paced = if same { self.at.paced } else { (0, 0) };
        self.at = PreparePosition { stage: Some(stage), before: offset, paced, ..PreparePosition::default() };
        if !same {
            self.display.bar.set_message(String::new());
        }
        self.display.bar.set_prefix(self.prefix(stage, ""));
    }

    fn round_begun(&mut self, index: usize, so_far: &RoundsRecord) {
        self.at = PreparePosition {
            stage: Some(PrepareStage::Workload),
            rounds_ns: so_far.elapsed_ns,
            ..PreparePosition::default()
        };
        if index == 0 {
            self.display.bar.set_message(String::new());
        }
        self.display.bar.set_prefix(self.prefix(PrepareStage::Workload, &format!(" {}", index + 1)));
    }

    fn step_ended(&mut self, test: &TestRecord) {
        if let Some(done) = CompletedPiece::of(test).filter(|done| self.at.stage == Some(done.piece.stage)) {
            self.at.paced.0 += done.piece.length;
            self.at.paced.1 += done.elapsed_ns;
        }
    }
}
