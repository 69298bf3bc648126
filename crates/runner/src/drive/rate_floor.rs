//! The rates below which a worker fails (`rate_min`, `rate_iops_min`).

use fathom_model::plan::LeastRates;
use fathom_model::{Nanos, Op};
use fathom_stats::{DATA_OPS, WorkerFailure};

/// Time at the beginning that is not checked, as in fio.
const SETTLES_NS: u64 = 2_000_000_000;
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
    /// The last reading and its time.
    last: Option<(u64, Counts)>,
}

impl RateFloor {
    /// `None` without a least rate.
    pub fn new(plan: &LeastRates, used: [bool; DATA_OPS]) -> Option<RateFloor> {
        let cycle = if plan.cycle == Nanos::ZERO { Nanos::from_secs(1) } else { plan.cycle };
        let plan = LeastRates { cycle, ..*plan };
        plan.is_any().then_some(RateFloor { plan, used, at: u64::MAX, last: None })
    }

    /// The measured part begins.
    pub fn begin(&mut self, now: u64) {
        (self.at, self.last) = (now.saturating_add(SETTLES_NS), None);
    }

    /// Checks the rates since the last reading; `Some` if one is too low.
    pub fn check(&mut self, now: u64, counts: Counts) -> Option<WorkerFailure> {
        let before = self.last.replace((now, counts));
        self.at = now.saturating_add(self.plan.cycle.0);
        let (since, before) = before?;
        let span_ns = now.saturating_sub(since).max(1);
        let per_second = |after: u64, before: u64| {
            (u128::from(after - before) * 1_000_000_000 / u128::from(span_ns)) as u64
        };
        for (index, op) in Op::DATA.into_iter().enumerate().filter(|(index, _)| self.used[*index]) {
            let (after, before) = (counts[index], before[index]);
            let rates = [
                ("rate_iops_min", " IOPS", self.plan.iops[op], per_second(after.0, before.0)),
                ("rate_min", "B/s", self.plan.bandwidth[op], per_second(after.1, before.1)),
            ];
            if let Some((name, unit, least, got)) = rates.into_iter().find(|(_, _, least, got)| got < least) {
                let unit_of_least = if unit == "B/s" { unit } else { "" };
                let cycle_ms = span_ns / 1_000_000;
                return Some(WorkerFailure {
                    errno: NOT_MET,
                    message: format!(
                        "{name}={least}{unit_of_least} not met, got {got}{unit} ({op}s, over {cycle_ms} msec)"
                    ),
                    hint: None,
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

    #[test]
    fn a_rate_over_a_cycle_below_the_least_one_is_a_failure() {
        let plan = LeastRates { bandwidth: PerOp::splat(4096 * 100), ..LeastRates::default() };
        let mut floor = RateFloor::new(&plan, [true, false, false]).expect("there is a least rate");
        assert_eq!(floor.at, u64::MAX);
        floor.begin(SECOND);
        assert_eq!(floor.at, 3 * SECOND);
        assert_eq!(floor.check(3 * SECOND, Counts::default()), None, "the first reading");
        assert_eq!(floor.at, 4 * SECOND);
        let reads = |ios: u64| [(ios, ios * 4096), (0, 0), (0, 0)];
        assert_eq!(floor.check(4 * SECOND, reads(100)), None, "writes are not used");
        let failure = floor.check(6 * SECOND, reads(299)).expect("199 in 2 s");
        assert_eq!(failure.errno, 5);
        assert_eq!(failure.message, "rate_min=409600B/s not met, got 407552B/s (reads, over 2000 msec)");
    }

    #[test]
    fn requests_are_checked_in_cycles_of_their_length() {
        let iops = PerOp { read: 0, write: 200, trim: 0 };
        let cycle = Nanos::from_millis(500);
        let plan = LeastRates { iops, cycle, ..LeastRates::default() };
        let mut floor = RateFloor::new(&plan, [true; 3]).expect("there is a least rate");
        floor.begin(0);
        floor.check(2 * SECOND, Counts::default());
        assert_eq!(floor.at, 2_500_000_000);
        let failure = floor.check(2_500_000_000, [(0, 0), (71, 0), (0, 0)]).expect("142 a second");
        assert_eq!(failure.message, "rate_iops_min=200 not met, got 142 IOPS (writes, over 500 msec)");
        assert!(RateFloor::new(&LeastRates::default(), [true; 3]).is_none());
    }
}
