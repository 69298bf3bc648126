//! What a load would get of a simulated volume over a span: slices of it, the credit that is left, and when none was.
//!
//! Pure: from what completed between two instants and the state of the volume's limits then, it makes a bounded
//! number of slices, however long the span is.

mod trace;

use fathom_model::LimitUnit;
use fathom_record::forecast::{CompletedRequests, CreditCourse, Forecast, ForecastSlice, ForecastStall};
use fathom_volume::{Limit, LimitState, VolumeModel};
pub use trace::{TraceForecast, credits_left, forecast_trace};

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
fn joined(mut stalls: Vec<ForecastStall>) -> Vec<ForecastStall> {
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
    /// Length of a slice, ns.
    pub slice_ns: u64,
    /// How far it has come, ns.
    pub at_ns: u64,
    /// The forecast so far; the course adds slices and credits, and who follows a load its totals.
    pub forecast: Forecast,
}

impl ForecastCourse {
    /// A course that is to be `length_ns` long, as far as that is known; what comes later has one slice.
    pub fn new(length_ns: Option<u64>, model: &VolumeModel) -> ForecastCourse {
        let span_ns = length_ns.unwrap_or(UNKNOWN_NS);
        let slice_ns = nice(span_ns, MAX_SLICES, SECOND);
        ForecastCourse {
            length_ns,
            slice_ns,
            at_ns: 0,
            forecast: Forecast {
                size_bytes: model.size_bytes,
                row_ns: nice(span_ns, MAX_ROWS, slice_ns),
                credits: credits(model),
                ..Forecast::default()
            },
        }
    }

    /// `counted` is what completed since the last call, and `left` what the credits stand at at `now_ns`.
    pub fn advance(&mut self, now_ns: u64, counted: &CompletedRequests, left: &[u64]) {
        let (from, to) = (self.at_ns, now_ns.max(self.at_ns));
        let index = self.index_of(from, to);
        let Forecast { slices, credits, .. } = &mut self.forecast;
        while slices.len() <= index {
            let empty = ForecastSlice {
                start_ns: from,
                end_ns: from,
                credits_exhausted_ns: vec![0; credits.len()],
                ..ForecastSlice::default()
            };
            slices.push(empty);
        }
        let slice = &mut slices[index];
        slice.end_ns = to;
        slice.counted.add(counted);
        for ((credit, left), exhausted_ns) in
            credits.iter_mut().zip(left).zip(&mut slice.credits_exhausted_ns)
        {
            *exhausted_ns += sample(credit, (from, to), *left);
        }
        slice.credits_left = credits.iter().map(|credit| credit.left).collect();
        self.at_ns = to;
    }

    /// Latencies of what completed between two instants: their sum and their histogram's bins.
    pub fn add_latencies(&mut self, (from, to): (u64, u64), sum_ns: u64, bins: &[(u16, u64)]) {
        let index = self.index_of(from, to).min(self.forecast.slices.len().saturating_sub(1));
        let Some(slice) = self.forecast.slices.get_mut(index) else { return };
        slice.lat.moments.sum += u128::from(sum_ns);
        for &(bin, count) in bins {
            slice.lat.histogram.add(usize::from(bin), count);
            slice.lat.moments.count += count;
        }
    }

