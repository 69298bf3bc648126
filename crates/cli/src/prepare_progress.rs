//! The progress of a preparation at a terminal. In a pipe only that nothing completes.

use std::sync::Arc;

use fathom_analysis::prepare::{CompletedPiece, place};
use fathom_assess::prepare::PreparePlan;
use fathom_assess::{MeasurementStep, StepObserver};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
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

impl PrepareProgress {
    /// Nothing is shown before it begins.
    pub fn new(plan: Arc<PreparePlan>, display: RunDisplay) -> PrepareProgress {
        PrepareProgress { plan, display, at: PreparePosition::default() }
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
        self.display.bar.set_position(if is_workload {
            (at.rounds_ns + at.elapsed_ns) / 1_000_000
        } else {
            done
        });
        if is_stalled {
            return;
        }
        if is_workload {
            let iops: f64 = snapshot.iops.iter().sum();
            let budget = self.plan.rounds.map_or(Nanos::ZERO, |rounds| rounds.budget);
            let left = budget.0.saturating_sub(at.rounds_ns + at.elapsed_ns);
            let left = duration(Nanos(left));
            self.display
                .bar
                .set_message(format!("{} IOPS  {left} left at most", grouped(iops.round() as u64)));
            return;
        }
        let (paced, paced_ns) = (at.paced.0 + at.moved as u64, at.paced.1 + at.elapsed_ns);
        let left = (paced > 0).then(|| {
            let left_ns = (size - done) as f64 * paced_ns as f64 / paced as f64;
            format!("{} left  ", duration(Nanos(left_ns as u64)))
        });
        // What matters least stands where a narrow terminal cuts.
        let (left, rate) = (left.unwrap_or_default(), bytes(rate as u64));
        self.display.bar.set_message(format!("{left}{rate}/s  {} of {}", bytes(done), bytes(size)));
    }
}

impl StepObserver for PrepareProgress {
    fn step_begun(&mut self, step: &MeasurementStep) {
        // Rounds are reported one by one.
        let Some((stage, offset)) = place(&step.id) else { return };
        let same = self.at.stage == Some(stage);
        let paced = if same { self.at.paced } else { (0, 0) };
        self.at = PreparePosition { stage: Some(stage), before: offset, paced, ..PreparePosition::default() };
        self.display.bar.set_length(self.plan.target.size);
        self.display.bar.set_position(offset);
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
        let budget = self.plan.rounds.map_or(Nanos::ZERO, |rounds| rounds.budget);
        self.display.bar.set_length(budget.as_millis().max(1));
        self.display.bar.set_position(so_far.elapsed_ns / 1_000_000);
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
