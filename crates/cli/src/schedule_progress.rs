//! The progress of a schedule: which run, which test, how fast; between runs when the next one is due.

use std::sync::Arc;

use fathom_assess::schedule::{SchedulePlan, SlotWait};
use fathom_assess::{MeasurementStep, StepObserver};
use fathom_model::units::duration;
use fathom_record::{MissedSlots, RunHeader};
use fathom_report::schedule::{instant, slots};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;

use crate::output;
use crate::progress::message;
use crate::run_display::RunDisplay;

/// Shows a schedule as it is run.
pub struct ScheduleProgress {
    plan: Arc<SchedulePlan>,
    display: RunDisplay,
    slot: u64,
}

impl ScheduleProgress {
    /// Nothing is shown before the first run or wait.
    pub fn new(plan: Arc<SchedulePlan>, display: RunDisplay) -> ScheduleProgress {
        ScheduleProgress { plan, display, slot: 0 }
    }

    fn run_prefix(&self) -> String {
        format!("run {} of {}", self.slot + 1, self.plan.schedule.slots())
    }
}

impl RunObserver for ScheduleProgress {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.display.laying_out(progress, self.plan.bench.cost.layout_time, self.plan.bench.cost.tests_time);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        if !self.display.working(snapshot) {
            let left = snapshot.remaining_ns.map(|left| duration(fathom_model::Nanos(left)));
            self.display.bar.set_message(message(snapshot, left, self.display.units));
        }
    }
}

impl StepObserver for ScheduleProgress {
    fn begun(&mut self, header: &RunHeader) {
        self.slot = header.scheduled.as_ref().map_or(self.slot, |scheduled| scheduled.slot);
        self.display.bar.set_prefix(self.run_prefix());
        self.display.bar.set_message("");
    }

    fn step_begun(&mut self, step: &MeasurementStep) {
        self.display.bar.set_prefix(format!("{} {}", self.run_prefix(), step.id));
    }

    fn waiting(&mut self, wait: &SlotWait) {
        self.slot = wait.slot;
        let is_simulated = self.plan.bench.targets[0].target.is_simulated();
        let due = instant(&self.plan.schedule, is_simulated, wait.slot, &output::style());
        self.display.bar.set_prefix(self.run_prefix());
        self.display.bar.set_message(format!("waiting until {due}"));
    }

    fn slot_failed(&mut self, failed: &MissedSlots) {
        let error = failed.error.as_deref().unwrap_or_default();
        let line = format!("warning: {} could not begin: {error}", slots(failed));
        self.display.bar.suspend(|| output::warn(&line));
    }
}
