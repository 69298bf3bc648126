//! What somebody at a terminal sees while a volume is identified, and the storing of each probe as it ends. In a pipe only
//! that nothing completes.

use fathom_assess::identify::{IdentifyObserver, IdentifyPlan};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use fathom_record::{RunHeader, TestRecord};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;

use crate::run_display::RunDisplay;

/// Shows it and stores its probes.
pub struct IdentifyProgress<'a> {
    display: &'a mut RunDisplay,
    layout_time: Option<Nanos>,
    budget: Nanos,
    spent_ns: u64,
}

impl<'a> IdentifyProgress<'a> {
    /// Nothing is shown or stored before it begins.
    pub fn new(plan: &IdentifyPlan, display: &'a mut RunDisplay) -> IdentifyProgress<'a> {
        let budget = Nanos(plan.spec.budget.time_ns);
        IdentifyProgress { display, layout_time: plan.layout_time, budget, spent_ns: 0 }
    }

    fn left(&self, spent_ns: u64) -> String {
        self.display.bar.set_position(spent_ns / 1_000_000);
        format!("{} left at most", duration(Nanos(self.budget.0.saturating_sub(spent_ns))))
    }
}

impl RunObserver for IdentifyProgress<'_> {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.display.laying_out(progress, self.layout_time);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        let left = self.left(self.spent_ns + snapshot.elapsed_ns);
        if self.display.working(snapshot) {
            return;
        }
        let iops: f64 = snapshot.iops.iter().sum();
        let moved: f64 = snapshot.bytes_per_second.iter().sum();
        self.display.bar.set_message(format!(
            "{} IOPS  {}/s  {left}",
            grouped(iops.round() as u64),
            bytes(moved as u64)
        ));
    }
}

impl IdentifyObserver for IdentifyProgress<'_> {
    fn begun(&mut self, header: &RunHeader) {
        self.display.begun(header);
        self.display.bar.set_length(self.budget.as_millis());
        self.display.bar.set_position(0);
    }

    fn probe_begun(&mut self, title: &str, spent_ns: u64) {
        self.display.preparing();
        self.spent_ns = spent_ns;
        let left = self.left(spent_ns);
        self.display.bar.set_prefix(title.to_owned());
        self.display.bar.set_message(left);
    }

    fn probe_ended(&mut self, test: &TestRecord) {
        self.display.ended(test);
    }
}
