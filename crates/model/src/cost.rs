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
    /// It was more than 12 months old when it was looked up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_stale: bool,
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

impl Price {
    /// The same as it is on the day `today` (`2026-11-23`): stale where it is more than 12 months old. The only rule for that.
    pub fn on_day(self, today: &str) -> Price {
        let is_stale = self.as_of.as_deref().is_some_and(|date| is_stale(date, today));
        Price { is_stale, ..self }
    }

    /// Its date, marked where it is stale; `None` where it is unknown.
    pub fn date_text(&self) -> Option<String> {
        let mark = if self.is_stale { format!(", {STALE}") } else { String::new() };
        self.as_of.as_ref().map(|date| format!("{date}{mark}"))
    }
}

/// What is said of stale prices.
pub const STALE: &str = "over 12 months old";

/// Whether a date, or one of several, ended more than 12 months before `today`.
fn is_stale(dates: &str, today: &str) -> bool {
    let year_before = |today: &str| {
        let (year, day) = today.split_once('-')?;
        Some(format!("{:04}-{day}", year.parse::<u32>().ok()?.checked_sub(1)?))
    };
    year_before(today).is_some_and(|limit| ended_before(dates, &limit))
}

/// Whether a date, or one of several (`2026 (tiers), 2024-07-01 (I/Os)`), ended before a day (`2026-11-23`). A month or a year counts by
/// its last day, a range (`2017..2018`) by its end; what is no date did not.
pub fn ended_before(dates: &str, limit: &str) -> bool {
    let last_day = |date: &str| {
        let date = date.trim().split(' ').next().unwrap_or_default();
        let date = date.rsplit("..").next().unwrap_or_default();
        let is_date = date.starts_with(|first: char| first.is_ascii_digit());
        // No month has a later day.
        is_date.then(|| format!("{date}{}", "0000-12-31".get(date.len()..).unwrap_or_default()))
    };
    dates.split(',').filter_map(last_day).any(|day| day.as_str() < limit)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_stale_after_twelve_months() {
        let check = |as_of: &str, today: &str, expected: bool| {
            let price = Price { as_of: Some(as_of.to_owned()), ..Price::default() }.on_day(today);
            assert_eq!(price.is_stale, expected, "{as_of} on {today}");
            assert_eq!(price.date_text().unwrap().ends_with(STALE), expected);
        };
        for (as_of, today, expected) in [
            ("2025-11-23", "2026-11-23", false),
            ("2025-11-22", "2026-11-23", true),
            ("2026-12-01", "2026-11-23", false),
            ("2025-11", "2026-11-30", false),
            ("2025-10", "2026-11-01", true),
            ("2025", "2026-12-31", false),
            ("2025", "2027-01-01", true),
            ("2017..2018", "2019-12-31", false),
            ("2017..2018", "2020-01-01", true),
            ("2012-11..2013-04 (inferred)", "2026-11-23", true),
            ("2026 (tiers), 2024-07-01 (I/Os)", "2026-11-23", true),
            ("2026 (tiers), 2026-07-01 (I/Os)", "2026-11-23", false),
            ("2027-02-28", "2028-02-29", true),
            ("2027-03-01", "2028-02-29", false),
            ("lately", "2026-11-23", false),
            ("2024-07-01", "", false),
        ] {
            check(as_of, today, expected);
        }
        let undated = Price::default().on_day("2026-11-23");
        assert_eq!((undated.is_stale, undated.date_text()), (false, None));
        // A later look at it decides anew.
        let old = Price { as_of: Some("2024".to_owned()), is_stale: true, ..Price::default() };
        assert!(!old.on_day("2025-01-01").is_stale);
    }
}
