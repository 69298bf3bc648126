//! The progress at a terminal of a run whose next measurement follows from those before. Where it is known how many there
//! will be, they are counted; otherwise the time is.

use fathom_assess::{MeasurementStep, StepObserver};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use fathom_record::RunHeader;
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;

use crate::run_display::RunDisplay;

/// Shows how such a run goes on.
pub struct StepProgress {
    display: RunDisplay,
    /// Longest time for file layout.
    layout_time: Option<Nanos>,
    /// Time for everything, where there is a limit.
    budget: Option<Nanos>,
    step: MeasurementStep,
}

impl StepProgress {
    /// Nothing is shown before it begins.
    pub fn new(layout_time: Option<Nanos>, budget: Option<Nanos>, display: RunDisplay) -> StepProgress {
        StepProgress { display, layout_time, budget, step: MeasurementStep::default() }
    }

    /// What is left, by the share of the measurements that is done where there is no limit.
    fn left(&self, spent_ns: u64) -> Option<String> {
        let Some(budget) = self.budget else {
            let (done, of) = (self.step.number.saturating_sub(1) as u128, self.step.of? as u128);
            let left_ns = (u128::from(self.step.spent_ns) * of.saturating_sub(done)).checked_div(done)?;
            return Some(format!("about {} left", duration(Nanos(left_ns as u64))));
        };
        let left = duration(Nanos(budget.0.saturating_sub(spent_ns)));
        Some(if self.step.of.is_some() {
            format!("about {left} left")
        } else {
            format!("{left} left at most")
        })
    }

    /// Time is what the bar shows where the number of measurements is unknown.
    fn set_position(&self, spent_ns: u64) {
        if self.step.of.is_none() {
            self.display.bar.set_position(spent_ns / 1_000_000);
        }
    }
}

impl RunObserver for StepProgress {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.display.laying_out(progress, self.layout_time);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        let spent_ns = self.step.spent_ns + snapshot.elapsed_ns;
        self.set_position(spent_ns);
        if self.display.working(snapshot) {
            return;
        }
        let iops: f64 = snapshot.iops.iter().sum();
        let moved: f64 = snapshot.bytes_per_second.iter().sum();
        // What matters least stands where a narrow terminal cuts.
        let left = self.left(spent_ns).map(|left| format!("{left}  ")).unwrap_or_default();
        let (iops, rate) = (grouped(iops.round() as u64), bytes(moved as u64));
        self.display.bar.set_message(format!("{left}{rate}/s  {iops} IOPS"));
    }
}

impl StepObserver for StepProgress {
    fn begun(&mut self, _header: &RunHeader) {
        self.display.bar.set_length(self.budget.map_or(1, Nanos::as_millis));
        self.display.bar.set_position(0);
        self.display.bar.set_message("");
    }

    fn step_begun(&mut self, step: &MeasurementStep) {
        self.step = step.clone();
        let MeasurementStep { title, number, of, spent_ns, .. } = step;
        if let Some(of) = of {
            self.display.bar.set_length(*of as u64);
            self.display.bar.set_position(*number as u64 - 1);
        }
        self.set_position(*spent_ns);
        let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
        self.display.bar.set_prefix(format!("{number:>3}{of}, {title}"));
        self.display.bar.set_message(self.left(*spent_ns).unwrap_or_default());
    }
}
