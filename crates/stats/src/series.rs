//! What happened per interval of time.
//!
//! Intervals are cut by the observer, not by the worker: each holds the difference of two readings of the worker's
//! counters, so their sum equals the totals exactly. The number of intervals is bounded: when it reaches `MAX`, pairs
//! are merged and the interval doubles.

use crate::DATA_OPS;

/// Counts of one operation in one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalOp {
    /// Completed requests.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Sum of the completion latencies, ns.
    pub clat_sum_ns: u64,
    /// Sparse clat histogram: `(bin, count)` ascending.
    pub clat_bins: Vec<(u16, u64)>,
}

/// One interval of one worker. Times are ns since the start of the run's measurement of this phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Number of the tick that closed it, the same for all workers of a run.
    pub tick: u32,
    /// Start, ns on the session's clock minus the start of the run.
    pub start_ns: u64,
    /// End, ns on the session's clock minus the start of the run.
    pub end_ns: u64,
    /// Read, write, trim.
    pub ops: [IntervalOp; DATA_OPS],
}

/// The intervals of one worker in one phase, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// The intervals; those in which nothing completed are kept, so a stall shows.
    pub intervals: Vec<Interval>,
}

impl Series {
    /// Most intervals that are kept.
    pub const MAX: usize = 2400;

    /// Appends an interval, or adds it to the last one where that has the same tick.
    pub fn push(&mut self, interval: Interval) {
        match self.intervals.last_mut() {
            Some(last) if last.tick == interval.tick => last.absorb(interval),
            _ => self.intervals.push(interval),
        }
    }

    /// Halves the number of intervals by merging those with the same `tick / 2`.
    pub fn halve(&mut self) {
        let mut merged = Series { intervals: Vec::with_capacity(self.intervals.len() / 2 + 1) };
        for mut interval in self.intervals.drain(..) {
            interval.tick /= 2;
            merged.push(interval);
        }
        *self = merged;
    }

    /// Adds the intervals of `other`, tick by tick.
    pub fn merge(&mut self, other: &Series) {
        for interval in &other.intervals {
            match self.intervals.binary_search_by_key(&interval.tick, |mine| mine.tick) {
                Ok(at) => self.intervals[at].overlay(interval),
                Err(at) => self.intervals.insert(at, interval.clone()),
            }
        }
    }
}

impl Interval {
    /// Takes in the interval that follows this one.
    fn absorb(&mut self, next: Interval) {
        self.end_ns = next.end_ns;
        for (mine, theirs) in self.ops.iter_mut().zip(&next.ops) {
            mine.merge(theirs);
        }
    }

    /// Adds another worker's counts for the same tick.
    fn overlay(&mut self, other: &Interval) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        for (mine, theirs) in self.ops.iter_mut().zip(&other.ops) {
            mine.merge(theirs);
        }
    }
}

impl IntervalOp {
    fn merge(&mut self, other: &IntervalOp) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.clat_sum_ns += other.clat_sum_ns;
        if self.clat_bins.is_empty() {
            self.clat_bins.clone_from(&other.clat_bins);
        } else {
            for &(bin, count) in &other.clat_bins {
                match self.clat_bins.binary_search_by_key(&bin, |&(b, _)| b) {
                    Ok(at) => self.clat_bins[at].1 += count,
                    Err(at) => self.clat_bins.insert(at, (bin, count)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(tick: u32, ios: u64) -> Interval {
        let mut interval = Interval {
            tick,
            start_ns: tick as u64 * 10,
            end_ns: tick as u64 * 10 + 10,
            ..Default::default()
        };
        interval.ops[0] =
            IntervalOp { ios, bytes: ios * 4096, clat_sum_ns: ios * 5, clat_bins: vec![(tick as u16, ios)] };
        interval
    }

    #[test]
    fn halving_keeps_every_count() {
        let mut series = Series { intervals: (0..5).map(|t| interval(t, t as u64 + 1)).collect() };
        series.halve();
        let ios: Vec<u64> = series.intervals.iter().map(|i| i.ops[0].ios).collect();
        assert_eq!(ios, [3, 7, 5]);
        assert_eq!(series.intervals[0].end_ns, 20);
        assert_eq!(series.intervals[1].ops[0].clat_bins, [(2, 3), (3, 4)]);
    }

    #[test]
    fn merging_aligns_by_tick() {
        let mut a = Series { intervals: vec![interval(0, 1), interval(2, 3)] };
        a.merge(&Series { intervals: vec![interval(1, 10), interval(2, 20)] });
        let ios: Vec<(u32, u64)> = a.intervals.iter().map(|i| (i.tick, i.ops[0].ios)).collect();
        assert_eq!(ios, [(0, 1), (1, 10), (2, 23)]);
    }
}
