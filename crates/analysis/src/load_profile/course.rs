//! Rates over time: by the hour, or in shorter slices of short recordings.

use fathom_model::{Op, PerOp};
use fathom_observed::{LoadCourse, ObservedInterval, ObservedLoad, ObservedRequest};
use serde::Serialize;

use super::{SECOND_NS, gap_ns, resolution_ns};

/// Lengths of slices, ns.
const LENGTHS_NS: [u64; 7] =
    [SECOND_NS / 100, SECOND_NS / 10, SECOND_NS, 10 * SECOND_NS, 60 * SECOND_NS, 600 * SECOND_NS, HOUR_NS];
const HOUR_NS: u64 = 3_600 * SECOND_NS;
/// Slices of less than an hour at most.
const MOST_SLICES: u64 = 60;
/// Slices at most: hours of ten years.
const MOST_HOURS: u64 = 90_000;

/// Rates over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadCourseSeries {
    /// Length of a slice, ns. The first and the last may be shorter.
    pub slice_ns: u64,
    /// The slices, by their times; hours of a wall clock begin with its hours.
    pub slices: Vec<LoadSlice>,
}

/// What happened in a slice. Intervals on its ends count in proportion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LoadSlice {
    /// Beginning, ns since that of the load.
    pub start_ns: u64,
    /// Length, ns.
    pub length_ns: u64,
    /// The part of it with data, ns.
    pub observed_ns: u64,
    /// Reads.
    pub read: SliceCounts,
    /// Writes.
    pub write: SliceCounts,
    /// All operations.
    pub total: SliceCounts,
    /// The highest rate in it, I/Os per second: of a second, of a shorter slice, or of an interval where those are longer and do not
    /// say their busiest second.
    pub peak_iops: f64,
}

/// Sums in a slice; `None` where the source has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SliceCounts {
    /// I/Os.
    pub ops: Option<f64>,
    /// Bytes.
    pub bytes: Option<f64>,
    /// I/Os whose latency is known.
    pub ops_with_latency: f64,
    /// The sum of their latencies, ns.
    pub latency_sum_ns: f64,
}

impl LoadSlice {
    /// A sum per second of the time with data; `None` where there is none.
    pub fn per_second(&self, sum: Option<f64>) -> Option<f64> {
        sum.filter(|_| self.observed_ns > 0).map(|sum| sum * 1e9 / self.observed_ns as f64)
    }
}

impl SliceCounts {
    const ZERO: SliceCounts =
        SliceCounts { ops: Some(0.0), bytes: Some(0.0), ops_with_latency: 0.0, latency_sum_ns: 0.0 };

    /// Adds what `other` knows.
    pub fn add(&mut self, other: &SliceCounts) {
        let add = |sum: &mut Option<f64>, part: Option<f64>| {
            if let Some(part) = part {
                *sum = Some(sum.unwrap_or(0.0) + part);
            }
        };
        add(&mut self.ops, other.ops);
        add(&mut self.bytes, other.bytes);
        self.ops_with_latency += other.ops_with_latency;
        self.latency_sum_ns += other.latency_sum_ns;
    }

    /// Mean latency, ns.
    pub fn mean_latency_ns(&self) -> Option<f64> {
        (self.ops_with_latency > 0.0).then(|| self.latency_sum_ns / self.ops_with_latency)
    }
}

/// The slices of a load.
pub(super) fn series(load: &ObservedLoad) -> LoadCourseSeries {
    let finest_ns = match &load.course {
        LoadCourse::Requests(_) => LENGTHS_NS[0],
        LoadCourse::Intervals(intervals) => resolution_ns(intervals).unwrap_or(SECOND_NS),
    };
    let slice_ns = slice_ns(load.length_ns, finest_ns);
    let origin_ns = origin_ns(load, slice_ns);
    let mut slices = empty(load, slice_ns, origin_ns);
    let place = |at_ns: u64| ((at_ns + origin_ns) / slice_ns) as usize;
    match &load.course {
        LoadCourse::Requests(trace) => {
            let mut busiest = BusiestWindow { window_ns: slice_ns.min(SECOND_NS), place: 0, ops: 0 };
            for request in &trace.requests {
                let index = place(request.at_ns).min(slices.len() - 1);
                add_request(&mut slices[index], request);
                let rate = busiest.take(request.at_ns);
                slices[index].peak_iops = slices[index].peak_iops.max(rate);
            }
            // A rest that is shorter than a window has no rate of its own.
            let least_ns = busiest.window_ns.min(load.length_ns);
            for slice in slices.iter_mut().filter(|slice| slice.length_ns >= least_ns) {
                let mean = slice.per_second(slice.total.ops).unwrap_or(0.0);
                slice.peak_iops = slice.peak_iops.max(mean);
            }
        }
        LoadCourse::Intervals(intervals) => {
            for interval in intervals {
                let first = place(interval.start_ns).min(slices.len() - 1);
                let last = place(interval.end_ns() - 1).min(slices.len() - 1);
                slices[first..=last].iter_mut().for_each(|slice| add_interval(slice, interval));
            }
        }
    }
    LoadCourseSeries { slice_ns, slices }
}

