//! What a load would get of a simulated volume over a span: slices of it, the credit that is left, and when none was.
//!
//! Pure: from what completed between two instants and the state of the volume's limits then, it makes a bounded
//! number of slices, however long the span is.

mod credit;
mod trace;

use fathom_record::forecast::{CompletedRequests, CreditCourse, ForecastSlice, ForecastStall};

pub use credit::credits;
use credit::left;
pub use trace::{TraceForecast, TraceObserver, credits_left, forecast_trace};

/// Most slices of a span; rows of a table are made of several.
const MAX_SLICES: u64 = 96;
/// Most rows of a table.
const MAX_ROWS: u64 = 24;
/// Lengths of slices and rows, in seconds.
const LENGTHS: [u64; 24] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000,
];
const SECOND: u64 = 1_000_000_000;
/// How long a course is taken to be where that is not known.
const UNKNOWN_NS: u64 = 3_600 * SECOND;

/// Stalls of several jobs in the order of time, those that overlap as one.
pub fn joined(mut stalls: Vec<ForecastStall>) -> Vec<ForecastStall> {
    stalls.sort_by_key(|stall| stall.start_ns);
    let mut joined: Vec<ForecastStall> = Vec::new();
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

/// A span in slices, and the credits over it.
#[derive(Clone, Debug)]
pub struct ForecastCourse {
    length_ns: Option<u64>,
    slice_ns: u64,
    at_ns: u64,
    /// Length of a row of the table, ns.
    pub row_ns: u64,
    /// What happened, slice by slice.
    pub slices: Vec<ForecastSlice>,
    /// The credits of the volume, in the order of its limits.
    pub credits: Vec<CreditCourse>,
}

impl ForecastCourse {
    /// A course that is to be `length_ns` long, as far as that is known; what comes later has one slice.
    pub fn new(length_ns: Option<u64>, credits: Vec<CreditCourse>) -> ForecastCourse {
        let span_ns = length_ns.unwrap_or(UNKNOWN_NS);
        let slice_ns = nice(span_ns, MAX_SLICES, SECOND);
        ForecastCourse {
            length_ns,
            slice_ns,
            row_ns: nice(span_ns, MAX_ROWS, slice_ns),
            at_ns: 0,
            slices: Vec::new(),
            credits,
        }
    }

    /// Length of a slice, ns.
    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
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
                credits_exhausted_ns: vec![0; credits],
                ..ForecastSlice::default()
            };
            self.slices.push(empty);
        }
        let slice = &mut self.slices[index];
        slice.end_ns = to;
        slice.counted.add(counted);
        for ((credit, left), exhausted_ns) in
            self.credits.iter_mut().zip(left).zip(&mut slice.credits_exhausted_ns)
        {
            *exhausted_ns += credit::sample(credit, (from, to), *left);
        }
        slice.credits_left = self.credits.iter().map(|credit| credit.left).collect();
        self.at_ns = to;
    }

    /// Latencies of what completed between two instants: their sum and their histogram's bins.
    pub fn add_latencies(&mut self, (from, to): (u64, u64), sum_ns: u64, bins: &[(u16, u64)]) {
        let index = self.index_of(from, to).min(self.slices.len().saturating_sub(1));
        let Some(slice) = self.slices.get_mut(index) else { return };
        slice.lat.moments.sum += u128::from(sum_ns);
        for &(bin, count) in bins {
            slice.lat.histogram.add(usize::from(bin), count);
            slice.lat.moments.count += count;
        }
    }

    /// No latency of the whole lies outside of these.
    pub fn bound(&mut self, least_ns: u64, most_ns: u64) {
        for slice in self.slices.iter_mut().filter(|slice| slice.lat.samples() > 0) {
            (slice.lat.moments.min, slice.lat.moments.max) = (least_ns, most_ns);
        }
    }

    /// The slice that the middle of a span lies in. What is in flight at the end belongs to the last one.
    fn index_of(&self, from: u64, to: u64) -> usize {
        let middle = from / 2 + to / 2;
        let most = match self.length_ns {
            Some(length) if to < length.saturating_add(SECOND) => {
                length.div_ceil(self.slice_ns).saturating_sub(1)
            }
            Some(length) => length.div_ceil(self.slice_ns),
            None => 2 * MAX_SLICES,
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
    use fathom_record::forecast::Forecast;

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
        let stall = |start_ns, length_ns| ForecastStall { start_ns, length_ns };
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
        course.bound(0, 1_000);
        let forecast =
            Forecast { row_ns: course.row_ns, slices: course.slices.clone(), ..Forecast::default() };
        assert_eq!((course.slices.len(), course.at_ns()), (60, HOUR));
        assert!(course.slices.iter().all(|slice| slice.iops() == 100.0), "{:?}", course.slices);
        let lat = course.slices[0].lat.summary();
        assert_eq!((lat.mean, lat.p50, lat.p99), (Some(100.0), Some(100), None));
        let rows = forecast.rows();
        assert_eq!((rows.len(), rows[0].end_ns, rows[11].start_ns), (12, 300 * SECOND, 3_300 * SECOND));
        assert!(rows.iter().all(|row| row.iops() == 100.0 && row.bytes_per_second() == 409_600.0));
        assert_eq!((rows[0].lat.summary().p50, rows[1].lat.summary().mean), (Some(100), None));
        course.bound(105, 110);
        assert_eq!(course.slices[0].lat.summary().p50, Some(105));
    }

    #[test]
    fn what_comes_after_the_end_is_the_last_slices_or_one_of_its_own() {
        let slices = |ends: &[u64]| {
            let mut course = ForecastCourse::new(Some(60 * SECOND), Vec::new());
            for end in ends {
                course.advance(end * SECOND / 10, &CompletedRequests::default(), &[]);
            }
            course.slices.len()
        };
        assert_eq!(slices(&[595, 600]), 60);
        assert_eq!(slices(&[595, 600, 601]), 60);
        assert_eq!(slices(&[595, 600, 605, 615, 7_000, 90_000]), 61);
    }
}
