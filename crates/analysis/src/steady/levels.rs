//! Where a series of rates changes its level, by least squares on logarithms, and a test as it was until its rate fell for good: what
//! a volume gives while it has burst credits, or room in a cache.

use std::collections::BTreeMap;
use std::ops::Range;

use fathom_record::stability::{Second, seconds};
use fathom_record::{
    IntervalOp, JobRecord, Latency, OpOutcome, PhaseOutcome, TestRecord, latency_bin_midpoint,
};
use fathom_stats::sample::{level_bounds, mean, upper_median};

use super::coefficient_of_variation;

/// Samples that a level holds for at least.
const LEAST: usize = 5;
/// Levels differ by at least this share.
const APART: f64 = 0.10;
/// Noise below this is taken for this: a rate that is held exactly has none.
const MIN_NOISE: f64 = 0.003;

/// Samples of what is left after a fall whose beginning was uneven, and its spread.
const LONG: usize = 30;
/// Spread of the rate that a limit leaves.
pub(crate) const EVEN: f64 = 0.05;

/// A span of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Segment {
    /// Samples in it.
    pub(crate) length: usize,
    pub(crate) median: f64,
    /// Standard deviation over mean.
    pub(crate) cv: f64,
}

/// The levels of a series of rates, in order. A series with a rate of zero is taken as one.
pub(crate) fn segments(rates: &[f64]) -> Vec<Segment> {
    let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    let penalty = match logs.iter().all(|log| log.is_finite()) {
        true => 9.0 * noise(&logs).powi(2) * (logs.len().max(2) as f64).ln(),
        false => f64::INFINITY,
    };
    let sums = Sums::of(&logs);
    let bounds = level_bounds(logs.len(), |span| {
        let whole = sums.cost(span.clone());
        let cuts = (span.start + LEAST..(span.end + 1).saturating_sub(LEAST))
            .map(|cut| (cut, whole - sums.cost(span.start..cut) - sums.cost(cut..span.end)));
        cuts.max_by(|one, other| one.1.total_cmp(&other.1))
            .filter(|(_, gain)| *gain > penalty)
            .map(|(cut, _)| cut)
    });
    merge(rates, bounds)
}

/// A last level below everything before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FinalDrop {
    /// All that came before, whatever its levels.
    pub(crate) before: Segment,
    /// What was left.
    pub(crate) after: Segment,
}

/// The one fall of a series, for good. What came before may go up and down, as a burst beside another's load does,
/// where what is left is even for long enough that it is no coincidence.
pub(crate) fn fall(rates: &[f64]) -> Option<FinalDrop> {
    let levels = segments(rates);
    let (&last, earlier) = levels.split_last()?;
    let cut = rates.len() - last.length;
    // The rate falls within a sample, which belongs to neither level: it counts as the end of the first.
    let is_mixed = !earlier.is_empty() && rates[cut] > (1.0 + APART) * last.median && last.length > LEAST;
    let (before, after) = rates.split_at(cut + usize::from(is_mixed));
    let after = segment(after);
    let least = earlier.iter().map(|level| level.median).reduce(f64::min)?;
    let is_plain = earlier.len() == 1 && is_step(rates, last.length);
    let is_clear = after.length >= LONG && after.cv <= EVEN && after.median <= (1.0 - APART) * least;
    let is_fall = after.median < least && (is_plain || is_clear);
    is_fall.then(|| FinalDrop { before: segment(before), after })
}

/// Two levels explain `rates`, of which the last `after` are the second, better than a steady decline.
pub(crate) fn is_step(rates: &[f64], after: usize) -> bool {
    let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    let (high, low) = logs.split_at(logs.len() - after);
    let (mean, middle) = (mean(&logs), (logs.len() as f64 - 1.0) / 2.0);
    let from_middle = || logs.iter().enumerate().map(|(at, log)| (at as f64 - middle, log - mean));
    let squares: f64 = from_middle().map(|(at, _)| at * at).sum();
    let slope = from_middle().map(|(at, log)| at * log).sum::<f64>() / squares;
    let beside_line: f64 = from_middle().map(|(at, log)| (log - slope * at).powi(2)).sum();
    cost(high) + cost(low) < beside_line
}

/// Standard deviation of single samples, from the differences of neighbours, so that levels do not count.
fn noise(logs: &[f64]) -> f64 {
    let steps: Vec<f64> = logs.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    (median(&steps) / 0.6745 / std::f64::consts::SQRT_2).max(MIN_NOISE)
}

