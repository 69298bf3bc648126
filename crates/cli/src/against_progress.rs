//! The progress of two targets measured in turns: which block, which test, how fast, and one estimate of the time left.

use std::sync::Arc;

use fathom_assess::against::AgainstPlan;
use fathom_assess::{MeasurementStep, StepObserver};
use fathom_model::Nanos;
use fathom_record::TestRecord;
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;

use crate::progress::message;
use crate::run_display::RunDisplay;

/// Shows a comparison as it is measured.
pub struct AgainstProgress {
    plan: Arc<AgainstPlan>,
    display: RunDisplay,
    step: MeasurementStep,
    lane: usize,
    /// Measurements that have ended, and the time since the first began when the last ended, ns.
    done: usize,
    done_ns: u64,
}

impl AgainstProgress {
    /// Nothing is shown before the first block.
    pub fn new(plan: Arc<AgainstPlan>, display: RunDisplay) -> AgainstProgress {
        AgainstProgress { plan, display, step: MeasurementStep::default(), lane: 0, done: 0, done_ns: 0 }
    }

    /// Time of the measurements that are left: each takes as long as those before, else as long as planned. A budget ends them.
    fn left_ns(&self, elapsed_ns: u64) -> Option<u64> {
        let planned = || {
            let tests = self.plan.sides[0].tests.iter().filter(|test| test.skip.is_none());
            let times: Option<Vec<u64>> = tests.map(|test| Some(test.most_time()?.0)).collect();
            times
                .filter(|times| !times.is_empty())
                .map(|times| times.iter().sum::<u64>() / times.len() as u64)
        };
        let each = self.done_ns.checked_div(self.done as u64).or_else(planned)?;
        let left = self.step.of?.saturating_sub(self.done) as u64 * each;
        let left = left.saturating_sub(elapsed_ns);
        let budget = self.plan.budget.map(|budget| budget.0.saturating_sub(self.step.spent_ns + elapsed_ns));
        Some(budget.map_or(left, |budget| left.min(budget)))
    }

    /// Simulated time passes at another pace than that of the clock on the wall.
    fn on_the_clock(&self, elapsed_ns: u64, left_ns: u64) -> Option<Nanos> {
        if !self.plan.is_simulated() {
            return Some(Nanos(left_ns));
        }
        let pace = self.display.spent_ns() as f64 / (self.done_ns + elapsed_ns) as f64;
        pace.is_finite().then_some(Nanos((left_ns as f64 * pace) as u64))
    }
}

impl RunObserver for AgainstProgress {
    fn layout(&mut self, progress: &LayoutProgress) {
        let then = self.plan.block_time().map(|block| Nanos(block.0 * self.plan.least_blocks()));
        self.display.laying_out(progress, self.plan.sides[0].cost.layout_time, then);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.display.working(snapshot);
        let elapsed_ns = snapshot.elapsed_ns;
        let left = self.left_ns(elapsed_ns).and_then(|left| self.on_the_clock(elapsed_ns, left));
        let left = left.map(|left| self.display.time_left(left));
        self.display.bar.set_message(message(snapshot, left, self.display.units));
    }
}

impl StepObserver for AgainstProgress {
    fn lane(&mut self, lane: usize) {
        self.lane = lane;
    }

    fn step_begun(&mut self, step: &MeasurementStep) {
        self.step = step.clone();
        let block = step.title.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let source = if self.lane == 0 { "A" } else { "B" };
        self.display.bar.set_prefix(format!("{block} {} {source}", step.id));
    }

    fn step_ended(&mut self, test: &TestRecord) {
        self.done += 1;
        self.done_ns += test.elapsed_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_assess::BenchSettings;
    use fathom_assess::against::{AgainstSettings, Opponent};
    use fathom_model::units::UnitSystem;

    #[test]
    fn the_time_left_follows_from_the_measurements_that_ended() {
        let mut bench = BenchSettings { suite: "standard".to_owned(), ..BenchSettings::default() };
        bench.run.target = "sim:custom?iops=1000".into();
        let settings = AgainstSettings {
            bench,
            opponent: Opponent::Target("sim:custom?iops=2000".into()),
            budget: Some(Nanos::from_secs(3600)),
            deltas: Default::default(),
        };
        let plan = Arc::new(AgainstPlan::make(settings).unwrap());
        let mut progress = AgainstProgress::new(plan, RunDisplay::new(UnitSystem::Iec));
        let step = |number: usize, spent_ns: u64| MeasurementStep {
            number,
            of: Some(24),
            spent_ns,
            ..MeasurementStep::default()
        };
        progress.step_begun(&step(1, 0));
        assert_eq!(progress.left_ns(0), Some(24 * 32_000_000_000));
        progress.step_ended(&TestRecord { elapsed_ns: 40_000_000_000, ..TestRecord::default() });
        progress.step_begun(&step(2, 40_000_000_000));
        assert_eq!(progress.left_ns(10_000_000_000), Some(23 * 40_000_000_000 - 10_000_000_000));
        progress.step_begun(&step(2, 3_580_000_000_000));
        assert_eq!(progress.left_ns(10_000_000_000), Some(10_000_000_000));
    }
}
