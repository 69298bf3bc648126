//! How well the mean of a series is known: the 95 % confidence interval of a rate from how it varied while it was measured.
//!
//! Neighbouring seconds resemble each other, so they count for as many independent ones as their autocorrelation leaves, and
//! for no more than five batches of them show. What several hours would add to that no run of minutes can know.

use fathom_stats::sample::{mean, variance};

/// Fewest samples for an interval.
pub const MIN_SAMPLES: usize = 3;
/// Limiters account in slices of up to this length, ns (blk-throttle; QEMU's and most providers' buckets hold as much). A run may begin
/// and end anywhere in one, so its mean may be off by the I/Os of a slice however even its seconds are.
pub const LIMITER_SLICE_NS: u64 = 100_000_000;
/// Batches of a series, and the samples that each has at least.
const BATCHES: usize = 5;
const MIN_OF_BATCH: usize = 2;
/// Panels of the sum over Student's density, and how many standard deviations it reaches: further out nothing is left that counts.
const PANELS: usize = 96;
const REACH: f64 = 12.0;
/// The 97.5 % quantile of the normal distribution.
pub const NORMAL_975: f64 = 1.96;

/// The share of a mean rate over `elapsed_ns` that a slice of a limiter is.
pub fn slice_fraction(elapsed_ns: f64) -> f64 {
    let slice_ns = LIMITER_SLICE_NS as f64;
    slice_ns / elapsed_ns.max(slice_ns)
}

/// Half the width of the interval of a mean.
pub fn half_width(samples: &[f64]) -> f64 {
    half_width_of(samples, 1)
}

/// The same of an interval that is one of `looks`, each of which may end the measurement.
pub fn half_width_of(samples: &[f64], looks: u32) -> f64 {
    let length = samples.len() / BATCHES;
    if length < MIN_OF_BATCH {
        return of_samples(samples, looks);
    }
    // What does not fit is left out at the start.
    let batches: Vec<f64> = samples[samples.len() - length * BATCHES..].chunks(length).map(mean).collect();
    of_samples(samples, looks).max(standard_errors(&batches, BATCHES as f64, looks))
}

fn of_samples(samples: &[f64], looks: u32) -> f64 {
    let count = samples.len() as f64;
    standard_errors(samples, independent(samples).clamp(2.0, count.max(2.0)), looks)
}

/// The number of independent samples that `samples` are worth, as far as their autocorrelation shows.
pub(crate) fn independent(samples: &[f64]) -> f64 {
    samples.len() as f64 / correlation_time(samples)
}

/// True where the batches of `samples` are independent, as far as their autocorrelation shows: each is longer than the time
/// for which neighbouring samples resemble each other.
pub fn has_independent_batches(samples: &[f64]) -> bool {
    samples.len() >= BATCHES * MIN_OF_BATCH && independent(samples) >= BATCHES as f64
}

/// As many standard errors as so few independent samples take.
fn standard_errors(samples: &[f64], independent: f64, looks: u32) -> f64 {
    let variance = variance(samples);
    if variance <= 0.0 {
        return 0.0;
    }
    student(looks, independent - 1.0) * (variance / independent).sqrt()
}

/// How many samples in a row stand for one: the sum of the autocorrelations, as far as pairs of them are positive (Geyer).
fn correlation_time(samples: &[f64]) -> f64 {
    let mean = mean(samples);
    let off: Vec<f64> = samples.iter().map(|sample| sample - mean).collect();
    let all: f64 = off.iter().map(|off| off * off).sum();
    if all <= 0.0 {
        return 1.0;
    }
    let at = |lag: usize| off.iter().zip(&off[lag..]).map(|(one, other)| one * other).sum::<f64>() / all;
    let pairs =
        (0..samples.len() / 4 + 1).map(|pair| at(2 * pair) + at((2 * pair + 1).min(samples.len() - 1)));
    (2.0 * pairs.take_while(|pair| *pair > 0.0).sum::<f64>() - 1.0).max(1.0)
}

/// The 97.5 % quantile of Student's distribution with so many degrees of freedom: half of a 95 % interval, in standard errors.
pub fn student_975(degrees: f64) -> f64 {
    student(1, degrees)
}

