//! Whether and where a series of runs changed its level.
//!
//! A change is a shift of the median that a test on ranks shows, so no size of it is a threshold and single outliers do not
//! count. The series is cut where its ranks differ most between the parts, less a penalty for each cut (optimal partitioning,
//! Jackson et al. 2005, IEEE Signal Processing Letters 12, on the rank statistic of Kruskal and Wallis). The penalty is the
//! critical value of the maximally selected rank statistic (Lausen and Schumacher 1992, Biometrics 48; the bound for its tail
//! is that of Lausen, Sauerbrei and Schumacher 1994), which accounts for the search over all places. Each part is ranked and
//! searched again, at half the error probability of the whole.
//!
//! Neighbouring runs resemble each other. The lag-1 autocorrelation within the parts, corrected for its bias (Marriott and Pope
//! 1954, Biometrika 41), widens all variances by (1 + r) / (1 - r), as for an autoregressive series.

mod groups;
mod partition;
mod rank;
mod series;
#[cfg(test)]
mod tests;

use fathom_stats::sample::median;
use serde::Serialize;

use groups::difference;
pub use groups::{GroupDifference, GroupSpread};
pub use series::{TrendPoint, TrendRow, TrendSeries, by_key, by_time, series};

use self::partition::{CriticalValues, MOST_RELATED, PartitionSearch, beyond_noise};
use self::rank::ratio;

/// Probability of reporting a change where there is none, for all series of a trend together.
pub const ERROR: f64 = 0.05;
/// Fewest runs in which a change can show.
pub const LEAST_RUNS: usize = 8;

/// Runs of one level: from `from` to before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrendLevel {
    /// Index of the first run.
    pub from: usize,
    /// Index after the last run.
    pub to: usize,
    /// Median of its runs.
    pub median: f64,
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Index of the first run after it.
    pub at: usize,
    /// The level before it.
    pub before: TrendLevel,
    /// The level after it.
    pub after: TrendLevel,
    /// Its size; `None` where a run has the value 0.
    pub ratio: Option<ShiftRatio>,
}

/// How many times greater runs after a change are: the median of the ratios of all pairs of a run after and a run before it
/// (Hodges and Lehmann), with its distribution-free 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShiftRatio {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The levels of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendAnalysis {
    /// The result.
    pub verdict: TrendVerdict,
    /// The levels, oldest first; one where nothing changed.
    pub levels: Vec<TrendLevel>,
    /// The changes between them.
    pub changes: Vec<ChangePoint>,
    /// Lag-1 autocorrelation within the levels, which the test accounts for.
    pub autocorrelation: f64,
}

/// Whether a series changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrendVerdict {
    /// The level changed.
    Changed,
    /// No change is significant.
    NoChange,
    /// There are too few runs to show a change.
    Inconclusive,
}

impl TrendVerdict {
    /// The word in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            TrendVerdict::Changed => "changed",
            TrendVerdict::NoChange => "no-change",
            TrendVerdict::Inconclusive => "inconclusive",
        }
    }
}

/// The levels of `values`, oldest first; reports a false change with the probability `error` at most.
pub fn analyse(values: &[f64], error: f64) -> TrendAnalysis {
    analyse_with(&mut CriticalValues::default(), values, error)
}

/// The same for one of several series, which share what is known of critical values.
fn analyse_with(critical: &mut CriticalValues, values: &[f64], error: f64) -> TrendAnalysis {
    let (cuts, autocorrelation) = cuts(critical, values, error);
    let bounds: Vec<usize> = [&[0][..], &cuts, &[values.len()]].concat();
    let level = |pair: &[usize]| TrendLevel {
        from: pair[0],
        to: pair[1],
        median: median(&values[pair[0]..pair[1]]).unwrap_or(0.0),
    };
    let levels: Vec<TrendLevel> =
        if values.is_empty() { Vec::new() } else { bounds.windows(2).map(level).collect() };
    // The autocorrelation is estimated too: the interval allows for half its standard error.
    let careful = (autocorrelation + 0.5 / (values.len().max(1) as f64).sqrt()).min(MOST_RELATED);
    let change = |pair: &[TrendLevel]| {
        let (before, after) = (pair[0], pair[1]);
        let ratio = ratio(&values[before.from..before.to], &values[after.from..after.to], inflation(careful));
        ChangePoint { at: after.from, before, after, ratio }
    };
    let changes: Vec<ChangePoint> = levels.windows(2).map(change).collect();
    let verdict = match (values.len() < LEAST_RUNS, changes.is_empty()) {
        (true, _) => TrendVerdict::Inconclusive,
        (false, true) => TrendVerdict::NoChange,
        (false, false) => TrendVerdict::Changed,
    };
    TrendAnalysis { verdict, levels, changes, autocorrelation }
}

/// Most rounds of estimating the autocorrelation within levels and the levels under it.
const MOST_ROUNDS: usize = 8;

/// The cuts between levels, and the autocorrelation within them. Each depends on the other: a shift of level looks like
/// autocorrelation, and autocorrelation like shifts. The first cuts assume none. Those whose shift is greater than such noise can
/// make stay; the others and the autocorrelation are made again until they agree.
fn cuts(critical: &mut CriticalValues, values: &[f64], error: f64) -> (Vec<usize>, f64) {
    if values.len() < LEAST_RUNS {
        return (Vec::new(), 0.0);
    }
    let mut search = PartitionSearch::new(values, critical);
    let mut cuts = search.partition(error, 1.0);
    let mut related = search.autocorrelation(&cuts);
    if cuts.is_empty() {
        // Nor does a search that allows for more noise find any.
        return (cuts, related);
    }
    let certain = beyond_noise(values, &cuts, related);
    for _ in 0..MOST_ROUNDS {
        cuts = search.partition_between(&certain, error, inflation(related));
        let found = search.autocorrelation(&cuts);
        if found <= related {
            break;
        }
        related = found;
    }
    (cuts, related)
}

/// How many runs stand for one.
fn inflation(autocorrelation: f64) -> f64 {
    (1.0 + autocorrelation) / (1.0 - autocorrelation)
}
