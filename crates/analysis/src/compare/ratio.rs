//! The ratio of two sources in one figure, with its 95 % confidence interval, and the verdict on it.
//!
//! The unit is a run, not an I/O or a second. The interval is Student's t on the logarithms: of the ratios within blocks, or of
//! neighbouring runs, where the runs of both sources alternate, so that what drifts cancels out, and of both sets of runs
//! otherwise (Welch). Where several looks at the verdict could end the measurement, the interval is as much wider as they take
//! (Bonferroni). With one run each there is no verdict; an interval from within the runs is given where their seconds are
//! independent.

use std::collections::BTreeMap;

use fathom_record::InterleavedRecord;
use fathom_record::confidence::{student, student_975};
use fathom_stats::sample::{mean, variance};
use serde::Serialize;

/// One run's value of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunValue {
    /// The value, above 0.
    pub value: f64,
    /// When the run began, ms since the epoch; 0 where that is unknown, as for simulated runs.
    pub started_unix_ms: u64,
    /// Half of the 95 % confidence interval from within the run as a share of the value, where its seconds are independent.
    pub within_fraction: Option<f64>,
    /// Its block, where both sources were measured in turns.
    pub block: Option<BlockPlace>,
}

/// The block of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// What the runs of one comparison have in common.
    pub comparison: u64,
    /// Its number, from 0.
    pub block: u32,
    /// How many looks at the verdict could end the measurement.
    pub looks: u32,
}

impl BlockPlace {
    /// The block of a run with this place.
    pub fn of(place: &InterleavedRecord) -> BlockPlace {
        let InterleavedRecord { comparison, block, .. } = *place;
        BlockPlace { comparison, block, looks: place.look_count() }
    }
}

/// What counts as a difference, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// A greater value is the better one.
    pub more_is_better: bool,
    /// Smallest relative difference that counts.
    pub delta: f64,
}

/// The verdict on B, compared with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RatioVerdict {
    /// The whole interval is better than A by more than delta.
    Better,
    /// The whole interval is worse than A by more than delta.
    Worse,
    /// The whole interval is within delta of A.
    Equivalent,
    /// Several runs each, and none of these.
    Inconclusive,
    /// Fewer than two runs of A or of B: no verdict.
    Single,
}

impl RatioVerdict {
    /// The word in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            RatioVerdict::Better => "better",
            RatioVerdict::Worse => "worse",
            RatioVerdict::Equivalent => "equivalent",
            RatioVerdict::Inconclusive => "inconclusive",
            RatioVerdict::Single => "single",
        }
    }
}

/// What an interval rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalBasis {
    /// The ratios of runs that alternate.
    PairedRuns,
    /// The runs of each source.
    Runs,
    /// The seconds within one run each. It does not include what differs from run to run.
    WithinRun,
}

/// A ratio B / A.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Of the geometric means.
    pub ratio: f64,
    /// Ends of the 95 % confidence interval; `None` where there is none.
    pub low: Option<f64>,
    /// As `low`.
    pub high: Option<f64>,
    /// What the interval rests on.
    pub interval: Option<IntervalBasis>,
    /// The verdict.
    pub verdict: RatioVerdict,
    /// The figures changed steadily over the runs by more than half of the difference.
    pub drifts: bool,
    /// How many more runs of each source would probably decide; `None` where it is decided, or more than a thousand would not.
    pub more_runs: Option<u32>,
}

/// Most runs that are worth suggesting.
const MAX_RUNS: f64 = 1000.0;
/// Runs of each source that a first verdict takes.
const FIRST_RUNS: u32 = 6;

/// The mean of a logarithm with its standard error.
struct LogRatio {
    mean: f64,
    error: f64,
    degrees: f64,
    /// Looks that its interval allows for.
    looks: u32,
    basis: IntervalBasis,
}

impl LogRatio {
    /// Half the width of its interval.
    fn half(&self) -> f64 {
        student(self.looks, self.degrees) * self.error
    }
}

