//! Within what a measured figure lies, from how it varied while it was measured.
//!
//! Rates of neighbouring seconds resemble each other, so they count for as many independent ones as their autocorrelation
//! leaves. What several hours would add to that no run of minutes can know.

use fathom_model::Op;
use fathom_record::stability::{Second, seconds};
use fathom_record::{Interval, IntervalOp, JobRecord, Latency, PhaseOutcome, TestRecord, merge_jobs};
use fathom_stats::histogram;
use serde::Serialize;

use crate::criterion::{LatencySpan, Metric, MetricDirection, MetricKind, Statistic};
use crate::steady::mean;

/// Fewest full seconds for an interval.
pub(super) const LEAST_SECONDS: usize = 3;
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
            let rates = rates(test, quantity.kind, direction);
            let tracked = if quantity.kind == MetricKind::Iops { "iops" } else { "bytes_per_second" };
            of_rounds(test, tracked, value).or_else(|| of_rates(&rates, value))
        }
        MetricKind::Latency(span, statistic) => {
            let by_rounds =
                (statistic == Statistic::Mean).then(|| of_rounds(test, "lat_ns", value)).flatten();
            by_rounds.or_else(|| of_latency(test, span, statistic, direction, value))
        }
    }
}

/// The rate of each full second, of one direction alone.
pub(super) fn rates(test: &TestRecord, measure: MetricKind, direction: MetricDirection) -> Vec<f64> {
    timed_rates(test, measure, direction).into_iter().map(|(rate, _)| rate).collect()
}

/// The same with how long each was held, s: the intervals of long runs are longer than a second.
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
    of_rates(counted, value)
}

