//! A schedule: its runs and missed slots, how its figures vary, and the systemd units that run it.

mod json;
pub mod units;
mod view;

use fathom_analysis::expectation::{self, ExpectationResult};
use fathom_analysis::schedule::{FigureVariation, VariationVerdict};
use fathom_model::Nanos;
use fathom_model::units::{duration, grouped};
use fathom_record::{MissedSlots, RunRecord, RunSchedule, TestStatus};

pub use json::render as render_json;
pub use view::view;

use crate::Style;
use crate::bench::expectations;
use crate::view::Cell;

/// A run of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledRun {
    /// Number of its slot, from 0.
    pub slot: u64,
    /// Its number in the history; `None` where it is not kept there.
    pub run: Option<u64>,
    /// When it began, ms since the epoch; 0 for simulated runs.
    pub started_unix_ms: u64,
    /// How it ended.
    pub status: TestStatus,
    /// The host it ran on; empty for simulated runs.
    pub hostname: String,
}

/// An expectation that a run of a schedule did not meet.
#[derive(Clone, Debug)]
pub struct UnmetExpectation {
    /// Number of the slot, from 0.
    pub slot: u64,
    /// The expectation and its result.
    pub result: ExpectationResult,
    /// Its test, metric, expected and measured value and verdict.
    cells: [Cell; 5],
}

impl UnmetExpectation {
    /// Those of the run of `slot`: missed and inconclusive ones.
    pub fn all(record: &RunRecord, slot: u64) -> Vec<UnmetExpectation> {
        let judged = expectation::judge(record).into_iter();
        let unmet = judged.filter(|result| result.verdict.decided() != Some(true));
        let cells = |result: &ExpectationResult| expectations::cells(record, result);
        unmet.map(|result| UnmetExpectation { slot, cells: cells(&result), result }).collect()
    }

    /// `rand-read IOPS missed, -40 %`.
    pub fn text(&self) -> String {
        let [test, metric, _, _, verdict] = &self.cells;
        format!("{} {} {}", test.text, metric.text, verdict.text)
    }
}

/// What a report on a schedule is made of.
#[derive(Clone, Debug)]
pub struct ScheduleReport {
    /// Name, instants and end.
    pub schedule: RunSchedule,
    /// The target.
    pub target: String,
    /// Its time is virtual.
    pub is_simulated: bool,
    /// The runs so far, by slot.
    pub runs: Vec<ScheduledRun>,
    /// The slots so far that have none.
    pub missed: Vec<MissedSlots>,
    /// The expectations that its runs did not meet, by slot.
    pub unmet: Vec<UnmetExpectation>,
    /// Slots that are still to come.
    pub left: u64,
    /// How the figures vary.
    pub figures: Vec<FigureVariation>,
    /// The command line that goes on with it, where slots are left.
    pub resume: Option<String>,
}

impl ScheduleReport {
    /// Slots that have no run.
    pub fn missed_count(&self) -> u64 {
        self.missed.iter().map(|missed| missed.count).sum()
    }

    /// Runs with this status.
    fn count(&self, status: TestStatus) -> usize {
        self.runs.iter().filter(|run| run.status == status).count()
    }
}

/// When a slot is due: a date, or the time since the start where that is virtual.
pub fn instant(schedule: &RunSchedule, is_simulated: bool, slot: u64, style: &Style) -> String {
    match (is_simulated, slot) {
        (true, 0) => "at the start".to_owned(),
        (true, slot) => {
            let since = Nanos::from_millis(slot.saturating_mul(schedule.every_ms));
            format!("{} after the start", duration(since))
        }
        (false, slot) => style.time(schedule.instant_of(slot), "%Y-%m-%d %H:%M:%S"),
    }
}

/// When its first and its last run are due.
pub fn span(schedule: &RunSchedule, is_simulated: bool, style: &Style) -> String {
    let at = |slot: u64| instant(schedule, is_simulated, slot, style);
    match is_simulated {
        true => "in simulated time".to_owned(),
        false => format!("{} to {}", at(0), at(schedule.slots().saturating_sub(1))),
    }
}

const DAY_MS: u64 = 86_400_000;

/// `168 runs, one every 1 h for 7 days`.
pub fn times(schedule: &RunSchedule) -> String {
    let [every, lasts] = [schedule.every_ms, schedule.lasts_ms].map(|ms| match ms / DAY_MS {
        1 if ms == DAY_MS => "day".to_owned(),
        days if ms == days * DAY_MS => format!("{days} days"),
        _ => duration(Nanos::from_millis(ms)),
    });
    let lasts = if lasts == "day" { "1 day" } else { &lasts };
    format!("{} runs, one every {every} for {lasts}", grouped(schedule.slots()))
}

/// `slot 3`, `slots 3 to 5`; slots count from 1 for people.
pub fn slots(missed: &MissedSlots) -> String {
    match missed.count {
        0 | 1 => format!("slot {}", missed.first + 1),
        count => format!("slots {} to {}", missed.first + 1, missed.first.saturating_add(count)),
    }
}

/// What a comparison of hours or hosts says where there are too few runs.
fn too_few(verdict: VariationVerdict, groups: &str) -> Option<String> {
    let is_open = verdict == VariationVerdict::Inconclusive;
    is_open.then(|| format!("Inconclusive: fewer than two {groups} have 3 runs or more."))
}
