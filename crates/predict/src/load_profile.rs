//! What an observed load holds: rates over time, sizes, order, working set, burstiness and latencies.
//!
//! A pure function of the load. What its source does not say stays unknown: intervals have no offsets, and most metrics of clouds
//! no distribution of latencies. Requests are looked at once, in their order, and memory does not grow with their number.

mod operations;
mod places;
mod times;

use fathom_model::Op;
use fathom_observed::{
    LoadCourse, LoadError, LoadGap, ObservedInterval, ObservedLoad, ObservedRequest, Requests,
};
use fathom_stats::sample::upper_median;
use serde::Serialize;

pub use operations::OperationProfile;
pub(crate) use places::PlaceHasher;
pub use places::{AccessOrder, HotRegions, STREAMS, SizeShare, WorkingSet};
pub use times::{BurstinessScale, LoadCourseSeries, LoadSlice, SliceCounts};

/// A second, ns.
const SECOND_NS: u64 = 1_000_000_000;

/// What a load holds. Rates are per second of the time with data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadProfile {
    /// From its beginning to its end, ns.
    pub length_ns: u64,
    /// The part of it with data, ns.
    pub observed_ns: u64,
    /// Length of most intervals, ns; `None` where every request is known.
    pub resolution_ns: Option<u64>,
    /// Each operation that occurs, then `total`.
    pub operations: Vec<OperationProfile>,
    /// Share of reads in the I/Os of reads and writes.
    pub read_share: Option<f64>,
    /// The same by bytes.
    pub read_bytes_share: Option<f64>,
    /// Sizes of requests, the most frequent first; empty where only sums are known.
    pub sizes: Vec<SizeShare>,
    /// How much is sequential.
    pub order: Option<AccessOrder>,
    /// The part of the device that is used.
    pub working_set: Option<WorkingSet>,
    /// From the first to the last byte in use, of several files together.
    #[serde(skip)]
    pub span_bytes: Option<u64>,
    /// How much rates vary, by the length of the windows.
    pub burstiness: Vec<BurstinessScale>,
    /// Mean number of outstanding I/Os.
    pub mean_queue_depth: Option<f64>,
    /// The most outstanding I/Os: of requests at one time, of intervals the highest mean.
    pub highest_queue_depth: Option<f64>,
    /// Share of the time with at least one I/O outstanding.
    pub utilization: Option<f64>,
    /// Share of the time in which a limit of the volume or instance was reached.
    pub limit_reached_share: Option<f64>,
    /// The lowest level of burst credits, of one.
    pub lowest_credits: Option<f64>,
    /// The longest time in which no request was issued, gaps left out, ns; `None` for intervals.
    pub longest_idle_ns: Option<u64>,
    /// Rates over time; empty where they are unknown.
    pub course: LoadCourseSeries,
}

/// The profile of a load.
pub fn load_profile(load: &ObservedLoad) -> LoadProfile {
    profile_with(load, ProfileTally::new)
}

/// What predictions need of the profile, at a fraction of its cost: of requests operations, order and span alone.
pub fn brief_profile(load: &ObservedLoad) -> LoadProfile {
    profile_with(load, |_, has_times| ProfileTally::brief(has_times))
}

fn profile_with(load: &ObservedLoad, tally: fn(Option<u64>, bool) -> ProfileTally) -> LoadProfile {
    match &load.course {
        LoadCourse::Requests(trace) => {
            let mut tally = tally(load.started_unix_ns, trace.has_times);
            tally.take_all(&trace.requests);
            tally.profile(load)
        }
        LoadCourse::Intervals(intervals) => profile_of_intervals(load, intervals),
    }
}

/// The profile of requests that are read one at a time, and their load, whose requests are not kept.
///
/// # Errors
/// They cannot be read, or there is none.
pub fn profile_of_requests(mut requests: Requests<'_>) -> Result<(ObservedLoad, LoadProfile), LoadError> {
    let load = requests.load();
    let has_times = matches!(&load.course, LoadCourse::Requests(trace) if trace.has_times);
    let mut tally = ProfileTally::new(load.started_unix_ns, has_times);
    let mut count = 0_u64;
    for request in &mut requests {
        tally.take(&request?);
        count += 1;
    }
    if count == 0 {
        return Err(LoadError::empty("I/O"));
    }
    let load = requests.into_load();
    let profile = tally.profile(&load);
    Ok((load, profile))
}

/// What requests hold, one after the other.
#[derive(Debug)]
pub struct ProfileTally {
    has_times: bool,
    operations: operations::OperationTally,
    order: places::OrderTally,
    span: places::SpanTally,
    details: Option<DetailTally>,
}

/// What a brief profile leaves out.
#[derive(Debug)]
struct DetailTally {
    sizes: places::SizeTally,
    working_set: places::WorkingSetTally,
    /// Of requests that have times.
    times: Option<TimeTally>,
}

