//! Summaries of latencies: percentiles, and the forms that fio's outputs and fathom's JSON use.

use serde::{Deserialize, Serialize};

use crate::{Latency, Moments, histogram};

impl Latency {
    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.moments.count
    }

    /// The percentile as fio prints it, ns: the middle of the first of its 1856 bins at which the cumulative count
    /// reaches `percent` of the samples. `None` without samples.
    pub fn fio_percentile(&self, percent: f64) -> Option<u64> {
        self.histogram
            .percentile_bin(percent)
            .map(|bin| histogram::midpoint(bin.min(histogram::FIO_BINS - 1)))
    }

    /// The percentile within fathom's longer range, ns, limited to the minimum and maximum. `None` without samples, and
    /// if the percentile lies beyond that range.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let bin = self.histogram.percentile_bin(percent)?;
        let is_beyond =
            bin + 1 >= histogram::BINS && self.moments.max >= histogram::lower_edge(histogram::BINS);
        if is_beyond {
            return None;
        }
        let value = histogram::midpoint(bin);
        Some(value.max(self.moments.min).min(self.moments.max.max(self.moments.min)))
    }

    /// The non-empty bins in fio's geometry: `(value in ns, count)`, ascending.
    pub fn fio_bins(&self) -> Vec<(u64, u64)> {
        let mut folded: Vec<(u64, u64)> = Vec::new();
        for (bin, count) in self.histogram.sparse() {
            let value = histogram::midpoint(bin.min(histogram::FIO_BINS - 1));
            match folded.last_mut() {
                Some(last) if last.0 == value => last.1 += count,
                _ => folded.push((value, count)),
            }
        }
        folded
    }

    /// The summary for fathom's tables and JSON.
    pub fn summary(&self) -> LatencySummary {
        let Moments { count, min, max, .. } = self.moments;
        let some = count > 0;
        let with_beyond = |per_10_000: u64, least: u128, most: u128| {
            let beyond = u128::from(count) * u128::from(10_000 - per_10_000);
            let carries = beyond >= least * 10_000 && beyond < most.saturating_mul(10_000);
            carries.then(|| self.percentile(per_10_000 as f64 / 100.0)).flatten()
        };
        let carried = |per_10_000: u64| with_beyond(per_10_000, MIN_BEYOND, u128::MAX);
        let thin = |per_10_000: u64| with_beyond(per_10_000, 1, MIN_BEYOND);
        LatencySummary {
            samples: count,
            min: some.then_some(min),
            mean: some.then(|| self.moments.mean()),
            max: some.then_some(max),
            stdev: (count > 1).then(|| self.moments.stdev()),
            p50: carried(5_000),
            p90: carried(9_000),
            p95: carried(9_500),
            p99: carried(9_900),
            p999: carried(9_990),
            p9999: carried(9_999),
            thin: ThinPercentiles { p50: thin(5_000), p99: thin(9_900), p999: thin(9_990) },
        }
    }
}

/// A percentile is valid if at least this many samples lie beyond it.
const MIN_BEYOND: u128 = 10;

/// A latency in fathom's outputs, ns. Values with too few samples are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencySummary {
    /// Number of samples.
    pub samples: u64,
    /// Minimum.
    pub min: Option<u64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Maximum.
    pub max: Option<u64>,
    /// Sample standard deviation.
    pub stdev: Option<f64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90 %.
    pub p90: Option<u64>,
    /// 95 %.
    pub p95: Option<u64>,
    /// 99 %.
    pub p99: Option<u64>,
    /// 99.9 %.
    pub p999: Option<u64>,
    /// 99.99 %.
    pub p9999: Option<u64>,
    /// Uncertain percentiles, for tables only; never part of a document.
    #[serde(skip)]
    pub thin: ThinPercentiles,
}

/// Percentiles beyond which one to nine samples lie, ns. Tables mark them as uncertain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinPercentiles {
    /// Median.
    pub p50: Option<u64>,
    /// 99 %.
    pub p99: Option<u64>,
    /// 99.9 %.
    pub p999: Option<u64>,
}

/// Requests per class of fio's latency lines. A class is named by its upper bound and begins at the end of the previous
/// one, so the first class of `us` begins at 1000 ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyClasses {
    /// Below 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000 ns.
    pub ns: [u64; 10],
    /// The same in us.
    pub us: [u64; 10],
    /// The same in ms, then below 2000 ms and 2000 ms or more.
    pub ms: [u64; 12],
}

