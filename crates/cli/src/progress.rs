//! The progress of a run at a terminal: where it is, how fast, how long still. In a pipe only that nothing completes.
//!
//! [`RunDisplay`] is the bar that every command shows; a [`Course`] is what one command knows of its run.

mod courses;
mod stall;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use fathom_assess::{MeasurementEvent, MeasurementStep, StepObserver};
use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, duration};
use fathom_record::{RunHeader, RunRecord, TestRecord};
use fathom_report::formats::Format;
use fathom_report::{RowSource, StreamedRows, Style, TextWriter};
use fathom_runner::{LayoutProgress, RunObserver};
use fathom_stats::Snapshot;
use fathom_sys::clock::monotonic_ns;

use crate::commands::format_arguments::FormatArguments;
use crate::live::TimeLeftCell;
use crate::output::{self, Bar};
pub use courses::{AgainstCourse, BenchCourse, PrepareCourse, StepCourse};
pub use stall::{StallNote, describe};

/// An estimate that stays the same is shown after a few times this, ns.
const SETTLES_NS: f64 = 8e9;

/// What a command knows of its run.
pub trait Course {
    /// Longest time for file layout, and the time of what follows it; `None` where that is unknown.
    fn layout_and_rest(&self) -> (Option<Nanos>, Option<Nanos>) {
        (None, None)
    }

    /// Takes an event that changes where the run is.
    fn take(&mut self, event: &MeasurementEvent, display: &mut RunDisplay);

    /// What stands behind the bar during a measurement.
    fn message(&mut self, snapshot: &Snapshot, display: &mut RunDisplay) -> String;
}

/// Shows a run: the bar, and the rows of its report as its tests end.
pub struct RunProgress<C> {
    course: C,
    rows: Option<RowPrinter>,
    display: RunDisplay,
}

impl<C> RunProgress<C> {
    /// Nothing is shown before the run begins.
    pub fn new(course: C, rows: Option<RowPrinter>, display: RunDisplay) -> RunProgress<C> {
        RunProgress { course, rows, display }
    }
}

impl<C: Course> RunObserver for RunProgress<C> {
    fn layout(&mut self, progress: &LayoutProgress) {
        let (limit, then) = self.course.layout_and_rest();
        self.display.laying_out(progress, limit, then);
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        if let Some(line) = self.display.stall.line(snapshot) {
            self.display.bar.suspend(|| output::warn(&line));
        }
        let message = self.course.message(snapshot, &mut self.display);
        self.display.bar.set_message(message);
    }
}

impl<C: Course> StepObserver for RunProgress<C> {
    fn step(&mut self, event: &MeasurementEvent) {
        let RunProgress { course, rows, display } = self;
        match event {
            MeasurementEvent::Inspecting(_) => display.set("inspection", ""),
            MeasurementEvent::Begun(header) => {
                display.set("", "");
                rows.iter().for_each(|rows| rows.begin(header, display));
            }
            MeasurementEvent::Waiting(due_unix_ms) => {
                display.began_ns = monotonic_ns();
                display.shown = None;
                let due = output::style().time(*due_unix_ms, "%Y-%m-%d %H:%M:%S");
                display.set("", &format!("waiting until {due}"));
            }
            MeasurementEvent::SlotFailed(failed) => {
                let (slot, error) = (failed.first + 1, failed.error.as_deref().unwrap_or_default());
                let line = format!("warning: slot {slot} could not begin: {error}");
                display.bar.suspend(|| output::warn(&line));
            }
            MeasurementEvent::StepEnded(test) => {
                rows.iter().for_each(|rows| rows.row(test, display));
            }
            _ => {}
        }
        course.take(event, display);
    }
}

/// The bar, and the time left as one figure that does not jump: each new estimate moves it a little.
pub struct RunDisplay {
    /// The progress bar; hidden unless standard error is a terminal.
    pub bar: Bar,
    /// Units of rates and amounts.
    pub units: UnitSystem,
    stall: StallNote,
    began_ns: u64,
    /// When a time left was shown, and what: ns of the clock, and ns left.
    shown: Option<(u64, f64)>,
    left_shown: TimeLeftCell,
}

impl RunDisplay {
    /// The run begins now.
    pub fn new(units: UnitSystem) -> RunDisplay {
        RunDisplay {
            bar: Bar::new(Some(1), "{prefix} {bar:20} {wide_msg}"),
            units,
            stall: StallNote::default(),
            began_ns: monotonic_ns(),
            shown: None,
            left_shown: Rc::new(Cell::new(None)),
        }
    }

    /// The time left that is shown, for other displays.
    pub fn left_shown(&self) -> TimeLeftCell {
        self.left_shown.clone()
    }

    fn set(&self, prefix: &str, message: &str) {
        self.bar.set_prefix(prefix);
        self.bar.set_message(message);
    }

    /// Time of the tests as that of the clock on the wall: a simulated volume has another, of which `done_ns` have passed.
    fn on_the_clock(&self, is_simulated: bool, done_ns: u64, left: Nanos) -> Option<Nanos> {
        if !is_simulated {
            return Some(left);
        }
        let pace = monotonic_ns().saturating_sub(self.began_ns) as f64 / done_ns as f64;
        pace.is_finite().then_some(Nanos((left.0 as f64 * pace) as u64))
    }

