//! When requests come: rates over time, by the hour or in shorter slices of short recordings; how much rates vary, on time scales from
//! milliseconds to hours; and the longest time without a request.
//!
//! The measure of variation is the index of dispersion for counts: the variance of the I/Os in windows of one length over their mean (Cox
//! and Lewis, The Statistical Analysis of Series of Events, 1966; for the traffic of computers Gusella, IEEE JSAC 9(2), 1991). It is 1 for
//! arrivals that are independent of one another (Poisson), 0 for a constant rate, and it grows with the length of the windows where bursts
//! are longer than those. Beside it stands the rate of the busiest window over the mean rate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_model::{Op, PerOp};
use fathom_observed::{LoadCourse, LoadGap, ObservedInterval, ObservedLoad, ObservedRequest};
use serde::Serialize;

use super::{SECOND_NS, gap_ns, resolution_ns};

/// Lengths of slices, ns.
const LENGTHS_NS: [u64; 7] =
    [SECOND_NS / 100, SECOND_NS / 10, SECOND_NS, 10 * SECOND_NS, 60 * SECOND_NS, 600 * SECOND_NS, HOUR_NS];
const HOUR_NS: u64 = 3_600 * SECOND_NS;
/// Slices of less than an hour at most.
const MAX_SLICES: u64 = 60;
/// Slices at most: hours of ten years.
const MAX_HOURS: u64 = 90_000;

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
    /// A slice of requests, of which sums are known where there are none.
    const OF_REQUESTS: LoadSlice = LoadSlice {
        start_ns: 0,
        length_ns: 0,
        observed_ns: 0,
        read: SliceCounts::ZERO,
        write: SliceCounts::ZERO,
        total: SliceCounts::ZERO,
        peak_iops: 0.0,
    };

    /// Adds what happened in another slice.
    pub fn add(&mut self, other: &LoadSlice) {
        self.length_ns += other.length_ns;
        self.observed_ns += other.observed_ns;
        self.read.add(&other.read);
        self.write.add(&other.write);
        self.total.add(&other.total);
        self.peak_iops = self.peak_iops.max(other.peak_iops);
    }

    fn take(&mut self, request: &ObservedRequest, second_iops: f64) {
        let of_op = match request.op {
            Op::Read => Some(&mut self.read),
            Op::Write => Some(&mut self.write),
            Op::Trim | Op::Sync | Op::Datasync => None,
        };
        let latency = request.latency_ns.map(|ns| ns.get() as f64);
        let one = SliceCounts {
            ops: Some(1.0),
            bytes: Some(f64::from(request.bytes)),
            ops_with_latency: f64::from(u8::from(latency.is_some())),
            latency_sum_ns: latency.unwrap_or(0.0),
        };
        of_op.into_iter().chain([&mut self.total]).for_each(|counts| counts.add(&one));
        self.peak_iops = self.peak_iops.max(second_iops);
    }

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

/// The slices of intervals.
pub(super) fn course_of_intervals(load: &ObservedLoad, intervals: &[ObservedInterval]) -> LoadCourseSeries {
    let slice_ns = slice_ns(load.length_ns, resolution_ns(intervals).unwrap_or(SECOND_NS));
    let origin_ns = origin_ns(load.started_unix_ns, slice_ns);
    let mut slices = empty(load, slice_ns, origin_ns);
    let place = |at_ns: u64| ((at_ns + origin_ns) / slice_ns) as usize;
    for interval in intervals {
        let first = place(interval.start_ns).min(slices.len() - 1);
        let last = place(interval.end_ns() - 1).min(slices.len() - 1);
        slices[first..=last].iter_mut().for_each(|slice| add_interval(slice, interval));
    }
    LoadCourseSeries { slice_ns, slices }
}

/// Rates of requests over time, while the length of the load is still unknown: hours of the clock, and, of the first two hours,
/// slices of the shortest length of which there are not too many.
#[derive(Debug)]
pub(super) struct CourseTally {
    /// The part of the first hour that lies before the load, ns.
    origin_ns: u64,
    hours: Vec<LoadSlice>,
    /// The length of the slices, an index into [`LENGTHS_NS`].
    level: usize,
    slices: Vec<LoadSlice>,
    /// The second of the latest request, and its I/Os so far.
    second: (u64, u64),
}

