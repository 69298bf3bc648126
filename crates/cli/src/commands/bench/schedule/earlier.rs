//! What the history knows of a schedule: its runs, their values, and where it goes on.

use std::path::Path;
use std::sync::Arc;

use fathom_analysis::criterion::Metric;
use fathom_analysis::schedule::{ScheduledValue, leading_metrics, next_slot};
use fathom_analysis::trend::{TrendPoint, TrendRow};
use fathom_history::{Error, Filter, History, HistoryPath, Location, RunId, RunKey, TrendQuery};
use fathom_record::{
    ActivityKind, HistoryRow, MissedSlots, RunHeader, RunRecord, RunSchedule, SCHEDULE_LABEL, ScheduledSlot,
    TestRecord, TestStatus, TestSummary,
};
use fathom_report::schedule::{ScheduledRun, UnmetExpectation};
use fathom_sys::clock::unix_ms;
use fathom_sys::device::HostFacts;

use super::absolute;
use crate::exit::{Complaint, with_causes};
use crate::{output, store};

/// A simulated run counts as if it began a day later: an instant of 0 means that there is none.
const DAY_MS: u64 = 86_400_000;
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
    /// The expectations that its runs did not meet.
    pub unmet: Vec<UnmetExpectation>,
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

/// Where the runs of schedules are: in the history, and in side files that wait for its server.
#[derive(Default)]
pub struct StoredRuns {
    history: Option<History>,
    waiting: Vec<RunRecord>,
    /// Why the server cannot be read: its runs are unknown.
    pub unreachable: Option<Error>,
}

impl StoredRuns {
    /// Opens the history of `place`, and sends what waits for its server. A server that cannot be read is no reason not to measure:
    /// the user is warned.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn open(place: &HistoryPath) -> Result<StoredRuns, Complaint> {
        let Some(location) = &place.history else { return Ok(StoredRuns::default()) };
        let opened = match History::open_if_there(location, place.patience) {
            // A server without a history gets one for what waits for it.
            Ok(None) if !place.unsent_records().is_empty() => {
                History::open(location, place.patience).map(Some)
            }
            opened => opened,
        };
        let (mut history, unreachable) = match (opened, location) {
            (Ok(history), _) => (history, None),
            (Err(error), Location::Server(_)) => (None, Some(error)),
            (Err(error), Location::File(_)) => return Err(error.into()),
        };
        if let Some(history) = &mut history {
            store::tell_of_sent(&place.send_unsent(history));
        }
        Ok(StoredRuns { history, waiting: place.unsent_records(), unreachable })
    }

    /// Tells the user that what the server has is not known.
    pub fn tell_of_unreachable(&self) {
        if let Some(error) = &self.unreachable {
            output::warn(&format!(
                "warning: {}; the runs that it has of this schedule are not known",
                with_causes(error)
            ));
        }
    }

    /// The waiting runs of the schedule `name`, or of all, with their slots, oldest first.
    fn waiting(&self, name: Option<&str>) -> impl DoubleEndedIterator<Item = (&RunRecord, ScheduledSlot)> {
        self.waiting.iter().filter_map(move |record| {
            let slot = plausible(&record.header)?;
            name.is_none_or(|name| slot.schedule.name == name).then_some((record, slot))
        })
    }
}

/// The runs of the schedule `name`, or of all schedules.
fn filter(name: Option<&str>) -> Filter {
    let label = (SCHEDULE_LABEL.to_owned(), name.map(str::to_owned));
    Filter { kind: Some(ActivityKind::Bench), labels: vec![label], ..Filter::default() }
}

/// The header of a run with its slot; `None` of a run that only has the label, or whose slot cannot be.
fn scheduled(history: &History, row: &HistoryRow) -> Option<(RunHeader, ScheduledSlot)> {
    let header = history.header(RunId(i64::try_from(row.id).ok()?)).ok()?;
    let slot = plausible(&header)?;
    Some((header, slot))
}