/// The mean of rates lies between the least and the greatest of them, and that near to it.
pub(super) fn of_rates(rates: &[f64], value: f64) -> Option<ConfidenceInterval> {
    if rates.len() < LEAST_SECONDS {
        return None;
    }
    let mean = mean(rates);
    if mean <= 0.0 {
        return Some(ConfidenceInterval { low: value, high: value });
    }
    let half = half_width(rates);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let (low, high) = ((mean - half).max(least), (mean + half).min(most));
    Some(ConfidenceInterval { low: value * low / mean, high: value * high / mean })
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
            let alone = T_MANY * latency.moments.stdev() / (latency.samples().max(1) as f64).sqrt();
            // Issuing and completing vary alike; the share is what counts.
            let share = ratio_half_width(&sums).map(|(ratio, half)| half / ratio.max(f64::MIN_POSITIVE));
            let half = match share {
                Some(share) if span != LatencySpan::Submission => (share * value).max(alone),
                _ => alone,
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
    let alone = T_MANY * (share * (1.0 - share) / samples.max(1) as f64).sqrt();
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
    if parts.len() < 2 * LEAST_SECONDS || below <= 0.0 {
        return None;
    }
    let (ratio, usual) = (above / below, below / parts.len() as f64);
    let off: Vec<f64> = parts.iter().map(|(one, other)| (one - ratio * other) / usual).collect();
    Some((ratio, half_width(&off)))
}

/// Half of the interval of a mean: as many standard errors as so few independent samples take.
fn half_width(samples: &[f64]) -> f64 {
    let count = samples.len() as f64;
    let mean = mean(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    if samples.len() < 2 || squares <= 0.0 {
        return 0.0;
    }
    let independent = (count / correlation_time(samples)).clamp(2.0, count);
    t(independent - 1.0) * (squares / (count - 1.0) / independent).sqrt()
}

/// How many samples in a row stand for one: the sum of the autocorrelations, as far as pairs of them are positive (Geyer).
fn correlation_time(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    let off: Vec<f64> = samples.iter().map(|sample| sample - mean).collect();
    let all: f64 = off.iter().map(|off| off * off).sum();
    if all <= 0.0 {
        return 1.0;
    }
    let at = |lag: usize| off.iter().zip(&off[lag..]).map(|(one, other)| one * other).sum::<f64>() / all;
    let pairs =
        (0..samples.len() / 4 + 1).map(|pair| at(2 * pair) + at((2 * pair + 1).min(samples.len() - 1)));
    (2.0 * pairs.take_while(|pair| *pair > 0.0).sum::<f64>() - 1.0).max(1.0)
}

/// The 97.5 % quantile of the normal distribution.
const T_MANY: f64 = 1.96;

/// The 97.5 % quantile of Student's distribution.
fn t(degrees: f64) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    let whole = degrees.floor().max(1.0) as usize;
    match TABLE.get(whole - 1) {
        // Between two of them the more careful one holds.
        Some(&quantile) => quantile,
        // Good to three digits from eleven on (Cornish and Fisher).
        None => T_MANY + 2.372 / degrees + 2.822 / degrees.powi(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of `percent` around 1,000, the same every time; each value is held for `held` samples.
    fn noisy(count: usize, held: usize, percent: f64) -> Vec<f64> {
        let noise = |at: usize| ((at / held * 7919 % 101) as f64 / 50.0 - 1.0) * percent / 100.0;
        (0..count).map(|at| 1000.0 * (1.0 + noise(at))).collect()
    }

    fn width(rates: &[f64]) -> f64 {
        let interval = of_rates(rates, mean(rates)).unwrap();
        (interval.high - interval.low) / mean(rates)
    }

    #[test]
    fn quantiles_of_students_distribution() {
        for (degrees, expected) in
            [(1.0, 12.706), (4.9, 2.776), (10.0, 2.228), (11.0, 2.201), (29.0, 2.045), (1e9, 1.96)]
        {
            assert!((t(degrees) - expected).abs() < 0.003, "{degrees}: {}", t(degrees));
        }
    }

    #[test]
    fn more_seconds_tell_more_and_those_that_resemble_each_other_less() {
        let (short, long) = (width(&noisy(16, 1, 10.0)), width(&noisy(400, 1, 10.0)));
        assert!(short > 2.0 * long && long > 0.0, "{short} {long}");
        // Five alike in a row are as good as one: the root of five wider.
        let held = width(&noisy(400, 5, 10.0)) / long;
        assert!((1.8..2.8).contains(&held), "{held}");
    }

    #[test]
    fn the_mean_lies_within_what_was_seen() {
        assert_eq!(of_rates(&[5.0; 3], 5.0), Some(ConfidenceInterval { low: 5.0, high: 5.0 }));
        assert_eq!(of_rates(&[5.0; 2], 5.0), None);
        assert_eq!(of_rates(&[0.0; 9], 0.0), Some(ConfidenceInterval { low: 0.0, high: 0.0 }));
        let fallen = [vec![3000.0; 20], vec![150.0; 40]].concat();
        let interval = of_rates(&fallen, 1100.0).unwrap();
        assert!(interval.low == 150.0 && interval.high == 3000.0, "{interval:?}");
    }

    #[test]
    fn scale_does_not_matter() {
        let rates = noisy(40, 1, 3.0);
        let one = of_rates(&rates, 1000.0).unwrap();
        let large: Vec<f64> = rates.iter().map(|rate| rate * 1024.0).collect();
        let other = of_rates(&large, 1_024_000.0).unwrap();
        assert!((other.low / one.low / 1024.0 - 1.0).abs() < 1e-12 && one.low < 1000.0 && one.high > 1000.0);
    }

    /// Standard normal noise in which each sample keeps `kept` of the one before, the same every time.
    fn related(count: usize, kept: f64, seed: u64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut even = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        // Twelve evenly spread ones less their mean are normal enough.
        let mut normal = || (0..12).map(|_| even()).sum::<f64>() - 6.0;
        let mut last = normal();
        let mut next = || {
            last = kept * last + (1.0 - kept * kept).sqrt() * normal();
            last
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        for (count, kept, least) in
            [(12, 0.0, 0.93), (60, 0.0, 0.93), (60, 0.5, 0.88), (300, 0.5, 0.92), (300, 0.8, 0.88)]
        {
            let holds = |seed: &u64| {
                let rates: Vec<f64> =
                    related(count, kept, *seed).iter().map(|noise| 1000.0 + 30.0 * noise).collect();
                of_rates(&rates, mean(&rates))
                    .is_some_and(|found| found.low <= 1000.0 && found.high >= 1000.0)
            };
            let share = (1..=1000).filter(holds).count() as f64 / 1000.0;
            assert!(share >= least && share < 0.99, "{count} samples that keep {kept}: {share}");
        }
    }
}
