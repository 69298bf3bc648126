//! What a load would get of a volume.

use fathom_record::{Comparison, Metric, OpSummary, SyncSummary, TestSummary};
use fathom_stats::Latency;
use serde::Serialize;

use crate::tally::merge_latencies;

/// Slices of time that a prediction has at most: a week has hours.
pub const MAX_SLICES: u64 = 168;

/// A bound of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requirement {
    /// What is compared.
    pub metric: Metric,
    /// How.
    pub comparison: Comparison,
    /// I/Os per second, bytes per second or ns.
    pub bound: f64,
}

/// What a load would get of a volume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    /// Rates and latencies, by direction.
    pub summary: TestSummary,
    /// The time of the load, of the time that serving it takes: below 1 the volume falls behind.
    pub served_share: f64,
    /// Requests waited for others: the rate is that at which they completed.
    pub is_closed: bool,
    /// Share of the time in which requests waited for a limit.
    pub throttled_share: f64,
    /// The lowest level of burst credits; `None` without a bucket.
    pub lowest_credits: Option<LowestCredits>,
    /// When burst credits, or a burst of fixed length, were exhausted first; `None` where they were not.
    pub exhausted_ns: Option<u64>,
    /// When they may have been exhausted, as far as that is known.
    pub exhaustion: Option<ExhaustionRange>,
    /// The most requests that were outstanding at a time.
    pub longest_queue: u64,
    /// Time beyond the end of the load that the rest takes, ns.
    pub backlog_ns: u64,
    /// Time in which the objective is missed, ns; `None` where there is no objective for latency.
    pub above_objective_ns: Option<u64>,
    /// Why requests waited, the longest first.
    pub causes: Vec<ThrottleCause>,
    /// Bursts that are billed were used: transactions, or 1 where their number is unknown.
    pub billed_transactions: u64,
    /// The course.
    pub slices: Vec<PredictedSlice>,
}

/// The lowest level of burst credits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LowestCredits {
    /// Of one.
    pub share: f64,
    /// When, ns since the beginning of the load.
    pub at_ns: u64,
}

/// A limit that requests waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThrottleCause {
    /// `volume`, `instance`.
    pub owner: String,
    /// `IOPS`, `bandwidth` or `parallelism`.
    pub limit: &'static str,
    /// Burst credits were exhausted.
    pub is_at_baseline: bool,
    /// Share of the time.
    pub share: f64,
}

/// A slice of the course, by the arrival of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PredictedSlice {
    /// Beginning, ns since that of the load.
    pub start_ns: u64,
    /// Length, ns.
    pub length_ns: u64,
    /// Requests that arrived per second.
    pub iops: f64,
    /// Their bytes per second.
    pub bytes_per_second: f64,
    /// Their 99th percentile, ns; `None` without requests.
    pub p99_ns: Option<u64>,
    /// Burst credits at the end of the slice, of one.
    pub credits: Option<f64>,
}

impl Prediction {
    /// With causes that sums of the same load have, as far as they explain the time for which this one is throttled.
    pub fn with_causes_of_sums(mut self, causes: &[ThrottleCause]) -> Prediction {
        let sum: f64 = causes.iter().map(|cause| cause.share).sum();
        let scaled = |cause: &ThrottleCause| {
            let share = cause.share * self.throttled_share / sum;
            (share > 0.0).then(|| ThrottleCause { share, ..cause.clone() })
        };
        self.causes = causes.iter().filter_map(scaled).collect();
        self
    }
}

/// Predictions of one load for the ways in which it may have arrived. The first is the one that assumes least.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PredictionSet {
    /// At least one.
    pub all: Vec<Prediction>,
}

/// The lowest and the highest value of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictionRange {
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// When credits are exhausted, ns since the beginning of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExhaustionRange {
    /// Not before.
    pub low: u64,
    /// Not after; `None` where they may last.
    pub high: Option<u64>,
}

impl ExhaustionRange {
    /// At a known time.
    pub fn at(ns: u64) -> ExhaustionRange {
        ExhaustionRange { low: ns, high: Some(ns) }
    }

    /// The time, where both ends agree within a tenth.
    pub fn value(self) -> Option<u64> {
        let range = PredictionRange { low: self.low as f64, high: self.high? as f64 };
        range.value().map(|ns| ns as u64)
    }
}

impl PredictionRange {
    /// The figure, where both ends agree within a tenth.
    pub fn value(self) -> Option<f64> {
        let is_narrow = self.high <= self.low * 1.1 || self.high == self.low;
        is_narrow.then_some((self.low + self.high) / 2.0)
    }
}

