//! The cuts of a series: optimal partitioning of its ranks.

use std::collections::BTreeMap;

use fathom_stats::sample::median;
use statrs::function::erf::erfc;

use super::MIN_RUNS;
use super::centred_ranks;

/// Fewest runs of a level.
const LEAST: usize = 3;
/// Most places that are considered in one search; in a longer series they are spread evenly, and cuts are placed exactly
/// afterwards.
const MAX_PLACES: usize = 500;
/// Halvings of the range that holds a critical value.
const HALVINGS: usize = 40;
/// An autocorrelation above this is indistinguishable from drift.
pub(super) const MAX_RELATED: f64 = 0.95;
/// Medians of neighbouring levels are no further apart than this in noise alone.
const MAX_DEVIATIONS: f64 = 5.0;
/// The gap between two levels, in ranges of the wider one, that no dependence of runs on each other makes, and fewest runs of either.
const CLEAR_GAP: f64 = 2.0;
const MIN_CLEAR: usize = 5;
/// Half of normal values deviate by less than so many standard deviations.
const NORMAL_QUARTILE: f64 = 0.6745;
/// Runs of a level that the correction of its autocorrelation assumes at least.
const MIN_CORRECTED: f64 = 8.0;

/// Searches the parts of one series. Rounds search the same parts again at another inflation: each part is ranked once, and each
/// critical value, which takes as long as a search, is computed once.
pub(super) struct PartitionSearch<'a> {
    values: &'a [f64],
    ranks: BTreeMap<(usize, usize), RankSums>,
    critical: &'a mut CriticalValues,
}

/// The critical values that are known, by the number of runs and the error probability; series share them.
#[derive(Default)]
pub(super) struct CriticalValues(BTreeMap<(usize, u64), f64>);

/// The ranks of a part.
struct RankSums {
    /// Sums of the ranks before each place.
    sums: Vec<f64>,
    /// Sum of their squares.
    squares: f64,
    /// Sum of the products of neighbours.
    products: f64,
}

impl CriticalValues {
    fn of(&mut self, count: usize, error: f64) -> f64 {
        *self.0.entry((count, error.to_bits())).or_insert_with(|| critical_value(count, error))
    }
}

impl RankSums {
    fn of(values: &[f64]) -> RankSums {
        let ranks = centred_ranks(values);
        let squares = ranks.iter().map(|rank| rank * rank).sum();
        let products = ranks.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let mut sums = Vec::with_capacity(values.len() + 1);
        sums.push(0.0);
        sums.extend(ranks.iter().scan(0.0, |sum, rank| {
            *sum += rank;
            Some(*sum)
        }));
        RankSums { sums, squares, products }
    }

    fn runs(&self) -> usize {
        self.sums.len() - 1
    }
}

impl<'a> PartitionSearch<'a> {
    pub(super) fn new(values: &'a [f64], critical: &'a mut CriticalValues) -> PartitionSearch<'a> {
        PartitionSearch { values, ranks: BTreeMap::new(), critical }
    }

    /// The cuts of all values, ascending: each is the index of the first run of a level.
    pub(super) fn partition(&mut self, error: f64, inflation: f64) -> Vec<usize> {
        self.partition_between(&[], error, inflation)
    }

    /// The same with `certain` among the cuts.
    pub(super) fn partition_between(&mut self, certain: &[usize], error: f64, inflation: f64) -> Vec<usize> {
        let error = if certain.is_empty() { error } else { error / 2.0 };
        let mut cuts = certain.to_vec();
        for pair in bounds(self.values, certain).windows(2) {
            self.search((pair[0], pair[1]), error, inflation, &mut cuts);
        }
        cuts.sort_unstable();
        cuts
    }

    /// The lag-1 autocorrelation within the levels that `cuts` separate.
    pub(super) fn autocorrelation(&mut self, cuts: &[usize]) -> f64 {
        let bounds = bounds(self.values, cuts);
        let levels: Vec<(usize, usize)> = bounds.windows(2).map(|pair| (pair[0], pair[1])).collect();
        for &(from, to) in &levels {
            self.ranks.entry((from, to)).or_insert_with(|| RankSums::of(&self.values[from..to]));
        }
        autocorrelation_within(levels.iter().map(|level| &self.ranks[level]))
    }

    fn search(&mut self, (from, to): (usize, usize), error: f64, inflation: f64, cuts: &mut Vec<usize>) {
        let values = &self.values[from..to];
        if values.len() < MIN_RUNS {
            return;
        }
        let penalty = self.critical.of(values.len(), error).powi(2);
        let ranks = self.ranks.entry((from, to)).or_insert_with(|| RankSums::of(values));
        let found = placed(values, best_cuts(ranks, penalty, inflation));
        if found.is_empty() {
            return;
        }
        cuts.extend(found.iter().map(|cut| from + cut));
        for pair in bounds(values, &found).windows(2) {
            self.search((from + pair[0], from + pair[1]), error / 2.0, inflation, cuts);
        }
    }
}

