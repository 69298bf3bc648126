//! Within what a measured figure lies, from how it varied while it was measured.
//!
//! Rates by the rule of [`fathom_record::confidence`], latencies by how they varied from interval to interval.

use fathom_model::Op;
use fathom_record::confidence::{MIN_SAMPLES, NORMAL_975, half_width, slice_fraction};
use fathom_record::stability::{Second, seconds};
use fathom_record::{Interval, IntervalOp, JobRecord, Latency, PhaseOutcome, TestRecord, merge_jobs};
use fathom_stats::histogram;
use fathom_stats::sample::mean;
use serde::Serialize;

use crate::criterion::{LatencySpan, Metric, MetricDirection, MetricKind, Statistic};

/// Fewest full seconds for an interval.
pub(super) const MIN_SECONDS: usize = MIN_SAMPLES;
/// Half the width of a bin of the histograms, as a share of what is in it.
const BIN: f64 = 1.0 / 128.0;

/// Where the true value lies, in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConfidenceInterval {
    /// From here.
    pub low: f64,
    /// To here.
    pub high: f64,
}

/// The interval around `value`, which is `quantity` in `direction` of `test`; `None` where too little ran to tell.
pub(super) fn around(
    test: &TestRecord,
    quantity: Metric,
    direction: MetricDirection,
    value: f64,
) -> Option<ConfidenceInterval> {
    match quantity.kind {
        MetricKind::Iops | MetricKind::BytesPerSecond => {
            let timed = timed_rates(test, quantity.kind, direction);
            let tracked = if quantity.kind == MetricKind::Iops { "iops" } else { "bytes_per_second" };
            of_rounds(test, tracked, value).or_else(|| of_timed_rates(&timed, value))
        }
        MetricKind::Latency(span, statistic) => {
            let by_rounds =
                (statistic == Statistic::Mean).then(|| of_rounds(test, "lat_ns", value)).flatten();
            by_rounds.or_else(|| of_latency(test, span, statistic, direction, value))
        }
    }
}

/// The rate of each full second, of one direction alone, with how long it was held, s: the intervals of long runs are longer
/// than a second.
pub(super) fn timed_rates(
    test: &TestRecord,
    measure: MetricKind,
    direction: MetricDirection,
) -> Vec<(f64, f64)> {
    let bare: Vec<JobRecord> = test.jobs.iter().map(|job| alone(job, direction)).collect();
    let of = |second: &Second| {
        let elapsed = second.elapsed_ns as f64 / 1e9;
        let count = if measure == MetricKind::BytesPerSecond { second.bytes } else { second.ios };
        (count as f64 / elapsed, elapsed)
    };
    seconds(&bare.iter().collect::<Vec<_>>()).iter().map(of).collect()
}

/// The series of a worker as if it had done nothing else. Syncs have no series: the writes before them stand for them.
fn alone(job: &JobRecord, direction: MetricDirection) -> JobRecord {
    let keep = |kept: bool, op: &IntervalOp| match kept {
        true => IntervalOp { ios: op.ios, bytes: op.bytes, ..IntervalOp::default() },
        false => IntervalOp::default(),
    };
    // Syncs have no series: all operations stand for them.
    let covered = if direction == MetricDirection::Sync { &Op::DATA } else { direction.ops() };
    let series = job.measured.series.iter().map(|interval| Interval {
        read: keep(covered.contains(&Op::Read), &interval.read),
        write: keep(covered.contains(&Op::Write), &interval.write),
        trim: keep(covered.contains(&Op::Trim), &interval.trim),
        ..*interval
    });
    let measured = PhaseOutcome { series: series.collect(), ..PhaseOutcome::default() };
    JobRecord { measured, ..JobRecord::default() }
}

/// Rounds are samples of their own.
fn of_rounds(test: &TestRecord, tracked: &str, value: f64) -> Option<ConfidenceInterval> {
    let rounds = test.rounds.as_ref().filter(|rounds| rounds.tracked == tracked)?;
    let counted = rounds.values.get(rounds.values.len().checked_sub(rounds.counted as usize)?..)?;
    // Each round begins anew, so that the effect of a limiter's slices is in their spread.
    of_rates(counted, f64::INFINITY, value)
}

