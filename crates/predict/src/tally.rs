//! Adds up what requests get, slice by slice of the course.

use fathom_model::Op;
use fathom_record::{MetricDirection, MetricKind, Statistic, TestSummary};
use fathom_stats::{Latency, Moments, histogram};
use fathom_volume::FluidSum;

use crate::prediction::Requirement;
use crate::prediction::{DirectionSums, MAX_SLICES, PredictedSlice, summary};

/// Longer latencies count as this one, about 20 hours: histograms end before, and sums of squares stay exact.
const LONGEST_NS: u64 = 1 << 46;
/// Shortest slice, ns.
const MIN_SLICE_NS: u64 = 1_000_000;

/// What requests got so far. They are added in the order of their arrival.
#[derive(Debug)]
pub(super) struct Tally {
    slice_ns: u64,
    length_ns: u64,
    limits: Vec<Requirement>,
    current: [DirectionSums; 4],
    /// Requests but syncs that arrived in the current slice; they may be served in a later one.
    arrived: u64,
    slice: u64,
    all: [DirectionSums; 4],
    above_ns: u64,
    slices: Vec<PredictedSlice>,
}

/// The place of an operation.
pub(super) fn place(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Trim => 2,
        Op::Sync | Op::Datasync => 3,
    }
}

/// Adds `count` latencies whose quantiles are at `ns` and whose mean is `mean_ns`.
pub(super) fn add_latencies(lat: &mut Latency, count: u64, ns: u64, mean_ns: u64) {
    if count == 0 {
        return;
    }
    lat.histogram.add(histogram::bin(ns), count);
    let (ns, mean_ns) = (ns.min(LONGEST_NS), mean_ns.min(LONGEST_NS));
    let (samples, mean) = (u128::from(count), u128::from(mean_ns));
    let moments = Moments {
        count,
        sum: samples * mean,
        sum_squares: samples.saturating_mul(mean * mean),
        min: mean_ns.min(ns),
        max: ns.max(mean_ns),
    };
    merge_moments(&mut lat.moments, &moments);
}

/// Adds latencies.
pub(super) fn merge_latencies(lat: &mut Latency, other: &Latency) {
    lat.histogram.merge(&other.histogram);
    merge_moments(&mut lat.moments, &other.moments);
}

/// The squares of what waits for most of a month may exceed every number: their sum ends at the highest.
fn merge_moments(moments: &mut Moments, other: &Moments) {
    let sum_squares = other.sum_squares.min(u128::MAX - moments.sum_squares);
    moments.merge(&Moments { sum_squares, ..*other });
}

impl Tally {
    /// `least_ns` is the least length of a slice.
    pub(super) fn new(length_ns: u64, least_ns: u64, limits: &[Requirement]) -> Tally {
        Tally {
            slice_ns: length_ns.div_ceil(MAX_SLICES).max(MIN_SLICE_NS).max(least_ns),
            length_ns,
            limits: limits.to_vec(),
            current: Default::default(),
            arrived: 0,
            slice: 0,
            all: Default::default(),
            above_ns: 0,
            slices: Vec::new(),
        }
    }

    /// When the current slice ends, ns.
    pub(super) fn slice_end_ns(&self) -> u64 {
        (self.slice + 1).saturating_mul(self.slice_ns)
    }

    /// Begins the slice of `at_ns`, if it is a later one; `credits` are those at that time.
    #[inline]
    pub(super) fn reach(&mut self, at_ns: u64, credits: impl FnOnce() -> Option<f64>) {
        if at_ns >= self.slice_end_ns() {
            let next = at_ns / self.slice_ns;
            self.end_slice(u64::MAX, credits());
            self.slice = next;
        }
    }

    /// Counts a request that took `ns`.
    #[inline]
    pub(super) fn record(&mut self, op: Op, bytes: u64, ns: u64) {
        let sums = &mut self.current[place(op)];
        sums.lat.record(ns.min(LONGEST_NS));
        sums.bytes += bytes;
        self.arrived += u64::from(!op.is_sync());
    }

    /// The latencies of a direction in the current slice.
    pub(super) fn latencies(&mut self, op: Op) -> &mut Latency {
        &mut self.current[place(op)].lat
    }

    /// Counts requests of a direction that arrive, whose latencies are added when they are served.
    pub(super) fn arrive(&mut self, op: Op, sum: FluidSum) {
        self.current[place(op)].bytes += sum.bytes;
        self.arrived += sum.ops;
    }

