//! Whether groups of runs, such as those of each hour of the day, differ.

use fathom_stats::sample::{median, quantile};
use serde::Serialize;

use super::rank::centred_ranks;

/// The runs of one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupSpread {
    /// The group: an hour, a host, a device.
    pub key: String,
    /// Runs in it.
    pub runs: usize,
    /// A quarter of its runs is below this.
    pub quartile_low: f64,
    /// Median.
    pub median: f64,
    /// A quarter of its runs is above this.
    pub quartile_high: f64,
    /// Its median as a multiple of that of all runs; `None` where that is 0.
    pub ratio: Option<f64>,
}

/// How groups differ: the test of Kruskal and Wallis (1952, J. Am. Stat. Assoc. 47) on ranks finds many small differences, the rank
/// sum of each group against the others a single large one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupDifference {
    /// Probability of groups as different as these if all had the same distribution; `None` with fewer than two groups of
    /// [`LEAST_OF_GROUP`] runs.
    pub p: Option<f64>,
    /// Share of the variance of the ranks that lies between the groups, corrected for their number (epsilon squared); `None`
    /// where `p` is.
    pub explained: Option<f64>,
    /// The groups, in the order given.
    pub groups: Vec<GroupSpread>,
}

/// Runs that a group needs to count in the test.
pub const LEAST_OF_GROUP: usize = 3;

/// Compares groups of values, each under its key. Values that follow one another resemble each other, so that `inflation` of them
/// stand for one.
pub fn difference(groups: &[(String, Vec<f64>)], inflation: f64) -> GroupDifference {
    let all: Vec<f64> = groups.iter().flat_map(|(_, values)| values).copied().collect();
    let whole = median(&all).unwrap_or(0.0);
    let spread = |(key, values): &(String, Vec<f64>)| {
        let at = |share: f64| quantile(values, share);
        Some(GroupSpread {
            key: key.clone(),
            runs: values.len(),
            quartile_low: at(0.25)?,
            median: at(0.5)?,
            quartile_high: at(0.75)?,
            ratio: (whole > 0.0).then(|| at(0.5).map(|median| median / whole)).flatten(),
        })
    };
    let tested = between_groups(groups);
    GroupDifference {
        p: tested.map(|tested| tested.probability(inflation)),
        explained: tested.map(|tested| {
            ((tested.statistic - tested.degrees) / (tested.runs - tested.degrees - 1.0)).clamp(0.0, 1.0)
        }),
        groups: groups.iter().filter_map(spread).collect(),
    }
}

/// The variance of the ranks between groups.
#[derive(Clone, Copy)]
struct BetweenGroups {
    /// As a chi-square value where there is no difference.
    statistic: f64,
    /// Its degrees of freedom: one less than the groups.
    degrees: f64,
    /// Runs in all groups; more than the groups.
    runs: f64,
    /// The greatest square of a standardised rank sum of a group.
    greatest: f64,
}

impl BetweenGroups {
    /// Either test may find a difference, and each group may be the one that differs: both are accounted for.
    fn probability(&self, inflation: f64) -> f64 {
        let together = chi_square_tail(self.statistic / inflation, self.degrees);
        if self.degrees < 2.0 {
            return together;
        }
        let single = (self.degrees + 1.0) * chi_square_tail(self.greatest / inflation, 1.0);
        (2.0 * together.min(single)).min(1.0)
    }
}

fn between_groups(groups: &[(String, Vec<f64>)]) -> Option<BetweenGroups> {
    let counted: Vec<&[f64]> = groups
        .iter()
        .map(|(_, values)| &values[..])
        .filter(|values| values.len() >= LEAST_OF_GROUP)
        .collect();
    let all: Vec<f64> = counted.concat();
    if counted.len() < 2 {
        return None;
    }
    let ranks = centred_ranks(&all);
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let (degrees, runs) = ((counted.len() - 1) as f64, all.len() as f64);
    if squares <= 0.0 {
        return Some(BetweenGroups { statistic: 0.0, degrees, runs, greatest: 0.0 });
    }
    let mut rest = &ranks[..];
    let (mut between, mut greatest) = (0.0, 0.0_f64);
    for values in counted {
        let (of_group, others) = rest.split_at(values.len());
        rest = others;
        let count = values.len() as f64;
        let square = of_group.iter().sum::<f64>().powi(2) / count;
        between += square;
        greatest = greatest.max(square * runs * (runs - 1.0) / (squares * (runs - count)));
    }
    Some(BetweenGroups { statistic: between * (runs - 1.0) / squares, degrees, runs, greatest })
}

/// The probability that a chi-square value with so many degrees of freedom exceeds `value`: one less the series of the
/// incomplete gamma function.
fn chi_square_tail(value: f64, degrees: f64) -> f64 {
    let (half, shape) = (value / 2.0, degrees / 2.0);
    if half <= 0.0 {
        return 1.0;
    }
    // Each term in logarithms, so that none overflows.
    let mut log_term = shape * half.ln() - half - log_gamma(shape + 1.0);
    let mut sum = 0.0;
    let mut at = shape;
    for _ in 0..10_000 {
        let term = log_term.exp();
        sum += term;
        if at > half && term < sum * 1e-15 {
            break;
        }
        at += 1.0;
        log_term += half.ln() - at.ln();
    }
    (1.0 - sum).clamp(0.0, 1.0)
}

/// The logarithm of the gamma function of a multiple of one half: by its recurrence from 1/2 or 1.
fn log_gamma(value: f64) -> f64 {
    let mut at = value;
    let mut sum = 0.0;
    while at > 1.0 {
        at -= 1.0;
        sum += at.ln();
    }
    let is_half = (at - 0.5).abs() < 1e-9;
    sum + if is_half { std::f64::consts::PI.sqrt().ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_the_chi_square_distribution() {
        for (value, degrees, expected) in [
            (3.841, 1.0, 0.05),
            (5.991, 2.0, 0.05),
            (35.172, 23.0, 0.05),
            (23.0, 23.0, 0.4608),
            (0.0, 3.0, 1.0),
        ] {
            let found = chi_square_tail(value, degrees);
            assert!((found - expected).abs() < 5e-4, "{value} {degrees}: {found}");
        }
    }

    #[test]
    fn groups_that_differ_are_told_from_those_that_do_not() {
        let group = |key: &str, level: f64| {
            (key.to_owned(), (0..10).map(|at| level + f64::from(at * 7 % 10)).collect::<Vec<f64>>())
        };
        let same = difference(&[group("00", 100.0), group("01", 100.0), group("02", 100.0)], 1.0);
        assert!(same.p.is_some_and(|p| p > 0.9), "{same:?}");
        let differs = difference(&[group("00", 100.0), group("01", 100.0), group("02", 120.0)], 1.0);
        assert!(differs.p.is_some_and(|p| p < 0.001), "{differs:?}");
        assert!(differs.explained.is_some_and(|share| share > 0.5) && same.explained == Some(0.0));
        let last = &differs.groups[2];
        assert_eq!((last.runs, last.median), (10, 124.5));
        assert!(last.ratio.is_some_and(|ratio| ratio > 1.15));
        assert_eq!(difference(&[group("00", 100.0)], 1.0).p, None);
    }
}
