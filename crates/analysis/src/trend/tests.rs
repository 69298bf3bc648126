//! How often changes are found where there are none, and how well those that there are.

use fathom_tests::RepeatableNoise;

use super::*;

/// Normal noise in which each value keeps a share of the one before.
struct Noise {
    random: RepeatableNoise,
    last: f64,
    kept: f64,
}

impl Noise {
    fn new(kept: f64, seed: u64) -> Noise {
        let mut noise = Noise { random: RepeatableNoise::seeded(seed), last: 0.0, kept };
        (0..100).for_each(|_| _ = noise.next());
        noise
    }

    fn next(&mut self) -> f64 {
        self.last = self.random.after(self.last, self.kept);
        self.last
    }
}

/// Runs at the levels of `plan` (length and level), with noise of `percent` that keeps `kept` of itself.
fn runs(plan: &[(usize, f64)], percent: f64, kept: f64, seed: u64) -> Vec<f64> {
    let mut noise = Noise::new(kept, seed);
    let levels = plan.iter().flat_map(|&(length, level)| std::iter::repeat_n(level, length));
    levels.map(|level| level * (noise.next() * percent / 100.0).exp()).collect()
}

/// Share of `tries` series of which `holds`.
fn share(tries: u64, of: impl Fn(u64) -> Vec<f64>, holds: impl Fn(&TrendAnalysis) -> bool) -> f64 {
    let found = |seed: &u64| holds(&analyse(&of(*seed), ERROR));
    (1..=tries).filter(found).count() as f64 / tries as f64
}

#[test]
fn stationary_noise_rarely_looks_like_a_change() {
    for (count, kept, most) in [
        (10, 0.0, 0.05),
        (10, 0.3, 0.08),
        (20, 0.6, 0.09),
        (40, 0.0, 0.05),
        (40, 0.6, 0.09),
        (100, 0.3, 0.07),
        (100, 0.8, 0.09),
    ] {
        let of = |seed| runs(&[(count, 1000.0)], 3.0, kept, seed);
        let share = share(200, of, |found| !found.changes.is_empty());
        assert!(share <= most, "{count} runs that keep {kept}: {share}");
    }
}

#[test]
fn outliers_are_no_change() {
    let of = |seed| {
        let mut values = runs(&[(40, 1000.0)], 2.0, 0.0, seed);
        values[20] = 100.0;
        values[31] = 5000.0;
        values
    };
    assert!(share(100, of, |found| !found.changes.is_empty()) <= 0.05);
}

#[test]
fn changes_are_found_within_two_runs_of_their_place() {
    for (count, percent, size, kept, least) in [
        (5, 1.0, 0.5, 0.0, 0.98),
        (8, 1.0, 0.5, 0.6, 0.98),
        (8, 1.5, 0.8, 0.0, 0.98),
        (10, 1.0, 0.9, 0.0, 0.80),
        (12, 1.0, 1.1, 0.3, 0.70),
        (20, 3.0, 0.90, 0.3, 0.90),
        (40, 3.0, 0.95, 0.0, 0.85),
        (40, 3.0, 1.05, 0.3, 0.65),
    ] {
        let of = |seed| runs(&[(count, 1000.0), (count, 1000.0 * size)], percent, kept, seed);
        let is_found =
            |found: &TrendAnalysis| found.changes.len() == 1 && found.changes[0].at.abs_diff(count) <= 2;
        let share = share(200, of, is_found);
        assert!(share >= least, "{count} + {count} runs, {percent} %, {size}, {kept}: {share}");
    }
}

#[test]
fn values_that_wander_leave_no_clear_gap() {
    for kept in [0.0, 0.5, 0.9, 0.99] {
        let has_gap = |seed: &u64| {
            let values = runs(&[(16, 1000.0)], 10.0, kept, *seed);
            (1..16).any(|cut| partition::is_clear(&values[..cut], &values[cut..]))
        };
        assert_eq!((1..=2000).filter(has_gap).count(), 0, "{kept}");
    }
}

#[test]
fn dips_and_late_changes_are_found() {
    for (plan, kept) in [
        (&[(20, 1000.0), (20, 700.0), (20, 1000.0)][..], 0.3),
        (&[(30, 1000.0), (8, 700.0), (30, 1000.0)], 0.0),
        (&[(60, 1000.0), (6, 700.0)], 0.3),
        (&[(30, 1000.0), (30, 100.0), (30, 80.0)], 0.0),
    ] {
        let of = |seed| runs(plan, 3.0, kept, seed);
        let share = share(100, of, |found| found.changes.len() == plan.len() - 1);
        assert!(share >= 0.9, "{plan:?} that keeps {kept}: {share}");
    }
}

#[test]
fn intervals_hold_the_ratio() {
    for (count, kept) in [(10, 0.0), (20, 0.3), (40, 0.5)] {
        let of = |seed| runs(&[(count, 1000.0), (count, 800.0)], 2.0, kept, seed);
        let misses = |found: &TrendAnalysis| {
            let ratio = found.changes.first().and_then(|change| change.ratio);
            ratio.is_some_and(|ratio| ratio.low > 0.8 || 0.8 > ratio.high)
        };
        let share = 1.0 - share(200, of, misses);
        assert!(share >= 0.92, "{count} runs that keep {kept}: {share}");
    }
}

#[test]
fn few_runs_show_nothing_and_exact_ones_everything() {
    assert_eq!(analyse(&[], ERROR).verdict, TrendVerdict::Inconclusive);
    assert_eq!(analyse(&[1.0; MIN_RUNS - 1], ERROR).verdict, TrendVerdict::Inconclusive);
    assert_eq!(analyse(&[5.0; 30], ERROR).verdict, TrendVerdict::NoChange);
    let exact = [vec![100.0; 10], vec![99.0; 10]].concat();
    let found = analyse(&exact, ERROR);
    assert_eq!((found.verdict, found.changes[0].at), (TrendVerdict::Changed, 10));
    assert_eq!(found.changes[0].ratio, Some(ShiftRatio { value: 0.99, low: 0.99, high: 0.99 }));
    // Latencies may be 0.
    let found = analyse(&[vec![0.0; 10], vec![7.0; 10]].concat(), ERROR);
    assert_eq!((found.changes[0].at, found.changes[0].ratio), (10, None));
}

#[test]
fn long_series_are_searched_in_time_proportional_to_their_length() {
    let values = runs(&[(60_000, 1000.0), (40_000, 990.0)], 3.0, 0.3, 7);
    let found = analyse(&values, ERROR);
    assert_eq!(found.changes.len(), 1, "{:?}", found.levels);
    assert!(found.changes[0].at.abs_diff(60_000) < 200, "{:?}", found.levels);
}
