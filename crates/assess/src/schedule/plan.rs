//! What a schedule is going to do, before anything is touched.

use fathom_model::Nanos;
use fathom_model::units::{duration, grouped};
use fathom_record::{MissedSlots, RunSchedule, SCHEDULE_LABEL};

use super::traffic::ScheduleTraffic;
use crate::AssessError;
use crate::plan::{BenchPlan, BenchSettings};

/// Most runs of a schedule: more would outgrow a history.
const MOST_RUNS: u64 = 20_000;
/// Shortest interval.
const LEAST_EVERY: Nanos = Nanos(1_000_000_000);
/// Longest schedule: ten years.
const MOST_LASTS: Nanos = Nanos(3_653 * 86_400 * 1_000_000_000);
/// Longest name of a schedule, characters.
const MOST_NAME: usize = 80;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct ScheduleSettings {
    /// The tests and the target.
    pub bench: BenchSettings,
    /// Name, instants and end.
    pub schedule: RunSchedule,
    /// The first slot without a run.
    pub next: u64,
    /// Missed slots before it that no run has named.
    pub missed: Vec<MissedSlots>,
    /// When its last run ended, ms since the epoch; 0 before the first.
    pub busy_until_unix_ms: u64,
    /// Only the slot that is due now is run.
    pub only_due: bool,
}

/// What is going to be done.
#[derive(Clone, Debug)]
pub struct SchedulePlan {
    /// One run.
    pub bench: BenchPlan,
    /// Name, instants and end.
    pub schedule: RunSchedule,
    /// The first slot without a run.
    pub next: u64,
    /// Missed slots before it that no run has named.
    pub missed: Vec<MissedSlots>,
    /// When its last run ended, ms since the epoch; 0 before the first.
    pub busy_until_unix_ms: u64,
    /// Only the slot that is due now is run.
    pub only_due: bool,
    /// What all runs that are left move.
    pub traffic: ScheduleTraffic,
    /// What a reader of the plan should know.
    pub notes: Vec<String>,
}

fn contradiction(reason: impl Into<String>, hint: impl Into<String>) -> AssessError {
    AssessError::Contradiction { reason: reason.into(), hint: hint.into() }
}

/// Checks interval and length of a schedule.
///
/// # Errors
/// They make no schedule, or one that is too long.
pub fn check_times(every: Nanos, lasts: Nanos) -> Result<(), AssessError> {
    if every < LEAST_EVERY {
        return Err(contradiction(
            format!("an interval of {} is too short for a run", duration(every)),
            "use --every 1m or more",
        ));
    }
    if lasts <= every {
        let (every, lasts) = (duration(every), duration(lasts));
        return Err(contradiction(
            format!("a schedule for {lasts} has no second run at an interval of {every}"),
            "use a longer --for, or a shorter --every",
        ));
    }
    if lasts > MOST_LASTS {
        return Err(contradiction("a schedule lasts ten years at most", "use a shorter --for"));
    }
    let runs = lasts.0.div_ceil(every.0);
    if runs > MOST_RUNS {
        let least = Nanos(lasts.0.div_ceil(MOST_RUNS).next_multiple_of(1_000_000_000));
        return Err(contradiction(
            format!("{} runs are more than the {} of a schedule", grouped(runs), grouped(MOST_RUNS)),
            format!("use --every {}s or more, or a shorter --for", least.0 / 1_000_000_000),
        ));
    }
    Ok(())
}

/// Checks a name: it is a label, a part of a command line, and the name of a systemd unit.
fn check_name(name: &str) -> Result<(), AssessError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if begins && name.len() <= MOST_NAME && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(contradiction(
        format!("'{name}' cannot name a schedule"),
        format!(
            "use letters, digits, '.', '_' and '-', beginning with a letter or digit, {MOST_NAME} at most"
        ),
    ))
}

impl SchedulePlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The times make no schedule of these tests, or the bench cannot be planned.
    pub fn make(settings: ScheduleSettings) -> Result<SchedulePlan, AssessError> {
        let ScheduleSettings { mut bench, schedule, next, missed, busy_until_unix_ms, only_due } = settings;
        let (every, lasts) = (Nanos::from_millis(schedule.every_ms), Nanos::from_millis(schedule.lasts_ms));
        check_times(every, lasts)?;
        check_name(&schedule.name)?;
        match bench.run.labels.get(SCHEDULE_LABEL) {
            Some(other) if *other != schedule.name => {
                return Err(contradiction(
                    format!(
                        "the label {SCHEDULE_LABEL}={other} names another schedule than {}",
                        schedule.name
                    ),
                    format!("omit the label, or use --schedule {other}"),
                ));
            }
            _ => bench.run.labels.insert(SCHEDULE_LABEL.to_owned(), schedule.name.clone()),
        };
        let bench = BenchPlan::make(bench)?;
        let notes = check_run_time(&bench, every)?;
        let left = schedule.slots().saturating_sub(next);
        let traffic = ScheduleTraffic::of(&bench, left, every);
        Ok(SchedulePlan { bench, schedule, next, missed, busy_until_unix_ms, only_due, traffic, notes })
    }
}

