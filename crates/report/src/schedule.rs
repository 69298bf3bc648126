//! The report on a schedule: its runs with their leading figures, and the slots that have none.

use std::io;

use fathom_analysis::criterion::{LatencySpan, Metric, MetricDirection, MetricKind, Statistic};
use fathom_analysis::expectation::ExpectationResult;
use fathom_analysis::{Analysis, RecordRow};
use fathom_model::Nanos;
use fathom_model::units::{duration, grouped};
use fathom_record::{MissedSlots, RunSchedule, ScheduledSlot, TestStatus};
use serde::Serialize;

use crate::bench::expectations;
use crate::history::trend::value_cell;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, View};
use crate::{Style, document};

/// The figures of a run that are shown, over all I/Os of each test.
const LEADING: [MetricKind; 4] = [
    MetricKind::Iops,
    MetricKind::BytesPerSecond,
    MetricKind::Latency(LatencySpan::Total, Statistic::Mean),
    MetricKind::Latency(LatencySpan::Total, Statistic::Percentile(990_000)),
];

/// A run of a schedule.
#[derive(Clone, Debug, Serialize)]
pub struct ScheduledRun {
    /// Number of its slot, from 0.
    slot: u64,
    /// When it was due, ms since the epoch; of a simulated run in its virtual time.
    due_unix_ms: u64,
    /// Its number in the history; null where it is not kept there.
    pub run: Option<u64>,
    /// When it began, ms since the epoch; 0 for simulated runs.
    started_unix_ms: u64,
    /// How it ended.
    pub status: TestStatus,
    figures: Vec<ScheduledFigure>,
    /// Expectations that are missed or inconclusive.
    unmet_expectations: Vec<ExpectationResult>,
    /// Each of them: `; rand-read IOPS missed, -40 %`.
    #[serde(skip)]
    unmet: String,
}

/// A figure of one test.
#[derive(Clone, Debug, Serialize)]
struct ScheduledFigure {
    test: String,
    metric: String,
    value: f64,
    #[serde(skip)]
    kind: MetricKind,
}

fn figures(row: &RecordRow<'_>) -> Vec<ScheduledFigure> {
    let figure = |kind| {
        let metric = Metric { direction: Some(MetricDirection::Total), kind };
        let value = metric.of(&row.summary)?;
        Some(ScheduledFigure { test: row.test.id.clone(), metric: metric.to_string(), value, kind })
    };
    LEADING.into_iter().filter_map(figure).collect()
}

impl ScheduledRun {
    /// The run of `scheduled`, which the history has under the number `run`.
    pub fn new(analysis: &Analysis<'_>, scheduled: &ScheduledSlot, run: Option<u64>) -> ScheduledRun {
        let record = analysis.record;
        let mut unmet_expectations = analysis.expectations().to_vec();
        unmet_expectations.retain(|result| result.verdict.decided() != Some(true));
        let unmet = unmet_expectations.iter().map(|result| expectations::sentence(record, result));
        ScheduledRun {
            slot: scheduled.slot,
            due_unix_ms: scheduled.schedule.instant_of(scheduled.slot),
            run,
            started_unix_ms: record.header.started_unix_ms,
            status: record.status,
            figures: analysis.tests().iter().flat_map(figures).collect(),
            unmet: unmet.map(|text| format!("; {text}")).collect(),
            unmet_expectations,
        }
    }

    /// `2/168  2026-11-23 03:00:00  complete  run 17  rand-read 3,000 IOPS; rand-read IOPS missed, -40 %`.
    pub fn line(&self, schedule: &RunSchedule, style: &Style) -> String {
        let (slot, slots, due) = (self.slot + 1, schedule.slots(), instant(schedule, self.slot, style));
        let kept = self.run.map(|run| format!("  run {run}")).unwrap_or_default();
        let rates = self.figures.iter().filter(|figure| figure.kind == MetricKind::Iops);
        let rates = rates.map(|figure| format!("{} {}", figure.test, figure.kind.quantity(figure.value)));
        let rates = rates.collect::<Vec<String>>().join(", ");
        format!("{slot}/{slots}  {due}  {}{kept}  {rates}{}", self.status.name(), self.unmet)
    }
}