/// What the times of requests say.
#[derive(Debug)]
struct TimeTally {
    depth: operations::DepthTally,
    bursts: times::BurstTally,
    course: times::CourseTally,
    idle: times::IdleTally,
}

impl ProfileTally {
    /// For the profile of requests that have times, or not.
    pub fn new(started_unix_ns: Option<u64>, has_times: bool) -> ProfileTally {
        let details = DetailTally {
            sizes: places::SizeTally::default(),
            working_set: places::WorkingSetTally::default(),
            times: has_times.then(|| TimeTally {
                depth: operations::DepthTally::default(),
                bursts: times::BurstTally::default(),
                course: times::CourseTally::new(started_unix_ns),
                idle: times::IdleTally::default(),
            }),
        };
        ProfileTally { details: Some(details), ..ProfileTally::brief(has_times) }
    }

    /// For [`brief_profile`].
    pub fn brief(has_times: bool) -> ProfileTally {
        ProfileTally {
            has_times,
            operations: operations::OperationTally::default(),
            order: places::OrderTally::default(),
            span: places::SpanTally::default(),
            details: None,
        }
    }

    /// Looks at the next requests.
    pub fn take_all(&mut self, requests: &[ObservedRequest]) {
        requests.iter().for_each(|request| self.take(request));
    }

    #[inline]
    fn take(&mut self, request: &ObservedRequest) {
        self.operations.take(request);
        let is_placed = matches!(request.op, Op::Read | Op::Write);
        if is_placed {
            self.order.take(request);
            self.span.take(request);
        }
        let Some(details) = &mut self.details else { return };
        if !request.op.is_sync() {
            details.sizes.take(request);
        }
        if is_placed {
            details.working_set.take(request);
        }
        if let Some(times) = &mut details.times {
            times.take(request);
        }
    }

    /// The profile of the load that these requests were of.
    pub fn profile(self, load: &ObservedLoad) -> LoadProfile {
        let observed_ns = observed_ns(load);
        let has_rates = self.has_times && load.length_ns > 0;
        let operations = self.operations.profiles(if has_rates { observed_ns } else { 0 });
        let span_bytes = self.span.bytes();
        let mut profile =
            LoadProfile { order: self.order.order(), span_bytes, ..profile_of_operations(load, operations) };
        let Some(details) = self.details else { return profile };
        profile.sizes = details.sizes.sizes();
        profile.working_set = span_bytes.map(|span_bytes| details.working_set.working_set(span_bytes));
        if let Some(times) = details.times.filter(|_| has_rates) {
            profile.burstiness = times.bursts.scales(load.length_ns);
            let depths = times.depth.depths(observed_ns);
            (profile.mean_queue_depth, profile.highest_queue_depth) = depths;
            profile.longest_idle_ns = Some(times.idle.longest_ns(load.length_ns, &load.gaps));
            profile.course = times.course.series(load);
        }
        profile
    }
}

impl TimeTally {
    fn take(&mut self, request: &ObservedRequest) {
        self.depth.take(request);
        self.bursts.take(request.at_ns);
        self.course.take(request);
        self.idle.take(request.at_ns);
    }
}

fn profile_of_intervals(load: &ObservedLoad, intervals: &[ObservedInterval]) -> LoadProfile {
    let has_rates = load.length_ns > 0;
    let observed_ns = if has_rates { observed_ns(load) } else { 0 };
    let mut profile = profile_of_operations(load, operations::of_intervals(intervals, observed_ns));
    if has_rates {
        profile.course = times::course_of_intervals(load, intervals);
    }
    profile.resolution_ns = resolution_ns(intervals);
    profile.burstiness = times::scales_of_intervals(intervals, &load.gaps, profile.resolution_ns);
    fill_states(&mut profile, intervals);
    profile
}

/// The part of a load with data, ns.
fn observed_ns(load: &ObservedLoad) -> u64 {
    load.length_ns.saturating_sub(load.gaps.iter().map(|gap| gap.length_ns).sum())
}

/// A profile of which the operations alone are known.
fn profile_of_operations(load: &ObservedLoad, operations: Vec<OperationProfile>) -> LoadProfile {
    let of = |name: &str| operations.iter().find(|operation| operation.operation == name);
    let share = |figure: &dyn Fn(&OperationProfile) -> Option<u64>| {
        let value = |name| of(name).map_or(Some(0), figure);
        let (reads, writes) = (value("read")?, value("write")?);
        let sum = reads as f64 + writes as f64;
        (sum > 0.0).then(|| reads as f64 / sum)
    };
    LoadProfile {
        length_ns: load.length_ns,
        observed_ns: observed_ns(load),
        read_share: share(&|operation| operation.ops),
        read_bytes_share: share(&|operation| operation.bytes),
        operations,
        ..LoadProfile::default()
    }
}

