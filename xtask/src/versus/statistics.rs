//! Statistics of the rounds of a row: medians, and the range of the ratio. No round is excluded, and nothing is
//! averaged.

/// The figures of one round of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// fathom's figure.
    pub ours: f64,
    /// The figure of the other program, if there is one.
    pub theirs: Option<f64>,
}

impl Round {
    /// fathom's figure over the other.
    pub fn ratio(self) -> Option<f64> {
        self.theirs.map(|theirs| self.ours / theirs)
    }
}

/// The ratio over all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioSpread {
    /// Median of the rounds' ratios.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// The result of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Median of fathom's figures.
    pub ours: f64,
    /// Median of the others.
    pub theirs: Option<f64>,
    /// Of the ratios within each round, so that what troubles both at a time troubles it little.
    pub ratio: Option<RatioSpread>,
}

/// Sums `rounds` up; there is at least one.
pub fn summarise(rounds: &[Round]) -> Summary {
    let theirs: Vec<f64> = rounds.iter().filter_map(|round| round.theirs).collect();
    let ratios: Vec<f64> = rounds.iter().filter_map(|round| round.ratio()).collect();
    let spread = || RatioSpread {
        median: median(&ratios),
        min: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        max: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    };
    Summary {
        ours: median(&rounds.iter().map(|round| round.ours).collect::<Vec<_>>()),
        theirs: (!theirs.is_empty()).then(|| median(&theirs)),
        ratio: (!ratios.is_empty()).then(spread),
    }
}

/// The middle value, or the mean of the two in the middle; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (len, middle) if len % 2 == 0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        (_, middle) => sorted[middle],
    }
}

/// The goal of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The ratio is at least this.
    RatioAtLeast(f64),
    /// The ratio is at most this.
    RatioAtMost(f64),
    /// The ratio is below one.
    Below,
    /// fathom's figure is at most this, in the row's unit.
    AtMost(f64),
    /// fathom's figure is at least this, in the row's unit.
    AtLeast(f64),
    /// None: the row is informative.
    Unset,
}

impl Goal {
    /// Whether `summary` meets it; `None` where nothing is wanted. A figure that is not a number meets nothing.
    pub fn is_met(self, summary: &Summary) -> Option<bool> {
        let ratio = summary.ratio.map_or(f64::NAN, |ratio| ratio.median);
        match self {
            Goal::RatioAtLeast(least) => Some(ratio >= least),
            Goal::RatioAtMost(most) => Some(ratio <= most),
            Goal::Below => Some(ratio < 1.0),
            Goal::AtMost(most) => Some(summary.ours <= most),
            Goal::AtLeast(least) => Some(summary.ours >= least),
            Goal::Unset => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_lie_in_the_middle() {
        let check = |values: &[f64], expected: f64| assert_eq!(median(values), expected, "{values:?}");
        check(&[3.0], 3.0);
        check(&[5.0, 1.0, 3.0], 3.0);
        check(&[4.0, 1.0, 3.0, 2.0], 2.5);
        check(&[-1.0, -3.0, -2.0], -2.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_ratio_is_the_median_of_the_rounds_not_the_ratio_of_the_medians() {
        let round = |ours, theirs| Round { ours, theirs: Some(theirs) };
        let summary = summarise(&[round(2.0, 1.0), round(9.0, 3.0), round(3.0, 3.0)]);
        assert_eq!(summary.ours, 3.0);
        assert_eq!(summary.theirs, Some(3.0));
        assert_eq!(summary.ratio, Some(RatioSpread { median: 2.0, min: 1.0, max: 3.0 }));
    }

    #[test]
    fn a_row_without_a_partner_has_no_ratio() {
        let summary = summarise(&[Round { ours: 7.0, theirs: None }]);
        assert_eq!(summary, Summary { ours: 7.0, theirs: None, ratio: None });
    }

    #[test]
    fn goals_are_met_at_equality() {
        let check = |goal: Goal, ours, ratio: Option<f64>, expected| {
            let ratio = ratio.map(|median| RatioSpread { median, min: 0.0, max: 9.0 });
            let summary = Summary { ours, theirs: None, ratio };
            assert_eq!(goal.is_met(&summary), expected, "{goal:?} of {ours}, {ratio:?}");
        };
        check(Goal::RatioAtLeast(1.85), 1.0, Some(1.85), Some(true));
        check(Goal::RatioAtLeast(1.85), 9.0, Some(1.84), Some(false));
        check(Goal::RatioAtLeast(1.85), 9.0, None, Some(false));
        check(Goal::RatioAtMost(0.75), 9.0, Some(0.75), Some(true));
        check(Goal::RatioAtMost(0.75), 9.0, Some(0.76), Some(false));
        check(Goal::RatioAtMost(0.75), 9.0, None, Some(false));
        check(Goal::Below, 9.0, Some(0.99), Some(true));
        check(Goal::Below, 0.0, Some(1.0), Some(false));
        check(Goal::AtMost(25.0), 25.0, None, Some(true));
        check(Goal::AtMost(25.0), 25.1, Some(0.1), Some(false));
        check(Goal::AtMost(25.0), f64::NAN, None, Some(false));
        check(Goal::AtLeast(0.95), 0.95, None, Some(true));
        check(Goal::AtLeast(0.95), 0.94, None, Some(false));
        check(Goal::Unset, 0.0, None, None);
    }
}
