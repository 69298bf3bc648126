//! Count, sum, sum of squares, minimum and maximum of integer samples; exact, also when merged.

use serde::{Deserialize, Serialize};

use crate::wire::wide;

/// Exact moments of a set of integers. Mean and deviation are computed only for output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moments {
    /// Number of samples.
    pub count: u64,
    /// Sum of the samples.
    #[serde(with = "wide")]
    pub sum: u128,
    /// Sum of the squared samples.
    #[serde(with = "wide")]
    pub sum_squares: u128,
    /// Least sample; 0 without samples.
    pub min: u64,
    /// Greatest sample; 0 without samples.
    pub max: u64,
}

impl Moments {
    /// Counts one sample.
    pub fn record(&mut self, value: u64) {
        let sum = u128::from(value);
        self.merge(&Moments { count: 1, sum, sum_squares: sum * sum, min: value, max: value });
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: &Moments) {
        self.min = match (self.count, other.count) {
            (_, 0) => self.min,
            (0, _) => other.min,
            _ => self.min.min(other.min),
        };
        self.count += other.count;
        self.sum += other.sum;
        self.sum_squares += other.sum_squares;
        self.max = self.max.max(other.max);
    }

    /// Arithmetic mean; 0 without samples.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Sample standard deviation (n - 1), as fio prints it; 0 below two samples.
    ///
    /// `sum_squares * n - sum^2` is computed in integers, so that nothing cancels; floating point is used only if that
    /// product would overflow (10^19 squared samples).
    pub fn stdev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let n = u128::from(self.count);
        let spread = match (self.sum_squares.checked_mul(n), self.sum.checked_mul(self.sum)) {
            (Some(squares), Some(square)) => squares.saturating_sub(square) as f64 / n as f64,
            _ => (self.sum_squares as f64 - self.sum as f64 * self.mean()).max(0.0),
        };
        (spread / (self.count - 1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_known_set() {
        let mut moments = Moments::default();
        for value in [2, 4, 4, 4, 5, 5, 7, 9] {
            moments.record(value);
        }
        assert_eq!((moments.count, moments.min, moments.max), (8, 2, 9));
        assert_eq!(moments.mean(), 5.0);
        assert!((moments.stdev() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn deviation_is_exact_around_a_large_mean() {
        let mut moments = Moments::default();
        for i in 0..1_000_000u64 {
            moments.record(10_000_000_000 + (i & 1));
        }
        assert!((moments.stdev() - 0.5).abs() < 1e-6, "{}", moments.stdev());
    }

    #[test]
    fn empty_moments_print_as_zero() {
        let empty = Moments::default();
        assert_eq!((empty.min, empty.mean(), empty.stdev()), (0, 0.0, 0.0));
        let mut merged = empty;
        merged.merge(&empty);
        assert_eq!(merged, empty);
        let mut one = Moments::default();
        one.record(7);
        merged.merge(&one);
        one.merge(&empty);
        assert_eq!((merged.min, one.min), (7, 7));
    }
}
