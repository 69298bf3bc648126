//! The monthly cost of a volume. A part with an unknown price is named, never counted as free.

use serde::{Deserialize, Serialize};

/// The prices of a volume type per month, with their source. A missing price is unknown, not 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    /// The currency's code.
    pub currency: String,
    /// Its region.
    pub region: String,
    /// Its date, if known.
    pub as_of: Option<String>,
    /// Per GiB.
    pub per_gib_month: Option<f64>,
    /// Per provisioned IOPS beyond those included.
    pub per_iops_month: Option<f64>,
    /// Provisioned IOPS up to which that price applies; beyond them it is unknown.
    pub iops_up_to: Option<f64>,
    /// Per unit of provisioned throughput beyond the included amount.
    pub per_throughput_month: Option<f64>,
    /// Per million I/Os.
    pub per_million_ios: Option<f64>,
    /// Its source.
    pub source: String,
}

/// The monthly cost of a volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonthlyCost {
    /// The rates, with their currency and source.
    #[serde(flatten)]
    pub price: Price,
    /// Sum of the parts whose price is known.
    pub total: f64,
    /// The parts with known cost.
    pub parts: Vec<CostPart>,
    /// The parts with an unknown price.
    pub unknown: Vec<String>,
}

/// One part of a cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostPart {
    /// `size`, `provisioned IOPS`, `further provisioned IOPS` (at another price), `provisioned throughput` or `I/Os`.
    pub what: String,
    /// The billed amount: GiB, IOPS, units of throughput, I/Os.
    pub amount: f64,
    /// The cost.
    pub cost: f64,
}

impl MonthlyCost {
    /// True if all parts are known.
    pub fn is_whole(&self) -> bool {
        self.unknown.is_empty()
    }
}
