//! A value that was derived from measurements, with the interval it lies in, or only a bound.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// A value that was found, or the side on which it is known to lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimate {
    /// Between two values, most likely at one.
    Known {
        /// Most likely.
        value: f64,
        /// At least.
        low: f64,
        /// At most.
        high: f64,
    },
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
}

impl Estimate {
    /// The value where it is known.
    pub fn value(&self) -> Option<f64> {
        match *self {
            Estimate::Known { value, .. } => Some(value),
            Estimate::AtLeast(_) | Estimate::AtMost(_) => None,
        }
    }

    /// The least it can be, if that is known.
    pub(crate) fn low(&self) -> Option<f64> {
        match *self {
            Estimate::Known { low, .. } | Estimate::AtLeast(low) => Some(low),
            Estimate::AtMost(_) => None,
        }
    }

    /// The most it can be, if that is known.
    pub(crate) fn high(&self) -> Option<f64> {
        match *self {
            Estimate::Known { high, .. } | Estimate::AtMost(high) => Some(high),
            Estimate::AtLeast(_) => None,
        }
    }
}

impl Serialize for Estimate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&Some(*self), serializer)
    }
}

/// Value and bounds, as far as they are known: `{"value": null, "low": 5.0, "high": null}`.
pub(crate) fn serialize<S: Serializer>(
    estimate: &Option<Estimate>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut members = serializer.serialize_struct("Estimate", 3)?;
    members.serialize_field("value", &estimate.and_then(|estimate| estimate.value()))?;
    members.serialize_field("low", &estimate.and_then(|estimate| estimate.low()))?;
    members.serialize_field("high", &estimate.and_then(|estimate| estimate.high()))?;
    members.end()
}

/// The probability of at most `count` among `trials`, each of which has the probability `share`: the terms from the one nearest to
/// the mean outwards, until they no longer count.
pub(crate) fn binomial_at_most(count: u64, trials: u64, share: f64) -> f64 {
    if count >= trials || share <= 0.0 {
        return 1.0;
    }
    if share >= 1.0 {
        return 0.0;
    }
    let odds = share / (1.0 - share);
    let (all, start) = (trials as f64, if count as f64 <= trials as f64 * share { count } else { count + 1 });
    let first = (ln_factorial(trials) - ln_factorial(start) - ln_factorial(trials - start)
        + start as f64 * share.ln()
        + (all - start as f64) * (1.0 - share).ln())
    .exp();
    // Ratios of a term to the next one outwards.
    let falling = |at: f64| at / ((all - at + 1.0) * odds);
    let rising = |at: f64| (all - at) * odds / (at + 1.0);
    let (mut term, mut sum, mut at) = (first, 0.0, start as f64);
    while term > sum * f64::EPSILON && (0.0..=all).contains(&at) {
        sum += term;
        (term, at) =
            if start == count { (term * falling(at), at - 1.0) } else { (term * rising(at), at + 1.0) };
    }
    if start == count { sum.min(1.0) } else { (1.0 - sum).max(0.0) }
}

/// The natural logarithm of a factorial: Stirling's series (Abramowitz and Stegun, 6.1.41), of small numbers the sum.
fn ln_factorial(number: u64) -> f64 {
    if number < 32 {
        return (2..=number).map(|factor| (factor as f64).ln()).sum();
    }
    let number = number as f64;
    let series = 1.0 / (12.0 * number) - 1.0 / (360.0 * number.powi(3)) + 1.0 / (1260.0 * number.powi(5));
    number * number.ln() - number + 0.5 * (std::f64::consts::TAU * number).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_have_the_sum_of_all_terms() {
        let by_sum = |count: u64, trials: u64, share: f64| -> f64 {
            let (all, odds) = (trials as f64, share / (1.0 - share));
            let terms = (0..count).scan((1.0 - share).powf(all), |term, at| {
                *term *= (all - at as f64) / (at as f64 + 1.0) * odds;
                Some(*term)
            });
            ((1.0 - share).powf(all) + terms.sum::<f64>()).min(1.0)
        };
        for (trials, share) in [(1, 0.5), (7, 0.01), (40, 0.3), (500, 0.01), (3_000, 0.02), (700, 0.6)] {
            for count in (0..trials).step_by(1 + trials as usize / 37) {
                let (found, expected) =
                    (binomial_at_most(count, trials, share), by_sum(count, trials, share));
                assert!(
                    (found - expected).abs() < 1e-11,
                    "{count} of {trials} at {share}: {found} {expected}"
                );
            }
        }
        let certain = [binomial_at_most(3, 3, 0.5), binomial_at_most(0, 9, 0.0), binomial_at_most(8, 9, 1.0)];
        assert_eq!(certain, [1.0, 1.0, 0.0]);
        // By the normal distribution.
        assert!((binomial_at_most(10_000, 1_000_000, 0.01) - 0.5).abs() < 0.005);
        assert!((binomial_at_most(10_200, 1_000_000, 0.01) - 0.978).abs() < 0.001);
        assert_eq!(binomial_at_most(5_000_000, 10_000_000, 0.01), 1.0);
    }
}