    /// The bar stands where the run is if `left` is still to come; returns the time to show.
    fn time_left(&mut self, left: Nanos) -> String {
        let now = monotonic_ns();
        let left = self.settled(now, left);
        self.left_shown.set(Some(left));
        let spent = now.saturating_sub(self.began_ns);
        self.bar.set_length((spent.saturating_add(left.0) / 1_000_000).max(1));
        self.bar.set_position(spent / 1_000_000);
        duration(left)
    }

    fn settled(&mut self, now_ns: u64, left: Nanos) -> Nanos {
        let estimate = left.0 as f64;
        let shown = match self.shown {
            None => estimate,
            Some((at_ns, shown)) => {
                let passed = now_ns.saturating_sub(at_ns) as f64;
                let expected = (shown - passed).max(0.0);
                expected + (estimate - expected) * (passed / SETTLES_NS).min(1.0)
            }
        };
        self.shown = Some((now_ns, shown));
        Nanos(shown as u64)
    }

    /// The test file is being laid out, which takes `limit` at most, and `then` what follows; `None` where that is unknown.
    fn laying_out(&mut self, progress: &LayoutProgress, limit: Option<Nanos>, then: Option<Nanos>) {
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
}

/// The rows of the tests that have ended: the values on standard output, and in text what is seen until the report takes its place.
#[derive(Clone)]
pub struct RowPrinter(Rc<RefCell<PrintedRows>>);

struct PrintedRows {
    source: RowSource,
    outline: RunRecord,
    style: Style,
    format: Format,
    /// `None` before the first, and where the format has no rows of its own.
    rows: Option<StreamedRows>,
    count: usize,
    /// Nothing is printed.
    is_silent: bool,
}

impl RowPrinter {
    /// Rows of the tests in `outline`, in this form.
    pub fn new(source: RowSource, outline: RunRecord, form: &FormatArguments) -> RowPrinter {
        let (format, style) = (form.format(), form.style());
        // Rows are written to standard error, which may be another place than that of the report.
        let width = if output::stderr_is_seen() { output::stderr_size().0 } else { style.width };
        let style = Style { width, colour: false, ..style };
        RowPrinter(Rc::new(RefCell::new(PrintedRows {
            source,
            outline,
            style,
            format,
            rows: None,
            count: 0,
            is_silent: false,
        })))
    }

    /// Prints nothing if `is_silent`: the report of many processes has rows of all of them, and virtual time is over at once.
    pub fn silent_if(self, is_silent: bool) -> RowPrinter {
        self.0.borrow_mut().is_silent = is_silent;
        self
    }

    /// The name that the row of `step` has.
    pub fn name<'a>(&self, step: &'a MeasurementStep) -> &'a str {
        if self.0.borrow().source.has_titles { &step.title } else { &step.id }
    }

    /// Prints what stands above the rows. What cannot be written fails again at the end, and is reported then.
    fn begin(&self, header: &RunHeader, display: &RunDisplay) {
        let printed = &mut *self.0.borrow_mut();
        if printed.is_silent {
            return;
        }
        let PrintedRows { source, outline, style, format, rows, .. } = printed;
        printed_by(*format, display, |out| {
            *rows = StreamedRows::begin(*source, header, outline, style, *format, out)?;
            Ok(())
        });
    }

    /// Prints the row of `test`.
    fn row(&self, test: &TestRecord, display: &RunDisplay) {
        let mut printed = self.0.borrow_mut();
        let Some(rows) = &printed.rows else { return };
        printed_by(printed.format, display, |out| rows.row(test, out));
        printed.count += 1;
    }

    /// True if standard output has all rows of `record`: the whole report, in a format of rows.
    pub fn has_all(&self, record: &RunRecord) -> bool {
        let printed = self.0.borrow();
        printed.format != Format::Text
            && printed.rows.is_some()
            && printed.count == record.tests.len()
            && printed.count > 0
    }
}

fn printed_by(format: Format, display: &RunDisplay, write: impl FnOnce(&mut TextWriter) -> io::Result<()>) {
    match format {
        Format::Text => display.bar.rows(&fathom_report::text_writer::text(write).unwrap_or_default()),
        _ => display.bar.suspend(|| {
            let _ = output::print(write);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn an_estimate_that_holds_counts_down_and_one_without_an_end_is_shown() {
        let mut display = RunDisplay::new(UnitSystem::default());
        for second in 0..100 {
            let left = display.settled(second * SECOND, Nanos::from_secs(100 - second));
            assert_eq!(left, Nanos::from_secs(100 - second));
        }
        assert!(!RunDisplay::new(UnitSystem::default()).time_left(Nanos(u64::MAX)).is_empty());
    }

    #[test]
    fn a_new_estimate_moves_the_figure_without_a_jump() {
        let mut display = RunDisplay::new(UnitSystem::default());
        let mut before = display.settled(0, Nanos::from_secs(100)).as_secs_f64();
        for half in 1..=240_u64 {
            let at = half * SECOND / 2;
            // The rate turns out to be half of what it seemed.
            let now = display.settled(at, Nanos(200 * SECOND - at)).as_secs_f64();
            assert!((now - before).abs() < 8.0, "{before} to {now} at {half}");
            before = now;
        }
        assert!((before - 80.0).abs() < 1.0, "{before}");
    }
}
