//! The results of conditions that a worker checked while it ran.

use fathom_model::plan::{LatencyTarget, SteadyFigure, SteadyStatePlan};
use serde::{Deserialize, Serialize};

/// The search for a steady state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SteadyOutcome {
    /// What was searched for.
    pub plan: SteadyStatePlan,
    /// It was found, which ended the job.
    pub attained: bool,
    /// The figure that is compared with the limit; 0 until a window is full.
    pub criterion: f64,
    /// Greatest deviation of a sample from the mean; 0 for a slope.
    pub deviation: f64,
    /// Slope of the samples by least squares, per sample; 0 for a deviation.
    pub slope: f64,
    /// Requests per second of each sample of the last window, in order.
    pub iops: Vec<u64>,
    /// Bytes per second.
    pub bandwidth: Vec<u64>,
    /// Mean latency, ns; recorded only if it is the figure.
    pub latency_ns: Vec<u64>,
}

impl SteadyOutcome {
    /// The samples of the figure.
    pub fn samples(&self) -> &[u64] {
        match self.plan.figure {
            SteadyFigure::Iops => &self.iops,
            SteadyFigure::Bw => &self.bandwidth,
            SteadyFigure::Lat => &self.latency_ns,
        }
    }

    /// Judges the samples: deviation or slope, criterion, and whether it is below the limit.
    pub fn judge(&mut self) {
        let samples: Vec<f64> = self.samples().iter().map(|sample| *sample as f64).collect();
        let mean = mean(self.samples());
        (self.deviation, self.slope) = match self.plan.slope {
            true => (0.0, slope(&samples)),
            false => (samples.iter().map(|sample| (sample - mean).abs()).fold(0.0, f64::max), 0.0),
        };
        let figure = if self.plan.slope { self.slope } else { self.deviation };
        self.criterion = match self.plan.percent {
            true if mean > 0.0 => 100.0 * figure / mean,
            true => 0.0,
            false => figure,
        };
        self.attained = mean > 0.0 && self.criterion.abs() < self.plan.limit;
    }
}

/// Mean of the samples; 0 without any.
pub fn mean(samples: &[u64]) -> f64 {
    let sum: u128 = samples.iter().map(|sample| u128::from(*sample)).sum();
    if samples.is_empty() { 0.0 } else { sum as f64 / samples.len() as f64 }
}

/// Slope of evenly spaced samples by least squares; 0 for fewer than two.
fn slope(samples: &[f64]) -> f64 {
    let count = samples.len() as f64;
    if samples.len() < 2 {
        return 0.0;
    }
    let middle = (count - 1.0) / 2.0;
    let products = samples.iter().enumerate().map(|(x, y)| (x as f64 - middle) * y);
    products.sum::<f64>() / (count * (count * count - 1.0) / 12.0)
}

/// The search for the queue depth that keeps a latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyOutcome {
    /// The latency to keep.
    pub target: LatencyTarget,
    /// The queue depth that was found, or the last one that was tried.
    pub depth: u32,
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;

    use super::*;

    fn judged(slope: bool, limit: f64, percent: bool, iops: &[u64]) -> SteadyOutcome {
        let plan = SteadyStatePlan {
            slope,
            limit,
            percent,
            duration: Nanos::from_secs(4),
            interval: Nanos::from_secs(1),
            ..SteadyStatePlan::default()
        };
        let mut outcome = SteadyOutcome { plan, iops: iops.to_vec(), ..SteadyOutcome::default() };
        outcome.judge();
        outcome
    }

    #[test]
    fn the_greatest_deviation_from_the_mean_is_below_the_limit() {
        // A window that fio 3.33 attained with 20.762243 %.
        let iops = [791_669, 900_301, 999_986, 1_164_193];
        let wide = judged(false, 50.0, true, &iops);
        assert!(wide.attained && (wide.criterion - 20.762_243).abs() < 1e-6, "{wide:?}");
        assert_eq!((wide.deviation, wide.slope), (200_155.75, 0.0));
        assert!(!judged(false, 20.0, true, &iops).attained);
        let absolute = judged(false, 200_156.0, false, &iops);
        assert!(absolute.attained && absolute.criterion == 200_155.75);
    }

    #[test]
    fn a_slope_in_either_direction_is_compared_with_the_limit() {
        // Two windows of fio 3.33: slopes 83900.5 and -191946 a second.
        let rising = judged(true, 0.0001, true, &[1_339_246, 551_052, 1_507_047]);
        assert!(!rising.attained && rising.slope == 83_900.5 && (rising.criterion - 7.408_773).abs() < 1e-5);
        let falling = judged(true, 100_000.0, false, &[2_773_063, 2_768_787, 2_389_171]);
        assert_eq!((falling.attained, falling.slope), (false, -191_946.0));
        assert!(judged(true, 200_000.0, false, &[2_773_063, 2_768_787, 2_389_171]).attained);
        assert!(judged(true, 0.1, true, &[500; 6]).attained);
        assert!(!judged(false, 1.0, true, &[0; 6]).attained, "nothing moved");
    }
}