/// The length of the slices: hours where there are at least two, else the shortest that are not too many.
fn slice_ns(length_ns: u64, finest_ns: u64) -> u64 {
    let is_enough = |slice: &&u64| **slice >= finest_ns && length_ns / **slice < MOST_SLICES;
    let slice = match length_ns >= 2 * HOUR_NS {
        true => HOUR_NS,
        false => LENGTHS_NS.iter().find(is_enough).copied().unwrap_or(HOUR_NS),
    };
    slice.max(finest_ns).max(length_ns / MOST_HOURS)
}

/// The part of the first slice that lies before the load: hours are those of the clock, shorter slices begin with the load.
fn origin_ns(load: &ObservedLoad, slice_ns: u64) -> u64 {
    match slice_ns.is_multiple_of(HOUR_NS) {
        true => load.started_unix_ns.unwrap_or(0) % slice_ns,
        false => 0,
    }
}

fn empty(load: &ObservedLoad, slice_ns: u64, origin_ns: u64) -> Vec<LoadSlice> {
    let counts = match &load.course {
        LoadCourse::Requests(_) => SliceCounts::ZERO,
        LoadCourse::Intervals(_) => SliceCounts::default(),
    };
    let end_ns = load.length_ns.max(1);
    let mut slices = Vec::new();
    let mut start_ns = 0;
    while start_ns < end_ns {
        let next = (slice_ns - (start_ns + origin_ns) % slice_ns).min(end_ns - start_ns);
        let observed_ns = next - gap_ns(&load.gaps, start_ns, start_ns + next);
        let (read, write, total) = (counts, counts, counts);
        slices.push(LoadSlice { start_ns, length_ns: next, observed_ns, read, write, total, peak_iops: 0.0 });
        start_ns += next;
    }
    slices
}

/// The I/Os of the window that a request lies in, so far.
#[derive(Debug)]
struct BusiestWindow {
    window_ns: u64,
    place: u64,
    ops: u64,
}

impl BusiestWindow {
    /// Counts a request. Returns the rate of its window so far, I/Os per second.
    fn take(&mut self, at_ns: u64) -> f64 {
        let place = at_ns / self.window_ns;
        if place != self.place {
            (self.place, self.ops) = (place, 0);
        }
        self.ops += 1;
        self.ops as f64 * 1e9 / self.window_ns as f64
    }
}

fn add_request(slice: &mut LoadSlice, request: &ObservedRequest) {
    let LoadSlice { read, write, total, .. } = slice;
    let of_op = match request.op {
        Op::Read => Some(read),
        Op::Write => Some(write),
        Op::Trim | Op::Sync | Op::Datasync => None,
    };
    let latency = request.latency_ns.map(|ns| ns.get() as f64);
    let one = SliceCounts {
        ops: Some(1.0),
        bytes: Some(f64::from(request.bytes)),
        ops_with_latency: f64::from(u8::from(latency.is_some())),
        latency_sum_ns: latency.unwrap_or(0.0),
    };
    of_op.into_iter().chain([total]).for_each(|counts| counts.add(&one));
}

/// Adds the part of an interval that lies in a slice.
fn add_interval(slice: &mut LoadSlice, interval: &ObservedInterval) {
    let end_ns = (slice.start_ns + slice.length_ns).min(interval.end_ns());
    let inside_ns = end_ns.saturating_sub(slice.start_ns.max(interval.start_ns));
    let share = inside_ns as f64 / interval.length_ns as f64;
    let LoadSlice { read, write, total, peak_iops, .. } = slice;
    let parts = [(read, interval.by_op.read), (write, interval.by_op.write), (total, interval.total)];
    for (counts, served) in parts {
        let part = |value: Option<u64>| value.map(|value| value as f64 * share);
        let latency = part(served.latency_sum_ns);
        counts.add(&SliceCounts {
            ops: part(served.ops),
            bytes: part(served.bytes),
            ops_with_latency: latency.and(part(served.ops)).unwrap_or(0.0),
            latency_sum_ns: latency.unwrap_or(0.0),
        });
    }
    let rate = interval.total.ops.unwrap_or(0) as f64 * 1e9 / interval.length_ns as f64;
    // The busiest seconds of the operations need not be the same: the highest is reached for certain.
    let PerOp { read, write, trim } = interval.peak_ops_per_second;
    let busiest = [read, write, trim].into_iter().flatten().max().unwrap_or(0) as f64;
    *peak_iops = peak_iops.max(rate).max(busiest);
}

