//! Whether a figure holds still: the SNIA's rule over rounds, and the same two inequalities on spans of a short run.
//!
//! Pure arithmetic. Who measures the rounds, and what is watched in them, is the caller's business.

pub(crate) mod course;
pub mod levels;
pub mod rate_duration;
pub mod run_fall;
pub(crate) mod write_cache;

use fathom_stats::sample::{mean, variance};

/// Rounds that have to agree: those measured last.
pub const ROUNDS: usize = 5;
/// Rounds after which measuring ends, steady or not.
pub const MAX_ROUNDS: usize = 25;
/// Default length of a round, ns.
pub const ROUND_NS: u64 = 60_000_000_000;
/// What the rounds may differ by: range, and drift from the first to the last, as shares of their mean.
const RANGE: f64 = 0.20;
const DRIFT: f64 = 0.10;
/// Samples of a second that a short run is judged by: five spans of six.
pub const SCREENED: usize = 30;
/// Rates closer than this count as the same.
const ALIKE: f64 = 0.10;

/// How far figures in turn lie apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FigureSpread {
    /// Their mean.
    pub mean: f64,
    /// Greatest less least, as a share of the mean.
    pub range_fraction: f64,
    /// Slope by least squares times the steps from the first to the last, as a share of the mean; falling is negative.
    pub drift_fraction: f64,
}

impl FigureSpread {
    /// The spread of figures in the order they were measured.
    pub fn of(figures: &[f64]) -> FigureSpread {
        let count = figures.len() as f64;
        let (mean, middle) = (mean(figures), (count - 1.0) / 2.0);
        let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let at = || figures.iter().enumerate().map(|(x, y)| (x as f64 - middle, y - mean));
        let slope = at().map(|(x, y)| x * y).sum::<f64>() / at().map(|(x, _)| x * x).sum::<f64>();
        if figures.len() < 2 || mean <= 0.0 {
            return FigureSpread { mean, ..FigureSpread::default() };
        }
        FigureSpread {
            mean,
            range_fraction: (most - least) / mean,
            drift_fraction: slope * (count - 1.0) / mean,
        }
    }

    /// Neither range nor drift is too large. Nothing is steady at zero.
    pub fn is_steady(&self) -> bool {
        self.mean > 0.0 && self.range_fraction <= RANGE && self.drift_fraction.abs() <= DRIFT
    }

    /// What it did on the whole: 1 where it rose by too much, -1 where it fell, 0 where it did neither.
    pub fn direction(&self) -> i8 {
        match self.drift_fraction {
            drift if drift > DRIFT => 1,
            drift if drift < -DRIFT => -1,
            _ => 0,
        }
    }
}

/// What to do after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyVerdict {
    /// The last five agree: their mean is the result.
    Steady,
    /// Another one.
    GoOn,
    /// No more: it was not to be.
    GiveUp,
}

/// The spread of the rounds that count; `None` before there are five.
pub fn of_rounds(figures: &[f64]) -> Option<FigureSpread> {
    Some(FigureSpread::of(figures.get(figures.len().checked_sub(ROUNDS)?..)?))
}

/// The verdict after these rounds, the last of them just measured.
pub fn verdict(figures: &[f64]) -> SteadyVerdict {
    match of_rounds(figures) {
        Some(spread) if spread.is_steady() => SteadyVerdict::Steady,
        _ if figures.len() >= MAX_ROUNDS => SteadyVerdict::GiveUp,
        _ => SteadyVerdict::GoOn,
    }
}

/// True where no round before those that count was worse than they are by more than a tenth: what lasts is the least that was
/// seen. Of a latency, more is worse.
pub fn is_worst_so_far(figures: &[f64], more_is_worse: bool) -> bool {
    let Some(spread) = of_rounds(figures) else { return false };
    let earlier = &figures[..figures.len() - ROUNDS];
    earlier.iter().all(|&figure| match more_is_worse {
        true => figure * (1.0 - ALIKE) <= spread.mean,
        false => figure >= spread.mean * (1.0 - ALIKE),
    })
}

/// The means of five equal spans of a series; what does not fit is left out at its start. Empty below five samples.
pub fn fifths(samples: &[f64]) -> Vec<f64> {
    let length = samples.len() / ROUNDS;
    if length == 0 {
        return Vec::new();
    }
    samples[samples.len() - length * ROUNDS..].chunks(length).map(mean).collect()
}