impl LatencyClasses {
    /// Labels of the classes; `ns` and `us` have the first ten.
    pub const LABELS: [&'static str; 12] =
        ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000"];
    const BOUNDS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

    /// Counts the bins of `latency`, each by its middle.
    pub fn add(&mut self, latency: &Latency) {
        for (bin, count) in latency.histogram.sparse() {
            let ns = histogram::midpoint(bin);
            let class = |value: u64| Self::BOUNDS.partition_point(|&bound| bound <= value);
            match ns {
                0..1_000 => self.ns[class(ns)] += count,
                1_000..1_000_000 => self.us[class(ns / 1_000)] += count,
                _ => self.ms[class(ns / 1_000_000)] += count,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    fn recorded(values: impl IntoIterator<Item = u64>) -> Latency {
        let mut latency = Latency::default();
        values.into_iter().for_each(|ns| latency.record(ns));
        latency
    }

    #[test]
    fn percentiles_need_ten_samples_beyond_them() {
        for (samples, expected) in [
            (0, [false; 6]),
            (19, [false; 6]),
            (20, [true, false, false, false, false, false]),
            (100, [true, true, false, false, false, false]),
            (199, [true, true, false, false, false, false]),
            (200, [true, true, true, false, false, false]),
            (999, [true, true, true, false, false, false]),
            (1_000, [true, true, true, true, false, false]),
            (10_000, [true, true, true, true, true, false]),
            (100_000, [true; 6]),
        ] {
            let s = recorded((0..samples).map(|i| 1_000 + i)).summary();
            let shown = [s.p50, s.p90, s.p95, s.p99, s.p999, s.p9999].map(|p| p.is_some());
            assert_eq!(shown, expected, "{samples} samples");
            let thin = [s.thin.p50, s.thin.p99, s.thin.p999].map(|p| p.is_some());
            let few = [2..20, 100..1_000, 1_000..10_000].map(|range| range.contains(&samples));
            assert_eq!(thin, few, "{samples} samples");
        }
    }

    #[test]
    fn summaries_stay_between_minimum_and_maximum() {
        let s = recorded(vec![1_000_003; 1_000]).summary();
        assert_eq!(
            (s.min, s.p50, s.p99, s.max),
            (Some(1_000_003), Some(1_000_003), Some(1_000_003), Some(1_000_003))
        );
        assert_eq!((s.mean, s.stdev), (Some(1_000_003.0), Some(0.0)));
        assert_eq!(recorded([]).summary(), LatencySummary::default());
        assert_eq!(recorded([7]).summary().stdev, None);
    }

    #[test]
    fn fio_values_fold_bins_past_its_range() {
        let latency = recorded([100, 1 << 35, 1 << 40]);
        let last = histogram::midpoint(histogram::FIO_BINS - 1);
        assert_eq!(latency.fio_bins(), [(100, 1), (last, 2)]);
        assert_eq!(latency.fio_percentile(100.0), Some(last));
        assert!(latency.percentile(100.0) > Some(1 << 39));
        assert_eq!(recorded([]).fio_percentile(50.0), None);
    }

    #[test]
    fn invalid_bins_count_as_the_last() {
        let mut latency = recorded([100]);
        latency.histogram = Histogram::from_sparse([(usize::from(u16::MAX), 1)]);
        latency.moments.max = u64::MAX;
        let mut classes = LatencyClasses::default();
        classes.add(&latency);
        assert_eq!((classes.ms[11], latency.fio_bins().len()), (1, 1));
        // The percentile is one of the times beyond the range, and unknown.
        assert_eq!(latency.percentile(50.0), None);
        latency.moments.max = 4 * 3_600_000_000_000;
        assert!(latency.percentile(50.0) > Some(3_600_000_000_000));
    }

    #[test]
    fn classes_follow_fio() {
        let mut classes = LatencyClasses::default();
        classes.add(&recorded([
            0, 1, 2, 3, 99, 100, 999, 1_000, 1_999, 2_000, 40_000, 999_000, 1_000_000, 3_000_000_000,
        ]));
        assert_eq!(classes.ns, [2, 2, 0, 0, 0, 1, 1, 0, 0, 1]);
        assert_eq!(classes.us, [2, 1, 0, 0, 1, 0, 0, 0, 0, 1]);
        assert_eq!(classes.ms, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
