//! How far a twin and a volume are apart: the same loads on both.

use fathom_record::{Histogram, Interval, JobRecord, RunRecord, TestRecord};
use serde::Serialize;

use super::fit::{latency_of, rate_of};
use super::measured::{P99_WITHIN, RATE_WITHIN};
use crate::identify::probe::IoDirection;

/// Largest distance of the distributions of latency.
pub const DISTANCE_BELOW: f64 = 0.1;
/// Latencies on each side that decide a distance: of as many of one distribution, one pair in 10,000 is as far apart.
const MIN_SAMPLES: u64 = 1000;

/// How far a twin is from a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TwinAgreement {
    /// Each load.
    pub loads: Vec<LoadAgreement>,
    /// All loads agree; `None` where one is inconclusive and none disagrees.
    pub agrees: Option<bool>,
}

/// One load on both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadAgreement {
    /// The test.
    pub id: String,
    /// `read` or `write`.
    pub op: &'static str,
    /// Bytes per request.
    pub block_bytes: u64,
    /// The queue depth.
    pub depth: u32,
    /// The volume.
    pub volume: LoadFigures,
    /// The twin.
    pub twin: LoadFigures,
    /// Rate of the twin over that of the volume, less 1.
    pub rate_difference: Option<f64>,
    /// 99th percentile of the twin over that of the volume, less 1.
    pub p99_difference: Option<f64>,
    /// Kolmogorov distance of the distributions of latency: the largest difference of the shares of requests that took at most some
    /// time, from 0 to 1.
    pub latency_distance: Option<f64>,
    /// The same distance between the halves of the load on the volume: as far as it is from itself.
    pub volume_change: Option<f64>,
    /// All three are small; `None` = inconclusive.
    pub agrees: Option<bool>,
    /// Why it is inconclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What one side made of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LoadFigures {
    /// Requests per second.
    pub iops: Option<f64>,
    /// Latencies that were measured.
    pub samples: u64,
    /// Median latency, ns.
    pub p50_ns: Option<u64>,
    /// 99th percentile, ns.
    pub p99_ns: Option<u64>,
}

impl TwinAgreement {
    /// Of the tests that both runs have: `volume` on a volume, `twin` on its twin.
    pub fn of(volume: &RunRecord, twin: &RunRecord) -> TwinAgreement {
        let missing = TestRecord::default();
        let other =
            |test: &TestRecord| twin.tests.iter().find(|other| other.id == test.id).unwrap_or(&missing);
        let loads: Vec<LoadAgreement> =
            volume.tests.iter().filter_map(|test| load(test, other(test))).collect();
        let has = |verdict: Option<bool>| loads.iter().any(|load| load.agrees == verdict);
        let agrees = match () {
            () if has(Some(false)) => Some(false),
            () if has(None) || loads.is_empty() => None,
            () => Some(true),
        };
        TwinAgreement { loads, agrees }
    }
}

/// One load; `None` where it did not run on the volume.
fn load(volume: &TestRecord, twin: &TestRecord) -> Option<LoadAgreement> {
    let job = volume.jobs.first()?;
    let way = if job.rw().ends_with("write") { IoDirection::Write } else { IoDirection::Read };
    let [real, model] = [volume, twin].map(|test| (figures(test, way), test.jobs.first()));
    let rate_difference = real.0.iops.zip(model.0.iops).map(|(real, model)| model / real - 1.0);
    let histogram = |job: &'_ JobRecord| latency_of(job, way).histogram.clone();
    let latency_distance =
        real.1.map(histogram).zip(model.1.map(histogram)).and_then(|(real, model)| distance(&real, &model));
    let p99_difference = difference(real.0.p99_ns, model.0.p99_ns);
    let blocks = job.largest_blocks();
    let samples = real.0.samples.min(model.0.samples);
    let (first, second) = halves(&job.measured.series, way);
    let volume_change = distance(&first, &second);
    let [p99_of_first, p99_of_second] = [first, second].map(|half| half.percentile(99.0));
    let p99_changes = differs(difference(p99_of_first, p99_of_second));
    let both = rate_difference.zip(latency_distance);
    let why = match both {
        None => Some("no I/O completed on one of them".to_owned()),
        Some(_) if samples < MIN_SAMPLES => {
            Some(format!("too few latencies ({samples}; needs {MIN_SAMPLES}): use a longer --runtime"))
        }
        Some((rate, distance)) if rate.abs() <= RATE_WITHIN && distance >= DISTANCE_BELOW => {
            volume_change.filter(|change| *change >= DISTANCE_BELOW).map(|change| {
                format!(
                    "the latencies of the volume changed during the load (distance of its halves {change:.2})"
                )
            })
        }
        Some((rate, _)) if rate.abs() <= RATE_WITHIN && differs(p99_difference) && p99_changes => {
            Some("the 99th percentile of the volume changed during the load".to_owned())
        }
        Some(_) => None,
    };
    let is_near = |(rate, distance): (f64, f64)| rate.abs() <= RATE_WITHIN && distance < DISTANCE_BELOW;
    let verdict = both.map(|both| is_near(both) && !differs(p99_difference));
    Some(LoadAgreement {
        id: volume.id.clone(),
        op: way.name(),
        block_bytes: if way == IoDirection::Write { blocks.write } else { blocks.read },
        depth: job.iodepth(),
        volume: real.0,
        twin: model.0,
        rate_difference,
        p99_difference,
        latency_distance,
        volume_change,
        agrees: verdict.filter(|_| why.is_none()),
        why,
    })
}

