//! What a load would get of a modelled volume over a span: slices of it, the credit that is left, and when none was.
//!
//! Pure: told what completed from one instant to the next and what the volume's limits stood at then, it keeps a bounded
//! number of slices, however long the span is.

mod credit;

use fathom_stats::{DATA_OPS, Histogram, Latency};
use serde::Serialize;

pub use credit::{CreditCourse, CreditUnit, credits, left};

/// Most slices of a span; rows of a table are made of several.
const MOST_SLICES: u64 = 96;
/// Most rows of a table.
const MOST_ROWS: u64 = 24;
/// Lengths of slices and rows, in seconds.
const LENGTHS: [u64; 24] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000,
];
const SECOND: u64 = 1_000_000_000;
/// How long a course is taken to be where nobody says.
const UNKNOWN_NS: u64 = 3_600 * SECOND;
/// Samples that a percentile needs: ten lie beyond it.
const SAMPLES_P50: u64 = 20;
const SAMPLES_P99: u64 = 1_000;

/// What a load would get of a volume.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// The volume as it was named.
    pub target: String,
    /// What it is, in words.
    pub title: String,
    /// Its size.
    pub size_bytes: u64,
    /// What ended the forecast before its time; `None` where nothing did.
    pub interrupted: Option<String>,
    /// What went wrong on the volume, which ended the load or a part of it.
    pub failure: Option<String>,
    /// How long the load was put on it, ns.
    pub elapsed_ns: u64,
    /// What happened when.
    pub course: ForecastCourse,
    /// The whole, read, write and trim each.
    pub ops: [OpTotal; DATA_OPS],
    /// Requests to make sure that what was written is kept.
    pub syncs: Latency,
    /// Times of a second or more in which nothing completed of a job that had requests under way, in their order.
    pub stalls: Vec<Stalled>,
    /// What a load at its own pace adds; `None` where the volume set the pace.
    pub own_pace: Option<OwnPace>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A time in which nothing completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stalled {
    /// When it began, ns since the load did.
    pub start_ns: u64,
    /// How long it was.
    pub length_ns: u64,
}

/// Stalls of several jobs in the order of time, those that overlap as one.
pub fn joined(mut stalls: Vec<Stalled>) -> Vec<Stalled> {
    stalls.sort_by_key(|stall| stall.start_ns);
    let mut joined: Vec<Stalled> = Vec::new();
    for stall in stalls {
        let end = stall.start_ns.saturating_add(stall.length_ns);
        match joined.last_mut().filter(|last| stall.start_ns <= last.start_ns.saturating_add(last.length_ns))
        {
            Some(last) => last.length_ns = last.length_ns.max(end - last.start_ns),
            None => joined.push(stall),
        }
    }
    joined
}

/// One operation over the whole span.
#[derive(Clone, Debug, Default)]
pub struct OpTotal {
    /// Requests that completed.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Start to completion.
    pub lat: Latency,
}

/// A load whose requests come when they come, whether the volume keeps up or not.
#[derive(Clone, Debug, Default)]
pub struct OwnPace {
    /// From when a request was due to its completion.
    pub response: Latency,
    /// Requests that were due and had not been made when the time was over.
    pub backlog: u64,
    /// Most requests under way at once, where that is known.
    pub most_in_flight: Option<u64>,
    /// How long after the end the last request completed, ns, where it is known.
    pub late_ns: Option<u64>,
}

impl Forecast {
    /// True where nothing completed in `row` and it was not for want of requests.
    pub fn is_stalled(&self, row: &ForecastSlice) -> bool {
        let is_in = |stall: &Stalled| {
            stall.start_ns < row.end_ns && row.start_ns < stall.start_ns.saturating_add(stall.length_ns)
        };
        row.counted.ios == [0; DATA_OPS] && self.stalls.iter().any(is_in)
    }

    /// All operations together.
    pub fn total(&self) -> OpTotal {
        let mut total = OpTotal::default();
        for op in &self.ops {
            total.ios += op.ios;
            total.bytes += op.bytes;
            total.failed += op.failed;
            total.lat.merge(&op.lat);
        }
        total
    }

    /// Requests a second over the whole span.
    pub fn iops(&self) -> f64 {
        self.per_second(self.ops.iter().map(|op| op.ios).sum())
    }

    /// Bytes a second over the whole span.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.ops.iter().map(|op| op.bytes).sum())
    }

    /// `count` of the whole span, a second.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / self.elapsed_ns as f64 }
    }

    /// `count` of the whole span, in `length_ns` of the same.
    pub fn scaled_to(&self, length_ns: u64, count: u64) -> f64 {
        self.per_second(count) * length_ns as f64 / 1e9
    }
}

/// What completed between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompletedRequests {
    /// Requests: read, write, trim.
    pub ios: [u64; DATA_OPS],
    /// Their bytes.
    pub bytes: [u64; DATA_OPS],
}

