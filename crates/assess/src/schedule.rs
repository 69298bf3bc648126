//! Runs a bench at fixed instants: waits for each slot, runs it, and accounts for those that are missed.
//!
//! A slot is an instant of the wall clock; simulated volumes pass the time between two runs idle in virtual time. The plan, its seed
//! included, is the same for each run.

use std::time::Duration;

use fathom_analysis::schedule::{MissedCause, NextSlot, SlotAction, add_missed, next_slot};
use fathom_model::Nanos;
use fathom_model::units::{duration, grouped};
use fathom_record::{MissedReason, MissedSlots, RunSchedule, SCHEDULE_LABEL, ScheduledSlot};
use fathom_runner::{RunControl, Session};
use fathom_sys::clock::{RealClock, boottime_ns, monotonic_ns, unix_ms};

use crate::AssessError;
use crate::control::{MeasurementEvent, StepObserver};
use crate::plan::{BenchPlan, BenchSettings};

/// More runs would outgrow a history.
const MAX_RUNS: u64 = 20_000;
const NS_PER_MS: u64 = 1_000_000;
/// The wall clock is read again after this time: it may be set, and the machine may be suspended.
const CLOCK_CHECK_MS: u64 = 500;
/// Longest sleep between two checks for a stop request.
const SLEEP: Duration = Duration::from_millis(50);

/// What a schedule is going to do, before anything is touched.
#[derive(Clone, Debug)]
pub struct SchedulePlan {
    /// One run.
    pub bench: BenchPlan,
    /// Name, instants and end.
    pub schedule: RunSchedule,
    /// The first slot without a run.
    pub next: u64,
}

/// Checks interval and length of a schedule.
fn check_times(every: Nanos, lasts: Nanos) -> Result<(), AssessError> {
    let runs = lasts.0.div_ceil(every.0.max(1));
    if lasts <= every {
        let (every, lasts) = (duration(every), duration(lasts));
        let reason = format!("a schedule for {lasts} has no second run at an interval of {every}");
        Err(AssessError::usage(reason, "use a longer --for, or a shorter --every"))
    } else if runs > MAX_RUNS {
        let least_s = lasts.0.div_ceil(MAX_RUNS).div_ceil(1_000_000_000);
        let (runs, most) = (grouped(runs), grouped(MAX_RUNS));
        let reason = format!("{runs} runs are more than the {most} of a schedule");
        Err(AssessError::usage(reason, format!("use --every {least_s}s or more, or a shorter --for")))
    } else {
        Ok(())
    }
}

/// Refuses an interval in which no run ends; returns a note on one in which a run may not end.
fn check_run_time(bench: &BenchPlan, every: Nanos) -> Result<Option<String>, AssessError> {
    let skipped = "a run that takes longer than the interval skips the slots until it ends";
    let cost = &bench.cost;
    if let Some(least) = cost.least_time.or(cost.tests_time).filter(|least| *least > every) {
        let seconds = least.0.div_ceil(1_000_000_000);
        return Err(AssessError::usage(
            format!("a run takes about {}, and the interval is {}", duration(least), duration(every)),
            format!("use --every {seconds}s or more, shorter tests (--quick, --runtime), or fewer (--only)"),
        ));
    }
    Ok(match (cost.time, cost.tests_time) {
        (Some(most), _) if most <= every => None,
        (Some(most), _) => Some(format!("a run takes up to {}: {skipped}", duration(most))),
        (None, Some(tests)) => {
            Some(format!("a run takes {} and the time to write its test file: {skipped}", duration(tests)))
        }
        (None, None) => Some(format!("the run time is unknown: {skipped}")),
    })
}

impl SchedulePlan {
    /// Plans the runs of `schedule` from the slot `next` on; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The times make no schedule of these tests, or the bench cannot be planned.
    pub fn make(
        mut bench: BenchSettings,
        schedule: RunSchedule,
        next: u64,
    ) -> Result<SchedulePlan, AssessError> {
        let [every, lasts] = [schedule.every_ms, schedule.lasts_ms].map(Nanos::from_millis);
        check_times(every, lasts)?;
        bench.run.labels.insert(SCHEDULE_LABEL.to_owned(), schedule.name.clone());
        let mut bench = BenchPlan::make(bench)?;
        bench.notes.extend(check_run_time(&bench, every)?);
        Ok(SchedulePlan { bench, schedule, next })
    }

    /// Its time is virtual.
    pub fn is_simulated(&self) -> bool {
        self.bench.targets[0].target.is_simulated()
    }
}

/// Runs the slots of `plan` that are left. Returns the slots that were missed since the last run.
///
/// # Errors
/// The first run could not begin; the failure of a later one is reported as a missed slot.
pub fn run(
    plan: &SchedulePlan,
    control: &RunControl,
    observer: &mut dyn StepObserver,
) -> Result<Vec<MissedSlots>, AssessError> {
    let volumes = plan.is_simulated().then(|| plan.bench.session().controlled(control.clone()));
    let mut runner = SlotRunner { plan, control, has_run: false, volumes };
    let stop = control.stop_handle();
    let (mut next, mut missed) = (plan.next, Vec::new());
    let mut cause = MissedCause { follows_since_unix_ms: runner.unix_ms(), ..MissedCause::default() };
    let mut suspended_before_ns = suspended_ns();
    while !stop.is_requested() {
        let NextSlot { missed: passed, action } = next_slot(&plan.schedule, next, runner.unix_ms());
        cause.suspended_ms = suspended_ns().saturating_sub(suspended_before_ns) / NS_PER_MS;
        suspended_before_ns = suspended_ns();
        next = next.max(passed.end);
        add_missed(&mut missed, passed, &plan.schedule, &cause);
        match action {
            SlotAction::Over => break,
            SlotAction::Wait(slot) => {
                let due_unix_ms = plan.schedule.instant_of(slot);
                observer.step(&MeasurementEvent::Waiting(due_unix_ms));
                runner.wait_until(due_unix_ms);
            }
            SlotAction::Run(slot) => {
                let missed_before = std::mem::take(&mut missed);
                let place = ScheduledSlot { schedule: plan.schedule.clone(), slot, missed: missed_before };
                missed = runner.run(place, observer)?;
                cause.busy_until_unix_ms = runner.unix_ms();
                next = slot + 1;
            }
        }
    }
    Ok(missed)
}

