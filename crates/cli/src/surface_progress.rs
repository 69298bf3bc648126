//! What somebody at a terminal sees while a surface is measured, and the storing of each test as it ends. In a pipe only
//! that nothing completes.

use fathom_assess::surface::{Step, SurfaceObserver, SurfacePlan};
use fathom_history::{Place, Store};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_record::{RunHeader, TestRecord};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::rescue::Rescue;
use crate::stall_note::{self, StallNote, TOLD_FROM_NS};
use crate::{output, store};

/// Shows a surface and stores its tests.
pub struct SurfaceProgress {
    place: Place,
    rescue: Rescue,
    bar: ProgressBar,
    /// Of a scan it is not known how long it takes.
    budget: Option<Nanos>,
    step: Step,
    stall: StallNote,
}

impl SurfaceProgress {
    /// Nothing is shown or stored before the surface begins.
    pub fn new(plan: &SurfacePlan, place: Place, rescue: Rescue) -> SurfaceProgress {
        let target = if output::stderr_is_seen() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        let style = ProgressStyle::with_template("{prefix} {bar:20} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        let budget = (!plan.settings.scan).then_some(plan.settings.budget);
        let step = Step { title: String::new(), number: 0, of: 1, spent_ns: 0 };
        SurfaceProgress { place, rescue, bar, budget, step, stall: StallNote::default() }
    }

    /// Takes the display away and hands the store over.
    pub fn finish(self) -> Store {
        self.bar.finish_and_clear();
        self.rescue.into_store()
    }

    fn say(&self, warning: Option<fathom_history::Warning>) {
        if warning.is_some() {
            self.bar.suspend(|| store::tell(warning));
        }
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

impl RunObserver for SurfaceProgress {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.rescue.laying_out();
        self.bar.set_length(progress.total_bytes);
        self.bar.set_position(progress.done_bytes);
        self.bar.set_prefix("laying out");
        self.bar.set_message(format!("{} of {}", bytes(progress.done_bytes), bytes(progress.total_bytes)));
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.rescue.working();
        if let Some(line) = self.stall.line(snapshot) {
            self.bar.suspend(|| output::warn(&line));
        }
        if snapshot.stalled_ns >= TOLD_FROM_NS {
            self.bar.set_message(stall_note::describe(snapshot));
            return;
        }
        let spent = self.step.spent_ns + snapshot.elapsed_ns;
        let moved: f64 = snapshot.bytes_per_second.iter().sum();
        let left = self.left(spent).map(|left| format!("  about {} left", duration(Nanos(left))));
        self.bar.set_message(format!("{}/s{}", bytes(moved as u64), left.unwrap_or_default()));
    }
}

impl SurfaceObserver for SurfaceProgress {
    fn begun(&mut self, header: &RunHeader) {
        let (store, warning) = Store::begin(&self.place, header);
        self.rescue.begun(header, store);
        self.say(warning);
        self.bar.set_message(String::new());
    }

    fn test_begun(&mut self, step: &Step) {
        self.rescue.preparing();
        self.step = step.clone();
        self.bar.set_length(step.of as u64);
        self.bar.set_position(step.number as u64 - 1);
        self.bar.set_prefix(format!("{:>3} of {}, {}", step.number, step.of, step.title));
        if let Some(left) = self.left(step.spent_ns) {
            self.bar.set_message(format!("about {} left", duration(Nanos(left))));
        }
    }

    fn test_ended(&mut self, test: &TestRecord) {
        let warning = self.rescue.ended(test);
        self.say(warning);
    }
}
