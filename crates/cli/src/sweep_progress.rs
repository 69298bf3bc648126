//! What somebody at a terminal sees while a sweep runs, and the storing of each point as it ends. In a pipe only that
//! nothing completes.

use fathom_assess::sweep::{SweepObserver, SweepPlan};
use fathom_history::{Place, Store};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use fathom_record::{RunHeader, TestRecord};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::rescue::Rescue;
use crate::stall_note::{self, StallNote, TOLD_FROM_NS};
use crate::{output, store};

/// Shows a sweep and stores its points.
pub struct SweepProgress {
    place: Place,
    rescue: Rescue,
    bar: ProgressBar,
    stall: StallNote,
    budget: Nanos,
    points: usize,
    spent_ns: u64,
}

impl SweepProgress {
    /// Nothing is shown or stored before the sweep begins.
    pub fn new(plan: &SweepPlan, place: Place, rescue: Rescue) -> SweepProgress {
        let target = if output::stderr_is_seen() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(plan.settings.budget.as_millis()), target);
        let style = ProgressStyle::with_template("{prefix} {bar:20} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        let stall = StallNote::default();
        SweepProgress { place, rescue, bar, stall, budget: plan.settings.budget, points: 0, spent_ns: 0 }
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
}

impl RunObserver for SweepProgress {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.rescue.laying_out();
        self.bar.set_length(progress.total_bytes);
        self.bar.set_position(progress.done_bytes);
        self.bar.set_prefix("laying out");
        self.bar.set_message(format!("{} of {}", bytes(progress.done_bytes), bytes(progress.total_bytes)));
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.rescue.working();
        let spent = self.spent_ns + snapshot.elapsed_ns;
        self.bar.set_position(spent / 1_000_000);
        if let Some(line) = self.stall.line(snapshot) {
            self.bar.suspend(|| output::warn(&line));
        }
        if snapshot.stalled_ns >= TOLD_FROM_NS {
            self.bar.set_message(stall_note::describe(snapshot));
            return;
        }
        let iops: f64 = snapshot.iops.iter().sum();
        let moved: f64 = snapshot.bytes_per_second.iter().sum();
        let left = duration(Nanos(self.budget.0.saturating_sub(spent)));
        self.bar.set_message(format!(
            "{} IOPS  {}/s  {left} left at most",
            grouped(iops.round() as u64),
            bytes(moved as u64)
        ));
    }
}

impl SweepObserver for SweepProgress {
    fn begun(&mut self, header: &RunHeader) {
        let (store, warning) = Store::begin(&self.place, header);
        self.rescue.begun(header, store);
        self.say(warning);
        self.bar.set_length(self.budget.as_millis());
        self.bar.set_position(0);
    }

    fn point_begun(&mut self, title: &str, spent_ns: u64) {
        self.rescue.preparing();
        self.spent_ns = spent_ns;
        self.bar.set_prefix(format!("point {:>2}, {title}", self.points + 1));
        self.bar.set_message(String::new());
    }

    fn point_ended(&mut self, test: &TestRecord) {
        self.points += 1;
        let warning = self.rescue.ended(test);
        self.say(warning);
    }
}
