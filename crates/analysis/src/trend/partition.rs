//! The cuts of a series: optimal partitioning of its ranks.

use super::LEAST_RUNS;
use super::rank::{centred_ranks, median};

/// Fewest runs of a level.
const LEAST: usize = 3;
/// Most places that are considered in one search; in a longer series they are spread evenly, and cuts are placed exactly
/// afterwards.
const MOST_PLACES: usize = 500;
/// Halvings of the range that holds a critical value.
const HALVINGS: usize = 40;
/// An autocorrelation above this is indistinguishable from drift.
pub(super) const MOST_RELATED: f64 = 0.95;
/// Medians of neighbouring levels are no further apart than this in noise alone.
const MOST_DEVIATIONS: f64 = 5.0;
/// Half of normal values deviate by less than so many standard deviations.
const NORMAL_QUARTILE: f64 = 0.6745;
/// Runs of a level that the correction of its autocorrelation assumes at least.
const LEAST_CORRECTED: f64 = 8.0;

/// The cuts of `values`, ascending: each is the index of the first run of a level.
pub(super) fn partition(values: &[f64], error: f64, inflation: f64) -> Vec<usize> {
    let mut cuts = Vec::new();
    search(values, 0, error, inflation, &mut cuts);
    cuts.sort_unstable();
    cuts
}

/// The same with `certain` among the cuts.
pub(super) fn partition_between(values: &[f64], certain: &[usize], error: f64, inflation: f64) -> Vec<usize> {
    let error = if certain.is_empty() { error } else { error / 2.0 };
    let mut cuts = certain.to_vec();
    for pair in bounds(values, certain).windows(2) {
        search(&values[pair[0]..pair[1]], pair[0], error, inflation, &mut cuts);
    }
    cuts.sort_unstable();
    cuts
}

/// The ends of the levels that `cuts` separate.
fn bounds(values: &[f64], cuts: &[usize]) -> Vec<usize> {
    [&[0][..], cuts, &[values.len()]].concat()
}

/// Those of `cuts` whose shift is greater than noise with this autocorrelation can make: more than [`MOST_DEVIATIONS`] of its standard
/// deviations, as the differences between neighbouring runs show it. The autocorrelation counts with its error of estimation.
pub(super) fn beyond_noise(values: &[f64], cuts: &[usize], related: f64) -> Vec<usize> {
    let is_positive = values.iter().all(|value| *value > 0.0);
    let scaled: Vec<f64> = values.iter().map(|value| if is_positive { value.ln() } else { *value }).collect();
    let bounds = bounds(&scaled, cuts);
    let levels: Vec<&[f64]> = bounds.windows(2).map(|pair| &scaled[pair[0]..pair[1]]).collect();
    let steps: Vec<f64> =
        levels.iter().flat_map(|level| level.windows(2)).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let Some(step) = median(&steps) else { return Vec::new() };
    let most_related = (related + 2.0 / (values.len() as f64).sqrt()).min(MOST_RELATED);
    let deviation = step / NORMAL_QUARTILE / (2.0 * (1.0 - most_related)).sqrt();
    let shift = |pair: &[&[f64]]| Some((median(pair[1])? - median(pair[0])?).abs());
    let is_beyond = |pair: &[&[f64]]| shift(pair).is_some_and(|shift| shift > MOST_DEVIATIONS * deviation);
    cuts.iter().zip(levels.windows(2)).filter(|(_, pair)| is_beyond(pair)).map(|(&cut, _)| cut).collect()
}

fn search(values: &[f64], offset: usize, error: f64, inflation: f64, cuts: &mut Vec<usize>) {
    if values.len() < LEAST_RUNS {
        return;
    }
    let found = placed(values, best_cuts(values, error, inflation));
    if found.is_empty() {
        return;
    }
    cuts.extend(found.iter().map(|cut| offset + cut));
    for pair in bounds(values, &found).windows(2) {
        search(&values[pair[0]..pair[1]], offset + pair[0], error / 2.0, inflation, cuts);
    }
}

/// The best cuts at the places that are considered.
fn best_cuts(values: &[f64], error: f64, inflation: f64) -> Vec<usize> {
    let count = values.len();
    let ranks = centred_ranks(values);
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    if squares <= 0.0 {
        return Vec::new();
    }
    let mut sums = Vec::with_capacity(count + 1);
    sums.push(0.0);
    sums.extend(ranks.iter().scan(0.0, |sum, rank| {
        *sum += rank;
        Some(*sum)
    }));
    let step = count.div_ceil(MOST_PLACES);
    let places: Vec<usize> = (0..count).step_by(step).chain([count]).collect();
    let scale = (count as f64 - 1.0) / squares / inflation;
    let gain = |from: usize, to: usize| (sums[to] - sums[from]).powi(2) / (to - from) as f64 * scale;
    let penalty = critical_value(count, error).powi(2);
    // For each place the best gain up to it, and the place of the cut before.
    let mut best: Vec<(f64, usize)> = vec![(penalty, 0)];
    for (index, &to) in places.iter().enumerate().skip(1) {
        let options = places[..index].iter().zip(&best).enumerate();
        let options = options
            .filter(|(_, (from, _))| to - **from >= LEAST.max(step))
            .map(|(at, (&from, (before, _)))| (before + gain(from, to) - penalty, at));
        best.push(options.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or((f64::NEG_INFINITY, 0)));
    }
    let mut cuts = Vec::new();
    let mut at = best[places.len() - 1].1;
    while at > 0 {
        cuts.push(places[at]);
        at = best[at].1;
    }
    cuts.reverse();
    cuts
}

