//! What somebody at a terminal sees while a sweep runs, and the storing of each point as it ends. In a pipe only that
//! nothing completes.

use fathom_assess::sweep::{SweepObserver, SweepPlan};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use fathom_record::{RunHeader, TestRecord};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;

use crate::run_display::RunDisplay;

/// Shows a sweep and stores its points.
pub struct SweepProgress<'a> {
    display: &'a mut RunDisplay,
    layout_time: Option<Nanos>,
    budget: Nanos,
    points: usize,
    spent_ns: u64,
}

impl<'a> SweepProgress<'a> {
    /// Nothing is shown or stored before the sweep begins.
    pub fn new(plan: &SweepPlan, display: &'a mut RunDisplay) -> SweepProgress<'a> {
        SweepProgress {
            display,
            layout_time: plan.layout_time,
            budget: plan.settings.budget,
            points: 0,
            spent_ns: 0,
        }
    }
}

impl RunObserver for SweepProgress<'_> {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.display.laying_out(progress, self.layout_time);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        let spent = self.spent_ns + snapshot.elapsed_ns;
        self.display.bar.set_position(spent / 1_000_000);
        if self.display.working(snapshot) {
            return;
        }
        let iops: f64 = snapshot.iops.iter().sum();
        let moved: f64 = snapshot.bytes_per_second.iter().sum();
        let left = duration(Nanos(self.budget.0.saturating_sub(spent)));
        self.display.bar.set_message(format!(
            "{} IOPS  {}/s  {left} left at most",
            grouped(iops.round() as u64),
            bytes(moved as u64)
        ));
    }
}

impl SweepObserver for SweepProgress<'_> {
    fn begun(&mut self, header: &RunHeader) {
        self.display.begun(header);
        self.display.bar.set_length(self.budget.as_millis());
        self.display.bar.set_position(0);
    }

    fn point_begun(&mut self, title: &str, spent_ns: u64) {
        self.display.preparing();
        self.spent_ns = spent_ns;
        self.display.bar.set_prefix(format!("point {:>2}, {title}", self.points + 1));
        self.display.bar.set_message(String::new());
    }

    fn point_ended(&mut self, test: &TestRecord) {
        self.points += 1;
        self.display.ended(test);
    }
}
