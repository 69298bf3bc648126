//! A straight line through rates over time: whether a rate drifts.

use super::probe::ProbeSlice;

/// Fewest rates that show a trend.
const LEAST: usize = 6;
/// Shorter slices carry no rate, s.
pub(super) const LEAST_SECONDS: f64 = 0.3;
/// Standard errors of a slope that are no chance, and the change from the first rate to the last that matters, as a share.
const SURE: f64 = 4.0;
const DRIFTED: f64 = 0.04;
/// The same of a slope that only confirms a fall, and the share of a fall that a drift explains at the least.
const LIKELY: f64 = 2.5;
const EXPLAINED: f64 = 0.5;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// Middle of the rates, s, and their mean.
    middle_s: f64,
    mean: f64,
    /// Change a second, and its standard error.
    slope: f64,
    error: f64,
    /// From the first rate to the last, s.
    seconds: f64,
}

impl Trend {
    /// The trend of `(s, rate)` by least squares; `None` for too few.
    pub(super) fn of(points: &[(f64, f64)]) -> Option<Trend> {
        let count = points.len() as f64;
        if points.len() < LEAST {
            return None;
        }
        let middle_s = points.iter().map(|point| point.0).sum::<f64>() / count;
        let mean = points.iter().map(|point| point.1).sum::<f64>() / count;
        let squares: f64 = points.iter().map(|point| (point.0 - middle_s).powi(2)).sum();
        let slope = points.iter().map(|point| (point.0 - middle_s) * (point.1 - mean)).sum::<f64>() / squares;
        let left: f64 =
            points.iter().map(|point| (point.1 - mean - slope * (point.0 - middle_s)).powi(2)).sum();
        let seconds = points[points.len() - 1].0 - points[0].0;
        Some(Trend { middle_s, mean, slope, error: (left / (count - 2.0) / squares).sqrt(), seconds })
    }

    /// The trend of the rates of `slices`.
    pub(super) fn of_slices(slices: &[ProbeSlice]) -> Option<Trend> {
        let long = slices.iter().filter(|slice| slice.seconds() > LEAST_SECONDS);
        let points: Vec<(f64, f64)> =
            long.map(|slice| ((slice.start_ns + slice.end_ns) as f64 / 2e9, slice.rate())).collect();
        Trend::of(&points)
    }

    /// It falls by more than chance.
    pub(super) fn surely_falls(&self) -> bool {
        -self.slope > LIKELY * self.error
    }

    /// Continued back to `since_s`, it makes a considerable part of a `fall` since then.
    pub(super) fn explains(&self, fall: f64, since_s: f64) -> bool {
        -self.slope * (self.middle_s - since_s) > EXPLAINED * fall
    }

    /// The rates at its beginning and at its end where they differ by more than chance, and by enough to matter.
    pub(super) fn drift(&self) -> Option<(f64, f64)> {
        let change = self.slope * self.seconds;
        let is_drift = self.slope.abs() > SURE * self.error && change.abs() > DRIFTED * self.mean;
        is_drift.then_some((self.mean - change / 2.0, self.mean + change / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_differs_from_noise() {
        let check = |rate: fn(usize) -> f64, expected: Option<(f64, f64)>| {
            let points: Vec<(f64, f64)> = (0..101).map(|at| (at as f64, rate(at))).collect();
            let found = Trend::of(&points).and_then(|trend| trend.drift());
            assert_eq!(found.map(|(from, to)| (from.round(), to.round())), expected);
        };
        check(|_| 1000.0, None);
        check(|at| 1000.0 + if at % 2 == 0 { 80.0 } else { -80.0 }, None);
        check(|at| 1000.0 - 0.2 * at as f64, None);
        check(|at| 1000.0 - at as f64, Some((1000.0, 900.0)));
        check(|at| 1000.0 + at as f64, Some((1000.0, 1100.0)));
        assert_eq!(Trend::of(&[(0.0, 1.0), (1.0, 2.0)]), None);
    }
}
