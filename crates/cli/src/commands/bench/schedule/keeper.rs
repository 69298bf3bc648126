//! Keeps the runs of a schedule: each in the history as it ends, and of each what the summary needs.

use std::io;
use std::sync::Arc;

use fathom_analysis::expectation;
use fathom_analysis::schedule::{ScheduledValue, leading_metrics};
use fathom_assess::TestKeeper;
use fathom_assess::schedule::SchedulePlan;
use fathom_record::{MissedSlots, RunHeader, RunRecord, TestRecord, TestStatus, TestSummary};
use fathom_report::schedule::{ScheduledRun, UnmetExpectation, instant};
use fathom_report::{Style, TextWriter};

use super::earlier::values_of;
use crate::output::{self, Bar};
use crate::store::{self, HistoryKeeper};

/// Keeps the runs of a schedule.
pub struct ScheduleKeeper {
    plan: Arc<SchedulePlan>,
    history: HistoryKeeper,
    bar: Bar,
    /// A line is printed for each run in this style.
    style: Option<Style>,
    /// The runs that have ended.
    pub runs: Vec<ScheduledRun>,
    /// The slots that they name as missed.
    pub missed: Vec<MissedSlots>,
    /// Their figures.
    pub values: Vec<ScheduledValue>,
    /// The expectations that they did not meet.
    pub unmet: Vec<UnmetExpectation>,
    /// A run missed an expectation.
    pub is_missed: bool,
    /// A run had an inconclusive one.
    pub is_inconclusive: bool,
}

impl ScheduleKeeper {
    /// Keeps the runs by `history`, and prints a line for each in `style` where there is one.
    pub fn new(
        plan: Arc<SchedulePlan>,
        history: HistoryKeeper,
        bar: Bar,
        style: Option<Style>,
    ) -> ScheduleKeeper {
        ScheduleKeeper {
            plan,
            history,
            bar,
            style,
            runs: Vec::new(),
            missed: Vec::new(),
            values: Vec::new(),
            unmet: Vec::new(),
            is_missed: false,
            is_inconclusive: false,
        }
    }

    /// `2/168  2026-11-23 03:00:00  complete  run 17  rand-read 3,000 IOPS`.
    fn line(
        &self,
        run: &ScheduledRun,
        record: &RunRecord,
        style: &Style,
        out: &mut TextWriter,
    ) -> io::Result<()> {
        let schedule = &self.plan.schedule;
        let kept = run.run.map(|run| format!("  run {run}")).unwrap_or_default();
        let [iops, ..] = leading_metrics();
        let rates = record.tests.iter().filter_map(|test| {
            Some(format!("{} {}", test.id, iops.kind.quantity(iops.of(&TestSummary::new(test))?)))
        });
        let (due, slots) = (instant(schedule, false, run.slot, style), schedule.slots());
        let rates: Vec<String> = rates.collect();
        let (slot, status) = (run.slot + 1, run.status.name());
        writeln!(out, "{slot}/{slots}  {due}  {status}{kept}  {}", rates.join(", "))?;
        let unmet = self.unmet.iter().filter(|unmet| unmet.slot == run.slot).map(UnmetExpectation::text);
        let unmet: Vec<String> = unmet.collect();
        if unmet.is_empty() { Ok(()) } else { writeln!(out, "  {}", unmet.join("; ")) }
    }
}

impl TestKeeper for ScheduleKeeper {
    fn begin(&mut self, header: &RunHeader) {
        self.history.begin(header);
    }

    fn append(&mut self, test: &TestRecord) {
        self.history.append(test);
    }

    fn end(&mut self, record: &RunRecord) {
        let kept = self.history.finish(record);
        let Some(slot) = record.header.scheduled.clone() else { return };
        let run = ScheduledRun {
            slot: slot.slot,
            run: store::run_id(&kept),
            started_unix_ms: record.header.started_unix_ms,
            status: record.status,
            hostname: record.header.host().hostname.clone(),
        };
        self.is_missed |= expectation::is_missed(record);
        self.is_inconclusive |= expectation::is_inconclusive(record);
        self.unmet.extend(UnmetExpectation::all(record, slot.slot));
        if record.status == TestStatus::Complete {
            self.values.extend(values_of(record, &slot, run.run.unwrap_or(slot.slot + 1)));
        }
        self.missed.extend(slot.missed);
        if let Some(style) = &self.style {
            // What cannot be printed now cannot be printed at the end either, which fails then.
            let print = || drop(output::print(|out| self.line(&run, record, style, out)));
            self.bar.suspend(print);
        }
        self.runs.push(run);
    }
}