/// What a report on a schedule is made of.
#[derive(Clone, Debug, Serialize)]
pub struct ScheduleReport {
    schema: &'static str,
    schedule: RunSchedule,
    target: String,
    slots: u64,
    /// Slots that are still to come.
    pub slots_left: u64,
    /// The runs of this call.
    pub runs: Vec<ScheduledRun>,
    missed_slots: u64,
    /// The slots that were missed during this call or before its first run.
    missed: Vec<MissedSlots>,
}

impl ScheduleReport {
    /// The report on the runs and the missed slots from the slot `next` on.
    pub fn new(
        schedule: &RunSchedule,
        target: String,
        next: u64,
        runs: Vec<ScheduledRun>,
        missed: Vec<MissedSlots>,
    ) -> ScheduleReport {
        let ends = missed.iter().map(|missed| missed.first.saturating_add(missed.count));
        let next = runs.iter().map(|run| run.slot + 1).chain(ends).chain([next]).max().unwrap_or(0);
        ScheduleReport {
            schema: "fathom.schedule/2",
            schedule: schedule.clone(),
            target,
            slots: schedule.slots(),
            slots_left: schedule.slots().saturating_sub(next),
            runs,
            missed_slots: missed.iter().map(|missed| missed.count).sum(),
            missed,
        }
    }

    /// Writes the document.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn render_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        document::write(self, out)
    }

    /// The report, with the runs where `lists_runs` says so; times in the zone of `style`.
    pub fn view(&self, lists_runs: bool, style: &Style) -> View {
        let counts = [TestStatus::Complete, TestStatus::Failed, TestStatus::Incomplete].map(|status| {
            let count = self.runs.iter().filter(|run| run.status == status).count();
            (count > 0).then(|| format!("{} {}", grouped(count as u64), status.name()))
        });
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        let mut figures = vec![
            KeyFigure::new("name", self.schedule.name.as_str()),
            KeyFigure::new("target", self.target.as_str()),
            KeyFigure::new("runs", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }),
        ];
        let others = [("missed slots", self.missed_slots), ("slots left", self.slots_left)];
        let others = others.into_iter().filter(|(_, count)| *count > 0);
        figures.extend(others.map(|(name, count)| KeyFigure::new(name, Cell::count(count))));
        let missed = self.missed.iter().map(|missed| {
            let due = instant(&self.schedule, missed.first, style);
            let error = missed.error.iter().map(|error| format!(": {error}")).collect::<String>();
            // Slots count from 1 for people.
            let (first, last) = (missed.first + 1, missed.first.saturating_add(missed.count));
            let slots =
                if first < last { format!("slots {first} to {last}") } else { format!("slot {first}") };
            format!("{slots} ({due}): {}{error}.", missed.reason.text())
        });
        let mut view = View { data: self.table(style), ..View::default() };
        view.push("Schedule", [Block::KeyFigures(figures)]);
        view.push("Missed slots", [Block::Notes(missed.collect())]);
        if lists_runs {
            view.push("Runs", [Block::Table(view.data.clone())]);
        }
        view
    }

    /// A row for each figure of each run.
    fn table(&self, style: &Style) -> Table {
        let columns = [
            Column::right("slot"),
            Column::left("due").id("due_unix_ms"),
            Column::right("run"),
            Column::left("status"),
            Column::left("test"),
            Column::left("metric"),
            Column::right("value"),
        ];
        let rows = self.runs.iter().flat_map(|run| {
            let due = instant(&self.schedule, run.slot, style);
            run.figures.iter().map(move |figure| {
                Row::new([
                    Cell::integer(run.slot, grouped(run.slot + 1)),
                    Cell::integer(run.due_unix_ms, due.as_str()),
                    run.run.map(Cell::count).into(),
                    run.status.name().into(),
                    figure.test.as_str().into(),
                    figure.metric.as_str().into(),
                    value_cell(figure.kind, figure.value),
                ])
            })
        });
        Table::new(columns, rows)
    }
}

/// When a slot is due: a date, or the time since the start of a simulated schedule.
pub fn instant(schedule: &RunSchedule, slot: u64, style: &Style) -> String {
    match (schedule.begins_unix_ms, slot) {
        (0, 0) => "at the start".to_owned(),
        (0, slot) => format!("{} after the start", duration(Nanos::from_millis(schedule.instant_of(slot)))),
        (_, slot) => style.time(schedule.instant_of(slot), "%Y-%m-%d %H:%M:%S"),
    }
}
