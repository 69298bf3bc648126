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

/// What ends the ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RampEnd {
    /// There is no ramp.
    None,
    /// Its time.
    Time,
    /// A number of bytes, which the worker checks.
    Bytes,
    /// The worker, when it has found a queue depth; the runtime is that of the search.
    Search,
}

/// The stage and the time of the next change, which the loop checks with one comparison per turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub stage: Stage,
    /// Session ns of the next change of the stage or check; `u64::MAX` without one, 0 while delayed, so that every turn
    /// looks.
    pub next_change: u64,
    /// Session ns of the next change of the stage.
    pub stage_change: u64,
    /// Session ns of the next check of the worker's conditions.
    pub check_at: u64,
    ramp_end: RampEnd,
    start_at: u64,
    ramp_ns: u64,
    runtime_ns: Option<u64>,
}

impl Schedule {
    /// Starts in `Delayed` until `start_at`.
    pub fn new(time: &TimePlan, ramp_end: RampEnd, start_at: u64) -> Self {
        Schedule {
            stage: Stage::Delayed,
            next_change: 0,
            stage_change: 0,
            check_at: u64::MAX,
            ramp_end,
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
            Stage::Delayed if self.ramp_end != RampEnd::None => (Stage::Ramp, self.end_of_ramp(now)),
            Stage::Ramp if self.ramp_end == RampEnd::Search => (Stage::Draining, u64::MAX),
            Stage::Delayed | Stage::Ramp => {
                (Stage::Measuring, self.runtime_ns.map_or(u64::MAX, |ns| now.saturating_add(ns)))
            }
            Stage::Measuring | Stage::Draining => (Stage::Draining, u64::MAX),
            Stage::Closing => (Stage::Closing, u64::MAX),
        };
        (self.stage, self.stage_change) = (stage, next);
        if !self.is_issuing() {
            self.check_at = u64::MAX;
        }
        self.next_change = next.min(self.check_at);
        stage
    }

    /// The end of a ramp that begins at `now`.
    fn end_of_ramp(&self, now: u64) -> u64 {
        let ramp = now.saturating_add(self.ramp_ns);
        match self.ramp_end {
            RampEnd::None | RampEnd::Time => ramp,
            RampEnd::Bytes => u64::MAX,
            RampEnd::Search => self.runtime_ns.map_or(u64::MAX, |ns| ramp.saturating_add(ns)),
        }
    }

    /// Begins the measured part at `now`, for `length_ns` or the runtime.
    pub fn measure(&mut self, now: u64, length_ns: Option<u64>) {
        let length = length_ns.or(self.runtime_ns);
        self.stage = Stage::Measuring;
        self.stage_change = length.map_or(u64::MAX, |ns| now.saturating_add(ns));
        self.next_change = self.stage_change.min(self.check_at);
    }

    /// Sets the time of the next check.
    pub fn check_at(&mut self, at: u64) {
        if self.stage != Stage::Delayed && self.is_issuing() {
            self.check_at = at;
            self.next_change = self.stage_change.min(at);
        }
    }

    /// Whether requests of the workload are issued now or later.
    #[inline(always)]
    pub fn is_issuing(&self) -> bool {
        self.stage < Stage::Draining
    }

    /// What ends the ramp.
    pub fn ramp_end(&self) -> RampEnd {
        self.ramp_end
    }

    /// The time of a ramp, ns.
    pub fn ramp_ns(&self) -> u64 {
        self.ramp_ns
    }

    /// Stops issuing immediately.
    pub fn drain(&mut self) {
        self.stage = self.stage.max(Stage::Draining);
        (self.next_change, self.stage_change, self.check_at) = (u64::MAX, u64::MAX, u64::MAX);
    }

    /// Begins the syncs at the end.
    pub fn close(&mut self) {
        self.stage = Stage::Closing;
        (self.next_change, self.stage_change, self.check_at) = (u64::MAX, u64::MAX, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;

    use super::*;

    #[test]
    fn stages_follow_each_other() {
        let time = TimePlan { ramp: Nanos(10), runtime: Some(Nanos(100)), ..TimePlan::default() };
        let mut schedule = Schedule::new(&time, RampEnd::Time, 5);
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
        let mut schedule = Schedule::new(&TimePlan::default(), RampEnd::None, 0);
        assert_eq!((schedule.advance(0), schedule.next_change), (Stage::Measuring, u64::MAX));
    }

    #[test]
    fn checks_change_no_stage_and_end_with_the_issuing() {
        let time = TimePlan { runtime: Some(Nanos(100)), ..TimePlan::default() };
        let mut schedule = Schedule::new(&time, RampEnd::None, 0);
        schedule.check_at(7);
        assert_eq!(
            (schedule.advance(0), schedule.next_change),
            (Stage::Measuring, 100),
            "not before the start"
        );
        schedule.check_at(7);
        assert_eq!((schedule.next_change, schedule.stage_change), (7, 100));
        assert_eq!((schedule.advance(100), schedule.next_change), (Stage::Draining, u64::MAX));
        schedule.check_at(200);
        assert_eq!(schedule.next_change, u64::MAX);
    }

    #[test]
    fn a_search_is_a_ramp_that_may_end_with_the_runtime() {
        let time = TimePlan { ramp: Nanos(10), runtime: Some(Nanos(100)), ..TimePlan::default() };
        let mut schedule = Schedule::new(&time, RampEnd::Search, 0);
        assert_eq!((schedule.advance(0), schedule.next_change), (Stage::Ramp, 110));
        let mut found = schedule;
        assert_eq!(schedule.advance(110), Stage::Draining);
        found.measure(50, Some(20));
        assert_eq!(
            (found.stage, found.next_change, found.advance(70)),
            (Stage::Measuring, 70, Stage::Draining)
        );
        let mut by_bytes = Schedule::new(&time, RampEnd::Bytes, 0);
        assert_eq!((by_bytes.advance(0), by_bytes.next_change), (Stage::Ramp, u64::MAX));
        by_bytes.measure(50, None);
        assert_eq!(by_bytes.next_change, 150);
    }
}