impl CourseTally {
    pub fn new(started_unix_ns: Option<u64>) -> CourseTally {
        CourseTally {
            origin_ns: origin_ns(started_unix_ns, HOUR_NS),
            hours: Vec::new(),
            level: 0,
            slices: Vec::new(),
            second: (0, 0),
        }
    }

    /// Counts a request, which is not earlier than the previous one.
    pub fn take(&mut self, request: &ObservedRequest) {
        let second = request.at_ns / SECOND_NS;
        if second != self.second.0 {
            self.second = (second, 0);
        }
        self.second.1 += 1;
        let second_iops = self.second.1 as f64;
        let hour = (request.at_ns + self.origin_ns) / HOUR_NS;
        slice_at(&mut self.hours, hour).take(request, second_iops);
        if request.at_ns < 2 * HOUR_NS {
            while request.at_ns / LENGTHS_NS[self.level] >= MAX_SLICES {
                self.coarsen();
            }
            slice_at(&mut self.slices, request.at_ns / LENGTHS_NS[self.level]).take(request, second_iops);
        }
    }

    /// Adds neighbours up to slices of the next length.
    fn coarsen(&mut self) {
        let together = (LENGTHS_NS[self.level + 1] / LENGTHS_NS[self.level]) as usize;
        let sum = |slices: &[LoadSlice]| {
            let mut sum = LoadSlice::OF_REQUESTS;
            slices.iter().for_each(|slice| sum.add(slice));
            sum
        };
        self.slices = self.slices.chunks(together).map(sum).collect();
        self.level += 1;
    }

    /// The slices of the load, whose length is known now.
    pub fn series(mut self, load: &ObservedLoad) -> LoadCourseSeries {
        let slice_ns = slice_ns(load.length_ns, LENGTHS_NS[0]);
        while LENGTHS_NS[self.level] < slice_ns.min(HOUR_NS) {
            self.coarsen();
        }
        let (sums, origin_ns) = match slice_ns.is_multiple_of(HOUR_NS) {
            true => (&self.hours, self.origin_ns),
            false => (&self.slices, 0),
        };
        let mut slices = empty(load, slice_ns, origin_ns);
        let last = slices.len() - 1;
        for (index, sums) in sums.iter().enumerate() {
            slices[index.min(last)].add(sums);
        }
        let window_ns = slice_ns.min(SECOND_NS);
        // A rest that is shorter than a window has no rate of its own.
        let least_ns = window_ns.min(load.length_ns);
        for slice in &mut slices {
            if window_ns < SECOND_NS {
                slice.peak_iops = slice.total.ops.unwrap_or(0.0) * 1e9 / window_ns as f64;
            }
            if slice.length_ns >= least_ns {
                let mean = slice.per_second(slice.total.ops).unwrap_or(0.0);
                slice.peak_iops = slice.peak_iops.max(mean);
            }
        }
        LoadCourseSeries { slice_ns, slices }
    }
}

/// The slice at `index`, which may be the first there.
fn slice_at(slices: &mut Vec<LoadSlice>, index: u64) -> &mut LoadSlice {
    let index = index as usize;
    if index >= slices.len() {
        slices.resize(index + 1, LoadSlice::OF_REQUESTS);
    }
    &mut slices[index]
}

/// The length of the slices: hours where there are at least two, else the shortest that are not too many.
fn slice_ns(length_ns: u64, finest_ns: u64) -> u64 {
    let is_enough = |slice: &&u64| **slice >= finest_ns && length_ns / **slice < MAX_SLICES;
    let slice = match length_ns >= 2 * HOUR_NS {
        true => HOUR_NS,
        false => LENGTHS_NS.iter().find(is_enough).copied().unwrap_or(HOUR_NS),
    };
    slice.max(finest_ns).max(length_ns / MAX_HOURS)
}

/// The part of the first slice that lies before the load: hours are those of the clock, shorter slices begin with the load.
fn origin_ns(started_unix_ns: Option<u64>, slice_ns: u64) -> u64 {
    match slice_ns.is_multiple_of(HOUR_NS) {
        true => started_unix_ns.unwrap_or(0) % slice_ns,
        false => 0,
    }
}

