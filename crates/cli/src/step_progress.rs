//! The progress at a terminal of a run whose next measurement follows from those before. Where it is known how many there
//! will be, they are counted; otherwise the time is.

use fathom_assess::{MeasurementStep, StepObserver};
use fathom_model::Nanos;
use fathom_model::units::grouped;
use fathom_record::{RunHeader, TestRecord};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;

use crate::row_printer::RowPrinter;
use crate::run_display::RunDisplay;

/// Shows how such a run goes on.
pub struct StepProgress {
    display: RunDisplay,
    /// The rows of its report, where they appear as the measurements end.
    rows: Option<RowPrinter>,
    /// Longest time for file layout.
    layout_time: Option<Nanos>,
    /// Time for everything, where there is a limit.
    budget: Option<Nanos>,
    step: MeasurementStep,
}

impl StepProgress {
    /// Nothing is shown before it begins.
    pub fn new(layout_time: Option<Nanos>, budget: Option<Nanos>, display: RunDisplay) -> StepProgress {
        StepProgress { display, rows: None, layout_time, budget, step: MeasurementStep::default() }
    }

    /// The same with `rows` that appear as the measurements end.
    pub fn with_rows(self, rows: Option<RowPrinter>) -> StepProgress {
        StepProgress { rows, ..self }
    }

    /// What is left, by the share of the measurements that is done where there is no limit.
    fn left(&mut self, spent_ns: u64) -> Option<String> {
        let (done, of) = (self.step.number.saturating_sub(1) as u128, self.step.of);
        let (left_ns, note) = match (self.budget, of) {
            (Some(budget), None) => (budget.0.saturating_sub(spent_ns), " at most"),
            (Some(budget), Some(_)) => (budget.0.saturating_sub(spent_ns), ""),
            (None, of) => {
                let left = u128::from(self.step.spent_ns) * (of? as u128).saturating_sub(done);
                (left.checked_div(done)? as u64, "")
            }
        };
        Some(format!("{} left{note}", self.display.time_left(Nanos(left_ns))))
    }
}

impl RunObserver for StepProgress {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.display.laying_out(progress, self.layout_time, self.budget);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        let spent_ns = self.step.spent_ns + snapshot.elapsed_ns;
        if self.display.working(snapshot) {
            return;
        }
        let iops: f64 = snapshot.iops.iter().sum();
        let moved: f64 = snapshot.bytes_per_second.iter().sum();
        // What matters least stands where a narrow terminal cuts.
        let left = self.left(spent_ns).map(|left| format!("{left}  ")).unwrap_or_default();
        let (iops, rate) = (grouped(iops.round() as u64), self.display.units.amount(moved as u64));
        self.display.bar.set_message(format!("{left}{rate}/s  {iops} IOPS"));
    }
}

impl StepObserver for StepProgress {
    fn inspecting(&mut self, _header: &RunHeader) {
        self.display.bar.set_prefix("inspection");
        self.display.bar.set_message("");
    }

    fn begun(&mut self, header: &RunHeader) {
        self.display.bar.set_prefix("");
        self.display.bar.set_message("");
        if let Some(rows) = &self.rows {
            self.display.bar.suspend(|| rows.begin(header));
        }
    }

    fn step_begun(&mut self, step: &MeasurementStep) {
        self.step = step.clone();
        let MeasurementStep { title, number, of, spent_ns, .. } = step;
        let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
        let name = self.rows.as_ref().map_or(title.as_str(), |rows| rows.name(step));
        self.display.bar.set_prefix(format!("{number:>3}{of}, {name}"));
        let message = self.left(*spent_ns).unwrap_or_default();
        self.display.bar.set_message(message);
    }

    fn step_ended(&mut self, test: &TestRecord) {
        if let Some(rows) = &self.rows {
            self.display.bar.suspend(|| rows.row(test));
        }
    }
}
