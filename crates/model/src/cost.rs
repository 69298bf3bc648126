//! What a volume costs a month. A part that is not known is named, never taken as free.

use serde::{Deserialize, Serialize};

/// The rates of a volume type, with their source. A rate that is not known is not zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    /// The currency's code.
    pub currency: String,
    /// Where it holds.
    pub region: String,
    /// When it held, where that is known.
    pub as_of: Option<String>,
    /// For each GiB.
    pub per_gib_month: Option<f64>,
    /// For each provisioned I/O a second beyond those included.
    pub per_iops_month: Option<f64>,
    /// Provisioned IOPS up to which that is the price; the price of further ones is not known.
    pub iops_up_to: Option<f64>,
    /// For each unit of provisioned throughput beyond those included.
    pub per_throughput_month: Option<f64>,
    /// For a million I/Os.
    pub per_million_ios: Option<f64>,
    /// Where it comes from.
    pub source: String,
}

/// What a volume costs a month.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonthlyCost {
    /// The rates, with their currency and source.
    #[serde(flatten)]
    pub price: Price,
    /// Sum of the parts whose price is known.
    pub total: f64,
    /// What is paid for, each with its cost.
    pub parts: Vec<CostPart>,
    /// What is paid for at a rate that no source states.
    pub unknown: Vec<String>,
}

/// One thing that is paid for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostPart {
    /// What it is: `size`, `provisioned IOPS`, `further provisioned IOPS` whose price is another, `provisioned throughput`, `I/Os`.
    pub what: String,
    /// How much of it is paid for: GiB, IOPS, units of throughput, I/Os.
    pub amount: f64,
    /// What it costs.
    pub cost: f64,
}

impl MonthlyCost {
    /// True where nothing of it is unknown.
    pub fn is_whole(&self) -> bool {
        self.unknown.is_empty()
    }
}
