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
    /// Per volume of each tier, for types whose tiers are sold as a whole.
    pub tiers: Vec<TierPrice>,
    /// Per provisioned IOPS beyond those included.
    pub per_iops_month: Option<f64>,
    /// Other prices per provisioned IOPS, in rising order of the IOPS above which they apply.
    pub iops_steps: Vec<IopsPrice>,
    /// Provisioned IOPS up to which that price applies; beyond them it is unknown.
    pub iops_up_to: Option<f64>,
    /// Per unit of provisioned throughput beyond the included amount.
    pub per_throughput_month: Option<f64>,
    /// Per million I/Os.
    pub per_million_ios: Option<f64>,
    /// I/Os are billed at a price that is unknown.
    pub are_ios_unknown: bool,
    /// Its source.
    pub source: String,
    /// Confidence in it, if stated.
    pub confidence: Option<PriceConfidence>,
}

/// The monthly price of a volume of one tier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TierPrice {
    /// The tier.
    pub tier: String,
    /// Its price.
    pub month: f64,
}

/// The monthly price of each provisioned IOPS above a number of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IopsPrice {
    /// The number.
    pub above_iops: f64,
    /// The price of each.
    pub per_iops_month: f64,
}

/// Confidence in a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PriceConfidence {
    /// One weak or old source, or sources that disagree.
    Low,
    /// One good source.
    Medium,
    /// The vendor's price list, or several sources that agree.
    High,
}

impl PriceConfidence {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            PriceConfidence::Low => "low",
            PriceConfidence::Medium => "medium",
            PriceConfidence::High => "high",
        }
    }
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
    /// `size`, `tier P10`, `provisioned IOPS`, `provisioned IOPS above 32000` (at another price), `provisioned throughput`
    /// or `I/Os`.
    pub what: String,
    /// The billed amount: GiB, tiers, IOPS, units of throughput, I/Os.
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