    /// Ends the current slice, at `end_ns` at the latest.
    fn end_slice(&mut self, end_ns: u64, credits: Option<f64>) {
        let start_ns = self.slice * self.slice_ns;
        let length_ns = self.slice_ns.min(end_ns.saturating_sub(start_ns)).max(1);
        let is_above = |limit: &Requirement| {
            any_value(&self.current, limit).is_some_and(|ns| !limit.comparison.holds(ns, limit.bound))
        };
        if self.limits.iter().any(is_above) {
            self.above_ns += length_ns;
        }
        let mut total = Latency::default();
        self.current[..3].iter().for_each(|sums| merge_latencies(&mut total, &sums.lat));
        let bytes: u64 = self.current[..3].iter().map(|sums| sums.bytes).sum();
        let per_second = |count: u64| count as f64 * 1e9 / length_ns as f64;
        self.slices.push(PredictedSlice {
            start_ns,
            length_ns,
            iops: per_second(std::mem::take(&mut self.arrived)),
            bytes_per_second: per_second(bytes),
            p99_ns: total.percentile(99.0),
            credits,
        });
        for (all, current) in self.all.iter_mut().zip(&mut self.current) {
            all.merge(current);
            *current = DirectionSums::default();
        }
    }

    /// Ends the course: the summary of all over `elapsed_ns`, and the time above the objective. Where clients wait, the last
    /// requests may arrive after the end of the load.
    pub(super) fn finish(
        self,
        elapsed_ns: u64,
        credits: Option<f64>,
    ) -> (TestSummary, Option<u64>, Vec<PredictedSlice>) {
        let end_ns = self.length_ns.max(elapsed_ns);
        self.finish_at(end_ns, elapsed_ns, credits)
    }

    /// [`Tally::finish`] where none arrives after `end_ns`.
    pub(super) fn finish_at(
        mut self,
        end_ns: u64,
        elapsed_ns: u64,
        credits: Option<f64>,
    ) -> (TestSummary, Option<u64>, Vec<PredictedSlice>) {
        self.end_slice(end_ns, credits);
        let above_ns = (!self.limits.is_empty()).then_some(self.above_ns);
        (summary(&self.all, elapsed_ns), above_ns, self.slices)
    }
}

/// The value of a latency in a slice, however few requests it has: a slice is no sample.
fn any_value(sums: &[DirectionSums; 4], limit: &Requirement) -> Option<f64> {
    let MetricKind::Latency(_, statistic) = limit.metric.kind else { return None };
    let mut lat = Latency::default();
    let [reads, writes, trims, _] = sums.each_ref().map(|sums| sums.lat.samples() > 0);
    let places: &[usize] = match limit.metric.direction_among([reads, writes, trims]) {
        MetricDirection::Read => &[0],
        MetricDirection::Write => &[1],
        MetricDirection::Trim => &[2],
        MetricDirection::Total => &[0, 1, 2],
        MetricDirection::Sync => &[3],
    };
    places.iter().for_each(|&place| merge_latencies(&mut lat, &sums[place].lat));
    if lat.samples() == 0 {
        return None;
    }
    match statistic {
        Statistic::Least => Some(lat.moments.min as f64),
        Statistic::Mean => Some(lat.moments.mean()),
        Statistic::Greatest => Some(lat.moments.max as f64),
        Statistic::Percentile(per_million) => {
            lat.percentile(f64::from(per_million) / 1e4).map(|ns| ns as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::Metric;

    use super::*;
    use fathom_record::Comparison;

    #[test]
    fn slices_have_their_own_figures() {
        let limit = Requirement {
            metric: Metric::parse("p99").unwrap(),
            comparison: Comparison::Below,
            bound: 1000.0,
        };
        let second = 1_000_000_000;
        let mut tally = Tally::new(168 * second, 0, &[limit]);
        for (at, ns) in [(0, 500), (second / 2, 600), (second, 5000), (3 * second, 10)] {
            tally.reach(at, || Some(0.5));
            tally.record(Op::Read, 4096, ns);
        }
        let (summary, above_ns, slices) = tally.finish(168 * second, None);
        assert_eq!((summary.read.unwrap().ios, above_ns, slices.len()), (4, Some(second), 3));
        assert_eq!((slices[0].iops, slices[1].p99_ns, slices[2].start_ns), (2.0, Some(5000), 3 * second));
        assert_eq!((slices[0].credits, slices[2].credits), (Some(0.5), None));
    }

    #[test]
    fn slices_after_the_end_of_the_load_are_as_long_as_others() {
        let second = 1_000_000_000;
        let mut tally = Tally::new(168 * second, 0, &[]);
        for at in [168 * second, 168 * second + 1, 170 * second] {
            tally.reach(at, || None);
            tally.record(Op::Read, 4096, second / 2);
        }
        let (_, _, slices) = tally.finish(170 * second + second / 2, None);
        let found: Vec<(u64, f64)> = slices.iter().map(|slice| (slice.length_ns, slice.iops)).collect();
        assert_eq!(found, [(second, 0.0), (second, 2.0), (second / 2, 2.0)]);
    }
}
