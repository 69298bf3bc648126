//! Mean, variance, median and quantiles of values that are at hand one by one. Requests are counted in histograms instead.

use std::ops::Range;

/// The mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The sample variance; 0 below two values.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        / values.len().saturating_sub(1).max(1) as f64
}

/// The middle value, or the mean of both middle ones; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value at `share` of the sorted values, between its neighbours; `None` without values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let place = share * last as f64;
    let mut rest = values.to_vec();
    let (_, &mut low, above) = rest.select_nth_unstable_by(place.floor() as usize, f64::total_cmp);
    let high = above.iter().copied().reduce(f64::min).unwrap_or(low);
    Some(low + (high - low) * place.fract())
}

/// The middle value, or the upper one of both, which is a value that occurred; `None` without values.
pub fn upper_median<T: Copy + PartialOrd>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = values.into_iter().collect();
    sorted.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    sorted.get(sorted.len() / 2).copied()
}

/// Where a series of so many samples changes its level, by binary segmentation: the bounds of its levels, ascending, with both ends.
/// `cut` says where a span is divided, or that it is one level.
pub fn level_bounds(length: usize, cut: impl Fn(Range<usize>) -> Option<usize>) -> Vec<usize> {
    let mut bounds = vec![0, length];
    let mut open: Vec<Range<usize>> = std::iter::once(0..length).collect();
    while let Some(span) = open.pop() {
        if let Some(at) = cut(span.clone()) {
            bounds.push(at);
            open.extend([span.start..at, at..span.end]);
        }
    }
    bounds.sort_unstable();
    bounds.dedup();
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        assert_eq!(median(&[4.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), Some(2.0));
        assert_eq!((median(&[]), upper_median::<u64>([])), (None, None));
        assert_eq!((upper_median([4, 1, 3, 2]), upper_median([0.5])), (Some(3), Some(0.5)));
    }

    #[test]
    fn spans_are_divided_until_each_is_one_level() {
        let levels = [1, 1, 4, 4, 4, 9];
        let cut = |span: Range<usize>| (span.start + 1..span.end).find(|&at| levels[at] != levels[at - 1]);
        assert_eq!(level_bounds(levels.len(), cut), [0, 2, 5, 6]);
        assert_eq!((level_bounds(0, cut), level_bounds(2, cut)), (vec![0], vec![0, 2]));
    }

    #[test]
    fn means_and_variances_of_few_values() {
        assert_eq!((mean(&[]), variance(&[]), variance(&[3.0])), (0.0, 0.0, 0.0));
        assert_eq!((mean(&[3.0, 1.0, 2.0]), variance(&[3.0, 1.0, 2.0])), (2.0, 1.0));
    }
}