/// The same for an interval that is one of `looks`, each of which may end a measurement: all of them together hold the truth in
/// 95 of 100 (Bonferroni).
pub fn student(looks: u32, degrees: f64) -> f64 {
    // Between two whole numbers the more careful one holds.
    let degrees = degrees.floor().max(1.0);
    let inside = 1.0 - 0.05 / f64::from(looks.max(1));
    // With t = sqrt(degrees) tan(angle) the density is a power of the cosine, which its own sum normalises.
    let widest = (REACH / degrees.sqrt()).min(std::f64::consts::FRAC_PI_2);
    let step = widest / PANELS as f64;
    let density = |place: f64| (place * step).cos().max(0.0).powf(degrees - 1.0);
    let panel = |place: usize| {
        let place = place as f64;
        (density(place) + 4.0 * density(place + 0.5) + density(place + 1.0)) / 6.0
    };
    let panels: Vec<f64> = (0..PANELS).map(panel).collect();
    let mut left = inside * panels.iter().sum::<f64>();
    let whole = panels.iter().take_while(|panel| {
        let is_whole = left >= **panel;
        left -= if is_whole { **panel } else { 0.0 };
        is_whole
    });
    let place = whole.count() as f64;
    // Within a panel the density is a straight line.
    let (from, slope) = (density(place), density(place + 1.0) - density(place));
    let part = 2.0 * left / (from + (from * from + 2.0 * slope * left).max(0.0).sqrt());
    degrees.sqrt() * ((place + part) * step).tan()
}

#[cfg(test)]
mod tests {
    use fathom_tests::RepeatableNoise;

    use super::*;

    /// Noise of `percent` around 1,000, the same every time; each value is held for `held` samples.
    fn noisy(count: usize, held: usize, percent: f64) -> Vec<f64> {
        let noise = |at: usize| ((at / held * 7919 % 101) as f64 / 50.0 - 1.0) * percent / 100.0;
        (0..count).map(|at| 1000.0 * (1.0 + noise(at))).collect()
    }

    #[test]
    fn quantiles_of_students_distribution() {
        for (degrees, expected) in
            [(1.0, 12.706), (4.9, 2.776), (10.0, 2.228), (11.0, 2.201), (29.0, 2.045), (1e9, 1.96)]
        {
            assert!((student_975(degrees) - expected).abs() < 0.003, "{degrees}: {}", student_975(degrees));
        }
        // Published tables of Bonferroni's t.
        for (looks, degrees, expected) in
            [(3, 5.0, 3.534), (3, 11.0, 2.820), (4, 5.0, 3.810), (4, 23.0, 2.713), (4, 47.0, 2.602)]
        {
            let found = student(looks, degrees);
            assert!((found - expected).abs() < 0.012, "{looks} {degrees}: {found}");
        }
    }

    #[test]
    fn more_seconds_tell_more_and_those_that_resemble_each_other_less() {
        let (short, long) = (half_width(&noisy(16, 1, 10.0)), half_width(&noisy(400, 1, 10.0)));
        assert!(short > 2.0 * long && long > 0.0, "{short} {long}");
        // Five alike in a row are as good as one: the root of five wider.
        let held = half_width(&noisy(400, 5, 10.0)) / long;
        assert!((1.6..3.0).contains(&held), "{held}");
    }

    #[test]
    fn a_run_may_be_off_by_a_slice_of_a_limiter_however_even_it_is() {
        assert_eq!((half_width(&[3000.0; 10]), slice_fraction(1e10)), (0.0, 0.01));
        assert_eq!((half_width(&[]), slice_fraction(0.0)), (0.0, 1.0));
        // Levels that alternate slowly average out in no batch.
        let slow: Vec<f64> = (0..40).map(|at| if at / 10 % 2 == 0 { 900.0 } else { 1100.0 }).collect();
        assert!(half_width(&slow) > 80.0, "{}", half_width(&slow));
    }

    /// Standard normal noise in which each sample keeps `kept` of the one before, the same every time.
    fn related(count: usize, kept: f64, seed: u64) -> Vec<f64> {
        let mut noise = RepeatableNoise::seeded(seed);
        let mut last = noise.normal();
        let mut next = || {
            last = noise.after(last, kept);
            last
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn batches_are_independent_where_they_outlast_the_correlation() {
        assert!(
            has_independent_batches(&related(60, 0.0, 1)) && has_independent_batches(&related(300, 0.8, 1))
        );
        assert!(
            !has_independent_batches(&related(9, 0.0, 1)) && !has_independent_batches(&related(30, 0.98, 1))
        );
        let drifts: Vec<f64> = (0..60).map(f64::from).collect();
        assert!(!has_independent_batches(&drifts));
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        for (count, kept, least) in [
            (5, 0.0, 0.93),
            (12, 0.0, 0.93),
            (60, 0.0, 0.93),
            (60, 0.5, 0.92),
            (300, 0.5, 0.93),
            (300, 0.8, 0.92),
        ] {
            let holds = |seed: &u64| {
                let rates: Vec<f64> =
                    related(count, kept, *seed).iter().map(|noise| 1000.0 + 30.0 * noise).collect();
                (mean(&rates) - 1000.0).abs() <= half_width(&rates)
            };
            let share = (1..=1000).filter(holds).count() as f64 / 1000.0;
            assert!(share >= least && share < 0.995, "{count} samples that keep {kept}: {share}");
        }
    }
}
