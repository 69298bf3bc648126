//! `fathom bench --every TIME --for TIME`: runs a bench at fixed instants, and shows how its figures vary by hour and by host.

mod earlier;
mod keeper;
mod plan;
mod systemd;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use fathom_analysis::schedule::variation;
use fathom_assess::schedule::{SchedulePlan, ScheduleSettings, check_times};
use fathom_assess::{BenchSettings, MeasurementEnd, is_simulated};
use fathom_history::Location;
use fathom_model::Nanos;
use fathom_model::text::shell_quoted;
use fathom_record::{MissedSlots, RunSchedule, TestStatus};
use fathom_report::Style;
use fathom_report::formats::Format;
use fathom_report::schedule::{ScheduleReport, render_json, view};
use fathom_sys::clock::unix_ms;
use fathom_sys::named_lock::NamedLock;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use self::earlier::{EarlierRuns, StoredRuns, unfinished};
use self::keeper::ScheduleKeeper;
use super::BenchArguments;
use crate::commands::measuring::Measuring;
use crate::commands::words::{date_in, positive_duration};
use crate::commands::{Arguments, Command};
use crate::exit::{Complaint, Exit};
use crate::output;
use crate::schedule_progress::ScheduleProgress;
use crate::store::{self, HistoryKeeper};

/// The options of a schedule.
#[derive(Args, Debug, Default)]
pub struct ScheduleArguments {
    /// Run the tests at fixed instants, so far apart: 15m, 1h, 1d
    #[arg(long, value_parser = positive_duration, value_name = "TIME", requires = "lasts", conflicts_with_all = ["against", "report"])]
    every: Option<Nanos>,
    /// End of the schedule, from its first run: 24h, 7d
    #[arg(long = "for", value_parser = positive_duration, value_name = "TIME", requires = "every")]
    lasts: Option<Nanos>,
    /// First run: a date and time such as 2026-11-24T02:00 [default: now]
    #[arg(long, value_parser = first_instant, value_name = "TIME", requires = "every")]
    from: Option<u64>,
    /// Name of the schedule, its label in the history [default: made of target and date]
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,
    /// Run only the test run that is due now, then end (for timers)
    #[arg(long, requires = "every", conflicts_with = "no_history")]
    due: bool,
    /// Print a systemd timer and service that run the schedule, without running it
    #[arg(long, requires = "every", conflicts_with_all = ["due", "dry_run", "no_history", "tui", "streams"])]
    systemd: bool,
    /// Resume the unfinished schedule of the target, or the one named by --schedule, with its own options
    #[arg(long, conflicts_with_all = [
        "suite", "profiles", "quick", "thorough", "size", "runtime", "until_steady", "precision", "min_runtime", "against",
        "delta", "conditions", "budget", "only", "expect", "expect_file", "tolerance", "strict", "class", "destroy_data",
        "show_fio", "report", "every", "lasts", "from", "due", "systemd", "labels", "tags", "keep", "no_history", "buffered", "engine", "seed",
    ])]
    pub resume: bool,
}

impl ScheduleArguments {
    /// True where a schedule is begun.
    pub fn is_asked_for(&self) -> bool {
        self.every.is_some() || self.schedule.is_some()
    }
}

fn first_instant(text: &str) -> Result<u64, String> {
    date_in(text, &TimeZone::system())
        .ok_or_else(|| format!("'{text}' is no time: write 2026-11-24T02:00 or 2026-11-24T02:00:00Z"))
}

