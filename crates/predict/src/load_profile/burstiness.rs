//! How much the rate of a load varies, on time scales from milliseconds to hours.
//!
//! The measure is the index of dispersion for counts: the variance of the I/Os in windows of one length over their mean (Cox and
//! Lewis, The Statistical Analysis of Series of Events, 1966; for the traffic of computers Gusella, IEEE JSAC 9(2), 1991). It is 1
//! for arrivals that are independent of one another (Poisson), 0 for a constant rate, and it grows with the length of the windows
//! where bursts are longer than those. Beside it stands the rate of the busiest window over the mean rate.

use fathom_observed::{LoadGap, ObservedInterval};
use serde::Serialize;

use super::{SECOND_NS, gap_ns};

/// The lengths of windows, ns.
const SCALES_NS: [u64; 7] = [
    SECOND_NS / 100,
    SECOND_NS / 10,
    SECOND_NS,
    10 * SECOND_NS,
    60 * SECOND_NS,
    300 * SECOND_NS,
    3_600 * SECOND_NS,
];
/// Windows below which nothing is said.
const MIN_WINDOWS: u64 = 10;

/// The variation in windows of one length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BurstinessScale {
    /// Length of a window, ns.
    pub window_ns: u64,
    /// Windows.
    pub windows: u64,
    /// Variance of the I/Os in a window over their mean.
    pub dispersion: f64,
    /// I/Os in the busiest window over their mean.
    pub peak_to_mean: f64,
    /// I/Os per second in the busiest window.
    pub peak_iops: f64,
}

/// Sums of the I/Os in windows of one length.
#[derive(Debug, Default)]
struct WindowSums {
    windows: u64,
    sum: f64,
    squares: f64,
    most: f64,
}

impl WindowSums {
    fn add(&mut self, count: f64) {
        self.sum += count;
        self.squares += count * count;
        self.most = self.most.max(count);
    }

    fn scale(&self, window_ns: u64) -> Option<BurstinessScale> {
        if self.windows < MIN_WINDOWS || self.sum <= 0.0 {
            return None;
        }
        let windows = self.windows as f64;
        let mean = self.sum / windows;
        let variance = (self.squares / windows - mean * mean).max(0.0);
        Some(BurstinessScale {
            window_ns,
            windows: self.windows,
            dispersion: variance / mean,
            peak_to_mean: self.most / mean,
            peak_iops: self.most * 1e9 / window_ns as f64,
        })
    }
}

/// Counts of requests that have times, in the windows of every length.
#[derive(Debug)]
pub(super) struct BurstTally {
    scales: [WindowTally; SCALES_NS.len()],
}

/// Counts in windows of one length; the latest window may not be whole.
#[derive(Debug)]
struct WindowTally {
    window_ns: u64,
    sums: WindowSums,
    place: u64,
    count: u64,
}

impl WindowTally {
    fn take(&mut self, at_ns: u64) {
        let place = at_ns / self.window_ns;
        if place != self.place {
            self.end_window();
            self.place = place;
        }
        self.count += 1;
    }

    fn end_window(&mut self) {
        let count = std::mem::take(&mut self.count);
        if count > 0 {
            self.sums.add(count as f64);
        }
    }

    /// The variation over `length_ns`. The rest behind the last whole window does not count.
    fn scale(mut self, length_ns: u64) -> Option<BurstinessScale> {
        self.sums.windows = length_ns / self.window_ns;
        if self.place < self.sums.windows {
            self.end_window();
        }
        self.sums.scale(self.window_ns)
    }
}

impl Default for BurstTally {
    fn default() -> BurstTally {
        let tally = |window_ns| WindowTally { window_ns, sums: WindowSums::default(), place: 0, count: 0 };
        BurstTally { scales: SCALES_NS.map(tally) }
    }
}

impl BurstTally {
    /// Counts a request, which is not earlier than the previous one.
    pub fn take(&mut self, at_ns: u64) {
        self.scales.iter_mut().for_each(|scale| scale.take(at_ns));
    }

    /// The variation over the length of the load.
    pub fn scales(self, length_ns: u64) -> Vec<BurstinessScale> {
        self.scales.into_iter().filter_map(|scale| scale.scale(length_ns)).collect()
    }
}