/// The ends of the levels that `cuts` separate.
fn bounds(values: &[f64], cuts: &[usize]) -> Vec<usize> {
    [&[0][..], cuts, &[values.len()]].concat()
}

/// Those of `cuts` whose shift is greater than noise with this autocorrelation can make: more than [`MAX_DEVIATIONS`] of its standard
/// deviations, as the differences between neighbouring runs show it. The autocorrelation counts with its error of estimation, which is
/// large in short series: there a cut also stays where the levels are clearly apart.
pub(super) fn beyond_noise(values: &[f64], cuts: &[usize], related: f64) -> Vec<usize> {
    let is_positive = values.iter().all(|value| *value > 0.0);
    let scaled: Vec<f64> = values.iter().map(|value| if is_positive { value.ln() } else { *value }).collect();
    let bounds = bounds(&scaled, cuts);
    let levels: Vec<&[f64]> = bounds.windows(2).map(|pair| &scaled[pair[0]..pair[1]]).collect();
    let steps: Vec<f64> =
        levels.iter().flat_map(|level| level.windows(2)).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let Some(step) = median(&steps) else { return Vec::new() };
    let most_related = (related + 2.0 / (values.len() as f64).sqrt()).min(MAX_RELATED);
    let deviation = step / NORMAL_QUARTILE / (2.0 * (1.0 - most_related)).sqrt();
    let shift = |pair: &[&[f64]]| Some((median(pair[1])? - median(pair[0])?).abs());
    let is_beyond = |pair: &[&[f64]]| {
        is_clear(pair[0], pair[1]) || shift(pair).is_some_and(|shift| shift > MAX_DEVIATIONS * deviation)
    };
    cuts.iter().zip(levels.windows(2)).filter(|(_, pair)| is_beyond(pair)).map(|(&cut, _)| cut).collect()
}

