//! A test that ends as soon as its rate is known precisely enough.

use fathom_stats::sample::mean;
use serde::{Deserialize, Serialize};

use crate::JobRecord;
use crate::confidence::{LIMITER_SLICE_NS, independent, slice_fraction};
use crate::stability::{Second, seconds, stability};
use crate::wire::is_default;

/// What a test with a required precision was to reach, and what it reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PrecisionRecord {
    /// Half of the 95 % confidence interval of the rate that ends the test, as a share of the rate.
    pub target_fraction: f64,
    /// Shortest measured time, ns.
    pub least_ns: u64,
    /// Longest measured time, ns.
    pub most_ns: u64,
    /// Half of the interval at the end, as a share of the rate; left out where too little ran to tell.
    #[serde(skip_serializing_if = "is_default")]
    pub reached_fraction: Option<f64>,
    /// The interval is within the target.
    pub reached: bool,
}

/// The interval of a test that may end at each of many looks is as much wider as this many looks take (Bonferroni). Looks follow one
/// another closely, so that fewer stand for all: with these the interval holds the true rate of volumes of any noise whose
/// correlation lasts for seconds, as the tests below show.
pub const PRECISION_LOOKS: u32 = 3;
/// Independent seconds without which an interval ends no test, unless all seconds lie within the target: before, too little is known
/// of how long the noise lasts.
const MIN_INDEPENDENT: f64 = 8.0;
/// Shortest measured time, ns: fewer seconds say nothing of how they vary.
const MIN_NS: u64 = 5_000_000_000;
/// A look follows after this part of the time before it, and after a second at least.
const LOOK_PART: u64 = 8;
const LOOK_NS: u64 = 1_000_000_000;

impl PrecisionRecord {
    /// Shortest measured time, ns, in which an interval of `target_fraction` can be established, however even the device is.
    pub fn least_time_ns(target_fraction: f64) -> u64 {
        let slices = LIMITER_SLICE_NS as f64 / target_fraction.max(f64::MIN_POSITIVE);
        (slices.ceil() as u64).max(MIN_NS)
    }

    /// The next look at a series that was looked at after `measured_ns`.
    pub fn next_look_ns(measured_ns: u64) -> u64 {
        measured_ns + (measured_ns / LOOK_PART).max(LOOK_NS)
    }

    /// It with what the workers of a test have reached.
    pub fn reached_by(self, jobs: &[&JobRecord]) -> PrecisionRecord {
        let Some(stability) = stability(jobs, PRECISION_LOOKS) else { return self };
        let rates: Vec<f64> = seconds(jobs).iter().map(Second::iops).collect();
        let reached = stability.mean_ci95_fraction <= self.target_fraction
            && is_established(&rates, stability.measured_ns, self.target_fraction);
        PrecisionRecord { reached_fraction: Some(stability.mean_ci95_fraction), reached, ..self }
    }
}

/// True where the interval of `rates` is more than chance.
fn is_established(rates: &[f64], measured_ns: u64, target_fraction: f64) -> bool {
    let mean = mean(rates);
    let most = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let range = (most - least) / 2.0 / mean;
    range + slice_fraction(measured_ns as f64) <= target_fraction || independent(rates) >= MIN_INDEPENDENT
}

#[cfg(test)]
mod tests;