/// Begins a schedule, or goes on with one of the same name and instants.
///
/// # Errors
/// It could not begin.
pub fn begin(
    mut arguments: BenchArguments,
    measuring: Measuring,
    command: &[OsString],
) -> Result<Exit, Complaint> {
    let asked = std::mem::take(&mut arguments.schedule);
    let (Some(every), Some(lasts)) = (asked.every, asked.lasts) else {
        let hint = "add --every and --for to begin one, or --resume to go on with one";
        return Err(Complaint::usage(
            "--schedule names a schedule, and none is asked for",
            Some(hint.to_owned()),
        ));
    };
    check_times(every, lasts)?;
    let target = arguments.targets.first().cloned().unwrap_or_else(|| ".".into());
    let is_simulated = is_simulated(&target);
    if is_simulated && (asked.due || asked.systemd) {
        return Err(Complaint::usage(
            "a timer cannot run a simulated schedule, whose time is virtual",
            Some("omit --systemd and --due: the whole schedule takes seconds".to_owned()),
        ));
    }
    // A whole second, and none that has passed: the first run would begin late.
    let now = unix_ms().next_multiple_of(1000);
    let begins_unix_ms = match (asked.from, is_simulated) {
        (Some(from), _) => from,
        (None, true) => 0,
        (None, false) if asked.systemd => systemd::next_whole_interval(now, every.as_millis()),
        (None, false) => now,
    };
    let schedule = RunSchedule {
        name: asked.schedule.unwrap_or_else(|| default_name(&target, begins_unix_ms, every, lasts)),
        begins_unix_ms,
        every_ms: every.as_millis(),
        lasts_ms: lasts.as_millis(),
        directory: current_directory()?,
    };
    let stored = if is_simulated { StoredRuns::default() } else { StoredRuns::open(&measuring.place)? };
    stored.tell_of_unreachable();
    let mut earlier = EarlierRuns::of(&stored, &schedule.name)?;
    if stored.unreachable.is_some() {
        earlier.pass_unknown(&schedule, now);
    }
    if let Some(known) = &earlier.schedule
        && (known.begins_unix_ms, known.every_ms, known.lasts_ms)
            != (schedule.begins_unix_ms, schedule.every_ms, schedule.lasts_ms)
    {
        return Err(Complaint::usage(
            format!("the history has a schedule {} with other instants", schedule.name),
            Some(format!("resume it with --resume --schedule {}, or use another name", schedule.name)),
        ));
    }
    let asked = FollowOptions { only_due: asked.due, prints_units: asked.systemd };
    follow(arguments, measuring, command, Followed { schedule, earlier, asked })
}

/// Goes on with an unfinished schedule, by the command line that began it.
///
/// # Errors
/// There is none, or several; its command line cannot be read; it could not begin.
pub fn resume(arguments: BenchArguments) -> Result<Exit, Complaint> {
    let measuring = Measuring::new(&arguments.run, false);
    let target = arguments.targets.first();
    if target.is_some_and(|target| is_simulated(target)) {
        return Err(Complaint::usage(
            "a simulated schedule cannot be resumed: its burst credits are not kept",
            Some("run it again with --every and --for: it takes seconds".to_owned()),
        ));
    }
    let mut stored = StoredRuns::open(&measuring.place)?;
    let name = arguments.schedule.schedule.as_deref();
    let found = unfinished(&mut stored, name, target.map(|it| it.as_path()))?;
    stored.tell_of_unreachable();
    let earlier = EarlierRuns::of(&stored, &found.schedule.name)?;
    std::env::set_current_dir(&found.schedule.directory).map_err(|error| {
        Complaint::failed(
            format!("cannot resume in {}: {}", found.schedule.directory, output::plain(&error)),
            Some("create the directory, or mount its file system".to_owned()),
        )
    })?;
    let command: Vec<OsString> = found.command.iter().map(OsString::from).collect();
    let parsed = <Arguments as clap::Parser>::try_parse_from(&command).map(|parsed| parsed.command);
    let Ok(Command::Bench(mut began)) = parsed else {
        return Err(Complaint::failed(
            format!(
                "cannot read the command line of schedule {}: {}",
                found.schedule.name,
                found.command.join(" ")
            ),
            Some("run it with this version of fathom under another name".to_owned()),
        ));
    };
    began.dry_run = arguments.dry_run;
    began.run.set_seed(found.seed);
    let asked = FollowOptions { only_due: false, prints_units: false };
    follow(*began, measuring, &command, Followed { schedule: found.schedule, earlier, asked })
}