/// The median length of intervals, ns.
fn resolution_ns(intervals: &[ObservedInterval]) -> Option<u64> {
    upper_median(intervals.iter().map(|interval| interval.length_ns))
}

/// Depth, utilisation, limits and credits as the intervals have them.
fn fill_states(profile: &mut LoadProfile, intervals: &[ObservedInterval]) {
    let mean = |figure: &dyn Fn(&ObservedInterval) -> Option<f64>| {
        let known = intervals.iter().filter_map(|one| Some((figure(one)?, one.length_ns as f64)));
        let (sum, time) = known.fold((0.0, 0.0), |(sum, time), (value, ns)| (sum + value * ns, time + ns));
        (time > 0.0).then(|| sum / time)
    };
    let depth = |interval: &ObservedInterval| Some(interval.queue_depth_milli? as f64 / 1e3);
    // Without a depth of their own, the sum of the latencies is that of the outstanding I/Os.
    let from_latencies =
        |interval: &ObservedInterval| Some(interval.total.latency_sum_ns? as f64 / interval.length_ns as f64);
    let of = |interval: &ObservedInterval| depth(interval).or_else(|| from_latencies(interval));
    profile.mean_queue_depth = mean(&of);
    profile.highest_queue_depth = intervals.iter().filter_map(of).reduce(f64::max);
    profile.utilization = mean(&|interval| Some(f64::from(interval.utilization_ppm?) / 1e6));
    profile.limit_reached_share = mean(&|interval| Some(f64::from(u8::from(interval.limit_reached?))));
    let credits = intervals.iter().filter_map(|interval| interval.credits_ppm).min();
    profile.lowest_credits = credits.map(|ppm| f64::from(ppm) / 1e6);
}