/// The interval of a mean of rates, each held for so many seconds.
pub(super) fn of_timed_rates(timed: &[(f64, f64)], value: f64) -> Option<ConfidenceInterval> {
    let rates: Vec<f64> = timed.iter().map(|(rate, _)| *rate).collect();
    of_rates(&rates, timed.iter().map(|(_, seconds)| seconds * 1e9).sum(), value)
}

/// The mean of rates lies between the least and the greatest of them and that near to it, give or take a slice of a limiter.
fn of_rates(rates: &[f64], elapsed_ns: f64, value: f64) -> Option<ConfidenceInterval> {
    if rates.len() < MIN_SECONDS {
        return None;
    }
    let mean = mean(rates);
    if mean <= 0.0 {
        return Some(ConfidenceInterval { low: value, high: value });
    }
    let half = half_width(rates);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let slice = mean * slice_fraction(elapsed_ns);
    let (low, high) = (((mean - half).max(least) - slice).max(0.0), (mean + half).min(most) + slice);
    Some(ConfidenceInterval { low: value * low / mean, high: value * high / mean })
}

/// The latency that this share of the requests of one direction does not exceed, ns; `None` where none were recorded.
pub(super) fn at_rank(
    test: &TestRecord,
    span: LatencySpan,
    direction: MetricDirection,
    rank: f64,
) -> Option<f64> {
    let merged = merge_jobs(&test.jobs.iter().collect::<Vec<_>>()).measured;
    latency(&merged, span, direction).percentile(rank.max(0.0) * 100.0).map(|ns| ns as f64)
}

fn of_latency(
    test: &TestRecord,
    span: LatencySpan,
    statistic: Statistic,
    direction: MetricDirection,
    value: f64,
) -> Option<ConfidenceInterval> {
    let workers: Vec<&JobRecord> = test.jobs.iter().collect();
    let merged = merge_jobs(&workers).measured;
    let (latency, intervals) = (latency(&merged, span, direction), spans(&merged, direction));
    let exact = ConfidenceInterval { low: value, high: value };
    match statistic {
        // They are what they are: one request each.
        Statistic::Least | Statistic::Greatest => Some(exact),
        Statistic::Mean => {
            let sums: Vec<(f64, f64)> =
                intervals.iter().map(|span| (span.clat_sum_ns as f64, span.ios as f64)).collect();
            let alone = NORMAL_975 * latency.moments.stdev() / (latency.samples().max(1) as f64).sqrt();
            // Issuing and completing vary alike; the share is what counts.
            let share = ratio_half_width(&sums).map(|(ratio, half)| half / ratio.max(f64::MIN_POSITIVE));
            // A queue in front of a limiter waits for its slices.
            let slice = slice_fraction(merged.elapsed_ns() as f64);
            let half = match share {
                _ if span == LatencySpan::Submission => alone,
                Some(share) => (share * value).max(alone) + slice * value,
                None => alone + slice * value,
            };
            Some(ConfidenceInterval { low: (value - half).max(0.0), high: value + half })
        }
        Statistic::Percentile(per_million) => {
            let share = f64::from(per_million) / 1e6;
            let half = rank_half_width(&intervals, share, value, latency.samples());
            let low = latency.percentile((share - half).max(0.0) * 100.0)? as f64;
            let high = match share + half {
                rank if rank < 1.0 => latency.percentile(rank * 100.0)?,
                _ => latency.moments.max,
            };
            let most = latency.moments.max.max(value as u64) as f64;
            let high = (high as f64 * (1.0 + BIN)).min(most);
            Some(ConfidenceInterval { low: low.min(value) * (1.0 - BIN), high: high.max(value) })
        }
    }
}