/// How a schedule is followed.
struct FollowOptions {
    /// Only the slot that is due now is run.
    only_due: bool,
    /// Units are printed instead.
    prints_units: bool,
}

/// A schedule and what is known of it.
struct Followed {
    schedule: RunSchedule,
    earlier: EarlierRuns,
    asked: FollowOptions,
}

/// Runs the slots that are left.
fn follow(
    arguments: BenchArguments,
    measuring: Measuring,
    command: &[OsString],
    followed: Followed,
) -> Result<Exit, Complaint> {
    let Followed { schedule, earlier, asked } = followed;
    let (dry_run, show_fio, strict) = (arguments.dry_run, arguments.show_fio, arguments.strict);
    let form = measuring.form;
    let as_json = (dry_run || asked.prints_units) && form.is_json("a plan")?;
    let settings: BenchSettings = super::settings(arguments, command);
    let mut schedule_plan = SchedulePlan::make(ScheduleSettings {
        bench: settings,
        schedule: schedule.clone(),
        next: earlier.next_slot,
        missed: Vec::new(),
        busy_until_unix_ms: earlier.busy_until_unix_ms,
        only_due: asked.only_due,
    })?;
    if asked.prints_units {
        return systemd::print(&schedule_plan, &measuring.place, command, as_json);
    }
    if dry_run {
        output::print(|out| match as_json {
            true => plan::json(&schedule_plan, out),
            false => plan::text(&schedule_plan, Some(show_fio), &form.style(), out),
        })?;
        return Ok(Exit::Done);
    }
    let is_simulated = schedule_plan.bench.targets[0].target.is_simulated();
    let _alone = take_turn(&schedule, &measuring, is_simulated)?;
    schedule_plan.bench.settings.run.earlier = store::identifications(&measuring.place);
    measuring.announce(|out| plan::text(&schedule_plan, None, &form.style(), out))?;
    let plan = Arc::new(schedule_plan);
    let (shown, measured) = (plan.clone(), plan.clone());
    let (place, style) = (measuring.place.clone(), form.style());
    let prints_runs = form.format() == Format::Text && !is_simulated;
    let (keeper, end, is_interrupted) = measuring.measured(
        move |control, observer| fathom_assess::schedule::run(&measured, &control, observer),
        |bar, hub| {
            let history = HistoryKeeper::new(place, Some(bar.clone())).followed(hub);
            ScheduleKeeper::new(plan.clone(), history, bar, prints_runs.then_some(style))
        },
        |display| ScheduleProgress::new(shown, display),
    )?;
    let (missed, is_given_up) = match end {
        MeasurementEnd::Ended(missed) => (missed, false),
        MeasurementEnd::GivenUp { note, .. } => {
            output::warn(&format!("fathom: {note}"));
            (Vec::new(), true)
        }
    };
    let resume = resume_line(&schedule, &measuring);
    let report =
        report(plan.bench.target_name(), schedule, (earlier, &keeper, missed), resume, &form.style());
    form.print(|| view(&report, &form.style()), |out| render_json(&report, out))?;
    if form.format() == Format::Text {
        let is_kept = report.runs.iter().any(|run| run.run.is_some());
        output::print(|out| plan::write_kept(&report, is_kept, asked.only_due, out))?;
    }
    let has_failed = keeper.runs.iter().any(|run| run.status == TestStatus::Failed);
    Ok(match is_interrupted || is_given_up {
        true => Exit::Interrupted,
        false if has_failed => Exit::Failed,
        false => Exit::Done.with_criteria(keeper.is_missed, strict && keeper.is_inconclusive),
    })
}

