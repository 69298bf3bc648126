//! What a series of seconds does besides being even: it alternates between two levels, again and again, or it drifts steadily. Means of
//! longer windows hide both.

use fathom_stats::sample::{mean, quantile, variance};

use super::{FigureSpread, coefficient_of_variation, fifths};

/// Seconds below which neither shows.
const MIN_SECONDS: usize = 12;
/// Coefficient of variation, beyond chance, below which a series is even.
const EVEN: f64 = 0.05;
/// The higher level is at least this many times the lower one.
const APART: f64 = 1.1;
/// Autocorrelation at the period, and at most half a period before it: noise of as many seconds has a fifth of it.
const RECURRING: f64 = 0.7;
const OPPOSITE: f64 = -0.4;
/// Share of the variance that lies between two groups of seconds: of an even distribution it is 0.75, of a normal one 0.64.
const TWO_LEVELS: f64 = 0.9;
/// Fewest changes between the groups.
const MIN_CHANGES: usize = 3;
/// Slope over its standard error from which on a drift is not by chance, even where seconds follow from each other, and the
/// least drift that counts, as a share of the mean.
const SIGNIFICANT: f64 = 8.0;
const MIN_DRIFT: f64 = 0.03;

/// A rate that changes between two levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Alternation {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Seconds from one change to the next of the same kind, where they are regular.
    pub(crate) period: Option<usize>,
}

/// What a rate alternates between; `by_chance` is the squared coefficient of variation that counts have by chance.
pub(crate) fn alternation(rates: &[f64], by_chance: f64) -> Option<Alternation> {
    let cv = coefficient_of_variation(rates);
    if rates.len() < MIN_SECONDS || cv * cv - by_chance <= EVEN * EVEN {
        return None;
    }
    let period = period(rates);
    if period.is_none() && !has_two_levels(rates) {
        return None;
    }
    // Seconds in which it changed lie in between.
    let (low, high) = quantile(rates, 0.1).zip(quantile(rates, 0.9))?;
    (high >= low * APART).then_some(Alternation { low, high, period })
}

/// The lag at which a series correlates with itself, where it is opposite to itself before.
fn period(rates: &[f64]) -> Option<usize> {
    let at = |lag: usize| autocorrelation(rates, lag);
    let lags = || 2..=rates.len() * 2 / 5;
    let best = lags().map(at).fold(f64::MIN, f64::max);
    // Its multiples correlate as well.
    let period = lags().find(|&lag| at(lag) >= best - 0.1 && at(lag) >= at(lag + 1))?;
    let trough = (1..period).map(at).fold(f64::MAX, f64::min);
    (best >= RECURRING && trough <= OPPOSITE).then_some(period)
}

fn autocorrelation(rates: &[f64], lag: usize) -> f64 {
    let mean = mean(rates);
    let pairs = rates.iter().zip(&rates[lag..]);
    let sum: f64 = pairs.map(|(one, later)| (one - mean) * (later - mean)).sum();
    sum / (rates.len() - lag) as f64 / variance(rates).max(f64::MIN_POSITIVE)
}

/// True where a threshold splits the seconds into two groups of little variance (Otsu 1979), and the rate changes between them several times.
fn has_two_levels(rates: &[f64]) -> bool {
    let mut sorted = rates.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let total = variance(rates) * rates.len() as f64;
    let between = |count: usize| {
        let (low, high) = sorted.split_at(count);
        let apart = mean(high) - mean(low);
        (count * (rates.len() - count)) as f64 / rates.len() as f64 * apart * apart
            / total.max(f64::MIN_POSITIVE)
    };
    let Some(count) = (1..rates.len()).max_by(|one, other| between(*one).total_cmp(&between(*other))) else {
        return false;
    };
    let changes =
        rates.windows(2).filter(|pair| (pair[0] < sorted[count]) != (pair[1] < sorted[count])).count();
    let fewest = count.min(rates.len() - count);
    between(count) >= TWO_LEVELS && changes >= MIN_CHANGES && fewest * 5 >= rates.len()
}