/// A part of the span.
#[derive(Clone, Debug, Default)]
pub struct ForecastSlice {
    /// Where it begins, ns since the load began.
    pub start_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
    /// What completed in it.
    pub counted: CompletedRequests,
    /// Latencies of that, summed up, and how many they are.
    lat_sum_ns: u128,
    lat: Histogram,
    /// No latency of the whole span lies outside.
    bounds: Option<(u64, u64)>,
    /// What is left of each credit at its end: tokens, or for windows ns of burst.
    pub left: Vec<u64>,
    /// For how long each credit was used up, ns.
    pub dry_ns: Vec<u64>,
}

impl ForecastSlice {
    /// Requests a second.
    pub fn iops(&self) -> f64 {
        self.per_second(self.counted.ios.iter().sum())
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.counted.bytes.iter().sum())
    }

    /// Mean latency, ns; `None` where nothing was measured.
    pub fn mean_ns(&self) -> Option<f64> {
        let samples = self.lat.samples();
        (samples > 0).then(|| self.lat_sum_ns as f64 / samples as f64)
    }

    /// Median latency, ns, where enough requests tell it.
    pub fn p50_ns(&self) -> Option<u64> {
        self.percentile(50.0).filter(|_| self.lat.samples() >= SAMPLES_P50)
    }

    /// Latency that one in a hundred exceeds, ns, where enough requests tell it.
    pub fn p99_ns(&self) -> Option<u64> {
        self.percentile(99.0).filter(|_| self.lat.samples() >= SAMPLES_P99)
    }

    /// The middle of a bin, which may lie outside of what there was.
    fn percentile(&self, percent: f64) -> Option<u64> {
        let middle = self.lat.percentile(percent)?;
        Some(self.bounds.map_or(middle, |(least, most)| middle.max(least).min(most)))
    }

    fn per_second(&self, count: u64) -> f64 {
        let span = self.end_ns.saturating_sub(self.start_ns);
        if span == 0 { 0.0 } else { count as f64 * 1e9 / span as f64 }
    }

    /// Takes in the slice that follows.
    fn absorb(&mut self, next: &ForecastSlice) {
        self.end_ns = next.end_ns;
        self.counted.add(&next.counted);
        self.lat_sum_ns += next.lat_sum_ns;
        self.lat.merge(&next.lat);
        self.left.clone_from(&next.left);
        for (mine, theirs) in self.dry_ns.iter_mut().zip(&next.dry_ns) {
            *mine += theirs;
        }
    }
}

impl CompletedRequests {
    fn add(&mut self, other: &CompletedRequests) {
        for (mine, theirs) in self.ios.iter_mut().zip(other.ios) {
            *mine += theirs;
        }
        for (mine, theirs) in self.bytes.iter_mut().zip(other.bytes) {
            *mine += theirs;
        }
    }
}

/// A span in slices, and the credits over it.
#[derive(Clone, Debug)]
pub struct ForecastCourse {
    length_ns: Option<u64>,
    slice_ns: u64,
    row_ns: u64,
    at_ns: u64,
    slices: Vec<ForecastSlice>,
    /// The credits of the volume, in the order of its limits.
    pub credits: Vec<CreditCourse>,
}

impl ForecastCourse {
    /// A course that is to be `length_ns` long, as far as that is known; what comes later has one slice.
    pub fn new(length_ns: Option<u64>, credits: Vec<CreditCourse>) -> ForecastCourse {
        let span_ns = length_ns.unwrap_or(UNKNOWN_NS);
        let slice_ns = nice(span_ns, MOST_SLICES, SECOND);
        ForecastCourse {
            length_ns,
            slice_ns,
            row_ns: nice(span_ns, MOST_ROWS, slice_ns),
            at_ns: 0,
            slices: Vec::new(),
            credits,
        }
    }

    /// How far it has come, ns.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// `counted` is what completed since the last call, and `left` what the credits stand at at `now_ns`.
    pub fn advance(&mut self, now_ns: u64, counted: &CompletedRequests, left: &[u64]) {
        let (from, to) = (self.at_ns, now_ns.max(self.at_ns));
        let index = self.index_of(from, to);
        let credits = self.credits.len();
        while self.slices.len() <= index {
            let empty = ForecastSlice {
                start_ns: from,
                end_ns: from,
                dry_ns: vec![0; credits],
                ..ForecastSlice::default()
            };
            self.slices.push(empty);
        }
        let slice = &mut self.slices[index];
        slice.end_ns = to;
        slice.counted.add(counted);
        slice.left = left.to_vec();
        for ((credit, left), dry_ns) in self.credits.iter_mut().zip(left).zip(&mut slice.dry_ns) {
            *dry_ns += credit.sample((from, to), *left);
        }
        self.at_ns = to;
    }

    /// Latencies of what completed between two instants: their sum and their histogram's bins.
    pub fn add_latencies(&mut self, (from, to): (u64, u64), sum_ns: u64, bins: &[(u16, u64)]) {
        let index = self.index_of(from, to).min(self.slices.len().saturating_sub(1));
        let Some(slice) = self.slices.get_mut(index) else { return };
        slice.lat_sum_ns += u128::from(sum_ns);
        for &(bin, count) in bins {
            slice.lat.add(usize::from(bin), count);
        }
    }