/// The report on the runs so far; `resume` goes on with those that are left.
fn report(
    target: String,
    schedule: RunSchedule,
    (earlier, keeper, missed): (EarlierRuns, &ScheduleKeeper, Vec<MissedSlots>),
    resume: String,
    style: &Style,
) -> ScheduleReport {
    let is_simulated = is_simulated(Path::new(&target));
    let hours = if is_simulated { Style::default() } else { style.clone() };
    let values = [earlier.values, keeper.values.clone()].concat();
    let runs = [earlier.runs, keeper.runs.clone()].concat();
    let missed = [earlier.missed, keeper.missed.clone(), missed].concat();
    let unmet = [earlier.unmet, keeper.unmet.clone()].concat();
    let ends = missed.iter().map(|missed| missed.first.saturating_add(missed.count));
    let next = runs.iter().map(|run| run.slot + 1).chain(ends).max().unwrap_or(0);
    let left = schedule.slots().saturating_sub(next);
    ScheduleReport {
        target,
        is_simulated,
        left,
        resume: (left > 0 && runs.iter().any(|run| run.run.is_some())).then_some(resume),
        figures: variation(&values, |unix_ms| hours.hour(unix_ms)),
        runs,
        missed,
        unmet,
        schedule,
    }
}

/// Keeps a second process from following the same schedule.
fn take_turn(
    schedule: &RunSchedule,
    measuring: &Measuring,
    is_simulated: bool,
) -> Result<Option<NamedLock>, Complaint> {
    let history = measuring.place.history.as_ref().map(absolute_location);
    let Some(history) = history.filter(|_| !is_simulated) else { return Ok(None) };
    match NamedLock::take(&format!("schedule {} {history}", schedule.name)) {
        Ok(None) => Err(Complaint::failed(
            format!("schedule {} is already running on this host", schedule.name),
            Some("wait for it, or stop it first".to_owned()),
        )),
        Ok(lock) => Ok(lock),
        // Without such locks nothing else is lost.
        Err(_) => Ok(None),
    }
}

fn absolute_location(location: &Location) -> String {
    location.absolute().as_ref().unwrap_or(location).to_string()
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

fn current_directory() -> Result<String, Complaint> {
    let directory = std::env::current_dir().map_err(|error| {
        Complaint::failed(format!("cannot find the current directory: {}", output::plain(&error)), None)
    })?;
    Ok(directory.to_string_lossy().into_owned())
}

/// The command line that goes on with a schedule.
fn resume_line(schedule: &RunSchedule, measuring: &Measuring) -> String {
    let history = measuring.place.history.as_ref().filter(|_| measuring.is_named);
    let history =
        history.map(|location| format!(" --history {}", shell_quoted(&absolute_location(location))));
    format!("fathom bench --resume --schedule {}{}", schedule.name, history.unwrap_or_default())
}

/// `data-20261123T031705`; of a simulated schedule, which begins at no date, `sim-aws-gp3-1h-7d` with its interval and duration.
fn default_name(target: &Path, begins_unix_ms: u64, every: Nanos, lasts: Nanos) -> String {
    const LONGEST: usize = 40;
    let text = target.to_string_lossy();
    let text = if is_simulated(target) { text.into_owned() } else { absolute(target) };
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug: String = words.collect::<Vec<&str>>().join("-").chars().take(LONGEST).collect();
    let slug = if slug.is_empty() { "root".to_owned() } else { slug };
    let date = i64::try_from(begins_unix_ms).ok().filter(|&ms| ms > 0);
    let date = date.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let date = date.map(|date| date.strftime("-%Y%m%dT%H%M%S").to_string());
    let times = date.unwrap_or_else(|| format!("-{}-{}", compact(every), compact(lasts)));
    format!("{}{times}", slug.trim_end_matches('-'))
}

/// `1h`, `90m`, `1500ms`: in the largest unit that divides it.
fn compact(time: Nanos) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    let ms = time.as_millis();
    let unit = UNITS.into_iter().find(|(_, unit)| ms.is_multiple_of(*unit));
    let (name, unit) = unit.unwrap_or(("ms", 1));
    format!("{}{name}", ms / unit)
}