/// The cuts moved to where the values depart least from the medians beside them: ranks do not show how far apart values are.
fn placed(values: &[f64], mut cuts: Vec<usize>) -> Vec<usize> {
    let reach = LEAST.max(values.len().div_ceil(MOST_PLACES));
    for index in 0..cuts.len() {
        let start = index.checked_sub(1).map_or(0, |before| cuts[before]);
        let end = cuts.get(index + 1).copied().unwrap_or(values.len());
        let cut = cuts[index];
        let sides = (median(&values[start..cut]), median(&values[cut..end]));
        let (Some(before), Some(after)) = sides else { continue };
        let (first, last) =
            (cut.saturating_sub(reach).max(start + LEAST), (cut + reach).min(end - LEAST).max(cut));
        let first = first.min(cut);
        let mut cost = 0.0;
        let mut least = (cost, first);
        for (place, value) in (first..last).zip(&values[first..last]) {
            cost += (value - before).abs() - (value - after).abs();
            if cost < least.0 {
                least = (cost, place + 1);
            }
        }
        cuts[index] = least.1;
    }
    cuts
}

/// The lag-1 autocorrelation of `values` within the levels that `cuts` separate, by their ranks there; no less than 0.
pub(super) fn autocorrelation(values: &[f64], cuts: &[usize]) -> f64 {
    let (mut products, mut squares) = (0.0, 0.0);
    for pair in bounds(values, cuts).windows(2) {
        let ranks = centred_ranks(&values[pair[0]..pair[1]]);
        let length = ranks.len() as f64;
        // Levels of any length count by their runs.
        let weight = 12.0 / (length * length);
        products += weight * ranks.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        squares += weight * ranks.iter().map(|rank| rank * rank).sum::<f64>();
    }
    if squares <= 0.0 {
        return 0.0;
    }
    let length = (values.len() as f64 / (cuts.len() + 1) as f64).max(LEAST_CORRECTED);
    ((products / squares + 1.0 / length) / (1.0 - 4.0 / length)).clamp(0.0, MOST_RELATED)
}

/// The value that the greatest standardised rank statistic of `count` independent values exceeds with the probability `error`.
fn critical_value(count: usize, error: f64) -> f64 {
    let (mut steps, mut cubes) = (0.0, 0.0);
    for place in LEAST..(count - LEAST).max(LEAST) {
        let (before, after) = (place as f64, (count - place) as f64);
        let step = (1.0 - before * (after - 1.0) / (after * (before + 1.0))).sqrt();
        steps += step;
        cubes += step.powi(3);
    }
    let exceeds = |value: f64| {
        let peaks = (-value * value / 2.0).exp() / std::f64::consts::PI;
        let between = steps - (value * value / 4.0 - 1.0) * cubes / 6.0;
        2.0 * normal_tail(value) + peaks * between.max(0.0)
    };
    let (mut low, mut high) = (1.0, 20.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if exceeds(middle) > error { low = middle } else { high = middle }
    }
    high
}

/// The probability that a standard normal value exceeds `value`, which is 1 or more: Laplace's continued fraction.
fn normal_tail(value: f64) -> f64 {
    let fraction = (1..100).rev().fold(value, |below, term| value + f64::from(term) / below);
    (-value * value / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_the_normal_distribution() {
        for (value, expected) in [(1.0, 0.158_655), (1.96, 0.024_998), (3.0, 0.001_349_9), (5.0, 2.866_5e-7)]
        {
            let found = normal_tail(value);
            assert!((found / expected - 1.0).abs() < 1e-3, "{value}: {found}");
        }
    }

    #[test]
    fn critical_values_grow_with_the_places_and_the_care() {
        let [few, many, careful] =
            [(10, 0.05), (1000, 0.05), (1000, 0.001)].map(|(count, error)| critical_value(count, error));
        assert!(
            (2.3..2.7).contains(&few) && (3.4..3.7).contains(&many) && careful > many + 0.7,
            "{few} {many}"
        );
    }

    #[test]
    fn cuts_are_placed_where_the_values_jump() {
        // In ranks, the least of the values above belongs to either side.
        let values = [1.0, 1.1, 0.9, 1.0, 1.05, 5.0, 5.2, 5.1, 5.3, 5.2];
        for cut in [3, 4, 5, 6, 7] {
            assert_eq!(placed(&values, vec![cut]), [5], "{cut}");
        }
    }
}