    /// The forecast of a load that ended after so long. No latency of a slice lies outside of those of the whole.
    pub fn finish(self, elapsed_ns: u64) -> Forecast {
        let moments = self.forecast.total().lat.moments;
        let mut forecast = Forecast { elapsed_ns, ..self.forecast };
        for slice in forecast.slices.iter_mut().filter(|slice| slice.lat.samples() > 0) {
            (slice.lat.moments.min, slice.lat.moments.max) = (moments.min, moments.max);
        }
        forecast.stalls = joined(forecast.stalls);
        forecast
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

/// With less than what the baseline brings in half a second, or than a hundredth of what is kept, the volume gives its
/// baseline and no more.
const EXHAUSTED_SECONDS: f64 = 0.5;
const EXHAUSTED_SHARE: f64 = 0.01;

/// Takes note of what is left of `credit` at the end of a span; returns for how much of it the credit counts as exhausted.
pub(super) fn sample(credit: &mut CreditCourse, (from, to): (u64, u64), left: u64) -> u64 {
    credit.left = credit.capacity.map(|_| left);
    credit.least = credit.capacity.map(|_| credit.least.map_or(left, |least| least.min(left)));
    let enough = credit.capacity.map_or(0.0, |capacity| {
        (credit.baseline_rate * EXHAUSTED_SECONDS).min(capacity as f64 * EXHAUSTED_SHARE)
    });
    let was_exhausted = std::mem::replace(&mut credit.is_exhausted, left as f64 <= enough);
    if !credit.is_exhausted {
        return 0;
    }
    credit.first_exhausted_ns.get_or_insert(to);
    // It was found so at the end of the span; since when in it is not known.
    let exhausted_ns = if was_exhausted { to - from } else { 0 };
    credit.exhausted_ns += exhausted_ns;
    exhausted_ns
}

/// The credits of a volume, in the order of its limits. Nothing has been taken of them.
fn credits(model: &VolumeModel) -> Vec<CreditCourse> {
    let stages = [("", &model.shared), (" reads", &model.reads), (" writes", &model.writes)];
    let mut found = Vec::new();
    for (direction, stage) in
        stages.into_iter().flat_map(|(word, all)| all.iter().map(move |one| (word, one)))
    {
        for (unit, limit) in [(LimitUnit::Ios, stage.ios), (LimitUnit::Bytes, stage.bytes)] {
            let (base, burst, capacity) = match limit {
                Some(Limit::Credit { base, burst, capacity, .. }) => (base, burst, Some(capacity)),
                Some(Limit::Window { base, burst, .. }) => (base, Some(burst), None),
                Some(Limit::Rate(_) | Limit::OnDemand { .. }) | None => continue,
            };
            found.push(CreditCourse {
                of: format!("{}{direction}", stage.name),
                unit,
                capacity,
                burst_rate: burst.map(|burst| burst.as_f64()),
                baseline_rate: base.as_f64(),
                ..CreditCourse::default()
            });
        }
    }
    found
}

/// What is left of a credit, where a limit has one: tokens; of a window the ns of burst, 0 while it rests.
pub(super) fn left(state: LimitState, now_ns: u64) -> Option<u64> {
    match state {
        LimitState::Credit { left, .. } => Some(left),
        LimitState::Burst { until_ns } => Some(until_ns.saturating_sub(now_ns).max(1)),
        LimitState::Rest { .. } => Some(0),
        LimitState::Ready => Some(u64::MAX),
        LimitState::Steady => None,
    }
}

#[cfg(test)]
mod tests {
    use fathom_volume::{LimitStage, TokenRate};

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
            let course = ForecastCourse::new(Some(length), &VolumeModel::unlimited(1 << 30));
            assert_eq!((course.slice_ns / SECOND, course.forecast.row_ns / SECOND), (slice, row), "{length}");
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
        let mut course = ForecastCourse::new(Some(HOUR), &VolumeModel::unlimited(1 << 30));
        let counted = CompletedRequests { ios: [50, 0, 0], bytes: [4096 * 50, 0, 0] };
        for tick in 1..=7_200u64 {
            course.advance(tick * SECOND / 2, &counted, &[]);
        }
        course.add_latencies((0, SECOND), 2_000, &[(100, 20)]);
        let bounded = |least: u64, most: u64| {
            let mut course = course.clone();
            [least, most].into_iter().for_each(|ns| course.forecast.ops.read.lat.record(ns));
            course.finish(HOUR)
        };
        let forecast = bounded(0, 1_000);
        assert_eq!((forecast.slices.len(), course.at_ns), (60, HOUR));
        assert!(forecast.slices.iter().all(|slice| slice.iops() == 100.0), "{:?}", forecast.slices);
        let lat = forecast.slices[0].lat.summary();
        assert_eq!((lat.mean, lat.p50, lat.p99), (Some(100.0), Some(100), None));
        let rows = forecast.rows();
        assert_eq!((rows.len(), rows[0].end_ns, rows[11].start_ns), (12, 300 * SECOND, 3_300 * SECOND));
        assert!(rows.iter().all(|row| row.iops() == 100.0 && row.bytes_per_second() == 409_600.0));
        assert_eq!((rows[0].lat.summary().p50, rows[1].lat.summary().mean), (Some(100), None));
        assert_eq!(bounded(105, 110).slices[0].lat.summary().p50, Some(105));
    }

    #[test]
    fn what_comes_after_the_end_is_the_last_slices_or_one_of_its_own() {
        let slices = |ends: &[u64]| {
            let mut course = ForecastCourse::new(Some(60 * SECOND), &VolumeModel::unlimited(1 << 30));
            for end in ends {
                course.advance(end * SECOND / 10, &CompletedRequests::default(), &[]);
            }
            course.forecast.slices.len()
        };
        assert_eq!(slices(&[595, 600]), 60);
        assert_eq!(slices(&[595, 600, 601]), 60);
        assert_eq!(slices(&[595, 600, 605, 615, 7_000, 90_000]), 61);
    }

    #[test]
    fn credits_of_a_volume_are_found_in_the_order_of_its_limits() {
        let rate = |tokens| TokenRate::per_second(tokens).unwrap();
        let credit =
            Limit::Credit { base: rate(150), burst: Some(rate(3000)), capacity: 5_400_000, initial: 0 };
        let window = Limit::Window { base: rate(5), burst: rate(7), burst_ns: 9, rest_ns: 9 };
        let stage =
            |ios, bytes| LimitStage { name: "volume".to_owned(), ios, bytes, ..LimitStage::default() };
        let model = VolumeModel {
            shared: vec![stage(Some(credit), Some(Limit::Rate(rate(9))))],
            writes: vec![stage(None, Some(window))],
            ..VolumeModel::unlimited(1 << 30)
        };
        let found: Vec<_> =
            credits(&model).into_iter().map(|one| (one.of, one.unit, one.capacity, one.burst_rate)).collect();
        assert_eq!(
            found,
            [
                ("volume".to_owned(), LimitUnit::Ios, Some(5_400_000), Some(3000.0)),
                ("volume writes".to_owned(), LimitUnit::Bytes, None, Some(7.0))
            ]
        );
    }

    #[test]
    fn a_credit_is_used_up_while_only_the_baseline_is_left() {
        let limit = Limit::Credit {
            base: TokenRate::per_second(150).unwrap(),
            burst: None,
            capacity: 1000,
            initial: 1000,
        };
        let stage = LimitStage { ios: Some(limit), ..LimitStage::default() };
        let model = VolumeModel { shared: vec![stage], ..VolumeModel::unlimited(1 << 30) };
        let mut course = credits(&model).remove(0);
        for (span, left, expected) in
            [((0, 5), 900, 0), ((5, 10), 10, 0), ((10, 15), 0, 5), ((15, 20), 11, 0), ((20, 25), 10, 0)]
        {
            assert_eq!(sample(&mut course, span, left), expected, "{left}");
        }
        assert_eq!((course.first_exhausted_ns, course.exhausted_ns), (Some(10), 5));
        assert_eq!((course.least, course.left, course.share(Some(500))), (Some(0), Some(10), Some(0.5)));
    }

    #[test]
    fn what_is_left_of_windows_is_time() {
        for (state, expected) in [
            (LimitState::Steady, None),
            (LimitState::Credit { left: 7, capacity: 9 }, Some(7)),
            (LimitState::Burst { until_ns: 100 }, Some(60)),
            (LimitState::Rest { until_ns: 100 }, Some(0)),
            (LimitState::Ready, Some(u64::MAX)),
        ] {
            assert_eq!(left(state, 40), expected, "{state:?}");
        }
    }
}