/// The rule for short runs: the spread of the last 30 samples of a second each, six by six; `None` where there are fewer.
pub fn screening(seconds: &[f64]) -> Option<FigureSpread> {
    let last = seconds.get(seconds.len().checked_sub(SCREENED)?..)?;
    Some(FigureSpread::of(&fifths(last)))
}

/// Standard deviation over mean; 0 of values that are 0.
pub(crate) fn coefficient_of_variation(values: &[f64]) -> f64 {
    let mean = mean(values);
    if mean > 0.0 { variance(values).sqrt() / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_inequalities_hold_at_their_limits_and_not_beyond() {
        let check = |figures: [f64; 5], range: f64, drift: f64, steady: bool| {
            let spread = FigureSpread::of(&figures);
            assert!((spread.range_fraction - range).abs() < 1e-9, "{figures:?}: {spread:?}");
            assert!((spread.drift_fraction - drift).abs() < 1e-9, "{figures:?}: {spread:?}");
            assert_eq!(spread.is_steady(), steady, "{figures:?}");
        };
        check([100.0; 5], 0.0, 0.0, true);
        // A range of 20 % without a slope.
        check([90.0, 110.0, 100.0, 110.0, 90.0], 0.20, 0.0, true);
        check([89.0, 110.0, 102.0, 110.0, 89.0], 0.21, 0.0, false);
        // A straight line: its range is its drift, and 10 % is the limit.
        check([95.0, 97.5, 100.0, 102.5, 105.0], 0.10, 0.10, true);
        check([105.0, 102.5, 100.0, 97.5, 95.0], 0.10, -0.10, true);
        check([94.0, 97.0, 100.0, 103.0, 106.0], 0.12, 0.12, false);
        // By hand: slope 3, mean 103, so 4 x 3 / 103.
        check([100.0, 100.0, 100.0, 100.0, 115.0], 15.0 / 103.0, 12.0 / 103.0, false);
        check([0.0; 5], 0.0, 0.0, false);
    }

    #[test]
    fn rounds_end_when_five_agree_or_at_the_twenty_fifth() {
        let check =
            |figures: &[f64], expected: SteadyVerdict| assert_eq!(verdict(figures), expected, "{figures:?}");
        check(&[], SteadyVerdict::GoOn);
        check(&[100.0; 4], SteadyVerdict::GoOn);
        check(&[100.0; 5], SteadyVerdict::Steady);
        check(&[3000.0, 2000.0, 1000.0, 500.0, 300.0, 300.0, 300.0, 300.0], SteadyVerdict::GoOn);
        check(&[3000.0, 2000.0, 1000.0, 500.0, 300.0, 300.0, 300.0, 300.0, 300.0], SteadyVerdict::Steady);
        let restless = |rounds: usize| -> Vec<f64> { [100.0, 200.0].repeat(13)[..rounds].to_vec() };
        check(&restless(24), SteadyVerdict::GoOn);
        check(&restless(25), SteadyVerdict::GiveUp);
    }

    #[test]
    fn what_lasts_is_the_worst_that_was_seen() {
        let check = |earlier: &[f64], more_is_worse: bool, expected: bool| {
            let figures = [earlier, &[100.0; 5]].concat();
            assert_eq!(is_worst_so_far(&figures, more_is_worse), expected, "{earlier:?}");
        };
        check(&[], false, true);
        check(&[3000.0, 500.0, 91.0], false, true);
        check(&[3000.0, 80.0], false, false);
        check(&[10.0, 108.0], true, true);
        check(&[10.0, 120.0], true, false);
        assert!(!is_worst_so_far(&[1.0; 4], false));
    }

    #[test]
    fn short_runs_are_judged_by_their_last_thirty_seconds() {
        let steady = |samples: Vec<f64>| screening(&samples).map(|spread| spread.is_steady());
        assert_eq!(steady(vec![100.0; 29]), None);
        assert_eq!(steady(vec![100.0; 30]), Some(true));
        assert_eq!(steady([vec![900.0; 20], vec![100.0; 30]].concat()), Some(true));
        assert_eq!(steady([vec![900.0; 6], vec![100.0; 24]].concat()), Some(false));
        // Noise of single seconds does not count, only that of six together.
        assert_eq!(steady([50.0, 150.0].repeat(15)), Some(true));
        assert_eq!(
            fifths(&[9.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0]),
            [1.0, 2.0, 3.0, 4.0, 5.0]
        );
        assert!(fifths(&[1.0; 4]).is_empty());
    }
}
