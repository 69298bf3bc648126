//! The course of a ping: its answers second by second, in constant memory.

use fathom_model::Op;
use fathom_stats::series::{self, Interval, IntervalOp};
use fathom_stats::{Histogram, histogram};

use super::PingSample;

/// Length of an interval until there are so many that pairs of them are merged, ns.
const FIRST_STEP_NS: u64 = 1_000_000_000;

/// Intervals, of which the last is open.
#[derive(Clone, Debug)]
pub(super) struct PingCourse {
    intervals: Vec<Interval>,
    step_ns: u64,
    tick: u32,
    open: [OpenInterval; 2],
}

/// What was answered in the open interval by one operation.
#[derive(Clone, Debug, Default)]
struct OpenInterval {
    ios: u64,
    bytes: u64,
    sum_ns: u64,
    latencies: Histogram,
}

impl OpenInterval {
    fn closed(&mut self) -> IntervalOp {
        let OpenInterval { ios, bytes, sum_ns, latencies } = std::mem::take(self);
        let clat_bins = latencies.sparse().map(|(bin, count)| (bin as u16, count)).collect();
        IntervalOp { ios, bytes, clat_sum_ns: sum_ns, clat_bins }
    }
}

impl PingCourse {
    pub(super) fn new() -> PingCourse {
        PingCourse { intervals: Vec::new(), step_ns: FIRST_STEP_NS, tick: 0, open: Default::default() }
    }

    /// Adds a sample that counts. They come in the order of their answers.
    pub(super) fn add(&mut self, sample: &PingSample) {
        let tick = u32::try_from(sample.elapsed_ns / self.step_ns).unwrap_or(u32::MAX);
        if tick != self.tick {
            self.close();
            self.tick = u32::try_from(sample.elapsed_ns / self.step_ns).unwrap_or(u32::MAX);
        }
        let open = &mut self.open[usize::from(sample.operation == Op::Write)];
        open.ios += 1;
        open.bytes += sample.result as u64;
        open.sum_ns += sample.lat_ns;
        open.latencies.add(histogram::bin(sample.lat_ns), 1);
    }

    /// Closes the open interval, and merges pairs once there are too many.
    fn close(&mut self) {
        if self.open.iter().all(|open| open.ios == 0) {
            return;
        }
        let interval = self.interval();
        series::push(&mut self.intervals, interval);
        if self.intervals.len() >= series::MAX {
            series::halve_grid(&mut self.intervals);
            self.step_ns *= 2;
        }
        self.open = Default::default();
    }

    fn interval(&self) -> Interval {
        let [mut read, mut write] = self.open.clone();
        let start_ns = u64::from(self.tick) * self.step_ns;
        let end_ns = start_ns + self.step_ns;
        Interval {
            tick: self.tick,
            start_ns,
            end_ns,
            read: read.closed(),
            write: write.closed(),
            ..Interval::default()
        }
    }

    /// All intervals so far.
    pub(super) fn intervals(&self) -> Vec<Interval> {
        let mut course = self.clone();
        course.close();
        course.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ping::ServedBy;

    fn sample(number: u64, elapsed_ns: u64) -> PingSample {
        PingSample {
            request: number,
            operation: if number.is_multiple_of(4) { Op::Write } else { Op::Read },
            offset_bytes: 0,
            size_bytes: 4096,
            result: 4096,
            lat_ns: 1000 + number,
            response_ns: None,
            served: Some(ServedBy::Device),
            elapsed_ns,
        }
    }

    #[test]
    fn a_course_of_any_length_has_every_answer_and_a_bounded_number_of_intervals() {
        for (samples, every_ns) in [(10, 1), (5_000, 1_000_000_000), (20_000, 4_320_000_000)] {
            let mut course = PingCourse::new();
            (1..=samples).for_each(|number| course.add(&sample(number, number * every_ns)));
            let intervals = course.intervals();
            assert!(intervals.len() <= series::MAX, "{}", intervals.len());
            let ops = || intervals.iter().flat_map(|interval| [&interval.read, &interval.write]);
            assert_eq!(ops().map(|op| op.ios).sum::<u64>(), samples);
            assert_eq!(ops().flat_map(|op| &op.clat_bins).map(|(_, count)| count).sum::<u64>(), samples);
            let expected: u64 = (1..=samples).map(|number| 1000 + number).sum();
            assert_eq!(ops().map(|op| op.clat_sum_ns).sum::<u64>(), expected);
            let writes: u64 = intervals.iter().map(|interval| interval.write.ios).sum();
            assert_eq!(writes, samples / 4);
            assert!(intervals.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
            assert!(intervals.iter().all(|interval| interval.end_ns - interval.start_ns == course.step_ns));
        }
    }
}
