//! Which slot of a schedule is next at a moment, and why others were missed.
//!
//! Slots are instants of the wall clock, so a run's duration never moves them. Each begins once at most, whatever the clock does:
//! one that has been passed is missed and is not made up for.

use std::ops::Range;

use fathom_record::{MissedReason, MissedSlots, RunSchedule};

/// A run may begin late by this part of the interval at most, and by [`MAX_LATE_MS`].
const LATE_PART: u64 = 4;
/// Longest delay of a run, ms.
const MAX_LATE_MS: u64 = 60_000;

/// How late a run may begin, ms; after that its slot is missed.
pub const fn tolerance_ms(schedule: &RunSchedule) -> u64 {
    let part = schedule.every_ms / LATE_PART;
    if part < MAX_LATE_MS { part } else { MAX_LATE_MS }
}

/// What a schedule does at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextSlot {
    /// The slots that were passed without a run.
    pub missed: Range<u64>,
    /// What follows.
    pub action: SlotAction,
}

/// What follows at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotAction {
    /// The run of this slot is due.
    Run(u64),
    /// The run of this slot is due later.
    Wait(u64),
    /// No slot is left.
    Over,
}

/// What follows at `now_unix_ms` where `next` is the first slot without a run.
pub fn next_slot(schedule: &RunSchedule, next: u64, now_unix_ms: u64) -> NextSlot {
    let slots = schedule.slots();
    let is_missed =
        |slot: u64| schedule.instant_of(slot).saturating_add(tolerance_ms(schedule)) < now_unix_ms;
    let since = now_unix_ms.saturating_sub(schedule.begins_unix_ms);
    // The last slot that has begun, or the one after it.
    let begun = since.checked_div(schedule.every_ms).unwrap_or(0);
    let first = if is_missed(begun) { begun + 1 } else { begun };
    let first = first.max(next).min(slots);
    let action = match first {
        first if first >= slots => SlotAction::Over,
        first if schedule.instant_of(first) <= now_unix_ms => SlotAction::Run(first),
        first => SlotAction::Wait(first),
    };
    NextSlot { missed: next.min(first)..first, action }
}

/// What is known of the time in which slots were passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissedCause {
    /// When this process began to follow the schedule, ms since the epoch.
    pub follows_since_unix_ms: u64,
    /// When its last run ended, ms since the epoch; 0 before the first.
    pub busy_until_unix_ms: u64,
    /// Time for which the machine was suspended since the last decision, ms.
    pub suspended_ms: u64,
}

/// How long a machine is suspended at least for it to count, ms: readings of two clocks are this close.
const MIN_SUSPENDED_MS: u64 = 500;

impl MissedCause {
    /// Why a slot at `unix_ms` was missed.
    pub const fn reason(&self, unix_ms: u64) -> MissedReason {
        let is_suspended = self.suspended_ms >= MIN_SUSPENDED_MS;
        if unix_ms < self.follows_since_unix_ms {
            MissedReason::NotRunning
        } else if is_suspended {
            MissedReason::Suspended
        } else if unix_ms <= self.busy_until_unix_ms {
            MissedReason::Overrun
        } else {
            MissedReason::ClockStep
        }
    }
}

