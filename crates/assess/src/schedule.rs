//! Runs a bench at fixed instants: waits for each slot, runs it, and accounts for those that are missed.
//!
//! A slot is an instant of the wall clock; simulated volumes pass the time between two runs idle in virtual time. The plan, its seed
//! included, is the same for each run.

mod clock;
mod plan;
mod traffic;

pub use plan::{SchedulePlan, ScheduleSettings, check_times};
pub use traffic::{RepeatedCredits, ScheduleTraffic};

use fathom_analysis::schedule::{MissedCause, NextSlot, SlotAction, add_missed, next_slot};
use fathom_record::{MissedReason, MissedSlots, ScheduledSlot};
use fathom_runner::{RunControl, Session};
use fathom_sys::named_lock::NamedLock;

use self::clock::ScheduleClock;
use crate::AssessError;
use crate::plan::BenchPlan;
use crate::steps::StepObserver;

/// What a schedule waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotWait {
    /// Number of the slot, from 0.
    pub slot: u64,
    /// When its run is due, ms since the epoch.
    pub due_unix_ms: u64,
}

/// Time between two attempts to use a target that another schedule uses, ms.
const RETRY_MS: u64 = 100;

/// Runs the slots of `plan` that are left; of one that only runs what is due, that slot alone. Returns the slots that were missed since
/// the last run.
///
/// # Errors
/// The first run could not begin; the failure of a later one is reported as a missed slot.
pub fn run(
    plan: &SchedulePlan,
    control: &RunControl,
    observer: &mut dyn StepObserver,
) -> Result<Vec<MissedSlots>, AssessError> {
    let mut runner = SlotRunner { plan, control, has_run: false, session: None };
    if plan.bench.targets[0].target.is_simulated() {
        runner.session = Some(plan.bench.session().controlled(control.clone()));
    }
    let clock = match &runner.session {
        Some(session) => ScheduleClock::of_volumes(session, &plan.schedule),
        None => ScheduleClock::wall(),
    };
    let (mut next, mut missed) = (plan.next, plan.missed.clone());
    let mut cause = MissedCause {
        follows_since_unix_ms: clock.unix_ms(runner.session.as_ref()),
        busy_until_unix_ms: plan.busy_until_unix_ms,
        ..MissedCause::default()
    };
    let stop = control.stop_handle();
    let mut suspension = clock.suspension();
    loop {
        let now = clock.unix_ms(runner.session.as_ref());
        let NextSlot { missed: passed, action } = next_slot(&plan.schedule, next, now);
        cause.suspended_ms = suspension.take_ms();
        next = next.max(passed.end);
        if !passed.is_empty() {
            add_missed(&mut missed, passed, &plan.schedule, &cause);
            cause.is_target_in_use = false;
        }
        match action {
            _ if stop.is_requested() => break,
            SlotAction::Over => break,
            SlotAction::Wait(_) if plan.only_due => break,
            SlotAction::Wait(slot) => {
                let due_unix_ms = plan.schedule.instant_of(slot);
                observer.waiting(&SlotWait { slot, due_unix_ms });
                clock.wait_until(due_unix_ms, runner.session.as_ref(), &stop);
            }
            SlotAction::Run(slot) => {
                let Ok(lock) = runner.lock() else {
                    cause.is_target_in_use = true;
                    clock.wait_until(now + RETRY_MS, None, &stop);
                    continue;
                };
                suspension.take_ms();
                let place = ScheduledSlot {
                    schedule: plan.schedule.clone(),
                    slot,
                    missed: std::mem::take(&mut missed),
                };
                missed = runner.run(&place, observer)?;
                drop(lock);
                cause.busy_until_unix_ms = clock.unix_ms(runner.session.as_ref());
                cause.is_target_in_use = false;
                next = slot + 1;
                if plan.only_due {
                    break;
                }
            }
        }
    }
    Ok(missed)
}

/// Another schedule uses the target.
struct TargetInUse;

/// Runs single slots.
struct SlotRunner<'a> {
    plan: &'a SchedulePlan,
    control: &'a RunControl,
    has_run: bool,
    /// The volumes, whose burst credits carry over; `None` where they are real.
    session: Option<Session>,
}

impl SlotRunner<'_> {
    /// Keeps other schedules from the target for one run. Simulated targets need no lock, and where there are none the run is not
    /// refused.
    fn lock(&self) -> Result<Option<NamedLock>, TargetInUse> {
        if self.session.is_some() {
            return Ok(None);
        }
        match NamedLock::take(&format!("target {}", self.plan.bench.target_name())) {
            Ok(None) => Err(TargetInUse),
            Ok(lock) => Ok(lock),
            Err(_) => Ok(None),
        }
    }

    /// Runs the slot `place`; returns it as missed where it could not begin.
    fn run(
        &mut self,
        place: &ScheduledSlot,
        observer: &mut dyn StepObserver,
    ) -> Result<Vec<MissedSlots>, AssessError> {
        let mut bench: BenchPlan = self.plan.bench.clone();
        bench.settings.run.scheduled = Some(place.clone());
        // Other random choices each time, so that no run repeats the requests that a cache may hold.
        bench.tests.iter_mut().for_each(|test| *test = test.repetition(place.slot as usize));
        let ended = match &mut self.session {
            Some(session) => crate::bench::run(&bench, session, observer),
            None => {
                crate::bench::run(&bench, &mut bench.session().controlled(self.control.clone()), observer)
            }
        };
        let is_first = !std::mem::replace(&mut self.has_run, true);
        match ended {
            Ok(record) => {
                observer.run_ended(&record);
                Ok(Vec::new())
            }
            // The slot has no run, and is run or missed when the schedule goes on.
            Err(_) if self.control.stop_handle().is_requested() && (!is_first || self.plan.next > 0) => {
                Ok(place.missed.clone())
            }
            Err(error) if is_first => Err(error),
            Err(error) => {
                let failed = MissedSlots {
                    first: place.slot,
                    count: 1,
                    reason: MissedReason::Failed,
                    error: Some(error.to_string()),
                };
                observer.slot_failed(&failed);
                let mut missed = place.missed.clone();
                missed.push(failed);
                Ok(missed)
            }
        }
    }
}