/// The slot of a run, if there can be such a one.
fn plausible(header: &RunHeader) -> Option<ScheduledSlot> {
    let slot = header.scheduled.clone()?;
    (slot.schedule.slots() <= MOST_SLOTS && slot.slot < slot.schedule.slots()).then_some(slot)
}

/// When a run with these tests ended as far as they tell, ms since the epoch.
fn ended_unix_ms(header: &RunHeader, tests: &[TestRecord]) -> u64 {
    header.started_unix_ms.saturating_add(tests.iter().map(|test| test.elapsed_ns / 1_000_000).sum::<u64>())
}

/// The figures of a complete run, under the number `run`.
pub fn values_of(record: &RunRecord, slot: &ScheduledSlot, run: u64) -> Vec<ScheduledValue> {
    let header = &record.header;
    let started_unix_ms = match header.started_unix_ms {
        0 => slot.due_unix_ms() + DAY_MS,
        started => started,
    };
    let key: Arc<str> = header.host().hostname.as_str().into();
    let target: Arc<str> = header.target.as_str().into();
    let of_test = |test: &TestRecord| {
        let (summary, id) = (TestSummary::new(test), Arc::<str>::from(test.id.as_str()));
        let value = |metric: Metric| {
            let (value, target) = (metric.of(&summary)?, target.clone());
            let point = TrendPoint { run, dated_unix_ms: started_unix_ms, started_unix_ms, target, value };
            Some(ScheduledValue { metric, row: TrendRow { test: id.clone(), key: key.clone(), point } })
        };
        leading_metrics().into_iter().filter_map(value).collect::<Vec<ScheduledValue>>()
    };
    record.tests.iter().flat_map(of_test).collect()
}

impl EarlierRuns {
    /// The stored runs of the schedule `name`; those of all hosts that share the history.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn of(stored: &StoredRuns, name: &str) -> Result<EarlierRuns, Complaint> {
        let mut found = EarlierRuns::default();
        let host = HostFacts::read().hostname.unwrap_or_default();
        if let Some(history) = &stored.history {
            found.add_stored(history, name, &host)?;
        }
        for (record, slot) in stored.waiting(Some(name)) {
            found.add_waiting(record, slot, &host);
        }
        found.runs.sort_by_key(|run| run.slot);
        found.unmet.sort_by_key(|unmet| unmet.slot);
        found.values.sort_by_key(|value| value.row.point.dated_unix_ms);
        Ok(found)
    }

    /// Adds the runs in the history.
    fn add_stored(&mut self, history: &History, name: &str, host: &str) -> Result<(), Complaint> {
        let listing = history.list(&filter(Some(name)))?;
        store::tell_of_unreadable(&listing.unreadable);
        let load = |row: &HistoryRow| history.load(RunId(i64::try_from(row.id).ok()?)).ok();
        let mut last = None;
        for row in &listing.rows {
            let Some((_, ScheduledSlot { schedule, slot, missed })) = scheduled(history, row) else {
                continue;
            };
            let is_unmet = row.verdict.as_deref().is_some_and(|verdict| verdict != "met");
            if let Some(record) = is_unmet.then(|| load(row)).flatten() {
                self.unmet.extend(UnmetExpectation::all(&record, slot));
            }
            self.schedule = Some(schedule);
            self.missed.extend(missed);
            self.runs.push(ScheduledRun {
                slot,
                run: Some(row.id),
                started_unix_ms: row.started_unix_ms,
                status: row.status,
                hostname: row.hostname.clone(),
            });
            if row.hostname == host && slot >= self.next_slot {
                self.next_slot = slot + 1;
                last = Some(row);
            }
        }
        let last = last.and_then(load);
        self.busy_until_unix_ms = last.map_or(0, |record| ended_unix_ms(&record.header, &record.tests));
        for metric in leading_metrics().into_iter().filter(|_| !self.runs.is_empty()) {
            let filter = Filter { status: Some(TestStatus::Complete), ..filter(Some(name)) };
            let query = TrendQuery { metric, test: None, by: RunKey::Host, filter };
            let rows = history.trend(&query)?;
            self.values.extend(rows.into_iter().map(|row| ScheduledValue { metric, row }));
        }
        Ok(())
    }

    /// Adds a run in a side file.
    fn add_waiting(&mut self, record: &RunRecord, scheduled: ScheduledSlot, host: &str) {
        let hostname = record.header.host().hostname.clone();
        let slot = scheduled.slot;
        if hostname == host && slot >= self.next_slot {
            self.next_slot = slot + 1;
            self.busy_until_unix_ms = ended_unix_ms(&record.header, &record.tests);
        }
        if record.status == TestStatus::Complete {
            self.values.extend(values_of(record, &scheduled, slot + 1));
        }
        self.unmet.extend(UnmetExpectation::all(record, slot));
        self.schedule = Some(scheduled.schedule);
        self.missed.extend(scheduled.missed);
        let (started_unix_ms, status) = (record.header.started_unix_ms, record.status);
        self.runs.push(ScheduledRun { slot, run: None, started_unix_ms, status, hostname });
    }

    /// Of a server that cannot be read, the slots that have passed may have runs: none of them counts as missed.
    pub fn pass_unknown(&mut self, schedule: &RunSchedule, now_unix_ms: u64) {
        if self.runs.is_empty() {
            self.next_slot = next_slot(schedule, 0, now_unix_ms).missed.end;
        }
    }
}