/// By how much the share of requests below a percentile may be another one, from interval to interval.
fn rank_half_width(intervals: &[IntervalOp], share: f64, value: f64, samples: u64) -> f64 {
    let at = histogram::bin(value as u64);
    let beyond = |span: &IntervalOp| {
        let above = span.clat_bins.iter().filter(|(bin, _)| usize::from(*bin) > at);
        above.map(|(_, count)| count).sum::<u64>() as f64
    };
    let counts: Vec<(f64, f64)> = intervals.iter().map(|span| (beyond(span), span.ios as f64)).collect();
    let alone = NORMAL_975 * (share * (1.0 - share) / samples.max(1) as f64).sqrt();
    ratio_half_width(&counts).map_or(alone, |(_, half)| half.max(alone))
}

/// The latencies of one direction, or of all together.
fn latency(phase: &PhaseOutcome, span: LatencySpan, direction: MetricDirection) -> Latency {
    if direction == MetricDirection::Sync {
        return phase.sync_lat.clone();
    }
    let parts = direction.ops().iter().map(|&op| match span {
        LatencySpan::Submission => &phase.op(op).slat,
        LatencySpan::Completion => &phase.op(op).clat,
        LatencySpan::Total => &phase.op(op).lat,
    });
    let mut sum = Latency::default();
    parts.for_each(|part| sum.merge(part));
    sum
}

/// The intervals of the series in which anything completed; none for syncs.
fn spans(phase: &PhaseOutcome, direction: MetricDirection) -> Vec<IntervalOp> {
    let of = |interval: &Interval| {
        let mut sum = IntervalOp::default();
        for op in direction.ops().iter().map(|&op| interval.ops()[op as usize]) {
            sum.ios += op.ios;
            sum.clat_sum_ns += op.clat_sum_ns;
            sum.clat_bins.extend(&op.clat_bins);
        }
        sum
    };
    phase.series.iter().map(of).filter(|sum| sum.ios > 0).collect()
}

/// The ratio of two sums, and how far it may be off by how it varied from part to part.
fn ratio_half_width(parts: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (above, below): (f64, f64) =
        parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    if parts.len() < 2 * MIN_SECONDS || below <= 0.0 {
        return None;
    }
    let (ratio, usual) = (above / below, below / parts.len() as f64);
    let off: Vec<f64> = parts.iter().map(|(one, other)| (one - ratio * other) / usual).collect();
    Some((ratio, half_width(&off)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: f64 = 60e9;

    #[test]
    fn the_mean_lies_within_what_was_seen() {
        let exact = |value| Some(ConfidenceInterval { low: value, high: value });
        assert_eq!(of_rates(&[5.0; 3], f64::INFINITY, 5.0), exact(5.0));
        assert_eq!(of_rates(&[5.0; 2], MINUTE, 5.0), None);
        assert_eq!(of_rates(&[0.0; 9], MINUTE, 0.0), exact(0.0));
        let fallen = [vec![3000.0; 20], vec![150.0; 40]].concat();
        let interval = of_rates(&fallen, f64::INFINITY, 1100.0).unwrap();
        assert!(interval.low == 150.0 && interval.high == 3000.0, "{interval:?}");
        // Ten even seconds leave a slice of a limiter at either side.
        let even = of_rates(&[1053.0; 10], 1e10, 1053.0).unwrap();
        assert!((even.low - 1042.47).abs() < 1e-6 && (even.high - 1063.53).abs() < 1e-6, "{even:?}");
    }

    #[test]
    fn scale_does_not_matter() {
        let rates: Vec<f64> = (0..40).map(|at| 1000.0 + f64::from(at * 37 % 61) - 30.0).collect();
        let one = of_rates(&rates, MINUTE, 1000.0).unwrap();
        let large: Vec<f64> = rates.iter().map(|rate| rate * 1024.0).collect();
        let other = of_rates(&large, MINUTE, 1_024_000.0).unwrap();
        assert!((other.low / one.low / 1024.0 - 1.0).abs() < 1e-12 && one.low < 1000.0 && one.high > 1000.0);
    }
}
