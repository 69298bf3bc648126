//! A volume type: its names, the sources of its rules, and its price if known.

use std::fmt;
use std::sync::Arc;

use fathom_model::{Price, TierPrice};
use serde::{Deserialize, Serialize};

use crate::wire::{Period, Tier, Wire};

/// Confidence in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// From memory, without a source.
    FromMemory,
    /// Calculated from quoted or measured figures.
    Derived,
    /// Quoted from the source.
    Quoted,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confidence::FromMemory => "from memory",
            Confidence::Derived => "derived",
            Confidence::Quoted => "quoted",
        })
    }
}

/// Availability of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Sold.
    Current,
    /// Sold, but its provider recommends another type.
    Previous,
    /// No longer sold under these rules.
    Historical,
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lifecycle::Current => "current",
            Lifecycle::Previous => "previous",
            Lifecycle::Historical => "historical",
        })
    }
}

/// A volume type of a provider, of one generation.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogEntry {
    id: String,
    pub(crate) wire: Wire,
    /// The price that the user imported.
    pub(crate) imported_price: Option<Price>,
    /// The day on which prices are looked up; without one, none is stale.
    pub(crate) today: Option<Arc<str>>,
}

impl CatalogEntry {
    pub(crate) fn new(id: String, wire: Wire) -> Self {
        CatalogEntry { id, wire, imported_price: None, today: None }
    }

    /// Its name in the catalogue: `aws-gp2-2016`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The provider.
    pub fn provider(&self) -> &str {
        &self.wire.provider
    }

    /// The provider's name for it.
    pub fn type_name(&self) -> &str {
        &self.wire.type_name
    }

    /// Its name in the provider's API.
    pub fn api_name(&self) -> Option<&str> {
        self.wire.api_name.as_deref()
    }

    /// The medium: `hdd`, `ssd`, `nvme`, `hybrid`, `local`, `local_ssd`, `local_nvme` or `unknown`.
    pub fn media(&self) -> &str {
        &self.wire.media
    }

    /// False if its data is lost with the instance.
    pub fn is_persistent(&self) -> bool {
        self.wire.persistent.unwrap_or(true)
    }

    /// Its availability.
    pub fn lifecycle(&self) -> Lifecycle {
        self.wire.lifecycle
    }

    /// The sources of its rules, the main one first.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.wire.source).chain(&self.wire.sources_more).map(String::as_str)
    }

    /// The date of its rules.
    pub fn as_of(&self) -> &str {
        &self.wire.as_of
    }

    /// Confidence in its rules; some fields may have a lower one.
    pub fn confidence(&self) -> Confidence {
        self.wire.confidence
    }

    /// Confidence in one field.
    pub fn confidence_of(&self, field: &str) -> Confidence {
        let is_in = |fields: &[String]| fields.iter().any(|name| name == field);
        match () {
            () if is_in(&self.wire.from_memory_fields) => Confidence::FromMemory,
            () if is_in(&self.wire.derived_fields) => self.wire.confidence.min(Confidence::Derived),
            () => self.wire.confidence,
        }
    }

    /// Notes for the buyer.
    pub fn notes(&self) -> Option<&str> {
        self.wire.notes.as_deref()
    }

    /// Facts that the model does not use: name and text.
    pub fn facts(&self) -> impl Iterator<Item = (&str, String)> {
        self.wire.facts.iter().map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.as_str(), text)
        })
    }

    /// Its smallest and largest size in bytes, if known.
    pub fn size_range(&self) -> (Option<u64>, Option<u64>) {
        let bytes = |gib: Option<f64>| gib.map(crate::amount::gib);
        (bytes(self.wire.size_min_gib), bytes(self.wire.size_max_gib))
    }

    /// The published shares of its rate, and of the time for which that rate is available.
    pub fn published_shares(&self) -> (Option<f64>, Option<f64>) {
        (self.wire.sla_iops_fraction, self.wire.sla_time_fraction)
    }

    /// True if the share of the time refers to a year.
    pub fn is_yearly(&self) -> bool {
        self.wire.sla_period == Some(Period::Year)
    }

    /// The published maximum latency of a read and of a write at QD 1, ns.
    pub fn latency_limits_ns(&self) -> (Option<u64>, Option<u64>) {
        let ns = |most: Option<f64>| most.map(crate::amount::milliseconds);
        (ns(self.wire.latency_read_ms_max), ns(self.wire.latency_write_ms_max))
    }

    /// The published queue depth per IOPS.
    pub fn asked_depth_per_iops(&self) -> Option<f64> {
        self.wire.queue_depth_per_iops
    }

    /// Its price: the one that the user imported, or that of the catalogue, if a source states it.
    pub fn price(&self) -> Option<Price> {
        let imported = self.imported_price.clone().map(|price| self.on_its_day(price));
        imported.or_else(|| self.shipped_price())
    }

    fn on_its_day(&self, price: Price) -> Price {
        match &self.today {
            Some(today) => price.on_day(today),
            None => price,
        }
    }

    /// The price of the catalogue, if a source states it.
    pub fn shipped_price(&self) -> Option<Price> {
        let wire = &self.wire;
        let priced = |tier: &Tier| Some(TierPrice { tier: tier.name.clone(), month: tier.price_month? });
        let price = Price {
            currency: wire.price_currency.clone()?,
            region: wire.price_region.clone().unwrap_or_default(),
            as_of: wire.price_as_of.clone(),
            is_stale: false,
            per_gib_month: wire.price_per_gib_month,
            tiers: wire.tiers.iter().filter_map(priced).collect(),
            per_iops_month: wire.price_per_iops_month,
            iops_steps: wire.price_iops_steps.clone(),
            iops_up_to: wire.price_iops_up_to,
            per_throughput_month: wire.price_per_throughput_month,
            per_million_ios: wire.price_per_million_ios,
            are_ios_unknown: wire.price_ios_unknown,
            source: wire.price_source.clone().unwrap_or_else(|| wire.source.clone()),
            confidence: wire.price_confidence,
        };
        Some(self.on_its_day(price))
    }
}