fn median(values: &[f64]) -> f64 {
    upper_median(values.iter().copied()).unwrap_or(0.0)
}

fn cost(logs: &[f64]) -> f64 {
    let mean = mean(logs);
    logs.iter().map(|log| (log - mean).powi(2)).sum()
}

/// Sums of a series and of its squares up to each place, as differences from its first value.
struct Sums(Vec<(f64, f64)>);

impl Sums {
    fn of(values: &[f64]) -> Sums {
        let origin = values.first().copied().unwrap_or(0.0);
        let up_to = values.iter().scan((0.0, 0.0), |(sum, squares), value| {
            let value = value - origin;
            (*sum, *squares) = (*sum + value, *squares + value * value);
            Some((*sum, *squares))
        });
        Sums(std::iter::once((0.0, 0.0)).chain(up_to).collect())
    }

    /// The sum of squared differences from the mean of a span.
    fn cost(&self, span: Range<usize>) -> f64 {
        let ((start, start_squares), (end, end_squares)) = (self.0[span.start], self.0[span.end]);
        let (sum, squares) = (end - start, end_squares - start_squares);
        (squares - sum * sum / span.len().max(1) as f64).max(0.0)
    }
}

/// Levels that differ by too little are one.
fn merge(rates: &[f64], bounds: Vec<usize>) -> Vec<Segment> {
    let mut starts: Vec<usize> = Vec::new();
    for pair in bounds.windows(2) {
        let is_apart = starts.last().is_none_or(|&start| {
            let (before, after) = (median(&rates[start..pair[0]]), median(&rates[pair[0]..pair[1]]));
            (after - before).abs() >= APART * before.max(after)
        });
        if is_apart && pair[1] > pair[0] {
            starts.push(pair[0]);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([rates.len()]);
    starts.iter().zip(ends).map(|(&start, end)| segment(&rates[start..end])).collect()
}

pub(crate) fn segment(rates: &[f64]) -> Segment {
    Segment { length: rates.len(), median: median(rates), cv: coefficient_of_variation(rates) }
}

/// Share of the level before a fall below which a second belongs to the fall.
const FALLING: f64 = 0.9;

/// The part of `test` before its rate fell, with the rates and latencies of its intervals; `None` where it did not fall, and of
/// tests whose jobs did not run together on one host. Syncs have no intervals: theirs are those of the whole test.
pub fn before_fall(test: &TestRecord) -> Option<TestRecord> {
    let is_one = test.jobs.windows(2).all(|pair| pair[0].phase == pair[1].phase);
    if !is_one || test.fleet.is_some() {
        return None;
    }
    let seconds = seconds(&test.jobs.iter().collect::<Vec<_>>());
    let rates: Vec<f64> = seconds.iter().map(Second::iops).collect();
    let before = fall(&rates)?.before;
    // The rate falls within a second, which is no part of the level.
    let is_whole = |second: &&Second| second.iops() >= FALLING * before.median;
    let last = seconds[..before.length].iter().rev().find(is_whole)?;
    let end_ns = last.start_ns + last.elapsed_ns;
    let jobs = test.jobs.iter().map(|job| until(job, end_ns)).collect();
    Some(TestRecord { jobs, ..test.clone() })
}

fn until(job: &JobRecord, end_ns: u64) -> JobRecord {
    let mut measured = PhaseOutcome { end_ns, ..job.measured.clone() };
    measured.series.retain(|interval| interval.end_ns <= end_ns);
    for (at, whole) in job.measured.ops().into_iter().enumerate() {
        let mut part = OpOutcome::default();
        let mut bins: BTreeMap<u16, u64> = BTreeMap::new();
        for IntervalOp { ios, bytes, clat_bins, .. } in
            measured.series.iter().map(|interval| interval.ops()[at])
        {
            (part.ios, part.bytes) = (part.ios + ios, part.bytes + bytes);
            clat_bins.iter().for_each(|&(bin, count)| *bins.entry(bin).or_default() += count);
        }
        part.issued = part.ios;
        let mut latency = Latency::default();
        for (bin, count) in bins {
            latency.merge(&Latency::repeated(count, latency_bin_midpoint(usize::from(bin))));
        }
        // Intervals count completion latencies: the time of submission before them is left out.
        if whole.lat.samples() > 0 {
            part.lat = latency.clone();
        }
        part.clat = latency;
        *measured.ops_mut()[at] = part;
    }
    JobRecord { measured, ..job.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};
    use fathom_record::{TestSummary, latency_bin};

    /// A rate with noise of `percent`, the same every time.
    fn noisy(level: f64, length: usize, percent: f64) -> Vec<f64> {
        let noise = |at: usize| ((at * 7919 % 101) as f64 / 50.0 - 1.0) * percent / 100.0 * 1.7;
        (0..length).map(|at| level * (1.0 + noise(at))).collect()
    }

    #[test]
    fn levels() {
        let check = |rates: Vec<f64>, expected: &[usize]| {
            let lengths: Vec<usize> = segments(&rates).iter().map(|segment| segment.length).collect();
            assert_eq!(lengths, expected);
        };
        check(vec![], &[]);
        check(vec![5.0; 4], &[4]);
        check(noisy(5000.0, 300, 3.0), &[300]);
        check([noisy(3000.0, 200, 3.0), noisy(300.0, 60, 3.0)].concat(), &[200, 60]);
        check([noisy(12_000.0, 100, 3.0), noisy(3000.0, 100, 3.0)].concat(), &[100, 100]);
        check([vec![10.0; 20], vec![5.0; 20], vec![10.0; 20]].concat(), &[20, 20, 20]);
        check([vec![10.0; 20], vec![9.5; 20]].concat(), &[40]);
        check([vec![10.0; 20], vec![5.0; 4]].concat().into_iter().take(22).collect(), &[22]);
        check([vec![10.0; 20], vec![0.0; 20]].concat(), &[40]);
    }

    #[test]
    fn falls() {
        let check = |rates: Vec<f64>, expected: Option<(usize, usize)>| {
            let found = fall(&rates).map(|fall| (fall.before.length, fall.after.length));
            assert_eq!(found, expected, "{rates:?}");
        };
        let uneven = [vec![1500.0; 8], vec![650.0; 6], vec![1700.0; 7], vec![585.0; 6]].concat();
        let then =
            |level: f64, length: usize, percent| [uneven.clone(), noisy(level, length, percent)].concat();
        check([vec![10.0; 20], vec![5.0; 20]].concat(), Some((20, 20)));
        check([vec![5.0; 20], vec![10.0; 20]].concat(), None);
        check(then(305.0, 40, 1.0), Some((27, 40)));
        // A decline has no level that it falls to.
        let decline = |a_sample: f64, length: usize| -> Vec<f64> {
            (0..length).map(|at| 1000.0 * (1.0 - a_sample).powi(at as i32)).collect()
        };
        check(decline(0.01, 20), None);
        check(decline(0.005, 60), None);
        check([decline(0.01, 10), vec![500.0; 10]].concat(), Some((10, 10)));
        // Too short, too uneven, or not below all of it.
        check(then(305.0, 20, 1.0), None);
        check(then(305.0, 40, 9.0), None);
        check(then(900.0, 40, 1.0), None);
        check(vec![10.0; 40], None);
        check(Vec::new(), None);
    }

    #[test]
    fn rates_and_latencies_are_those_before_the_fall() {
        let seconds = [vec![1.0; 20], vec![0.5], vec![0.1; 40]].concat();
        let mut run = record(&[TestLoad { seconds, iops: 1000.0, ..TestLoad::default() }]);
        for (at, interval) in run.tests[0].jobs[0].measured.series.iter_mut().enumerate() {
            let ns = if at < 20 { 1_000_000 } else { 10_000_000 };
            interval.read.clat_bins = vec![(latency_bin(ns) as u16, interval.read.ios)];
        }
        let part = before_fall(&run.tests[0]).expect("the rate fell");
        let summary = TestSummary::new(&part);
        let read = summary.read.expect("reads");
        assert_eq!((read.ios, read.iops.round(), summary.measured_ns), (20_000, 1000.0, 20_000_000_000));
        assert!(read.clat_ns.p99.is_some_and(|ns| ns < 1_020_000), "{:?}", read.clat_ns);
    }

    #[test]
    fn a_rate_that_did_not_fall_has_no_such_part() {
        let of =
            |seconds: Vec<f64>| before_fall(&record(&[TestLoad { seconds, ..TestLoad::default() }]).tests[0]);
        assert_eq!(of(vec![1.0; 60]), None);
        assert_eq!(of([vec![0.1; 30], vec![1.0; 30]].concat()), None);
        assert_eq!(of(Vec::new()), None);
    }
}