fn figures(test: &TestRecord, way: IoDirection) -> LoadFigures {
    let Some(job) = test.jobs.first() else { return LoadFigures::default() };
    let latency = latency_of(job, way);
    LoadFigures {
        iops: rate_of(test, way).filter(|rate| *rate > 0.0),
        samples: latency.moments.count,
        p50_ns: latency.histogram.percentile(50.0),
        p99_ns: latency.histogram.percentile(99.0),
    }
}

/// The second over the first, less 1.
fn difference(first: Option<u64>, second: Option<u64>) -> Option<f64> {
    let (first, second) = first.zip(second).filter(|(first, _)| *first > 0)?;
    Some(second as f64 / first as f64 - 1.0)
}

/// 99th percentiles are not the same.
fn differs(p99: Option<f64>) -> bool {
    p99.is_some_and(|difference| difference.abs() > P99_WITHIN)
}

/// The latencies of the two halves of a series.
fn halves(series: &[Interval], way: IoDirection) -> (Histogram, Histogram) {
    let histogram = |part: &[Interval]| {
        let bins = part.iter().flat_map(|interval| match way {
            IoDirection::Read => &interval.read.clat_bins,
            IoDirection::Write => &interval.write.clat_bins,
        });
        Histogram::from_sparse(bins.map(|&(bin, count)| (usize::from(bin), count)))
    };
    let (first, second) = series.split_at(series.len() / 2);
    (histogram(first), histogram(second))
}

/// The Kolmogorov distance of two distributions, to the width of a bin; `None` where one is empty.
pub(super) fn distance(one: &Histogram, other: &Histogram) -> Option<f64> {
    let [total, of_other] = [one.samples(), other.samples()];
    if total == 0 || of_other == 0 {
        return None;
    }
    let mut bins: Vec<(usize, f64)> =
        one.sparse().map(|(bin, count)| (bin, count as f64 / total as f64)).collect();
    bins.extend(other.sparse().map(|(bin, count)| (bin, -(count as f64) / of_other as f64)));
    bins.sort_by_key(|one| one.0);
    let (mut apart, mut most) = (0.0f64, 0.0f64);
    for same in bins.chunk_by(|one, next| one.0 == next.0) {
        apart += same.iter().map(|one| one.1).sum::<f64>();
        most = most.max(apart.abs());
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use fathom_record::IntervalOp;

    use super::*;

    #[test]
    fn the_distance_is_the_largest_difference_of_the_cumulative_shares() {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|ns| histogram.record(*ns));
            histogram
        };
        let check = |one: &[u64], other: &[u64], expected: Option<f64>| {
            assert_eq!(distance(&of(one), &of(other)), expected, "{one:?} {other:?}");
        };
        check(&[1, 2, 3, 4], &[1, 2, 3, 4], Some(0.0));
        check(&[1, 2, 3, 4], &[1, 1, 2, 2, 3, 3, 4, 4], Some(0.0));
        check(&[1, 2, 3, 4], &[2, 3, 4, 5], Some(0.25));
        check(&[1, 2], &[100, 200], Some(1.0));
        check(&[1, 2, 3, 100], &[1, 2, 3, 50], Some(0.25));
        check(&[], &[1], None);
    }

    #[test]
    fn a_volume_that_changes_decides_nothing() {
        let interval = |ns: u64| {
            let clat_bins = vec![(fathom_stats::histogram::bin(ns) as u16, 100)];
            Interval { read: IntervalOp { clat_bins, ..IntervalOp::default() }, ..Interval::default() }
        };
        let apart = |times: &[u64]| {
            let series: Vec<Interval> = times.iter().map(|ns| interval(*ns)).collect();
            let (first, second) = halves(&series, IoDirection::Read);
            distance(&first, &second)
        };
        assert_eq!(apart(&[1000, 9000, 1000, 9000]), Some(0.0));
        assert_eq!(apart(&[1000, 1000, 1000, 9000]), Some(0.5));
        assert_eq!((apart(&[1000]), apart(&[])), (None, None));
    }
}
