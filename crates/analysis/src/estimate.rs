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

/// The probability of at most `count` among `trials`, each of which has the probability `share`. In logarithms, so that many
/// trials do not underflow.
pub(crate) fn binomial_at_most(count: u64, trials: u64, share: f64) -> f64 {
    let (trials, odds) = (trials as f64, share.ln() - (1.0 - share).ln());
    let mut term = trials * (1.0 - share).ln();
    let mut sum = term;
    for count in 0..count {
        let count = count as f64;
        term += ((trials - count) / (count + 1.0)).ln() + odds;
        sum = sum.max(term) + (-(sum - term).abs()).exp().ln_1p();
    }
    sum.exp().min(1.0)
}
