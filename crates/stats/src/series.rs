//! Counts per interval of time.
//!
//! The observer makes the intervals, not the worker: each is the difference of two readings of the worker's counters,
//! so their sum equals the totals exactly. The number of intervals is bounded: at `MAX`, pairs are merged and the
//! interval length doubles.

use serde::{Deserialize, Serialize};

use crate::DATA_OPS;
use fathom_model::is_default;

/// Counts of one operation in one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntervalOp {
    /// Completed requests.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Sum of the completion latencies, ns.
    pub clat_sum_ns: u64,
    /// Sparse clat histogram: `(bin, count)` ascending.
    #[serde(skip_serializing_if = "is_default")]
    pub clat_bins: Vec<(u16, u64)>,
}

/// One interval of one worker. Times are ns since the start of the run's measurement of this phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// Number of the tick that closed it, the same for all workers of a run.
    pub tick: u32,
    /// Start, ns on the session's clock minus the start of the run.
    pub start_ns: u64,
    /// End, ns on the session's clock minus the start of the run.
    pub end_ns: u64,
    /// From the last completion to the end, ns; all of it if nothing completed.
    #[serde(skip_serializing_if = "is_default")]
    pub quiet_ns: u64,
    /// Reads.
    #[serde(skip_serializing_if = "is_default")]
    pub read: IntervalOp,
    /// Writes.
    #[serde(skip_serializing_if = "is_default")]
    pub write: IntervalOp,
    /// Trims.
    #[serde(skip_serializing_if = "is_default")]
    pub trim: IntervalOp,
}

/// Most intervals that a phase keeps.
pub const MAX: usize = 2400;

/// Appends an interval, or adds it to the last one if both have the same tick. Intervals without completions are kept,
/// so that stalls are visible.
pub fn push(intervals: &mut Vec<Interval>, interval: Interval) {
    match intervals.last_mut() {
        Some(last) if last.tick == interval.tick => last.absorb(interval),
        _ => intervals.push(interval),
    }
}

/// Halves the number of intervals by merging those with the same `tick / 2`.
pub fn halve(intervals: &mut Vec<Interval>) {
    let mut halved = Vec::with_capacity(intervals.len() / 2 + 1);
    for mut interval in intervals.drain(..) {
        interval.tick /= 2;
        push(&mut halved, interval);
    }
    *intervals = halved;
}

/// The same for intervals of one length that begin at its multiples, some of which are left out: they stay such.
pub fn halve_grid(intervals: &mut Vec<Interval>) {
    let step_ns = intervals.first().map_or(0, Interval::elapsed_ns) * 2;
    halve(intervals);
    for interval in intervals {
        interval.start_ns = u64::from(interval.tick) * step_ns;
        interval.end_ns = interval.start_ns + step_ns;
    }
}

/// Adds the intervals of another worker, tick by tick. Both are ascending.
pub fn merge(intervals: &mut Vec<Interval>, other: &[Interval]) {
    for interval in other {
        match intervals.binary_search_by_key(&interval.tick, |mine| mine.tick) {
            Ok(at) => intervals[at].overlay(interval),
            Err(at) => intervals.insert(at, interval.clone()),
        }
    }
}

impl Interval {
    /// Length, ns.
    pub fn elapsed_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// The last completion; the start if nothing completed.
    pub fn last_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.quiet_ns).max(self.start_ns)
    }

    /// Read, write, trim.
    pub fn ops(&self) -> [&IntervalOp; DATA_OPS] {
        [&self.read, &self.write, &self.trim]
    }

    /// Adds the interval that follows this one.
    fn absorb(&mut self, next: Interval) {
        let is_empty = next.quiet_ns >= next.elapsed_ns();
        self.quiet_ns = if is_empty { self.quiet_ns + next.quiet_ns } else { next.quiet_ns };
        self.end_ns = next.end_ns;
        self.add(&next);
    }

    /// Adds another worker's counts for the same tick.
    fn overlay(&mut self, other: &Interval) {
        let last_ns = self.last_ns().max(other.last_ns());
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.quiet_ns = self.end_ns - last_ns;
        self.add(other);
    }

    fn add(&mut self, other: &Interval) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.trim.merge(&other.trim);
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
        interval.read =
            IntervalOp { ios, bytes: ios * 4096, clat_sum_ns: ios * 5, clat_bins: vec![(tick as u16, ios)] };
        interval
    }

    #[test]
    fn halving_keeps_every_count() {
        let mut series: Vec<Interval> = (0..5).map(|t| interval(t, t as u64 + 1)).collect();
        halve(&mut series);
        let ios: Vec<u64> = series.iter().map(|i| i.read.ios).collect();
        assert_eq!(ios, [3, 7, 5]);
        assert_eq!(series[0].end_ns, 20);
        assert_eq!(series[1].read.clat_bins, [(2, 3), (3, 4)]);
    }

    #[test]
    fn the_last_completion_of_all_counts() {
        let with_last = |tick: u32, ios: u64, quiet_ns: u64| Interval { quiet_ns, ..interval(tick, ios) };
        let mut series =
            vec![with_last(0, 3, 4), with_last(1, 0, 10), with_last(2, 5, 2), with_last(3, 0, 10)];
        merge(&mut series, &[with_last(0, 1, 7), with_last(3, 1, 9)]);
        assert_eq!(series.iter().map(Interval::last_ns).collect::<Vec<_>>(), [6, 10, 28, 31]);
        halve(&mut series);
        assert_eq!(series.iter().map(|interval| interval.quiet_ns).collect::<Vec<_>>(), [14, 9]);
    }

    #[test]
    fn merging_aligns_by_tick() {
        let mut a = vec![interval(0, 1), interval(2, 3)];
        merge(&mut a, &[interval(1, 10), interval(2, 20)]);
        let ios: Vec<(u32, u64)> = a.iter().map(|i| (i.tick, i.read.ios)).collect();
        assert_eq!(ios, [(0, 1), (1, 10), (2, 23)]);
    }
}
