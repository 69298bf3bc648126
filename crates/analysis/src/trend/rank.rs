//! Ranks, and the ratio of two samples.

use super::ShiftRatio;
use fathom_record::confidence::student_975;
use fathom_stats::sample::median;

/// Runs on either side of a change that its ratio is estimated from: those nearest to it.
const MOST_PAIRED: usize = 300;

/// The ranks of `values` less their mean; equal values share the mean of their ranks.
pub(super) fn centred_ranks(values: &[f64]) -> Vec<f64> {
    // Pairs, because a sort of indices alone reads all over the values.
    let mut order: Vec<(f64, usize)> = values.iter().copied().zip(0..).collect();
    order.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let value = order[start].0;
        let end = start + order[start..].iter().take_while(|(other, _)| *other == value).count().max(1);
        let rank = (start + end - 1) as f64 / 2.0 - middle;
        order[start..end].iter().for_each(|&(_, index)| ranks[index] = rank);
        start = end;
    }
    ranks
}

/// How many times greater `after` is than `before`, with variances `inflation` times those of independent values.
pub(super) fn ratio(before: &[f64], after: &[f64], inflation: f64) -> Option<ShiftRatio> {
    let (before, after) =
        (&before[before.len().saturating_sub(MOST_PAIRED)..], &after[..after.len().min(MOST_PAIRED)]);
    if before.iter().chain(after).any(|value| *value <= 0.0) {
        return None;
    }
    let mut ratios: Vec<f64> =
        after.iter().flat_map(|after| before.iter().map(move |before| after / before)).collect();
    let value = median(&ratios)?;
    let (few, many) = (before.len() as f64, after.len() as f64);
    let deviation = (few * many * (few + many + 1.0) / 12.0 * inflation).sqrt();
    let independent = (few + many) / inflation - 2.0;
    // So many pairs lie outside the interval on either side.
    let outside = (few * many / 2.0 - student_975(independent) * deviation - 1.0).floor().max(0.0) as usize;
    let last = ratios.len() - 1;
    let mut nth = |index: usize| *ratios.select_nth_unstable_by(index, f64::total_cmp).1;
    Some(ShiftRatio { value, low: nth(outside.min(last)), high: nth(last.saturating_sub(outside)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(centred_ranks(&[5.0, 1.0, 5.0, 9.0]), [0.0, -1.5, 0.0, 1.5]);
        assert_eq!(centred_ranks(&[2.0; 3]), [0.0; 3]);
        assert_eq!(centred_ranks(&[]), [0.0; 0]);
    }

    #[test]
    fn the_ratio_is_that_of_the_pairs() {
        let before: Vec<f64> = (0..20).map(|at| 1000.0 + f64::from(at)).collect();
        let after: Vec<f64> = before.iter().map(|value| value * 0.88).collect();
        let found = ratio(&before, &after, 1.0).unwrap();
        assert!((found.value - 0.88).abs() < 0.001, "{found:?}");
        assert!(found.low > 0.87 && found.low < 0.88 && found.high > 0.88 && found.high < 0.89, "{found:?}");
        let wider = ratio(&before, &after, 3.0).unwrap();
        assert!(wider.low < found.low && wider.high > found.high);
        assert_eq!(ratio(&[0.0, 1.0], &[1.0, 2.0], 1.0), None);
    }
}