impl ThrottleCause {
    /// In words: `the IOPS limit of the volume`.
    pub fn text(&self) -> String {
        let Self { owner, limit, is_at_baseline, .. } = self;
        match (*limit, *is_at_baseline) {
            ("parallelism", _) => format!("the requests that the {owner} serves in parallel"),
            (limit, true) => {
                format!("the baseline {limit} of the {owner} after its burst credits were exhausted")
            }
            (limit, false) => format!("the {limit} limit of the {owner}"),
        }
    }
}

impl Prediction {
    /// The value of a metric; `None` where it is not known.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        metric.of(&self.summary)
    }
}

impl PredictionSet {
    /// The prediction to show where one is shown: the first.
    pub fn first(&self) -> Option<&Prediction> {
        self.all.first()
    }

    /// The range of a figure over all; `None` where one lacks it.
    pub fn range(&self, figure: impl Fn(&Prediction) -> Option<f64>) -> Option<PredictionRange> {
        let values: Option<Vec<f64>> = self.all.iter().map(figure).collect();
        let values = values.filter(|values| !values.is_empty())?;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(PredictionRange { low, high })
    }

    /// When credits are exhausted; `None` where none predicts that.
    pub fn exhausted(&self) -> Option<ExhaustionRange> {
        let low = self.all.iter().filter_map(|one| Some(one.exhaustion?.low)).min()?;
        let all: Option<Vec<u64>> = self.all.iter().map(|one| one.exhaustion?.high).collect();
        Some(ExhaustionRange { low, high: all.and_then(|all| all.into_iter().max()) })
    }

    /// The range of a figure of all I/Os together.
    pub fn total(&self, figure: impl Fn(&OpSummary) -> Option<f64>) -> Option<PredictionRange> {
        self.range(|one| figure(one.summary.total.as_ref()?))
    }
}

/// The latencies and bytes of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectionSums {
    pub(super) lat: Latency,
    pub(super) bytes: u64,
}

impl DirectionSums {
    pub(super) fn merge(&mut self, other: &DirectionSums) {
        merge_latencies(&mut self.lat, &other.lat);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn summary(&self, elapsed_ns: u64) -> Option<OpSummary> {
        let ios = self.lat.samples();
        let per_second = |count: u64| count as f64 * 1e9 / elapsed_ns.max(1) as f64;
        let lat_ns = self.lat.summary();
        (ios > 0).then(|| OpSummary {
            ios,
            bytes: self.bytes,
            iops: per_second(ios),
            bytes_per_second: per_second(self.bytes),
            clat_ns: lat_ns.clone(),
            lat_ns,
            ..OpSummary::default()
        })
    }
}

/// The summary of reads, writes, trims and syncs that took `elapsed_ns` in all.
pub(super) fn summary(sums: &[DirectionSums; 4], elapsed_ns: u64) -> TestSummary {
    let [read, write, trim, sync] = sums;
    let mut total = DirectionSums::default();
    [read, write, trim].into_iter().for_each(|sum| total.merge(sum));
    let syncs = sync.lat.samples();
    TestSummary {
        read: read.summary(elapsed_ns),
        write: write.summary(elapsed_ns),
        trim: trim.summary(elapsed_ns),
        total: total.summary(elapsed_ns),
        sync: (syncs > 0).then(|| SyncSummary {
            ios: syncs,
            iops: syncs as f64 * 1e9 / elapsed_ns.max(1) as f64,
            lat_ns: sync.lat.summary(),
        }),
        elapsed_ns,
        measured_ns: elapsed_ns,
        ..TestSummary::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_of_sums_explain_no_more_than_the_time_that_requests_waited() {
        let cause = |owner: &str, share| ThrottleCause {
            owner: owner.to_owned(),
            limit: "IOPS",
            is_at_baseline: false,
            share,
        };
        let causes = [cause("volume", 0.9), cause("instance", 0.3)];
        let found = |throttled_share| {
            let prediction = Prediction { throttled_share, ..Prediction::default() };
            let shares = prediction.with_causes_of_sums(&causes).causes.into_iter().map(|cause| cause.share);
            shares.map(|share| (share * 1e6).round() / 1e6).collect::<Vec<f64>>()
        };
        // A closed loop does not ask for more than is served, as its sums would.
        assert_eq!(found(0.0), [0.0; 0]);
        assert_eq!(found(0.8), [0.6, 0.2]);
    }
}
