//! One time line for the records of several hosts, by their wall clocks.

use fathom_stats::sample::upper_median;
use fathom_stats::series;

use crate::Interval;

const NS_PER_MS: i128 = 1_000_000;
/// How far the start of a host may lie from that of the first one that was read for its intervals to be added to those of the
/// others, ns.
const ROOM_NS: i128 = 12 * 3600 * 1_000_000_000;
/// The largest time of a merged record, ns: clocks that are apart by more are wrong.
const MAX_NS: i128 = 1 << 59;
/// Lengths of intervals are rounded to this, ns: the observer's ticks vary by less.
const ROUNDED_NS: u64 = 1_000_000;

/// The time line of a test: ns since the epoch, or since the start where the runs are simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLine {
    /// The start of the first host that was read.
    reference: i128,
    /// The earliest start of any.
    zero: i128,
}

impl TimeLine {
    /// The time line of a test that began at this time on the first host.
    pub(super) fn new(started_unix_ms: u64) -> TimeLine {
        let start = start(started_unix_ms);
        TimeLine { reference: start, zero: start }
    }

    /// Takes in another start.
    pub(super) fn reach(&mut self, started_unix_ms: u64) {
        self.zero = self.zero.min(start(started_unix_ms));
    }

    /// What is added to the times of a host for the shared intervals; `None` where it started too far from the others.
    pub(super) fn shift_ns(&self, started_unix_ms: u64) -> Option<u64> {
        let shift = start(started_unix_ms) - self.reference + ROOM_NS;
        (0..=2 * ROOM_NS).contains(&shift).then_some(shift as u64)
    }

    /// A shifted time as ns since the earliest start.
    pub(super) fn rebased(&self, shifted_ns: u64) -> u64 {
        self.since_zero(i128::from(shifted_ns) + self.reference - ROOM_NS)
    }

    /// A time of a host's own run as ns since the earliest start.
    pub(super) fn placed(&self, started_unix_ms: u64, own_ns: u64) -> u64 {
        self.since_zero(start(started_unix_ms) + i128::from(own_ns))
    }

    fn since_zero(&self, at: i128) -> u64 {
        (at - self.zero).clamp(0, MAX_NS) as u64
    }
}

fn start(started_unix_ms: u64) -> i128 {
    i128::from(started_unix_ms) * NS_PER_MS
}

/// The intervals of many workers on a grid of one step. Each interval of a worker counts in the cell of its middle, so the
/// sums equal those of the workers exactly, and times are right to half a step.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedSeries {
    step_ns: u64,
    intervals: Vec<Interval>,
}

impl SharedSeries {
    /// Length of the cells, ns; 0 while there are none.
    pub(super) fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// Adds the intervals of one worker, shifted by so much.
    pub(super) fn add(&mut self, intervals: Vec<Interval>, shift_ns: u64) {
        let usual = usual_ns(&intervals);
        if usual == 0 {
            return;
        }
        if self.step_ns == 0 {
            self.step_ns = usual;
        }
        // Long runs have longer intervals.
        while usual > self.step_ns + self.step_ns / 2 {
            self.double();
        }
        let step = self.step_ns;
        let shift = (shift_ns + step / 2) / step * step;
        let mut own = Vec::with_capacity(intervals.len());
        for interval in intervals {
            let (start_ns, end_ns) =
                (interval.start_ns.saturating_add(shift), interval.end_ns.saturating_add(shift));
            let tick = u32::try_from(u64::midpoint(start_ns, end_ns) / step).unwrap_or(u32::MAX);
            series::push(&mut own, Interval { tick, start_ns, end_ns, ..interval });
        }
        series::merge(&mut self.intervals, &own);
        while self.intervals.len() > series::MAX {
            self.double();
        }
    }

    fn double(&mut self) {
        self.step_ns = self.step_ns.saturating_mul(2);
        series::halve(&mut self.intervals);
    }

    /// The intervals on the time line of the test.
    pub(super) fn finish(self, line: &TimeLine) -> Vec<Interval> {
        let first = self.intervals.first().map_or(0, |interval| interval.tick);
        let place = |interval: Interval| Interval {
            tick: interval.tick - first,
            start_ns: line.rebased(interval.start_ns),
            end_ns: line.rebased(interval.end_ns),
            ..interval
        };
        self.intervals.into_iter().map(place).collect()
    }
}

/// The median length of intervals, rounded; 0 without any.
fn usual_ns(intervals: &[Interval]) -> u64 {
    let usual = upper_median(intervals.iter().map(Interval::elapsed_ns)).unwrap_or(0);
    let rounded = (usual + ROUNDED_NS / 2) / ROUNDED_NS * ROUNDED_NS;
    if rounded == 0 { usual } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntervalOp;

    const TICK: u64 = 500_000_000;

    fn even(count: u32, length: u64, ios: u64) -> Vec<Interval> {
        let interval = |tick: u32| {
            let read = IntervalOp { ios, ..IntervalOp::default() };
            let start_ns = u64::from(tick) * length;
            Interval { tick, start_ns, end_ns: start_ns + length, read, ..Interval::default() }
        };
        (0..count).map(interval).collect()
    }

    #[test]
    fn hosts_that_start_between_ticks_share_cells() {
        let mut line = TimeLine::new(1_000_000);
        let mut shared = SharedSeries::default();
        shared.add(even(4, TICK, 10), line.shift_ns(1_000_000).unwrap());
        line.reach(999_250);
        // 750 ms before: rounded to two ticks, half of one away from the truth.
        shared.add(even(4, TICK, 1), line.shift_ns(999_250).unwrap());
        let merged = shared.finish(&line);
        let ios: Vec<u64> = merged.iter().map(|interval| interval.read.ios).collect();
        assert_eq!(ios.iter().sum::<u64>(), 44);
        assert!(ios == [1, 11, 11, 11, 10] || ios == [1, 1, 11, 11, 10, 10], "{ios:?}");
        assert!(merged.windows(2).all(|pair| pair[0].tick + 1 == pair[1].tick));
    }

    #[test]
    fn longer_intervals_double_the_step() {
        let mut shared = SharedSeries::default();
        shared.add(even(8, TICK, 1), 0);
        shared.add(even(4, 2 * TICK, 10), 0);
        let line = TimeLine { reference: ROOM_NS, zero: 0 };
        let ios: Vec<u64> = shared.finish(&line).iter().map(|interval| interval.read.ios).collect();
        assert_eq!(ios, [12; 4]);
    }

    #[test]
    fn clocks_that_are_days_apart_have_no_shared_intervals() {
        let line = TimeLine::new(1_700_000_000_000);
        assert!(line.shift_ns(1_700_000_000_000 + 3_600_000).is_some());
        assert!(line.shift_ns(1_700_000_000_000 + 100 * 3_600_000).is_none());
        assert!(line.shift_ns(0).is_none());
        assert_eq!(line.placed(u64::MAX, 5), MAX_NS as u64);
    }
}