#[cfg(test)]
mod tests {
    use fathom_observed::{GapReason, LoadClock, LoadGap};

    use super::super::tests::{load, minute, request, trace};
    use super::*;

    #[test]
    fn long_recordings_have_hours_and_short_ones_less() {
        let minutes = |count: u64| count * 60 * SECOND_NS;
        for (length, finest, seconds) in [
            (10 * SECOND_NS, SECOND_NS, 1),
            (SECOND_NS / 2, LENGTHS_NS[0], 0),
            (minutes(5), SECOND_NS, 10),
            (minutes(50), SECOND_NS, 60),
            (minutes(90), SECOND_NS, 600),
            (minutes(120), SECOND_NS, 3_600),
            (minutes(100_000), SECOND_NS, 3_600),
            (minutes(100_000), minutes(1_440), 86_400),
            (0, minutes(5), 600),
        ] {
            assert_eq!(slice_ns(length, finest) / SECOND_NS, seconds, "{length} {finest}");
        }
    }

    #[test]
    fn slices_begin_with_the_hours_of_the_clock_and_know_their_gaps() {
        let intervals: Vec<_> =
            (0..180).filter(|at| !(60..90).contains(at)).map(|at| minute(at, 60)).collect();
        let gap =
            LoadGap { start_ns: 3_600 * SECOND_NS, length_ns: 1_800 * SECOND_NS, reason: GapReason::Missing };
        let mut load = load(LoadCourse::Intervals(intervals), 3 * 3_600 * SECOND_NS, vec![gap]);
        // Half past one o'clock.
        load.started_unix_ns = Some(5_400 * SECOND_NS);
        load.clock = LoadClock::Utc;
        let series = series(&load);
        let found: Vec<_> = series
            .slices
            .iter()
            .map(|slice| {
                (slice.start_ns / SECOND_NS, slice.observed_ns / SECOND_NS, slice.total.ops.unwrap())
            })
            .collect();
        assert_eq!(
            found,
            [(0, 1_800, 1_800.0), (1_800, 1_800, 1_800.0), (5_400, 3_600, 3_600.0), (9_000, 1_800, 1_800.0)]
        );
        assert_eq!(series.slices[1].per_second(series.slices[1].total.ops), Some(1.0));
        assert_eq!((series.slices[0].peak_iops, series.slices[0].total.mean_latency_ns()), (1.0, Some(1e6)));
    }

    #[test]
    fn requests_count_where_they_are_made() {
        let requests: Vec<_> = (0..100).map(|at| request(at * 300, Op::Write, 0, 512, 10)).collect();
        let series = series(&load(LoadCourse::Requests(trace(requests)), 29_700_000_000, Vec::new()));
        let found: Vec<_> =
            series.slices.iter().map(|slice| (slice.write.ops.unwrap(), slice.peak_iops)).collect();
        assert_eq!(found[..3], [(4.0, 4.0), (3.0, 3.0), (3.0, 3.0)]);
        let last = series.slices.last().unwrap();
        assert_eq!((last.length_ns, last.read.ops, last.total.ops), (700_000_000, Some(0.0), Some(3.0)));
        assert_eq!(last.peak_iops, 3.0, "a second is longer than the slice");
    }

    #[test]
    fn the_busiest_second_of_an_interval_is_a_peak() {
        let mut intervals = vec![minute(0, 60), minute(1, 60), minute(2, 6_000)];
        intervals[0].peak_ops_per_second.read = Some(30);
        intervals[0].peak_ops_per_second.write = Some(50);
        intervals[2].peak_ops_per_second.read = Some(7);
        let series = series(&load(LoadCourse::Intervals(intervals), 180 * SECOND_NS, Vec::new()));
        let peaks: Vec<f64> = series.slices.iter().map(|slice| slice.peak_iops).collect();
        assert_eq!(peaks, [50.0, 1.0, 100.0]);
    }

    #[test]
    fn the_rest_behind_the_last_window_is_no_peak() {
        let mut requests: Vec<_> = (0..=500).map(|at| request(at * 10, Op::Read, 0, 4096, 0)).collect();
        requests.push(request(5_001, Op::Read, 0, 4096, 0));
        let of =
            |requests, length_ns| series(&load(LoadCourse::Requests(trace(requests)), length_ns, Vec::new()));
        let peak = |series: LoadCourseSeries| {
            series.slices.iter().fold(0.0, |peak: f64, slice| peak.max(slice.peak_iops))
        };
        assert_eq!(peak(of(requests.clone(), 5_001_000_000)), 100.0);
        // A load that is shorter than a window has its mean.
        requests.truncate(1);
        assert_eq!(peak(of(requests, 1_000_000)), 1_000.0);
    }
}