/// Refuses an interval in which no run ends; returns a note on one in which a run may not end.
fn check_run_time(bench: &BenchPlan, every: Nanos) -> Result<Vec<String>, AssessError> {
    let skipped = "a run that takes longer than the interval skips the slots until it ends";
    let cost = &bench.cost;
    if let Some(least) = cost.least_time.or(cost.tests_time).filter(|least| *least > every) {
        let seconds = least.0.div_ceil(1_000_000_000);
        return Err(contradiction(
            format!("a run takes about {}, and the interval is {}", duration(least), duration(every)),
            format!("use --every {seconds}s or more, shorter tests (--quick, --runtime), or fewer (--only)"),
        ));
    }
    let note = match (cost.time, cost.tests_time) {
        (Some(most), _) if most <= every => None,
        (Some(most), _) => Some(format!("a run takes up to {}: {skipped}", duration(most))),
        (None, Some(tests)) => {
            Some(format!("a run takes {} and the time to write its test file: {skipped}", duration(tests)))
        }
        (None, None) => Some(format!("the run time is unknown: {skipped}")),
    };
    Ok(note.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RunSettings;

    fn plan(
        every_s: u64,
        lasts_s: u64,
        change: impl FnOnce(&mut ScheduleSettings),
    ) -> Result<SchedulePlan, String> {
        let run = RunSettings { target: "sim:aws-gp2-2016?size=50GiB".into(), ..RunSettings::default() };
        let mut settings = ScheduleSettings {
            bench: BenchSettings { run, suite: "standard".to_owned(), ..BenchSettings::default() },
            schedule: RunSchedule {
                name: "nightly".to_owned(),
                every_ms: every_s * 1000,
                lasts_ms: lasts_s * 1000,
                ..RunSchedule::default()
            },
            next: 0,
            missed: Vec::new(),
            busy_until_unix_ms: 0,
            only_due: false,
        };
        change(&mut settings);
        SchedulePlan::make(settings).map_err(|error| format!("{error}; {}", error.hint().unwrap_or_default()))
    }

    #[test]
    fn what_makes_no_schedule_is_refused_with_a_remedy() {
        let check = |found: Result<SchedulePlan, String>, part: &str| match found {
            Err(error) => assert!(error.contains(part), "{error}"),
            Ok(_) => panic!("expected {part}"),
        };
        check(plan(0, 100, |_| ()), "too short for a run; use --every 1m");
        check(plan(3600, 3600, |_| ()), "has no second run at an interval of 1 h; use a longer --for");
        check(
            plan(60, 60 * 20_001, |_| ()),
            "20,001 runs are more than the 20,000 of a schedule; use --every 61s",
        );
        check(plan(3600, 400_000_000, |_| ()), "ten years at most");
        check(plan(60, 3600, |_| ()), "and the interval is 1 min; use --every ");
        let name = |text: &'static str| {
            move |settings: &mut ScheduleSettings| settings.schedule.name = text.to_owned()
        };
        for odd in ["", "a b", "-a", "a/b", "é"] {
            check(plan(3600, 86_400, name(odd)), "cannot name a schedule; use letters");
        }
        let label = |settings: &mut ScheduleSettings| {
            settings.bench.run.labels.insert(SCHEDULE_LABEL.to_owned(), "other".to_owned());
        };
        check(plan(3600, 86_400, label), "names another schedule than nightly; omit the label");
    }

    #[test]
    fn a_run_that_may_exceed_the_interval_is_noted() {
        let until_steady = |settings: &mut ScheduleSettings| {
            settings.bench.until_steady = true;
            settings.bench.only = vec!["rand-read".to_owned()];
        };
        let notes = plan(900, 86_400, until_steady).unwrap().notes;
        assert!(notes.len() == 1 && notes[0].contains("skips the slots until it ends"), "{notes:?}");
        assert_eq!(plan(3600, 86_400, |_| ()).unwrap().notes, [] as [String; 0]);
    }

    #[test]
    fn the_traffic_is_that_of_all_runs() {
        let hourly = plan(3600, 7 * 86_400, |_| ()).unwrap();
        assert_eq!(hourly.schedule.slots(), 168);
        let once = hourly.bench.traffic.offered.timed_ns;
        assert_eq!(hourly.traffic.tests.offered.timed_ns, 168 * once);
        let text = hourly.traffic.text();
        assert!(
            text.contains("the limit of aws-gp2-2016") && text.contains("return between two runs"),
            "{text}"
        );
        let half = plan(3600, 7 * 86_400, |settings| settings.next = 84).unwrap();
        assert_eq!(half.traffic.tests.offered.timed_ns, 84 * once);
    }
}
