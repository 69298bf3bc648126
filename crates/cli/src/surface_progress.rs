//! What somebody at a terminal sees while a surface is measured, and the storing of each test as it ends. In a pipe only
//! that nothing completes.

use fathom_assess::surface::{Step, SurfaceObserver, SurfacePlan};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_record::{RunHeader, TestRecord};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;

use crate::run_display::RunDisplay;

/// Shows a surface and stores its tests.
pub struct SurfaceProgress<'a> {
    display: &'a mut RunDisplay,
    layout_time: Option<Nanos>,
    /// Of a scan it is not known how long it takes.
    budget: Option<Nanos>,
    step: Step,
}

impl<'a> SurfaceProgress<'a> {
    /// Nothing is shown or stored before the surface begins.
    pub fn new(plan: &SurfacePlan, display: &'a mut RunDisplay) -> SurfaceProgress<'a> {
        let budget = (!plan.settings.scan).then_some(plan.settings.budget);
        let step = Step { title: String::new(), number: 0, of: 1, spent_ns: 0 };
        SurfaceProgress { display, layout_time: plan.layout_time, budget, step }
    }

    /// What is left, by the share of the tests that is done where it is not known.
    fn left(&self, spent_ns: u64) -> Option<u64> {
        let done = self.step.number.saturating_sub(1) as u64;
        let by_tests = (done > 0).then(|| {
            u128::from(self.step.spent_ns) * (self.step.of as u128 - u128::from(done)) / u128::from(done)
        });
        let by_time = self.budget.map(|budget| budget.0.saturating_sub(spent_ns));
        by_time.or(by_tests.map(|left| left as u64))
    }
}

impl RunObserver for SurfaceProgress<'_> {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.display.laying_out(progress, self.layout_time);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        if self.display.working(snapshot) {
            return;
        }
        let spent = self.step.spent_ns + snapshot.elapsed_ns;
        let moved: f64 = snapshot.bytes_per_second.iter().sum();
        let left = self.left(spent).map(|left| format!("  about {} left", duration(Nanos(left))));
        self.display.bar.set_message(format!("{}/s{}", bytes(moved as u64), left.unwrap_or_default()));
    }
}

impl SurfaceObserver for SurfaceProgress<'_> {
    fn begun(&mut self, header: &RunHeader) {
        self.display.begun(header);
        self.display.bar.set_message(String::new());
    }

    fn test_begun(&mut self, step: &Step) {
        self.display.preparing();
        self.step = step.clone();
        self.display.bar.set_length(step.of as u64);
        self.display.bar.set_position(step.number as u64 - 1);
        self.display.bar.set_prefix(format!("{:>3} of {}, {}", step.number, step.of, step.title));
        if let Some(left) = self.left(step.spent_ns) {
            self.display.bar.set_message(format!("about {} left", duration(Nanos(left))));
        }
    }

    fn test_ended(&mut self, test: &TestRecord) {
        self.display.ended(test);
    }
}