/// Adds the slots `range` to `missed`, each with its reason; neighbours with one reason are one entry.
pub fn add_missed(
    missed: &mut Vec<MissedSlots>,
    range: Range<u64>,
    schedule: &RunSchedule,
    cause: &MissedCause,
) {
    for slot in range {
        let reason = cause.reason(schedule.instant_of(slot));
        match missed.last_mut() {
            Some(last)
                if last.reason == reason && last.first + last.count == slot && last.error.is_none() =>
            {
                last.count += 1;
            }
            _ => missed.push(MissedSlots { first: slot, count: 1, reason, error: None }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schedule(every_ms: u64, lasts_ms: u64) -> RunSchedule {
        RunSchedule { begins_unix_ms: 1_000_000_000, every_ms, lasts_ms, ..RunSchedule::default() }
    }

    #[test]
    fn slots_are_run_waited_for_or_missed() {
        let hourly = schedule(3_600_000, 4 * 3_600_000);
        assert_eq!(hourly.slots(), 4);
        assert_eq!(schedule(3_600_000, 4 * 3_600_000 + 1).slots(), 5);
        for (next, after_ms, missed, action) in [
            (0, 0, 0..0, SlotAction::Run(0)),
            (1, 5_000, 1..1, SlotAction::Wait(1)),
            (1, 3_600_000, 1..1, SlotAction::Run(1)),
            (1, 3_660_000, 1..1, SlotAction::Run(1)),
            (1, 3_660_001, 1..2, SlotAction::Wait(2)),
            (1, 7_200_000, 1..2, SlotAction::Run(2)),
            (3, 3_600_000, 3..3, SlotAction::Wait(3)),
            (4, 14_400_000, 4..4, SlotAction::Over),
            (1, 99_000_000, 1..4, SlotAction::Over),
        ] {
            let found = next_slot(&hourly, next, 1_000_000_000 + after_ms);
            assert_eq!(found, NextSlot { missed, action }, "{next} {after_ms}");
        }
        assert_eq!(next_slot(&hourly, 0, 5).action, SlotAction::Wait(0), "before the beginning");
    }

    #[test]
    fn each_missed_slot_has_its_reason() {
        let every = schedule(1000, 20_000);
        let at = |slot: u64| every.instant_of(slot);
        let mut missed = Vec::new();
        let off = MissedCause { follows_since_unix_ms: at(5), ..MissedCause::default() };
        add_missed(&mut missed, 1..5, &every, &off);
        let busy = MissedCause { busy_until_unix_ms: at(7) + 200, ..off };
        add_missed(&mut missed, 6..8, &every, &busy);
        add_missed(&mut missed, 9..11, &every, &MissedCause { suspended_ms: 3000, ..busy });
        add_missed(&mut missed, 11..12, &every, &busy);
        let reasons: Vec<(u64, u64, MissedReason)> =
            missed.iter().map(|one| (one.first, one.count, one.reason)).collect();
        assert_eq!(
            reasons,
            [
                (1, 4, MissedReason::NotRunning),
                (6, 2, MissedReason::Overrun),
                (9, 2, MissedReason::Suspended),
                (11, 1, MissedReason::ClockStep),
            ]
        );
    }

    proptest! {
        /// However long runs take and however the clock jumps, each slot is run or missed exactly once, in order, no run begins
        /// before its slot, and none later than the tolerance allows.
        #[test]
        fn every_slot_is_accounted_for_once(
            every_ms in 1_u64..10_000,
            lasts_ms in 1_u64..200_000,
            runs_ms in prop::collection::vec(0_u64..30_000, 1..20),
            jumps_ms in prop::collection::vec(-20_000_i64..20_000, 1..20),
        ) {
            let schedule = schedule(every_ms, lasts_ms);
            let (mut now, mut next, mut decisions) = (schedule.begins_unix_ms, 0, 0_usize);
            let mut seen: Vec<u64> = Vec::new();
            loop {
                let NextSlot { missed, action } = next_slot(&schedule, next, now);
                prop_assert_eq!(missed.start, next.min(missed.end));
                prop_assert!(missed.clone().all(|slot| schedule.instant_of(slot) + tolerance_ms(&schedule) < now));
                next = missed.end.max(next);
                seen.extend(missed);
                decisions += 1;
                match action {
                    SlotAction::Over => break,
                    SlotAction::Run(slot) => {
                        let due = schedule.instant_of(slot);
                        prop_assert!(due <= now && now <= due + tolerance_ms(&schedule));
                        seen.push(slot);
                        next = slot + 1;
                        now += runs_ms[decisions % runs_ms.len()];
                    }
                    SlotAction::Wait(slot) => {
                        prop_assert_eq!(slot, next);
                        let due = schedule.instant_of(slot);
                        prop_assert!(due > now);
                        // A clock that is set back makes the wait longer; it is set only now and then.
                        let jump = if decisions < 200 { jumps_ms[decisions % jumps_ms.len()] } else { 0 };
                        now = if jump < 0 { now.saturating_add_signed(jump) } else { due + jump as u64 };
                    }
                }
            }
            prop_assert_eq!(seen, (0..schedule.slots()).collect::<Vec<u64>>());
        }
    }
}
