//! What every command that runs tests shows while it runs: a bar at a terminal, a word where nothing completes. What the bar says
//! of where it is stands with each command.

use std::cell::Cell;
use std::rc::Rc;

use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, duration};
use fathom_runner::LayoutProgress;
use fathom_stats::Snapshot;

use crate::live::observer::TimeLeftCell;
use crate::output;
use crate::output::Bar;
use crate::stall_note::{self, StallNote, TOLD_FROM_NS};
use crate::time_left::TimeLeft;

/// Shows a run.
pub struct RunDisplay {
    /// The progress bar; hidden unless standard error is a terminal.
    pub bar: Bar,
    /// Units of rates and amounts.
    pub units: UnitSystem,
    stall: StallNote,
    left: TimeLeft,
    left_shown: TimeLeftCell,
}

impl RunDisplay {
    /// Nothing is shown before the run begins.
    pub fn new(units: UnitSystem) -> RunDisplay {
        let bar = Bar::new(Some(1), "{prefix} {bar:20} {wide_msg}");
        let left_shown = Rc::new(Cell::new(None));
        RunDisplay { bar, units, stall: StallNote::default(), left: TimeLeft::new(), left_shown }
    }

    /// The time left that is shown, for other displays.
    pub fn left_shown(&self) -> TimeLeftCell {
        self.left_shown.clone()
    }

    /// Another run begins.
    pub fn begin_again(&mut self) {
        self.left = TimeLeft::new();
    }

    /// Since the run began, ns.
    pub fn spent_ns(&self) -> u64 {
        self.left.spent_ns()
    }

    /// The bar stands where the run is if `left` is still to come; returns the time to show.
    pub fn time_left(&mut self, left: Nanos) -> String {
        let left = self.left.show(left);
        self.left_shown.set(Some(left));
        let spent = self.spent_ns();
        self.bar.set_length((spent.saturating_add(left.0) / 1_000_000).max(1));
        self.bar.set_position(spent / 1_000_000);
        duration(left)
    }

    /// The test file is being laid out, which takes `limit` at most, and `then` what follows; `None` where that is unknown.
    pub fn laying_out(&mut self, progress: &LayoutProgress, limit: Option<Nanos>, then: Option<Nanos>) {
        let LayoutProgress { done_bytes, total_bytes, elapsed_ns, .. } = *progress;
        let rate = if elapsed_ns > 0 { done_bytes as f64 * 1e9 / elapsed_ns as f64 } else { 0.0 };
        self.bar.set_prefix("file layout");
        let left =
            (rate > 0.0).then(|| Nanos((total_bytes.saturating_sub(done_bytes) as f64 / rate * 1e9) as u64));
        let limit = limit.map(|limit| Nanos(limit.0.saturating_sub(elapsed_ns)));
        let left = [left, limit].into_iter().flatten().min();
        let left = match (left, then) {
            (Some(left), Some(then)) => format!(", {} left", self.time_left(left.plus(then))),
            _ => {
                self.bar.set_length(total_bytes);
                self.bar.set_position(done_bytes);
                String::new()
            }
        };
        let [done, total, rate] =
            [done_bytes, total_bytes, rate as u64].map(|count| self.units.amount(count));
        self.bar.set_message(format!("{done} of {total}, {rate}/s{left}"));
    }

    /// Workers are at it. True where nothing completes, and the bar says so.
    pub fn working(&mut self, snapshot: &Snapshot) -> bool {
        if let Some(line) = self.stall.line(snapshot) {
            self.bar.suspend(|| output::warn(&line));
        }
        let is_stalled = snapshot.stalled_ns >= TOLD_FROM_NS;
        if is_stalled {
            self.bar.set_message(stall_note::describe(snapshot));
        }
        is_stalled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_an_end_in_sight_is_shown() {
        let mut display = RunDisplay::new(UnitSystem::default());
        assert!(!display.time_left(Nanos(u64::MAX)).is_empty());
    }
}
