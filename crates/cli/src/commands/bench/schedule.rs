//! `fathom bench --every TIME --for TIME`: a bench at fixed instants, each run of which is kept in the history as it ends.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use fathom_analysis::Analysis;
use fathom_assess::schedule::SchedulePlan;
use fathom_assess::{BenchSettings, TestKeeper, is_simulated};
use fathom_history::{Filter, History, HistoryPath, Location, RunId};
use fathom_model::Nanos;
use fathom_model::units::{duration, grouped};
use fathom_record::{
    ActivityKind, MissedSlots, RunHeader, RunRecord, RunSchedule, SCHEDULE_LABEL, ScheduledSlot, TestRecord,
    TestStatus,
};
use fathom_report::formats::Format;
use fathom_report::schedule::{ScheduleReport, ScheduledRun, instant};
use fathom_report::{Style, TextWriter};
use fathom_sys::clock::unix_ms;
use fathom_sys::device::HostFacts;

use super::plan::{plan_json, plan_text};
use super::{BenchArguments, settings};
use crate::commands::measuring::Measuring;
use crate::commands::words::{positive_duration, time_for};
use crate::exit::{Complaint, Exit, with_causes};
use crate::output::{self, Bar};
use crate::progress::BenchCourse;
use crate::store::{self, HistoryKeeper};

/// The options of a schedule.
#[derive(Args, Debug)]
pub struct ScheduleArguments {
    /// Run the tests at fixed instants, so far apart: 15m, 1h, 1d
    #[arg(long, value_parser = time_for("an interval", 1), value_name = "TIME", requires = "lasts", conflicts_with_all = ["against", "report"])]
    every: Option<Nanos>,
    /// End of the runs of --every, from the first one: 24h, 7d
    #[arg(long = "for", value_parser = positive_duration, value_name = "TIME", requires = "every")]
    lasts: Option<Nanos>,
}

impl ScheduleArguments {
    /// Interval and duration of the schedule that is asked for.
    pub fn times(&self) -> Option<(Nanos, Nanos)> {
        self.every.zip(self.lasts)
    }
}

/// Begins a schedule, or goes on with the unfinished one of the same command line.
///
/// # Errors
/// It could not begin.
pub fn run(
    arguments: BenchArguments,
    (every, lasts): (Nanos, Nanos),
    measuring: Measuring,
    command: &[OsString],
) -> Result<Exit, Complaint> {
    let (dry_run, show_fio, strict) = (arguments.dry_run, arguments.show_fio, arguments.strict);
    let form = measuring.form;
    let as_json = dry_run && form.is_json("a plan")?;
    let bench = settings(arguments, command);
    let (schedule, next) = new_or_unfinished(&bench, every, lasts, &measuring.place)?;
    let mut plan = SchedulePlan::make(bench, schedule, next)?;
    if dry_run {
        output::print(|out| match as_json {
            true => plan_json(&plan.bench, out),
            false => announce(&plan, Some(show_fio), &form.style(), out),
        })?;
        return Ok(Exit::Done);
    }
    plan.bench.settings.run.earlier = store::identifications(&measuring.place);
    measuring.announce(|out| announce(&plan, None, &form.style(), out))?;
    let plan = Arc::new(plan);
    let (shown, measured) = (Arc::new(plan.bench.clone()), plan.clone());
    let (place, style) = (measuring.place.clone(), form.style());
    let prints_runs = form.format() == Format::Text;
    let (keeper, missed, is_interrupted) = measuring.measured_apart(
        move |control, observer| fathom_assess::schedule::run(&measured, &control, observer),
        |bar, hub| ScheduleKeeper {
            plan: plan.clone(),
            history: HistoryKeeper::new(place, Some(bar.clone())).followed(hub),
            bar,
            style: prints_runs.then_some(style),
            runs: Vec::new(),
            missed: Vec::new(),
            is_missed: false,
            is_inconclusive: false,
        },
        BenchCourse::new(shown),
    )?;
    let has_failed = keeper.runs.iter().any(|run| run.status == TestStatus::Failed);
    let exit = Exit::of_runs(is_interrupted, has_failed)
        .with_criteria(keeper.is_missed, strict && keeper.is_inconclusive);
    let (missed, name) = ([keeper.missed, missed.unwrap_or_default()].concat(), &plan.schedule.name);
    let report =
        ScheduleReport::new(&plan.schedule, plan.bench.target_name(), plan.next, keeper.runs, missed);
    form.print(|| report.view(!prints_runs, &form.style()), |out| report.render_json(out))?;
    if prints_runs && report.runs.iter().any(|run| run.run.is_some()) {
        let goes_on = if report.slots_left > 0 { "\nThe same command line continues it." } else { "" };
        let kept =
            format!("\nKept with the label schedule={name}: fathom history list --label schedule={name}");
        output::print(|out| format!("{kept}{goes_on}").lines().try_for_each(|line| writeln!(out, "{line}")))?;
    }
    Ok(exit)
}