/// True where the gap between two levels is more than [`CLEAR_GAP`] times the range of either. Values that wander, even as far as a
/// random walk, do not jump so much farther in one step than in all others.
pub(super) fn is_clear(before: &[f64], after: &[f64]) -> bool {
    let extent = |level: &[f64]| {
        let low = level.iter().copied().fold(f64::INFINITY, f64::min);
        (low, level.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let ((low, high), (next_low, next_high)) = (extent(before), extent(after));
    let gap = (next_low - high).max(low - next_high);
    before.len().min(after.len()) >= MIN_CLEAR && gap > CLEAR_GAP * (high - low).max(next_high - next_low)
}

/// The best cuts at the places that are considered, each of which costs `penalty`.
fn best_cuts(ranks: &RankSums, penalty: f64, inflation: f64) -> Vec<usize> {
    let RankSums { sums, squares, .. } = ranks;
    let count = ranks.runs();
    if *squares <= 0.0 {
        return Vec::new();
    }
    let step = count.div_ceil(MAX_PLACES);
    let places: Vec<usize> = (0..count).step_by(step).chain([count]).collect();
    let sums: Vec<f64> = places.iter().map(|&place| sums[place]).collect();
    let scale = (count as f64 - 1.0) / squares / inflation;
    // What a squared sum of ranks gains as one level, by the distance of the places from the end, so that the next place to look
    // back from shifts it by one. The last place is not as far from the one before it as the others.
    let last = places.len() - 1;
    let even: Vec<f64> = (1..last).rev().map(|distance| scale / (distance * step) as f64).collect();
    let to_end: Vec<f64> = places[..last].iter().map(|from| scale / (count - from) as f64).collect();
    // For each place the best gain up to it, less the penalty of a cut there, and the place of the cut before.
    let mut gains = vec![0.0];
    let mut cut_before = vec![0];
    for index in 1..=last {
        let longest = places[index].checked_sub(LEAST.max(step));
        let starts = longest.map_or(0, |longest| places[..index].partition_point(|from| *from <= longest));
        let weights = if index == last { &to_end[..] } else { &even[last - 1 - index..] };
        let start = best_start(&gains[..starts], &sums[..starts], &weights[..starts], sums[index]);
        gains.push(start.gain - penalty);
        cut_before.push(start.at);
    }
    let mut cuts = Vec::new();
    let mut at = cut_before[last];
    while at > 0 {
        cuts.push(places[at]);
        at = cut_before[at];
    }
    cuts.reverse();
    cuts
}

/// Starts of a level that are compared at a time, without a branch for each.
const AT_A_TIME: usize = 16;

/// A start of a level, and the gain of the levels up to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LevelStart {
    at: usize,
    gain: f64,
}

impl LevelStart {
    /// The one with the greater gain, the later one of equal ones.
    fn or_greater(self, (at, gain): (usize, f64)) -> LevelStart {
        if gain >= self.gain { LevelStart { at, gain } } else { self }
    }
}

/// The best start of a level that ends where the sum of the ranks is `sum`: the last of those with the greatest gain.
fn best_start(gains: &[f64], sums: &[f64], weights: &[f64], sum: f64) -> LevelStart {
    let gain = |before: f64, sum_before: f64, weight: f64| {
        let difference = sum - sum_before;
        before + difference * difference * weight
    };
    let (parts, rest) = gains.as_chunks::<AT_A_TIME>();
    let (part_sums, sums) = sums.as_chunks::<AT_A_TIME>();
    let (part_weights, weights) = weights.as_chunks::<AT_A_TIME>();
    let mut best = LevelStart { at: 0, gain: f64::NEG_INFINITY };
    let mut start = 0;
    for ((gains, sums), weights) in parts.iter().zip(part_sums).zip(part_weights) {
        let found = std::array::from_fn(|at| gain(gains[at], sums[at], weights[at]));
        if greatest(&found) >= best.gain {
            best = (start..).zip(found).fold(best, LevelStart::or_greater);
        }
        start += AT_A_TIME;
    }
    let rest = rest.iter().zip(sums).zip(weights).map(|((&before, &sum), &weight)| gain(before, sum, weight));
    (start..).zip(rest).fold(best, LevelStart::or_greater)
}

/// The greatest of numbers, by halves, which compilers compare side by side.
fn greatest(numbers: &[f64; AT_A_TIME]) -> f64 {
    let greater = |one: f64, other: f64| if one > other { one } else { other };
    let half: [f64; 8] = std::array::from_fn(|at| greater(numbers[at], numbers[at + 8]));
    let quarter: [f64; 4] = std::array::from_fn(|at| greater(half[at], half[at + 4]));
    greater(greater(quarter[0], quarter[2]), greater(quarter[1], quarter[3]))
}

/// The cuts moved to where the values depart least from the medians beside them: ranks do not show how far apart values are.
fn placed(values: &[f64], mut cuts: Vec<usize>) -> Vec<usize> {
    let reach = LEAST.max(values.len().div_ceil(MAX_PLACES));
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

/// The lag-1 autocorrelation of values that have one level, by their ranks; no less than 0.
pub(super) fn autocorrelation(values: &[f64]) -> f64 {
    autocorrelation_within([&RankSums::of(values)].into_iter())
}

/// The lag-1 autocorrelation within levels, by their ranks there; no less than 0.
fn autocorrelation_within<'a>(levels: impl ExactSizeIterator<Item = &'a RankSums>) -> f64 {
    let count = levels.len() as f64;
    let (mut products, mut squares, mut runs) = (0.0, 0.0, 0.0);
    for level in levels {
        let length = level.runs() as f64;
        // Levels of any length count by their runs.
        let weight = 12.0 / (length * length);
        products += weight * level.products;
        squares += weight * level.squares;
        runs += length;
    }
    if squares <= 0.0 {
        return 0.0;
    }
    let length = (runs / count).max(MIN_CORRECTED);
    ((products / squares + 1.0 / length) / (1.0 - 4.0 / length)).clamp(0.0, MAX_RELATED)
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
        erfc(value / std::f64::consts::SQRT_2) + peaks * between.max(0.0)
    };
    let (mut low, mut high) = (1.0, 20.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if exceeds(middle) > error { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_best_start_is_that_of_a_search_one_by_one() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few values, so that many gains are equal.
            (state >> 60) as f64
        };
        for count in 0..100 {
            let [gains, sums, weights]: [Vec<f64>; 3] =
                std::array::from_fn(|_| (0..count).map(|_| random()).collect());
            let mut expected = LevelStart { at: 0, gain: f64::NEG_INFINITY };
            for at in 0..count {
                let gain = gains[at] + (7.0 - sums[at]).powi(2) * weights[at];
                if gain >= expected.gain {
                    expected = LevelStart { at, gain };
                }
            }
            assert_eq!(best_start(&gains, &sums, &weights, 7.0), expected, "{count}");
        }
    }

    /// Cuts of every length that a level may have, in series with fewer places than runs and with as many.
    #[test]
    fn levels_are_found_at_either_end_of_a_series() {
        for (runs, cut) in [(20, 3), (20, 17), (499, 4), (500, 250), (501, 497), (1_200, 30), (1_201, 1_170)]
        {
            let values: Vec<f64> = (0..runs)
                .map(|at| f64::from(at * 7919 % 101) + if at < cut { 0.0 } else { 1000.0 })
                .collect();
            let ranks = RankSums::of(&values);
            let found = placed(&values, best_cuts(&ranks, 3.0, 1.0));
            assert_eq!(found, [cut as usize], "{runs}");
        }
    }

    #[test]
    fn rounds_rank_each_part_once() {
        let mut critical = CriticalValues::default();
        let values: Vec<f64> = (0..200).map(|at| f64::from(at * 7919 % 101 + at / 100 * 500)).collect();
        let mut search = PartitionSearch::new(&values, &mut critical);
        let rounds: Vec<Vec<usize>> =
            [1.0, 1.2, 1.4, 1.0].into_iter().map(|inflation| search.partition(0.05, inflation)).collect();
        assert!(rounds.iter().all(|cuts| *cuts == [100]), "{rounds:?}");
        let parts: Vec<(usize, usize)> = search.ranks.keys().copied().collect();
        assert_eq!(parts, [(0, 100), (0, 200), (100, 200)]);
        assert_eq!(critical.0.len(), 2, "parts of one length share their critical value");
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
