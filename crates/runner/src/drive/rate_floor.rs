//! The rates below which a worker fails (`rate_min`, `rate_iops_min`).

use fathom_model::plan::LeastRates;
use fathom_model::{Nanos, Op};
use fathom_stats::{DATA_OPS, FailureCause, WorkerFailure};

/// Time at the beginning that is not checked, as in fio.
const SETTLES_NS: u64 = 2_000_000_000;
/// Time between two looks for a completion when a check is due, ns.
const LOOK_NS: u64 = 1_000_000;
/// fio's errno of a rate that is not met (EIO).
const NOT_MET: i32 = 5;

/// Requests and bytes of each operation.
pub(super) type Counts = [(u64, u64); DATA_OPS];

/// The check of least rates.
#[derive(Debug)]
pub(super) struct RateFloor {
    plan: LeastRates,
    /// The operations that the worker issues.
    used: [bool; DATA_OPS],
    /// The next check, session ns; `u64::MAX` before the measured part.
    pub at: u64,
    /// When a reading is due: at the first completion from then on, session ns.
    due: u64,
    /// The last reading, and the completion at which it was taken.
    last: Option<(u64, Counts)>,
}

impl RateFloor {
    /// `None` without a least rate.
    pub fn new(plan: &LeastRates, used: [bool; DATA_OPS]) -> Option<RateFloor> {
        let cycle = if plan.cycle == Nanos::ZERO { Nanos::from_secs(1) } else { plan.cycle };
        let plan = LeastRates { cycle, ..*plan };
        plan.is_any().then_some(RateFloor { plan, used, at: u64::MAX, due: u64::MAX, last: None })
    }

    /// The measured part begins.
    pub fn begin(&mut self, now: u64) {
        self.await_reading(now.saturating_add(SETTLES_NS));
        self.last = None;
    }

    /// Blocks are read back at the end of a pass, which is not checked: readings begin anew.
    pub fn skip(&mut self, now: u64) {
        self.await_reading(now.saturating_add(self.plan.cycle.0));
        self.last = None;
    }

    fn await_reading(&mut self, due: u64) {
        (self.at, self.due) = (due, due);
    }

    /// Checks the rates since the last reading; `Some` if one is too low.
    ///
    /// A rate is taken from one completion to another, as fio does, so that requests may be further apart than a cycle.
    pub fn check(&mut self, now: u64, completed_at: u64, counts: Counts) -> Option<WorkerFailure> {
        if completed_at < self.due {
            self.at = now.saturating_add(LOOK_NS);
            return None;
        }
        let before = self.last.replace((completed_at, counts));
        self.await_reading(completed_at.saturating_add(self.plan.cycle.0));
        let (since, before) = before?;
        // fio counts whole milliseconds.
        let span_ms = (completed_at.saturating_sub(since) / 1_000_000).max(1);
        let per_second =
            |after: u64, before: u64| (u128::from(after - before) * 1000 / u128::from(span_ms)) as u64;
        for (index, op) in Op::DATA.into_iter().enumerate().filter(|(index, _)| self.used[*index]) {
            let (after, before) = (counts[index], before[index]);
            if before.0 == 0 {
                continue;
            }
            let rates = [
                ("rate_iops_min", " IOPS", self.plan.iops[op], per_second(after.0, before.0)),
                ("rate_min", "B/s", self.plan.bandwidth[op], per_second(after.1, before.1)),
            ];
            if let Some((name, unit, least, got)) = rates.into_iter().find(|(_, _, least, got)| got < least) {
                let unit_of_least = if unit == "B/s" { unit } else { "" };
                return Some(WorkerFailure {
                    errno: NOT_MET,
                    message: format!(
                        "{name}={least}{unit_of_least} not met, got {got}{unit} ({op}s, over {span_ms} msec)"
                    ),
                    hint: None,
                    cause: FailureCause::LeastRate,
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::PerOp;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn reads(ios: u64) -> Counts {
        [(ios, ios * 4096), (0, 0), (0, 0)]
    }

    #[test]
    fn a_rate_over_a_cycle_below_the_least_one_is_a_failure() {
        let plan = LeastRates { bandwidth: PerOp::splat(4096 * 100), ..LeastRates::default() };
        let mut floor = RateFloor::new(&plan, [true, false, false]).expect("there is a least rate");
        assert_eq!(floor.at, u64::MAX);
        floor.begin(SECOND);
        assert_eq!(floor.at, 3 * SECOND);
        assert_eq!(floor.check(3 * SECOND, 3 * SECOND, reads(7)), None, "the first reading");
        assert_eq!(floor.at, 4 * SECOND);
        assert_eq!(floor.check(4 * SECOND, 4 * SECOND, reads(107)), None, "writes are not used");
        let failure = floor.check(6 * SECOND, 6 * SECOND, reads(306)).expect("199 in 2 s");
        assert_eq!(failure.errno, 5);
        assert_eq!(failure.message, "rate_min=409600B/s not met, got 407552B/s (reads, over 2000 msec)");
    }

    #[test]
    fn requests_further_apart_than_a_cycle_are_checked_when_they_complete() {
        let plan = LeastRates { bandwidth: PerOp::splat(2048), ..LeastRates::default() };
        let mut floor = RateFloor::new(&plan, [true; 3]).expect("there is a least rate");
        floor.begin(0);
        // A request every two seconds; the last one before the first reading completed at 1.9 s.
        assert_eq!(floor.check(2 * SECOND, 1_900_000_000, reads(1)), None);
        assert_eq!((floor.at, floor.last), (2_001_000_000, None), "no completion yet");
        assert_eq!(floor.check(3_901_000_000, 3_900_000_000, reads(2)), None);
        assert_eq!(floor.at, 4_900_000_000, "a cycle after the completion");
        assert_eq!(floor.check(4_900_000_000, 3_900_000_000, reads(2)), None);
        assert_eq!(floor.check(5_901_000_000, 5_900_400_000, reads(3)), None, "4096 bytes in 2000 ms");
        let failure = floor.check(7_902_000_000, 7_901_400_000, reads(4)).expect("4096 bytes in 2001 ms");
        assert_eq!(failure.message, "rate_min=2048B/s not met, got 2046B/s (reads, over 2001 msec)");
    }

    #[test]
    fn requests_are_checked_in_cycles_of_their_length() {
        let iops = PerOp { read: 0, write: 200, trim: 0 };
        let cycle = Nanos::from_millis(500);
        let plan = LeastRates { iops, cycle, ..LeastRates::default() };
        let mut floor = RateFloor::new(&plan, [true; 3]).expect("there is a least rate");
        let writes = |ios: u64| [(0, 0), (ios, 0), (0, 0)];
        floor.begin(0);
        floor.check(2 * SECOND, 2 * SECOND, writes(9));
        assert_eq!(floor.at, 2_500_000_000);
        let failure = floor.check(2_500_000_000, 2_500_000_000, writes(80)).expect("142 a second");
        assert_eq!(failure.message, "rate_iops_min=200 not met, got 142 IOPS (writes, over 500 msec)");
        assert!(RateFloor::new(&LeastRates::default(), [true; 3]).is_none());
    }
}