/// The drift from the first second to the last, as a share of the mean, of a rate that falls or rises all the time.
pub(crate) fn steady_drift(rates: &[f64]) -> Option<f64> {
    let spread = FigureSpread::of(rates);
    let drift = spread.drift_fraction;
    let count = rates.len() as f64;
    if rates.len() < MIN_SECONDS || drift.abs() < MIN_DRIFT {
        return None;
    }
    let slope = drift * spread.mean / (count - 1.0);
    let middle = (count - 1.0) / 2.0;
    let residuals =
        rates.iter().enumerate().map(|(at, rate)| rate - spread.mean - slope * (at as f64 - middle));
    let squares: f64 = residuals.map(|residual| residual * residual).sum();
    let spread_of_time = count * (count * count - 1.0) / 12.0;
    let error = (squares / (count - 2.0) / spread_of_time).sqrt();
    let is_monotonous = fifths(rates).windows(2).all(|pair| (pair[1] - pair[0]) * slope > 0.0);
    (is_monotonous && slope.abs() >= SIGNIFICANT * error).then_some(drift)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise that is the same every time, about -1 to 1.
    fn noise(seed: u64, at: usize) -> f64 {
        let mut bits = (seed * 1_000_003 + at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits ^= bits >> 29;
        bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// Seconds of a rate of 1,000 of which a neighbour leaves `left` for the first `on` seconds of each `period`.
    fn beside_neighbour(seconds: usize, period: f64, on: f64, left: f64) -> Vec<f64> {
        let rate = |ms: usize| if (ms as f64 / 1000.0 + 0.3) % period < on { 1000.0 * left } else { 1000.0 };
        (0..seconds)
            .map(|second| (0..1000).map(|ms| rate(second * 1000 + ms)).sum::<f64>() / 1000.0)
            .collect()
    }

    #[test]
    fn a_neighbour_shows_however_long_the_run_is() {
        for seconds in [16, 30, 60, 300] {
            for (period, on, left) in [(4.0, 2.0, 0.5), (3.0, 1.5, 0.7), (4.0, 1.0, 0.6), (5.5, 2.0, 0.8)] {
                let found = alternation(&beside_neighbour(seconds, period, on, left), 1e-4);
                let found = found.unwrap_or_else(|| panic!("{seconds} s: {period} {on} {left}"));
                assert!(found.low < 970.0 && found.high > 900.0, "{found:?}");
            }
        }
        let regular = alternation(&beside_neighbour(60, 4.0, 2.0, 0.5), 0.0).unwrap();
        assert_eq!((regular.period, regular.low, regular.high), (Some(4), 500.0, 1000.0));
        // At no regular times.
        let often = |second: usize| noise(5, second / 3) < 0.0;
        let irregular: Vec<f64> = (0..60).map(|second| if often(second) { 600.0 } else { 1000.0 }).collect();
        assert_eq!(alternation(&irregular, 0.0).map(|found| (found.low, found.high)), Some((600.0, 1000.0)));
    }

    #[test]
    fn noise_neither_alternates_nor_drifts() {
        for seconds in [12, 30, 120] {
            let series = |seed| (0..seconds).map(|at| 1000.0 + 250.0 * noise(seed, at)).collect::<Vec<f64>>();
            let found = (0..500).filter(|seed| {
                let rates = series(*seed);
                alternation(&rates, 0.0).is_some() || steady_drift(&rates).is_some()
            });
            assert!(found.count() <= 5, "{seconds}");
        }
        let fell: Vec<f64> = (0..60).map(|second| if second < 30 { 1000.0 } else { 500.0 }).collect();
        assert_eq!(alternation(&fell, 0.0), None);
    }

    #[test]
    fn a_decay_shows_before_it_is_a_tenth() {
        let decaying = |seconds: usize, a_minute: f64, jitter: f64| {
            let rate =
                |at: usize| 1000.0 * (1.0 - a_minute).powf(at as f64 / 60.0) * (1.0 + jitter * noise(3, at));
            steady_drift(&(0..seconds).map(rate).collect::<Vec<f64>>())
        };
        let drift = decaying(30, 0.1, 0.002).unwrap();
        assert!((-0.055..-0.045).contains(&drift), "{drift}");
        assert_eq!(decaying(30, 0.1, 0.2), None);
        assert_eq!(decaying(30, 0.01, 0.002), None);
    }
}
