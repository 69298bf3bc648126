//! Deviations of a job from sequential or uniformly random access: distributions, alignment, runs, files and zones.

use serde::{Deserialize, Serialize};

use crate::PerOp;

/// How a job chooses offsets and files. The default is sequential or uniformly random access to its files in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccessPlan {
    /// Distribution of random offsets.
    #[serde(rename = "random_distribution")]
    pub distribution: PerOp<Distribution>,
    /// Percentage of the requests of a random job that have random offsets; the others follow the one before them.
    pub percentage_random: PerOp<u8>,
    /// Random offsets are multiples of this; 0 = of the smallest block.
    #[serde(rename = "blockalign")]
    pub align: PerOp<u64>,
    /// Most requests per loop; 0 = no limit.
    pub number_ios: u64,
    /// Requests per random offset of a random job; the others follow it or repeat it.
    #[serde(rename = "rw_run")]
    pub run: u32,
    /// The requests of a run repeat its offset (`rw_sequencer=identical`) instead of following it.
    #[serde(rename = "rw_run_repeats")]
    pub run_repeats: bool,
    /// Bytes between two requests of a sequential job; negative values go backwards.
    #[serde(rename = "rw_skip")]
    pub skip: i64,
    /// Order of the files.
    #[serde(rename = "file_service_type")]
    pub files: FileOrder,
    /// Requests to a file before the next is chosen.
    #[serde(rename = "file_service_run")]
    pub file_run: u32,
    /// Files in use at a time; 0 = all.
    #[serde(rename = "openfiles")]
    pub open_files: u32,
    /// Zones that the job visits in turn.
    pub zones: Option<StridedZones>,
}

impl Default for AccessPlan {
    fn default() -> Self {
        AccessPlan {
            distribution: PerOp::default(),
            percentage_random: PerOp::splat(100),
            align: PerOp::default(),
            number_ios: 0,
            run: 1,
            run_repeats: false,
            skip: 0,
            files: FileOrder::RoundRobin,
            file_run: 1,
            open_files: 0,
            zones: None,
        }
    }
}

impl AccessPlan {
    /// True where a job with this plan accesses its files in turn, sequentially or uniformly at random.
    pub fn is_uniform(&self) -> bool {
        *self == AccessPlan::default()
    }
}

/// Distribution of random offsets over the range of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Uniform.
    #[default]
    Random,
    /// The k-th most frequent block has a frequency in proportion to k^-theta.
    Zipf {
        /// Exponent.
        theta: f64,
        /// Position of the most frequent block, as a share of the range; `None` = anywhere.
        center: Option<f64>,
    },
    /// A share of 1 - h of the requests goes to a share h of the blocks, again within these, and so on.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// As for `Zipf`.
        center: Option<f64>,
    },
    /// A normal distribution of offsets.
    Normal {
        /// Standard deviation in percent of the range.
        deviation: f64,
        /// The mean, as a share of the range; `None` = the middle.
        center: Option<f64>,
    },
    /// Adjacent zones: percentage of the requests, and percentage of the range.
    Zoned(Vec<(u8, u8)>),
    /// Adjacent zones: percentage of the requests, and bytes; the last zone may extend to the end (0).
    ZonedAbs(Vec<(u8, u64)>),
}

/// The order of the files of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOrder {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Each is finished before the next.
    Sequential,
    /// Drawn from this distribution over the list of files.
    Drawn(Distribution),
}

/// Zones within each file, visited one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StridedZones {
    /// Bytes to move in a zone before the next.
    pub size: u64,
    /// Bytes of a zone.
    pub range: u64,
    /// Bytes between two zones.
    pub skip: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_default_is_uniform() {
        assert!(AccessPlan::default().is_uniform());
        assert!(!AccessPlan { number_ios: 1, ..AccessPlan::default() }.is_uniform());
        let zipf = Distribution::Zipf { theta: 1.1, center: None };
        assert!(!AccessPlan { distribution: PerOp::splat(zipf), ..AccessPlan::default() }.is_uniform());
    }
}
