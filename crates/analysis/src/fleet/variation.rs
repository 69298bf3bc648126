//! How much values of several hosts vary.

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
        Some(Variation { min, median: median_of_sorted(&values), max, cv, count: values.len() })
    }
}

/// The middle of ascending values, or the mean of both middle ones; 0 without any.
pub(super) fn median_of_sorted(values: &[f64]) -> f64 {
    let half = values.len() / 2;
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}

/// The median of values in any order.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    median_of_sorted(&values)
}

/// The mean; 0 without values.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The sample variance; 0 below two values.
pub(super) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
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
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
    }
}