/// The variation of intervals, in windows of whole intervals without a gap.
pub(super) fn of_intervals(
    intervals: &[ObservedInterval],
    gaps: &[LoadGap],
    resolution_ns: Option<u64>,
) -> Vec<BurstinessScale> {
    let Some(resolution_ns) = resolution_ns else { return Vec::new() };
    let mut scales: Vec<u64> = SCALES_NS.into_iter().filter(|scale| *scale > resolution_ns).collect();
    // The finest scale is that of the intervals.
    scales.insert(0, resolution_ns);
    let scale = |&window_ns: &u64| {
        let mut sums = WindowSums::default();
        let (mut length_ns, mut count, mut end_ns) = (0_u64, 0.0, 0);
        for interval in intervals {
            let Some(ops) = interval.total.ops else {
                (length_ns, count) = (0, 0.0);
                continue;
            };
            if gap_ns(gaps, end_ns, interval.start_ns) > 0 {
                (length_ns, count) = (0, 0.0);
            }
            length_ns += interval.length_ns;
            count += ops as f64;
            end_ns = interval.end_ns();
            // Half an interval is the inaccuracy of the windows' ends.
            if length_ns + resolution_ns / 2 >= window_ns {
                sums.windows += 1;
                sums.add(count * window_ns as f64 / length_ns as f64);
                (length_ns, count) = (0, 0.0);
            }
        }
        sums.scale(window_ns)
    };
    scales.iter().filter_map(scale).collect()
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;
    use fathom_observed::ObservedRequest;

    use super::super::tests::{minute, request};
    use super::*;

    fn of_requests(requests: &[ObservedRequest], length_ns: u64) -> Vec<BurstinessScale> {
        let mut tally = BurstTally::default();
        requests.iter().for_each(|request| tally.take(request.at_ns));
        tally.scales(length_ns)
    }

    #[test]
    fn a_constant_rate_has_no_dispersion_and_bursts_have() {
        let constant: Vec<_> = (0..2_000).map(|at| request(at * 10, Op::Read, 0, 4096, 0)).collect();
        let scales = of_requests(&constant, 20 * SECOND_NS);
        let second = scales.iter().find(|scale| scale.window_ns == SECOND_NS).unwrap();
        assert_eq!((second.windows, second.dispersion, second.peak_to_mean), (20, 0.0, 1.0));
        assert_eq!(second.peak_iops, 100.0);
        // All I/Os of ten seconds in the first of them.
        let bursts: Vec<_> =
            (0..2_000).map(|at| request(at / 1_000 * 10_000 + at % 1_000, Op::Read, 0, 4096, 0)).collect();
        let scales = of_requests(&bursts, 20 * SECOND_NS);
        let second = scales.iter().find(|scale| scale.window_ns == SECOND_NS).unwrap();
        assert_eq!((second.dispersion, second.peak_to_mean), (900.0, 10.0));
        assert!(scales.iter().all(|scale| scale.window_ns <= SECOND_NS), "ten windows are needed");
    }

    #[test]
    fn windows_of_intervals_end_at_gaps() {
        let intervals: Vec<_> = (0..60).map(|at| minute(at, if at % 5 == 0 { 500 } else { 0 })).collect();
        let scales = of_intervals(&intervals, &[], Some(60 * SECOND_NS));
        let found: Vec<_> =
            scales.iter().map(|one| (one.window_ns / SECOND_NS, one.windows, one.peak_to_mean)).collect();
        assert_eq!(found, [(60, 60, 5.0), (300, 12, 1.0)]);
        let gap = fathom_observed::LoadGap {
            start_ns: 60 * SECOND_NS,
            length_ns: SECOND_NS,
            reason: fathom_observed::GapReason::Missing,
        };
        let mut late = intervals;
        late[1..].iter_mut().for_each(|interval| interval.start_ns += SECOND_NS);
        let scales = of_intervals(&late, &[gap], Some(60 * SECOND_NS));
        assert_eq!(scales[1].windows, 11, "the first is cut off from its window");
        assert!(of_intervals(&[], &[], None).is_empty());
    }
}