fn empty(load: &ObservedLoad, slice_ns: u64, origin_ns: u64) -> Vec<LoadSlice> {
    let empty = match &load.course {
        LoadCourse::Requests(_) => LoadSlice::OF_REQUESTS,
        LoadCourse::Intervals(_) => LoadSlice::default(),
    };
    let end_ns = load.length_ns.max(1);
    let mut slices = Vec::new();
    let mut start_ns = 0;
    while start_ns < end_ns {
        let length_ns = (slice_ns - (start_ns + origin_ns) % slice_ns).min(end_ns - start_ns);
        let observed_ns = length_ns - gap_ns(&load.gaps, start_ns, start_ns + length_ns);
        slices.push(LoadSlice { start_ns, length_ns, observed_ns, ..empty });
        start_ns += length_ns;
    }
    slices
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
pub(super) fn scales_of_intervals(
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

/// Idle times that are kept until the gaps are known, in which nothing is known of requests.
const KEPT: usize = 1024;

/// The longest times between requests, in bounded memory.
#[derive(Debug, Default)]
pub(super) struct IdleTally {
    /// When the last request was issued.
    last_ns: u64,
    /// Length and start of the longest ones, ns; the shortest of them first.
    longest: BinaryHeap<Reverse<(u64, u64)>>,
}

impl IdleTally {
    /// A request is issued; times never fall.
    pub(super) fn take(&mut self, at_ns: u64) {
        let length_ns = at_ns.saturating_sub(self.last_ns);
        let is_long =
            self.longest.len() < KEPT || self.longest.peek().is_some_and(|least| length_ns > least.0.0);
        if is_long {
            if self.longest.len() == KEPT {
                self.longest.pop();
            }
            self.longest.push(Reverse((length_ns, self.last_ns)));
        }
        self.last_ns = at_ns;
    }

    /// The longest, from the beginning of a load of this length to its end; what lies in a gap does not count.
    pub(super) fn longest_ns(mut self, length_ns: u64, gaps: &[LoadGap]) -> u64 {
        self.take(length_ns.max(self.last_ns));
        let known_ns = |&Reverse((length_ns, start_ns)): &Reverse<(u64, u64)>| {
            length_ns.saturating_sub(gap_ns(gaps, start_ns, start_ns + length_ns))
        };
        self.longest.iter().map(known_ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;
    use fathom_observed::{GapReason, LoadClock, LoadGap, ObservedRequest};

    use super::super::tests::{load, minute, request, trace};
    use super::*;

    fn course_of(requests: Vec<ObservedRequest>, length_ns: u64) -> LoadCourseSeries {
        let mut tally = CourseTally::new(None);
        requests.iter().for_each(|request| tally.take(request));
        tally.series(&load(LoadCourse::Requests(trace(Vec::new())), length_ns, Vec::new()))
    }

    #[test]
    fn slices_follow_the_length_of_the_load() {
        // One I/O a second, two in every tenth second.
        let requests = |seconds: u64| -> Vec<ObservedRequest> {
            let at = |second: u64| {
                let count = 1 + usize::from(second.is_multiple_of(10));
                std::iter::repeat_n(request(second * 1_000, Op::Read, 0, 512, 1), count)
            };
            (0..seconds).flat_map(at).collect()
        };
        for (seconds, slices, length) in [
            (5, 50, SECOND_NS / 10),
            (59, 59, SECOND_NS),
            (600, 10, 60 * SECOND_NS),
            (7_200, 2, HOUR_NS),
            (36_000, 10, HOUR_NS),
        ] {
            let series = course_of(requests(seconds), seconds * SECOND_NS);
            assert_eq!((series.slices.len(), series.slice_ns), (slices, length), "{seconds} s");
            let ops: f64 = series.slices.iter().filter_map(|slice| slice.total.ops).sum();
            assert_eq!(ops, requests(seconds).len() as f64, "{seconds} s");
            let peak = series.slices.iter().fold(0.0, |peak: f64, slice| peak.max(slice.peak_iops));
            assert_eq!(peak, if seconds == 5 { 20.0 } else { 2.0 }, "{seconds} s");
        }
        // An idle end makes them longer.
        assert_eq!(course_of(requests(5), 590 * SECOND_NS).slices[0].total.ops, Some(6.0));
    }

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
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        let series = course_of_intervals(&load, intervals);
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
        let series = course_of(requests, 29_700_000_000);
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
        let load = load(LoadCourse::Intervals(intervals.clone()), 180 * SECOND_NS, Vec::new());
        let series = course_of_intervals(&load, &intervals);
        let peaks: Vec<f64> = series.slices.iter().map(|slice| slice.peak_iops).collect();
        assert_eq!(peaks, [50.0, 1.0, 100.0]);
    }

    #[test]
    fn the_rest_behind_the_last_window_is_no_peak() {
        let mut requests: Vec<_> = (0..=500).map(|at| request(at * 10, Op::Read, 0, 4096, 0)).collect();
        requests.push(request(5_001, Op::Read, 0, 4096, 0));
        let peak = |series: LoadCourseSeries| {
            series.slices.iter().fold(0.0, |peak: f64, slice| peak.max(slice.peak_iops))
        };
        assert_eq!(peak(course_of(requests.clone(), 5_001_000_000)), 100.0);
        // A load that is shorter than a window has its mean.
        requests.truncate(1);
        assert_eq!(peak(course_of(requests, 1_000_000)), 1_000.0);
    }

    fn scales_of(requests: &[ObservedRequest], length_ns: u64) -> Vec<BurstinessScale> {
        let mut tally = BurstTally::default();
        requests.iter().for_each(|request| tally.take(request.at_ns));
        tally.scales(length_ns)
    }

    #[test]
    fn a_constant_rate_has_no_dispersion_and_bursts_have() {
        let constant: Vec<_> = (0..2_000).map(|at| request(at * 10, Op::Read, 0, 4096, 0)).collect();
        let scales = scales_of(&constant, 20 * SECOND_NS);
        let second = scales.iter().find(|scale| scale.window_ns == SECOND_NS).unwrap();
        assert_eq!((second.windows, second.dispersion, second.peak_to_mean), (20, 0.0, 1.0));
        assert_eq!(second.peak_iops, 100.0);
        // All I/Os of ten seconds in the first of them.
        let bursts: Vec<_> =
            (0..2_000).map(|at| request(at / 1_000 * 10_000 + at % 1_000, Op::Read, 0, 4096, 0)).collect();
        let scales = scales_of(&bursts, 20 * SECOND_NS);
        let second = scales.iter().find(|scale| scale.window_ns == SECOND_NS).unwrap();
        assert_eq!((second.dispersion, second.peak_to_mean), (900.0, 10.0));
        assert!(scales.iter().all(|scale| scale.window_ns <= SECOND_NS), "ten windows are needed");
    }

    #[test]
    fn windows_of_intervals_end_at_gaps() {
        let intervals: Vec<_> = (0..60).map(|at| minute(at, if at % 5 == 0 { 500 } else { 0 })).collect();
        let scales = scales_of_intervals(&intervals, &[], Some(60 * SECOND_NS));
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
        let scales = scales_of_intervals(&late, &[gap], Some(60 * SECOND_NS));
        assert_eq!(scales[1].windows, 11, "the first is cut off from its window");
        assert!(scales_of_intervals(&[], &[], None).is_empty());
    }

    fn longest_ns(times: &[u64], length_ns: u64, gaps: &[LoadGap]) -> u64 {
        let mut tally = IdleTally::default();
        times.iter().for_each(|&at_ns| tally.take(at_ns));
        tally.longest_ns(length_ns, gaps)
    }

    #[test]
    fn a_load_may_be_idle_at_its_ends() {
        assert_eq!(longest_ns(&[10, 20, 50], 60, &[]), 30);
        assert_eq!(longest_ns(&[10, 20, 50], 600, &[]), 550);
        assert_eq!(longest_ns(&[100, 110], 120, &[]), 100);
        assert_eq!(longest_ns(&[], 120, &[]), 120);
    }

    #[test]
    fn a_gap_is_not_idle() {
        let gap = LoadGap { start_ns: 20, length_ns: 1_000, reason: GapReason::Missing };
        assert_eq!(longest_ns(&[10, 20, 1_025, 1_065], 1_070, &[gap]), 40);
    }

    #[test]
    fn memory_is_bounded() {
        let mut tally = IdleTally::default();
        (1..=10_000).for_each(|at| tally.take(at * at));
        assert_eq!(tally.longest.len(), KEPT);
        assert_eq!(tally.longest_ns(100_000_000, &[]), 19_999);
    }
}
