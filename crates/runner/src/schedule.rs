//! The stages of a worker, and when the next one is due.

use fathom_model::plan::TimePlan;

/// The stage of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Waiting for its start delay.
    Delayed,
    /// Running, not measuring yet.
    Ramp,
    /// Running and measuring.
    Measuring,
    /// Issuing nothing more; waiting for requests in flight.
    Draining,
    /// Issuing the syncs at the end, which take time but are not counted.
    Closing,
}

/// The stage and the time of the next change, which the loop checks with one comparison per turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub stage: Stage,
    /// Session ns of the next change; `u64::MAX` without one, 0 while delayed, so that every turn checks.
    pub next_change: u64,
    start_at: u64,
    ramp_ns: u64,
    runtime_ns: Option<u64>,
}

impl Schedule {
    /// Starts in `Delayed` until `start_at`.
    pub fn new(time: &TimePlan, start_at: u64) -> Self {
        Schedule {
            stage: Stage::Delayed,
            next_change: 0,
            start_at,
            ramp_ns: time.ramp.0,
            runtime_ns: time.runtime.map(|runtime| runtime.0),
        }
    }

    /// The start that the worker still has to wait for.
    pub fn delayed_until(&self, now: u64) -> Option<u64> {
        (self.stage == Stage::Delayed && now < self.start_at).then_some(self.start_at)
    }

    /// Enters the next stage, which is due at `now`.
    pub fn advance(&mut self, now: u64) -> Stage {
        let (stage, next) = match self.stage {
            Stage::Delayed if self.ramp_ns > 0 => (Stage::Ramp, now.saturating_add(self.ramp_ns)),
            Stage::Delayed | Stage::Ramp => {
                (Stage::Measuring, self.runtime_ns.map_or(u64::MAX, |ns| now.saturating_add(ns)))
            }
            Stage::Measuring | Stage::Draining => (Stage::Draining, u64::MAX),
            Stage::Closing => (Stage::Closing, u64::MAX),
        };
        (self.stage, self.next_change) = (stage, next);
        stage
    }

    /// Whether requests of the workload are issued now or later.
    #[inline(always)]
    pub fn is_issuing(&self) -> bool {
        self.stage < Stage::Draining
    }

    /// Stops issuing immediately.
    pub fn drain(&mut self) {
        (self.stage, self.next_change) = (self.stage.max(Stage::Draining), u64::MAX);
    }

    /// Begins the syncs at the end.
    pub fn close(&mut self) {
        (self.stage, self.next_change) = (Stage::Closing, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;

    use super::*;

    #[test]
    fn stages_follow_each_other() {
        let time = TimePlan { ramp: Nanos(10), runtime: Some(Nanos(100)), ..TimePlan::default() };
        let mut schedule = Schedule::new(&time, 5);
        assert_eq!(
            (schedule.stage, schedule.delayed_until(4), schedule.delayed_until(5)),
            (Stage::Delayed, Some(5), None)
        );
        assert_eq!((schedule.advance(6), schedule.next_change), (Stage::Ramp, 16));
        assert_eq!((schedule.advance(16), schedule.next_change), (Stage::Measuring, 116));
        assert_eq!((schedule.advance(116), schedule.next_change), (Stage::Draining, u64::MAX));
    }

    #[test]
    fn without_runtime_measuring_ends_with_the_work() {
        let mut schedule = Schedule::new(&TimePlan::default(), 0);
        assert_eq!((schedule.advance(0), schedule.next_change), (Stage::Measuring, u64::MAX));
    }
}