/// The ratio B / A; `None` where one has no value, or one of 0.
pub fn ratio(a: &[RunValue], b: &[RunValue], threshold: Threshold) -> Option<Ratio> {
    let (logs_a, logs_b) = (logs(a)?, logs(b)?);
    let mean_ratio = mean(&logs_b) - mean(&logs_a);
    if a.len() < 2 || b.len() < 2 {
        return Some(single(a, b, mean_ratio));
    }
    let looks = looks(a).max(looks(b));
    let found = paired(a, b, looks).unwrap_or_else(|| welch(&logs_a, &logs_b, looks));
    let half = found.half();
    let (low, high) = ((found.mean - half).exp(), (found.mean + half).exp());
    let drifts = drifts(a, b);
    let verdict = if drifts { RatioVerdict::Inconclusive } else { verdict(low, high, threshold) };
    let runs = a.len().min(b.len()) as f64;
    let is_open = verdict == RatioVerdict::Inconclusive && !drifts;
    Some(Ratio {
        ratio: found.mean.exp(),
        low: Some(low),
        high: Some(high),
        interval: Some(found.basis),
        verdict,
        drifts,
        more_runs: if is_open { more_runs(&found, runs, threshold.delta) } else { None },
    })
}

/// A 95 % confidence interval of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueInterval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The interval of the mean of `runs`; of one run that from within it. `None` where there is none.
pub fn interval_of(runs: &[RunValue]) -> Option<ValueInterval> {
    let logs = logs(runs)?;
    let half = match runs {
        [only] => only.within_fraction?,
        _ => student(looks(runs), logs.len() as f64 - 1.0) * (variance(&logs) / logs.len() as f64).sqrt(),
    };
    let mean = mean(&logs);
    Some(ValueInterval { low: (mean - half).exp(), high: (mean + half).exp() })
}

fn single(a: &[RunValue], b: &[RunValue], log: f64) -> Ratio {
    let half = match (a, b) {
        ([a], [b]) => a.within_fraction.zip(b.within_fraction).map(|(a, b)| (a * a + b * b).sqrt()),
        _ => None,
    };
    let least = a.len().min(b.len()) as u32;
    Ratio {
        ratio: log.exp(),
        low: half.map(|half| (log - half).exp()),
        high: half.map(|half| (log + half).exp()),
        interval: half.map(|_| IntervalBasis::WithinRun),
        verdict: RatioVerdict::Single,
        drifts: false,
        more_runs: Some(FIRST_RUNS - least.min(FIRST_RUNS)),
    }
}

fn logs(values: &[RunValue]) -> Option<Vec<f64>> {
    let is_valid = |value: f64| value > 0.0 && value.is_finite();
    (!values.is_empty() && values.iter().all(|run| is_valid(run.value)))
        .then(|| values.iter().map(|run| run.value.ln()).collect())
}

/// How many looks at the verdict could end the measurement of `runs`.
fn looks(runs: &[RunValue]) -> u32 {
    runs.iter().filter_map(|run| run.block).map(|block| block.looks).max().unwrap_or(1)
}

/// The ratios of runs that alternate.
fn paired(a: &[RunValue], b: &[RunValue], looks: u32) -> Option<LogRatio> {
    let blocks = in_blocks(a, b).or_else(|| neighbours(a, b))?;
    let count = blocks.len() as f64;
    let (mean, error) = (mean(&blocks), (variance(&blocks) / count).sqrt());
    Some(LogRatio { mean, error, degrees: count - 1.0, looks, basis: IntervalBasis::PairedRuns })
}

/// The logarithms of the ratios of the blocks that have both sources; `None` where not all runs belong to one comparison.
fn in_blocks(a: &[RunValue], b: &[RunValue]) -> Option<Vec<f64>> {
    let comparison = a.first()?.block?.comparison;
    let of = |runs: &[RunValue]| {
        let mut blocks = BTreeMap::new();
        for run in runs {
            let place = run.block.filter(|place| place.comparison == comparison)?;
            if blocks.insert(place.block, run.value.ln()).is_some() {
                return None;
            }
        }
        Some(blocks)
    };
    let (a, b) = (of(a)?, of(b)?);
    let blocks: Vec<f64> = a.iter().filter_map(|(block, log)| Some(b.get(block)? - log)).collect();
    (blocks.len() > 1).then_some(blocks)
}

/// The same of neighbouring runs, in the order they ran, where they alternate.
fn neighbours(a: &[RunValue], b: &[RunValue]) -> Option<Vec<f64>> {
    order(a, b)?
        .chunks(2)
        .map(|block| match block {
            [one, other] if one.is_b != other.is_b => {
                Some(if other.is_b { other.log - one.log } else { one.log - other.log })
            }
            _ => None,
        })
        .collect()
}