/// Time for which the machine has been suspended since its start.
fn suspended_ns() -> u64 {
    let monotonic_ns = monotonic_ns();
    boottime_ns().saturating_sub(monotonic_ns)
}

/// Runs single slots.
struct SlotRunner<'a> {
    plan: &'a SchedulePlan,
    control: &'a RunControl,
    has_run: bool,
    /// Simulated volumes, whose burst credits and virtual time go on from run to run.
    volumes: Option<Session>,
}

impl SlotRunner<'_> {
    /// The clock that slots are instants of, ms since the epoch.
    fn unix_ms(&self) -> u64 {
        let virtual_ms = |volumes: &Session| self.plan.schedule.begins_unix_ms + volumes.now() / NS_PER_MS;
        self.volumes.as_ref().map_or_else(unix_ms, virtual_ms)
    }

    /// Waits until `until_unix_ms` or a stop request. The wall clock may have passed that by more than a check when this returns: it was
    /// set, or the machine was suspended.
    fn wait_until(&self, until_unix_ms: u64) {
        if let Some(volumes) = &self.volumes {
            volumes.wait_until((until_unix_ms - self.plan.schedule.begins_unix_ms) * NS_PER_MS);
            return;
        }
        let (clock, stop) = (RealClock::start(), self.control.stop_handle());
        loop {
            let left_ms = until_unix_ms.saturating_sub(unix_ms()).min(CLOCK_CHECK_MS);
            if left_ms == 0 || stop.is_requested() {
                return;
            }
            clock.sleep_until(clock.now() + left_ms * NS_PER_MS, SLEEP, || !stop.is_requested());
        }
    }

    /// Runs the slot `place`. Returns the slots that its record does not name: none, or where it could not begin those before it and itself.
    fn run(
        &mut self,
        place: ScheduledSlot,
        observer: &mut dyn StepObserver,
    ) -> Result<Vec<MissedSlots>, AssessError> {
        let mut bench: BenchPlan = self.plan.bench.clone();
        bench.settings.run.scheduled = Some(place.clone());
        // Other random choices each time, so that no run repeats the requests that a cache may hold.
        bench.tests.iter_mut().for_each(|test| *test = test.repetition(place.slot as usize));
        let ended = match &mut self.volumes {
            Some(volumes) => crate::bench::run(&bench, volumes, observer),
            None => {
                crate::bench::run(&bench, &mut bench.session().controlled(self.control.clone()), observer)
            }
        };
        let is_first = !std::mem::replace(&mut self.has_run, true);
        match ended {
            Ok(record) => {
                observer.step(&MeasurementEvent::RunEnded(Box::new(record)));
                Ok(Vec::new())
            }
            // The slot has no run, and is run or missed when the schedule goes on.
            Err(_) if self.control.stop_handle().is_requested() && !is_first => Ok(place.missed),
            Err(error) if is_first => Err(error),
            Err(error) => {
                let (first, error) = (place.slot, Some(error.to_string()));
                let failed = MissedSlots { first, count: 1, reason: MissedReason::Failed, error };
                observer.step(&MeasurementEvent::SlotFailed(failed.clone()));
                let mut missed = place.missed;
                missed.push(failed);
                Ok(missed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::RunSettings;

    fn plan(
        every_s: u64,
        lasts_s: u64,
        change: impl FnOnce(&mut BenchSettings),
    ) -> Result<SchedulePlan, String> {
        let run = RunSettings { target: "sim:aws-gp2-2016?size=50GiB".into(), ..RunSettings::default() };
        let mut bench = BenchSettings { run, suite: "standard".to_owned(), ..BenchSettings::default() };
        change(&mut bench);
        let (every_ms, lasts_ms) = (every_s * 1000, lasts_s * 1000);
        let schedule = RunSchedule { every_ms, lasts_ms, ..RunSchedule::default() };
        SchedulePlan::make(bench, schedule, 0)
            .map_err(|error| format!("{error}; {}", error.hint.clone().unwrap_or_default()))
    }

    #[test]
    fn what_makes_no_schedule_is_refused_with_a_remedy() {
        for (every_s, lasts_s, part) in [
            (3600, 3600, "has no second run at an interval of 1 h; use a longer --for"),
            (60, 60 * 20_001, "20,001 runs are more than the 20,000 of a schedule; use --every 61s"),
            (60, 3600, "and the interval is 1 min; use --every "),
        ] {
            match plan(every_s, lasts_s, |_| ()) {
                Err(error) => assert!(error.contains(part), "{error}"),
                Ok(_) => panic!("expected {part}"),
            }
        }
    }

    #[test]
    fn a_run_that_may_exceed_the_interval_is_noted() {
        let until_steady = |bench: &mut BenchSettings| {
            bench.until_steady = true;
            bench.only = vec!["rand-read".to_owned()];
        };
        let skips = |note: &String| note.contains("skips the slots until it ends");
        assert!(plan(900, 86_400, until_steady).unwrap().bench.notes.iter().any(skips));
        assert!(!plan(3600, 86_400, |_| ()).unwrap().bench.notes.iter().any(skips));
    }
}
