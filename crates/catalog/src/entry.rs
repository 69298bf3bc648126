//! A volume type: what it is called, where its rules come from, and what it costs where that is known.

use std::fmt;

use fathom_model::Price;
use serde::{Deserialize, Serialize};

use crate::wire::{Period, Wire};

/// How sure a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Nobody looked it up.
    FromMemory,
    /// Calculated from quoted or measured figures.
    Derived,
    /// The source says so.
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

/// Whether a type is sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// It is.
    Current,
    /// It is, but its provider recommends another type.
    Previous,
    /// Its rules are no longer those of any volume.
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
}

impl CatalogEntry {
    pub(crate) fn new(id: String, wire: Wire) -> Self {
        CatalogEntry { id, wire }
    }

    /// Its name in the catalogue: `aws-gp2-2016`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Who sells it.
    pub fn provider(&self) -> &str {
        &self.wire.provider
    }

    /// What the provider calls it.
    pub fn type_name(&self) -> &str {
        &self.wire.type_name
    }

    /// What it is called in the provider's interface.
    pub fn api_name(&self) -> Option<&str> {
        self.wire.api_name.as_deref()
    }

    /// What it is made of: `hdd`, `ssd`, `nvme`, `hybrid`, `local`, `local_ssd`, `local_nvme` or `unknown`.
    pub fn media(&self) -> &str {
        &self.wire.media
    }

    /// False where its data is lost with the instance.
    pub fn is_persistent(&self) -> bool {
        self.wire.persistent.unwrap_or(true)
    }

    /// Whether it is sold.
    pub fn lifecycle(&self) -> Lifecycle {
        self.wire.lifecycle
    }

    /// Where its rules come from, the main source first.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.wire.source).chain(&self.wire.sources_more).map(String::as_str)
    }

    /// When they held.
    pub fn as_of(&self) -> &str {
        &self.wire.as_of
    }

    /// How sure they are, but for the fields that are less so.
    pub fn confidence(&self) -> Confidence {
        self.wire.confidence
    }

    /// How sure one field is.
    pub fn confidence_of(&self, field: &str) -> Confidence {
        let is_in = |fields: &[String]| fields.iter().any(|name| name == field);
        match () {
            () if is_in(&self.wire.from_memory_fields) => Confidence::FromMemory,
            () if is_in(&self.wire.derived_fields) => self.wire.confidence.min(Confidence::Derived),
            () => self.wire.confidence,
        }
    }

    /// What should be known about it.
    pub fn notes(&self) -> Option<&str> {
        self.wire.notes.as_deref()
    }

    /// What is told of it and not calculated with: name and text.
    pub fn facts(&self) -> impl Iterator<Item = (&str, String)> {
        self.wire.facts.iter().map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.as_str(), text)
        })
    }

    /// Its smallest and largest size in bytes, where they are known.
    pub fn size_range(&self) -> (Option<u64>, Option<u64>) {
        let bytes = |gib: Option<f64>| gib.map(crate::amount::gib);
        (bytes(self.wire.size_min_gib), bytes(self.wire.size_max_gib))
    }

    /// The published shares: of its rate, and of the time in which that rate is available.
    pub fn published_shares(&self) -> (Option<f64>, Option<f64>) {
        (self.wire.sla_iops_fraction, self.wire.sla_time_fraction)
    }

    /// True where that share of the time refers to a year.
    pub fn is_yearly(&self) -> bool {
        self.wire.sla_period == Some(Period::Year)
    }

    /// The most that a read and a write take one at a time, ns, where that is published.
    pub fn latency_limits_ns(&self) -> (Option<u64>, Option<u64>) {
        let ns = |most: Option<f64>| most.map(crate::amount::milliseconds);
        (ns(self.wire.latency_read_ms_max), ns(self.wire.latency_write_ms_max))
    }

    /// Requests that have to be under way for each a second, where that is published.
    pub fn asked_depth_per_iops(&self) -> Option<f64> {
        self.wire.queue_depth_per_iops
    }

    /// What it costs, where a source says so.
    pub fn price(&self) -> Option<Price> {
        let wire = &self.wire;
        Some(Price {
            currency: wire.price_currency.clone()?,
            region: wire.price_region.clone().unwrap_or_default(),
            as_of: wire.price_as_of.clone(),
            per_gib_month: wire.price_per_gib_month,
            per_iops_month: wire.price_per_iops_month,
            iops_up_to: wire.price_iops_up_to,
            per_throughput_month: wire.price_per_throughput_month,
            per_million_ios: wire.price_per_million_ios,
            source: wire.price_source.clone().unwrap_or_else(|| wire.source.clone()),
        })
    }
}