/// The part of a stretch of the load that lies in gaps, ns.
fn gap_ns(gaps: &[LoadGap], start_ns: u64, end_ns: u64) -> u64 {
    let first = gaps.partition_point(|gap| gap.start_ns.saturating_add(gap.length_ns) <= start_ns);
    let inside = gaps[first..].iter().take_while(|gap| gap.start_ns < end_ns);
    inside
        .map(|gap| end_ns.min(gap.start_ns.saturating_add(gap.length_ns)) - start_ns.max(gap.start_ns))
        .sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::num::NonZeroU64;

    use fathom_model::Op;
    use fathom_observed::{
        GapReason, LoadClock, LoadFormat, ObservedRequest, RequestPoint, RequestTrace, ServedIo,
    };

    use super::*;

    /// A request at so many ms, with its latency in µs.
    pub fn request(at_ms: u64, op: Op, offset: u64, bytes: u32, latency_us: u64) -> ObservedRequest {
        let latency_ns = NonZeroU64::new(latency_us * 1_000);
        ObservedRequest { at_ns: at_ms * 1_000_000, offset, latency_ns, bytes, file: 0, thread: 0, op }
    }

    pub fn trace(requests: Vec<ObservedRequest>) -> RequestTrace {
        let files = vec!["8:0".to_owned()];
        RequestTrace { files, requests, has_times: true, point: RequestPoint::Driver }
    }

    pub fn load(course: LoadCourse, length_ns: u64, gaps: Vec<LoadGap>) -> ObservedLoad {
        ObservedLoad {
            format: LoadFormat::Blkparse,
            device: "8:0".to_owned(),
            started_unix_ns: None,
            clock: LoadClock::Relative,
            length_ns,
            course,
            gaps,
            notes: Vec::new(),
        }
    }

    /// An interval of 60 s that begins after so many minutes.
    pub fn minute(start: u64, ops: u64) -> ObservedInterval {
        let total =
            ServedIo { ops: Some(ops), bytes: Some(ops * 4096), latency_sum_ns: Some(ops * 1_000_000) };
        let mut interval = ObservedInterval {
            start_ns: start * 60 * SECOND_NS,
            length_ns: 60 * SECOND_NS,
            total,
            ..ObservedInterval::default()
        };
        interval.by_op.read = total;
        interval
    }

    #[test]
    fn requests_have_everything() {
        let requests = (0..1_000).map(|at| request(at * 10, Op::Read, at * 4096, 4096, 500)).collect();
        let profile = load_profile(&load(LoadCourse::Requests(trace(requests)), 10 * SECOND_NS, Vec::new()));
        assert_eq!(profile.read_share, Some(1.0));
        assert_eq!((profile.resolution_ns, profile.longest_idle_ns), (None, Some(10_000_000)));
        assert_eq!(profile.mean_queue_depth, Some(0.05));
        let total = profile.operations.last().unwrap();
        assert_eq!((total.operation, total.ops, total.iops), ("total", Some(1_000), Some(100.0)));
        assert!(profile.order.is_some() && profile.working_set.is_some() && !profile.burstiness.is_empty());
    }

    #[test]
    fn requests_without_times_have_no_rates() {
        let requests: Vec<_> = (0..1_000).map(|at| request(0, Op::Read, at * 4096, 4096, 0)).collect();
        let waiting: Vec<_> = (0..1_000).map(|at| request(at, Op::Read, at * 4096, 4096, 0)).collect();
        let without_times = |requests| RequestTrace { has_times: false, ..trace(requests) };
        for (trace, length_ns) in [
            (trace(requests.clone()), 0),
            (without_times(requests), 0),
            (without_times(waiting), 999_000_000),
        ] {
            let profile = load_profile(&load(LoadCourse::Requests(trace), length_ns, Vec::new()));
            for operation in &profile.operations {
                assert_eq!((operation.ops, operation.mean_bytes), (Some(1_000), Some(4096.0)));
                assert_eq!((operation.iops, operation.bytes_per_second), (None, None));
            }
            assert_eq!(profile.course, LoadCourseSeries::default());
            assert!(profile.burstiness.is_empty() && profile.longest_idle_ns.is_none());
            assert_eq!((profile.observed_ns, profile.read_share), (length_ns, Some(1.0)));
        }
    }

    #[test]
    fn rates_of_intervals_are_those_of_the_time_with_data() {
        let mut intervals = vec![minute(0, 600), minute(1, 0), minute(3, 600)];
        intervals[0].queue_depth_milli = Some(3_000);
        intervals[0].limit_reached = Some(true);
        intervals[1].limit_reached = Some(false);
        intervals[1].credits_ppm = Some(250_000);
        let gap =
            LoadGap { start_ns: 120 * SECOND_NS, length_ns: 60 * SECOND_NS, reason: GapReason::Missing };
        let profile = load_profile(&load(LoadCourse::Intervals(intervals), 240 * SECOND_NS, vec![gap]));
        assert_eq!((profile.observed_ns, profile.resolution_ns), (180 * SECOND_NS, Some(60 * SECOND_NS)));
        let total = profile.operations.last().unwrap();
        assert_eq!((total.ops, total.iops), (Some(1_200), Some(1_200.0 / 180.0)));
        assert_eq!(total.mean_latency_ns, Some(1e6));
        assert_eq!((profile.limit_reached_share, profile.lowest_credits), (Some(0.5), Some(0.25)));
        assert_eq!(profile.highest_queue_depth, Some(3.0));
        assert!(profile.sizes.is_empty() && profile.working_set.is_none());
    }

    #[test]
    fn gaps_are_cut_to_the_stretch() {
        let gap = |start_ns, length_ns| LoadGap { start_ns, length_ns, reason: GapReason::Missing };
        let gaps = [gap(10, 10), gap(30, 10)];
        for (start, end, expected) in
            [(0, 5, 0), (0, 15, 5), (12, 14, 2), (15, 35, 10), (0, 100, 20), (40, 50, 0)]
        {
            assert_eq!(gap_ns(&gaps, start, end), expected, "{start} to {end}");
        }
    }

    #[test]
    fn a_brief_profile_is_a_part_of_the_whole() {
        let check = |course: LoadCourse, length_ns: u64| {
            let load = load(course, length_ns, Vec::new());
            let (brief, whole) = (brief_profile(&load), load_profile(&load));
            assert_eq!(brief.span_bytes, whole.working_set.as_ref().map(|set| set.span_bytes));
            let expected = LoadProfile {
                sizes: brief.sizes.clone(),
                working_set: brief.working_set.clone(),
                burstiness: brief.burstiness.clone(),
                mean_queue_depth: brief.mean_queue_depth,
                highest_queue_depth: brief.highest_queue_depth,
                longest_idle_ns: brief.longest_idle_ns,
                course: brief.course.clone(),
                ..whole
            };
            assert_eq!(brief, expected);
        };
        let op = |index: u64| [Op::Read, Op::Write, Op::Sync, Op::Trim][index as usize % 4];
        let requests: Vec<_> = (0..400)
            .map(|index| request(index, op(index), index * index % 977 * 512, 512, index % 7))
            .collect();
        let syncs = vec![request(0, Op::Sync, 0, 0, 3)];
        for requests in [requests.clone(), syncs, Vec::new()] {
            check(LoadCourse::Requests(trace(requests)), 400_000_000);
        }
        let without_times = RequestTrace { has_times: false, ..trace(requests) };
        check(LoadCourse::Requests(without_times), 0);
        check(LoadCourse::Intervals(vec![minute(0, 60), minute(1, 6)]), 120_000_000_000);
    }
}
