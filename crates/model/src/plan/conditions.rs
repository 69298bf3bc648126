//! Conditions that a job checks while it runs: least rates, a steady state, a latency to keep, a share of requests.

use serde::{Deserialize, Serialize};

use crate::{Nanos, PerOp};

/// The rates below which a job fails; 0 = none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeastRates {
    /// Bytes per second.
    pub bandwidth: PerOp<u64>,
    /// Requests per second.
    pub iops: PerOp<u64>,
    /// Time over which a rate is taken; 0 = the default.
    pub cycle: Nanos,
}

impl LeastRates {
    /// Whether there is any.
    pub fn is_any(&self) -> bool {
        self.bandwidth.iter().chain(self.iops.iter()).any(|(_, least)| *least > 0)
    }
}

/// The figure whose steadiness ends a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SteadyFigure {
    /// Requests per second.
    #[default]
    Iops,
    /// Bytes per second.
    Bw,
    /// Mean latency.
    Lat,
}

impl SteadyFigure {
    /// fio's name.
    pub fn name(self) -> &'static str {
        match self {
            SteadyFigure::Iops => "iops",
            SteadyFigure::Bw => "bw",
            SteadyFigure::Lat => "lat",
        }
    }
}

/// The steady state that ends a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SteadyStatePlan {
    /// The figure that is sampled.
    pub figure: SteadyFigure,
    /// Its slope is limited, not its greatest deviation from the mean.
    pub slope: bool,
    /// The limit.
    pub limit: f64,
    /// The limit is a percentage of the mean.
    pub percent: bool,
    /// Length of the window of samples; 0 = no steady state is waited for.
    #[serde(rename = "duration_ns")]
    pub duration: Nanos,
    /// Time before the first sample begins.
    #[serde(rename = "ramp_ns")]
    pub ramp: Nanos,
    /// Time of a sample.
    #[serde(rename = "interval_ns")]
    pub interval: Nanos,
}

impl SteadyStatePlan {
    /// Samples of a window, at least one.
    pub fn samples(&self) -> usize {
        (self.duration.0 / self.interval.0.max(1)).max(1) as usize
    }
}

/// The latency that the queue depth is chosen for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyTarget {
    /// The latency.
    #[serde(rename = "target_ns")]
    pub target: Nanos,
    /// Time at each queue depth.
    #[serde(rename = "window_ns")]
    pub window: Nanos,
    /// Share of the requests that must keep it, percent.
    pub percentile: f64,
    /// Go on adjusting the queue depth until the job ends.
    pub run: bool,
}

/// The share of a job in the requests of all jobs with the same number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowPlan {
    /// Weight of the job; 0 = no share.
    pub weight: u32,
    /// Number of the flow.
    pub id: u32,
    /// Wait of a job that is ahead of its share; 0 = as short as possible.
    pub sleep: Nanos,
}