/// Schedules of which runs are stored.
struct KnownSchedules {
    host: String,
    found: Vec<UnfinishedSchedule>,
    /// Those whose last slot this host has run.
    over: Vec<String>,
}

impl Default for KnownSchedules {
    fn default() -> KnownSchedules {
        let host = HostFacts::read().hostname.unwrap_or_default();
        KnownSchedules { host, found: Vec::new(), over: Vec::new() }
    }
}

impl KnownSchedules {
    fn is_known(&self, name: &str) -> bool {
        self.found.iter().any(|known| known.schedule.name == name)
    }

    /// Adds the schedule of a run that is older than those before it.
    fn add(&mut self, header: RunHeader, ScheduledSlot { schedule, slot, .. }: ScheduledSlot) {
        if header.host().hostname == self.host && slot + 1 >= schedule.slots() {
            self.over.push(schedule.name.clone());
        }
        if !self.is_known(&schedule.name) {
            self.found.push(UnfinishedSchedule { schedule, command: header.command, seed: header.seed });
        }
    }

    fn add_stored(&mut self, history: &History, filter: &Filter) -> Result<(), Complaint> {
        let listing = history.list(filter)?;
        store::tell_of_unreadable(&listing.unreadable);
        for row in listing.rows.iter().rev() {
            let is_known = row.labels.get(SCHEDULE_LABEL).is_some_and(|name| self.is_known(name));
            if is_known && row.hostname != self.host {
                continue;
            }
            if let Some((header, slot)) = scheduled(history, row) {
                self.add(header, slot);
            }
        }
        Ok(())
    }
}

/// The schedule to go on with: the one called `name`, which may have ended, or the only one of `target` that has not.
///
/// # Errors
/// There is none, or there are several.
pub fn unfinished(
    stored: &mut StoredRuns,
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
    let mut known = KnownSchedules::default();
    let is_of_target = |header: &RunHeader| target.as_ref().is_none_or(|target| header.target == *target);
    for (record, slot) in stored.waiting(name).rev().filter(|(record, _)| is_of_target(&record.header)) {
        known.add(record.header.clone(), slot);
    }
    match (&stored.history, stored.unreachable.take()) {
        (Some(history), _) => known.add_stored(history, &Filter { target, ..filter(name) })?,
        (None, Some(error)) if known.found.is_empty() => return Err(error.into()),
        (None, unreachable) => stored.unreachable = unreachable,
    }
    let KnownSchedules { mut found, over, .. } = known;
    if name.is_none() {
        let now = unix_ms();
        found.retain(|known| known.schedule.ends_unix_ms() > now && !over.contains(&known.schedule.name));
    }
    match found.len() {
        0 if stored.history.is_none() => {
            none("name the history with --history, or begin a schedule with --every and --for")
        }
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
