//! What the history knows of a schedule: its runs, their values, and where it goes on.

use std::path::Path;

use fathom_analysis::schedule::{ScheduledValue, leading_metrics};
use fathom_history::{Filter, History, HistoryPath, RunId, RunKey, TrendQuery};
use fathom_record::{
    ActivityKind, HistoryRow, MissedSlots, RunHeader, RunSchedule, SCHEDULE_LABEL, ScheduledSlot, TestStatus,
};
use fathom_report::schedule::ScheduledRun;
use fathom_sys::clock::unix_ms;
use fathom_sys::device::HostFacts;

use super::absolute;
use crate::exit::Complaint;
use crate::store;

/// Most slots of a schedule that is read back: a record may have been written by anyone.
const MOST_SLOTS: u64 = 1_000_000;

/// The runs of a schedule that are stored.
#[derive(Default)]
pub struct EarlierRuns {
    /// The schedule, as its last run has it.
    pub schedule: Option<RunSchedule>,
    /// Its runs, by slot.
    pub runs: Vec<ScheduledRun>,
    /// The slots that its runs name as missed.
    pub missed: Vec<MissedSlots>,
    /// The figures of its runs.
    pub values: Vec<ScheduledValue>,
    /// When its last run on this host ended, ms since the epoch; 0 without one.
    pub busy_until_unix_ms: u64,
    /// The first slot after those of this host.
    pub next_slot: u64,
}

/// A schedule that is to go on.
pub struct UnfinishedSchedule {
    /// Name, instants and end.
    pub schedule: RunSchedule,
    /// The command line that began it.
    pub command: Vec<String>,
    /// What its random choices derive from.
    pub seed: Option<u64>,
}

fn open(place: &HistoryPath) -> Result<Option<History>, Complaint> {
    let Some(location) = &place.history else { return Ok(None) };
    Ok(History::open_if_there(location, place.patience)?)
}

/// The runs of the schedule `name`, or of all schedules.
fn filter(name: Option<&str>) -> Filter {
    let label = (SCHEDULE_LABEL.to_owned(), name.map(str::to_owned));
    Filter { kind: Some(ActivityKind::Bench), labels: vec![label], ..Filter::default() }
}

/// The header of a run with its slot; `None` of a run that only has the label, or whose slot cannot be.
fn scheduled(history: &History, row: &HistoryRow) -> Option<(RunHeader, ScheduledSlot)> {
    let header = history.header(RunId(i64::try_from(row.id).ok()?)).ok()?;
    let slot = header.scheduled.clone()?;
    (slot.schedule.slots() <= MOST_SLOTS && slot.slot < slot.schedule.slots()).then_some((header, slot))
}

impl EarlierRuns {
    /// The stored runs of the schedule `name`; those of all hosts that share the history.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn of(place: &HistoryPath, name: &str) -> Result<EarlierRuns, Complaint> {
        let Some(history) = open(place)? else { return Ok(EarlierRuns::default()) };
        let listing = history.list(&filter(Some(name)))?;
        store::tell_of_unreadable(&listing.unreadable);
        let host = HostFacts::read().hostname.unwrap_or_default();
        let mut found = EarlierRuns::default();
        let mut last = None;
        for row in &listing.rows {
            let Some((_, scheduled)) = scheduled(&history, row) else { continue };
            let ScheduledSlot { schedule, slot, missed } = scheduled;
            found.schedule = Some(schedule);
            found.missed.extend(missed);
            found.runs.push(ScheduledRun {
                slot,
                run: Some(row.id),
                started_unix_ms: row.started_unix_ms,
                status: row.status,
                hostname: row.hostname.clone(),
            });
            if row.hostname == host && slot >= found.next_slot {
                found.next_slot = slot + 1;
                last = Some(row);
            }
        }
        found.runs.sort_by_key(|run| run.slot);
        found.busy_until_unix_ms = last.map_or(0, |row| ended_unix_ms(&history, row));
        for metric in leading_metrics().into_iter().filter(|_| !found.runs.is_empty()) {
            let filter = Filter { status: Some(TestStatus::Complete), ..filter(Some(name)) };
            let query = TrendQuery { metric, test: None, by: RunKey::Host, filter };
            let rows = history.trend(&query)?;
            found.values.extend(rows.into_iter().map(|row| ScheduledValue { metric, row }));
        }
        Ok(found)
    }
}

/// When a run ended as far as its tests tell, ms since the epoch.
fn ended_unix_ms(history: &History, row: &HistoryRow) -> u64 {
    let run = i64::try_from(row.id).ok().and_then(|id| history.load(RunId(id)).ok());
    let tests = run.map(|run| run.tests.iter().map(|test| test.elapsed_ns / 1_000_000).sum::<u64>());
    row.started_unix_ms.saturating_add(tests.unwrap_or(0))
}

/// The schedule to go on with: the one called `name`, which may have ended, or the only one of `target` that has not.
///
/// # Errors
/// There is none, or there are several.
pub fn unfinished(
    place: &HistoryPath,
    name: Option<&str>,
    target: Option<&Path>,
) -> Result<UnfinishedSchedule, Complaint> {
    let target = match (target, name) {
        (None, Some(_)) => None,
        (None, None) => Some(absolute(Path::new("."))),
        (Some(target), _) => Some(absolute(target)),
    };
    let of_target = target.as_ref().map(|target| format!(" of {target}")).unwrap_or_default();
    let none = |hint: &str| {
        let what = match name {
            Some(name) => format!("schedule called {name}"),
            None => "unfinished schedule".to_owned(),
        };
        Err(Complaint::failed(format!("the history has no {what}{of_target}"), Some(hint.to_owned())))
    };
    let Some(history) = open(place)? else {
        return none("name the history with --history, or begin a schedule with --every and --for");
    };
    let listing = history.list(&Filter { target, ..filter(name) })?;
    store::tell_of_unreadable(&listing.unreadable);
    let (now, host) = (unix_ms(), HostFacts::read().hostname.unwrap_or_default());
    let mut found: Vec<UnfinishedSchedule> = Vec::new();
    // Those whose last slot this host has run.
    let mut over: Vec<String> = Vec::new();
    for row in listing.rows.iter().rev() {
        let name_of_run = row.labels.get(SCHEDULE_LABEL);
        let is_known = name_of_run.is_some_and(|name| found.iter().any(|known| known.schedule.name == *name));
        if is_known && row.hostname != host {
            continue;
        }
        let Some((header, ScheduledSlot { schedule, slot, .. })) = scheduled(&history, row) else { continue };
        if row.hostname == host && slot + 1 >= schedule.slots() {
            over.push(schedule.name.clone());
        }
        if !is_known {
            found.push(UnfinishedSchedule { schedule, command: header.command, seed: header.seed });
        }
    }
    if name.is_none() {
        found.retain(|known| known.schedule.ends_unix_ms() > now && !over.contains(&known.schedule.name));
    }
    match found.len() {
        0 => none(
            "begin one with --every and --for; `fathom history list --label schedule` lists all runs of schedules",
        ),
        1 => Ok(found.remove(0)),
        _ => {
            let names: Vec<&str> = found.iter().map(|known| known.schedule.name.as_str()).collect();
            Err(Complaint::usage(
                format!("several schedules{of_target} are unfinished: {}", names.join(", ")),
                Some(format!("choose one with --schedule {}", names[0])),
            ))
        }
    }
}
