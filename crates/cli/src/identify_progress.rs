//! What somebody at a terminal sees while a volume is identified, and the storing of each probe as it ends. In a pipe only
//! that nothing completes.

use fathom_assess::identify::{IdentifyObserver, IdentifyPlan};
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

/// Shows it and stores its probes.
pub struct IdentifyProgress {
    place: Place,
    rescue: Rescue,
    bar: ProgressBar,
    stall: StallNote,
    budget: Nanos,
    spent_ns: u64,
}

impl IdentifyProgress {
    /// Nothing is shown or stored before it begins.
    pub fn new(plan: &IdentifyPlan, place: Place, rescue: Rescue) -> IdentifyProgress {
        let target = if output::stderr_is_seen() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let budget = Nanos(plan.spec.budget.time_ns);
        let bar = ProgressBar::with_draw_target(Some(budget.as_millis()), target);
        let style = ProgressStyle::with_template("{prefix} {bar:20} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        IdentifyProgress { place, rescue, bar, stall: StallNote::default(), budget, spent_ns: 0 }
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

    fn left(&self, spent_ns: u64) -> String {
        self.bar.set_position(spent_ns / 1_000_000);
        format!("{} left at most", duration(Nanos(self.budget.0.saturating_sub(spent_ns))))
    }
}

impl RunObserver for IdentifyProgress {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.rescue.laying_out();
        self.bar.set_length(progress.total_bytes);
        self.bar.set_position(progress.done_bytes);
        self.bar.set_prefix("laying out");
        self.bar.set_message(format!("{} of {}", bytes(progress.done_bytes), bytes(progress.total_bytes)));
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.rescue.working();
        let left = self.left(self.spent_ns + snapshot.elapsed_ns);
        if let Some(line) = self.stall.line(snapshot) {
            self.bar.suspend(|| output::warn(&line));
        }
        if snapshot.stalled_ns >= TOLD_FROM_NS {
            self.bar.set_message(stall_note::describe(snapshot));
            return;
        }
        let iops: f64 = snapshot.iops.iter().sum();
        let moved: f64 = snapshot.bytes_per_second.iter().sum();
        self.bar.set_message(format!(
            "{} IOPS  {}/s  {left}",
            grouped(iops.round() as u64),
            bytes(moved as u64)
        ));
    }
}

impl IdentifyObserver for IdentifyProgress {
    fn begun(&mut self, header: &RunHeader) {
        let (store, warning) = Store::begin(&self.place, header);
        self.rescue.begun(header, store);
        self.say(warning);
        self.bar.set_length(self.budget.as_millis());
        self.bar.set_position(0);
    }

    fn probe_begun(&mut self, title: &str, spent_ns: u64) {
        self.rescue.preparing();
        self.spent_ns = spent_ns;
        let left = self.left(spent_ns);
        self.bar.set_prefix(title.to_owned());
        self.bar.set_message(left);
    }

    fn probe_ended(&mut self, test: &TestRecord) {
        let warning = self.rescue.ended(test);
        self.say(warning);
    }
}
