//! What every command that runs tests shows while it runs: a bar at a terminal, a word where nothing completes. What the bar says
//! of where it is stands with each command.

use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_runner::LayoutProgress;
use fathom_stats::Snapshot;

use crate::output;
use crate::output::Bar;
use crate::stall_note::{self, StallNote, TOLD_FROM_NS};

/// Shows a run.
pub struct RunDisplay {
    /// The progress bar; hidden unless standard error is a terminal.
    pub bar: Bar,
    stall: StallNote,
}

impl RunDisplay {
    /// Nothing is shown before the run begins.
    pub fn new() -> RunDisplay {
        RunDisplay { bar: Bar::new(Some(1), "{prefix} {bar:20} {wide_msg}"), stall: StallNote::default() }
    }

    /// The test file is being laid out, which takes `limit` at most.
    pub fn laying_out(&mut self, progress: &LayoutProgress, limit: Option<Nanos>) {
        let LayoutProgress { done_bytes, total_bytes, elapsed_ns, .. } = *progress;
        let rate = if elapsed_ns > 0 { done_bytes as f64 * 1e9 / elapsed_ns as f64 } else { 0.0 };
        self.bar.set_length(total_bytes);
        self.bar.set_position(done_bytes);
        self.bar.set_prefix("file layout");
        let left =
            (rate > 0.0).then(|| Nanos((total_bytes.saturating_sub(done_bytes) as f64 / rate * 1e9) as u64));
        let limit = limit.map(|limit| Nanos(limit.0.saturating_sub(elapsed_ns)));
        let left = [left, limit].into_iter().flatten().min();
        let left = left.map(|left| format!(", {} left", duration(left))).unwrap_or_default();
        let (done, total) = (bytes(done_bytes), bytes(total_bytes));
        self.bar.set_message(format!("{done} of {total}, {}/s{left}", bytes(rate as u64)));
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