    /// No latency of the whole lies outside of these.
    pub fn bound(&mut self, least_ns: u64, most_ns: u64) {
        self.slices.iter_mut().for_each(|slice| slice.bounds = Some((least_ns, most_ns)));
    }

    /// What happened, slice by slice.
    pub fn slices(&self) -> &[ForecastSlice] {
        &self.slices
    }

    /// The same in a few rows for a table.
    pub fn rows(&self) -> Vec<ForecastSlice> {
        let mut rows: Vec<ForecastSlice> = Vec::new();
        for slice in &self.slices {
            let row = |at: &ForecastSlice| (at.start_ns + SECOND / 2) / self.row_ns;
            match rows.last_mut() {
                Some(last) if row(last) == row(slice) => last.absorb(slice),
                _ => rows.push(slice.clone()),
            }
        }
        rows
    }

    /// The slice that the middle of a span lies in. What is under way at the end belongs to the last one.
    fn index_of(&self, from: u64, to: u64) -> usize {
        let middle = from / 2 + to / 2;
        let most = match self.length_ns {
            Some(length) if to < length.saturating_add(SECOND) => {
                length.div_ceil(self.slice_ns).saturating_sub(1)
            }
            Some(length) => length.div_ceil(self.slice_ns),
            None => 2 * MOST_SLICES,
        };
        (middle / self.slice_ns).min(most) as usize
    }
}

/// The least length of ours, a multiple of `of_ns`, of which `most` make up `length_ns`.
fn nice(length_ns: u64, most: u64, of_ns: u64) -> u64 {
    let lengths =
        LENGTHS.iter().map(|seconds| seconds * SECOND).filter(|length| length.is_multiple_of(of_ns));
    lengths
        .into_iter()
        .find(|length| length_ns <= length.saturating_mul(most))
        .unwrap_or(length_ns.max(SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600 * SECOND;

    #[test]
    fn spans_are_cut_at_lengths_that_people_know() {
        for (length, slice, row) in [
            (SECOND, 1, 1),
            (60 * SECOND, 1, 5),
            (HOUR, 60, 300),
            (24 * HOUR, 900, 3_600),
            (30 * 24 * HOUR, 43_200, 172_800),
        ] {
            let course = ForecastCourse::new(Some(length), Vec::new());
            assert_eq!((course.slice_ns / SECOND, course.row_ns / SECOND), (slice, row), "{length}");
        }
    }

    #[test]
    fn stalls_that_overlap_are_one() {
        let stall = |start_ns, length_ns| Stalled { start_ns, length_ns };
        assert_eq!(joined(Vec::new()), []);
        assert_eq!(
            joined(vec![stall(50, 5), stall(10, 10), stall(12, 3), stall(15, 20)]),
            [stall(10, 25), stall(50, 5)]
        );
    }

    #[test]
    fn slices_add_up_and_rows_too() {
        let mut course = ForecastCourse::new(Some(HOUR), Vec::new());
        let counted = CompletedRequests { ios: [50, 0, 0], bytes: [4096 * 50, 0, 0] };
        for tick in 1..=7_200u64 {
            course.advance(tick * SECOND / 2, &counted, &[]);
        }
        course.add_latencies((0, SECOND), 2_000, &[(100, 20)]);
        assert_eq!((course.slices().len(), course.at_ns()), (60, HOUR));
        assert!(course.slices().iter().all(|slice| slice.iops() == 100.0), "{:?}", course.slices());
        assert_eq!(course.slices()[0].mean_ns(), Some(100.0));
        assert_eq!((course.slices()[0].p50_ns(), course.slices()[0].p99_ns()), (Some(100), None));
        let rows = course.rows();
        assert_eq!((rows.len(), rows[0].end_ns, rows[11].start_ns), (12, 300 * SECOND, 3_300 * SECOND));
        assert!(rows.iter().all(|row| row.iops() == 100.0 && row.bytes_per_second() == 409_600.0));
        assert_eq!((rows[0].p50_ns(), rows[1].mean_ns()), (Some(100), None));
        course.bound(105, 110);
        assert_eq!(course.slices()[0].p50_ns(), Some(105));
    }

    #[test]
    fn what_comes_after_the_end_is_the_last_slices_or_one_of_its_own() {
        let slices = |ends: &[u64]| {
            let mut course = ForecastCourse::new(Some(60 * SECOND), Vec::new());
            for end in ends {
                course.advance(end * SECOND / 10, &CompletedRequests::default(), &[]);
            }
            course.slices().len()
        };
        assert_eq!(slices(&[595, 600]), 60);
        assert_eq!(slices(&[595, 600, 601]), 60);
        assert_eq!(slices(&[595, 600, 605, 615, 7_000, 90_000]), 61);
    }
}