/// The schedule that the newest run of the same command line belongs to, if slots of it are left, and the first of them; else a new one.
fn new_or_unfinished(
    bench: &BenchSettings,
    every: Nanos,
    lasts: Nanos,
    place: &HistoryPath,
) -> Result<(RunSchedule, u64), Complaint> {
    let target = &bench.run.target;
    let is_simulated = is_simulated(target);
    // A whole second, and none that has passed: the first run would begin late.
    let now = if is_simulated { 0 } else { unix_ms().next_multiple_of(1000) };
    let name = bench.run.labels.get(SCHEDULE_LABEL).cloned();
    let schedule = RunSchedule {
        name: name.unwrap_or_else(|| default_name(target, every, lasts)),
        begins_unix_ms: now,
        every_ms: every.as_millis(),
        lasts_ms: lasts.as_millis(),
    };
    if is_simulated {
        // The burst credits of its volume are not kept.
        return Ok((schedule, 0));
    }
    let newest = headers(place, &schedule.name)?
        .into_iter()
        .filter(|header| header.command == bench.run.command)
        .filter_map(|header| header.scheduled)
        .filter(|ScheduledSlot { schedule: known, slot, .. }| {
            (known.every_ms, known.lasts_ms) == (schedule.every_ms, schedule.lasts_ms)
                && known.ends_unix_ms() > now
                && slot + 1 < known.slots()
        })
        .max_by_key(|found| found.slot);
    Ok(newest.map_or((schedule, 0), |found| (found.schedule, found.slot + 1)))
}

/// The headers of the newest run of the schedule `name` on this host in the history, and of runs that wait for its server.
fn headers(place: &HistoryPath, name: &str) -> Result<Vec<RunHeader>, Complaint> {
    let Some(location) = &place.history else { return Ok(Vec::new()) };
    let filter = Filter {
        kind: Some(ActivityKind::Bench),
        labels: vec![(SCHEDULE_LABEL.to_owned(), Some(name.to_owned()))],
        host: HostFacts::read().hostname,
        newest: Some(1),
        ..Filter::default()
    };
    let mut found: Vec<RunHeader> = place.unsent_records().into_iter().map(|record| record.header).collect();
    match (History::open_if_there(location, place.patience), location) {
        (Ok(history), _) => {
            for history in history.iter() {
                let newest = history.list(&filter)?.rows.pop();
                found.extend(newest.and_then(|row| history.header(RunId(row.id as i64)).ok()));
            }
        }
        // A server that cannot be read is no reason not to measure.
        (Err(error), Location::Server(_)) => {
            let text = with_causes(&error);
            output::warn(&format!("warning: {text}; the runs that it has of this schedule are not known"));
        }
        (Err(error), Location::File(_)) => return Err(error.into()),
    }
    Ok(found)
}

/// Target, interval and duration in words: `mnt-data-1-h-7-d`.
fn default_name(target: &Path, every: Nanos, lasts: Nanos) -> String {
    let absolute = std::path::absolute(target).ok().filter(|_| !is_simulated(target));
    let target = absolute.as_deref().unwrap_or(target).to_string_lossy();
    let text = format!("{target} {} {}", duration(every), duration(lasts));
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<&str>>().join("-")
}

/// The plan; with the tests of a run, and their fio commands, where `in_full` says so.
fn announce(
    plan: &SchedulePlan,
    in_full: Option<bool>,
    style: &Style,
    out: &mut TextWriter,
) -> io::Result<()> {
    let SchedulePlan { schedule, bench, next, .. } = plan;
    let [every, lasts] = [schedule.every_ms, schedule.lasts_ms].map(|ms| duration(Nanos::from_millis(ms)));
    let (name, slots, due) = (&schedule.name, schedule.slots(), instant(schedule, *next, style));
    let text = format!(
        "Schedule {name}: {} runs, one every {every} for {lasts}; run {} is due {due}.",
        grouped(slots),
        next + 1
    );
    output::paragraph(&text, out)?;
    writeln!(out, "Each run:")?;
    plan_text(bench, in_full.is_some(), in_full == Some(true), out)
}

/// Keeps the runs of a schedule: each in the history as it ends, and of each what the report needs.
struct ScheduleKeeper {
    plan: Arc<SchedulePlan>,
    history: HistoryKeeper,
    bar: Bar,
    /// A line is printed for each run in this style.
    style: Option<Style>,
    runs: Vec<ScheduledRun>,
    /// The slots that they name as missed.
    missed: Vec<MissedSlots>,
    /// A run missed an expectation.
    is_missed: bool,
    /// A run had an inconclusive one.
    is_inconclusive: bool,
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
        let analysis = Analysis::of(record);
        let run = ScheduledRun::new(&analysis, &slot, store::run_id(&kept));
        self.is_missed |= analysis.is_missed();
        self.is_inconclusive |= analysis.is_inconclusive();
        self.missed.extend(slot.missed);
        if let Some(style) = &self.style {
            let line = run.line(&self.plan.schedule, style);
            // What cannot be printed now cannot be printed at the end either, which fails then.
            self.bar.suspend(|| drop(output::print(|out| writeln!(out, "{line}"))));
        }
        self.runs.push(run);
    }
}
