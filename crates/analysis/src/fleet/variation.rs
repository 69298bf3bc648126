//! How much values of several hosts vary.

use fathom_stats::sample::{mean, median, variance};
use serde::Serialize;

/// Least, middle and greatest of several values, and how much they vary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Variation {
    /// Least value.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Greatest value.
    pub max: f64,
    /// Coefficient of variation (0.01 = 1 %).
    pub cv: f64,
    /// Values.
    pub count: usize,
}

impl Variation {
    /// That of these values; `None` below two.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Variation> {
        values.sort_by(f64::total_cmp);
        let [min, .., max] = values.as_slice() else { return None };
        let (min, max) = (*min, *max);
        let mean = mean(&values);
        let cv = if mean > 0.0 { variance(&values).sqrt() / mean } else { 0.0 };
        Some(Variation { min, median: median(&values)?, max, cv, count: values.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_of_few_values() {
        assert_eq!(Variation::of(vec![1.0]), None);
        let of = Variation::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((of.min, of.median, of.max, of.cv, of.count), (1.0, 2.0, 3.0, 0.5, 3));
        assert_eq!(Variation::of(vec![0.0, 0.0]).unwrap().cv, 0.0);
    }
}