fn welch(a: &[f64], b: &[f64], looks: u32) -> LogRatio {
    let (count_a, count_b) = (a.len() as f64, b.len() as f64);
    let (square_a, square_b) = (variance(a) / count_a, variance(b) / count_b);
    let both = square_a + square_b;
    let degrees = match both > 0.0 {
        true => both.powi(2) / (square_a.powi(2) / (count_a - 1.0) + square_b.powi(2) / (count_b - 1.0)),
        false => count_a.min(count_b) - 1.0,
    };
    let mean = mean(b) - mean(a);
    LogRatio { mean, error: both.sqrt(), degrees, looks, basis: IntervalBasis::Runs }
}

/// A run in the order of time.
struct OrderedRun {
    is_b: bool,
    started_unix_ms: u64,
    log: f64,
}

/// All runs in the order of time; `None` where that is unknown.
fn order(a: &[RunValue], b: &[RunValue]) -> Option<Vec<OrderedRun>> {
    let of = |is_b: bool| {
        move |run: &RunValue| OrderedRun { is_b, started_unix_ms: run.started_unix_ms, log: run.value.ln() }
    };
    let mut order: Vec<OrderedRun> = a.iter().map(of(false)).chain(b.iter().map(of(true))).collect();
    order.sort_by_key(|run| run.started_unix_ms);
    let is_known = order.iter().all(|run| run.started_unix_ms > 0)
        && order.windows(2).all(|pair| pair[0].started_unix_ms < pair[1].started_unix_ms);
    is_known.then_some(order)
}

/// True where the values of each source change steadily with the order of the runs, and this explains more than half of the
/// difference between the sources.
fn drifts(a: &[RunValue], b: &[RunValue]) -> bool {
    let Some(order) = order(a, b) else { return false };
    let degrees = order.len() as f64 - 3.0;
    if degrees < 2.0 {
        return false;
    }
    let of = |is_b: bool| {
        let runs: Vec<(f64, f64)> = order
            .iter()
            .enumerate()
            .filter(|(_, run)| run.is_b == is_b)
            .map(|(place, run)| (place as f64, run.log))
            .collect();
        let places: Vec<f64> = runs.iter().map(|(place, _)| *place).collect();
        let logs: Vec<f64> = runs.iter().map(|(_, log)| *log).collect();
        (mean(&places), mean(&logs), runs)
    };
    let (groups, mut squares, mut products, mut all) = ([of(false), of(true)], 0.0, 0.0, 0.0);
    for (place_mean, log_mean, runs) in &groups {
        for (place, log) in runs {
            squares += (place - place_mean).powi(2);
            products += (place - place_mean) * (log - log_mean);
            all += (log - log_mean).powi(2);
        }
    }
    let slope = products / squares;
    let rest = (all - slope * products).max(0.0) / degrees;
    let is_significant = slope.abs() > student_975(degrees) * (rest / squares).sqrt();
    let by_order = slope * (groups[1].0 - groups[0].0);
    is_significant && by_order.abs() > (groups[1].1 - groups[0].1).abs() / 2.0 && by_order != 0.0
}

/// The verdict on an interval.
pub fn verdict(low: f64, high: f64, threshold: Threshold) -> RatioVerdict {
    let Threshold { more_is_better, delta } = threshold;
    match (low, high) {
        (low, _) if low > 1.0 + delta && more_is_better => RatioVerdict::Better,
        (low, _) if low > 1.0 + delta => RatioVerdict::Worse,
        (_, high) if high < 1.0 - delta && more_is_better => RatioVerdict::Worse,
        (_, high) if high < 1.0 - delta => RatioVerdict::Better,
        (low, high) if low > 1.0 - delta && high < 1.0 + delta => RatioVerdict::Equivalent,
        _ => RatioVerdict::Inconclusive,
    }
}

/// So many more runs of each make the interval narrower than the distance to the nearest end of the range of equivalence.
fn more_runs(found: &LogRatio, runs: f64, delta: f64) -> Option<u32> {
    let ends = [(1.0 - delta).ln(), (1.0 + delta).ln()];
    let distance = ends.iter().map(|end| (found.mean - end).abs()).fold(f64::INFINITY, f64::min);
    // The quantile falls with the runs that it is needed for.
    const ROUNDS: usize = 8;
    let (spread, degrees_each) = (found.error * runs.sqrt(), found.degrees / (runs - 1.0).max(1.0));
    let needed = (0..ROUNDS).fold(runs.max(f64::from(FIRST_RUNS)), |runs, _| {
        let quantile = student(found.looks, degrees_each * (runs - 1.0));
        (quantile * spread / distance).powi(2).ceil().clamp(2.0, 2.0 * MAX_RUNS)
    });
    (needed <= MAX_RUNS).then(|| (needed - runs).max(1.0) as u32)
}

#[cfg(test)]
mod tests;
