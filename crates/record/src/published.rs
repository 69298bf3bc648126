//! What providers publish of the rate that a test reached. The catalogue is consulted once, after the test was measured, so
//! that conclusions remain functions of the record.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// The published rates for the load of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PublishedRates {
    /// The rates of the volume itself, where its type is known.
    #[serde(skip_serializing_if = "is_default")]
    pub own: Option<OwnRates>,
    /// Volumes of other types that publish the measured rate, where the type is unknown: bursts first.
    #[serde(skip_serializing_if = "is_default")]
    pub matches: Vec<RateMatch>,
    /// The longest time for which burst credits of any volume in the catalogue last at the measured rate, ns; `None` where
    /// none reaches that rate by burst credits.
    #[serde(skip_serializing_if = "is_default")]
    pub longest_burst_ns: Option<u64>,
    /// The rates of the instance, where its limits are known and lower than those of the volume, or those are unknown.
    #[serde(skip_serializing_if = "is_default")]
    pub instance: Option<InstanceReach>,
}

impl PublishedRates {
    /// The instance, where what can be held is its rate and not the volume's.
    pub fn sustained_by_instance(&self) -> Option<&InstanceReach> {
        const SAME: f64 = 0.01;
        let sustained = self.own.as_ref()?.sustained_iops?;
        self.instance.as_ref().filter(|instance| (instance.sustained_iops / sustained - 1.0).abs() <= SAME)
    }
}

/// The rates that an instance allows on its volumes, for the load of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceReach {
    /// The type of the instance; empty where its limits alone are known.
    pub instance: String,
    /// The rate that can be held indefinitely, IOPS.
    pub sustained_iops: f64,
    /// It is that of the bandwidth limit.
    #[serde(skip_serializing_if = "is_default")]
    pub is_sustained_bandwidth: bool,
    /// The rate above it, where there is one.
    #[serde(skip_serializing_if = "is_default")]
    pub burst: Option<BurstRate>,
    /// The burst is that of the bandwidth limit.
    #[serde(skip_serializing_if = "is_default")]
    pub is_burst_bandwidth: bool,
    /// The highest rate of the volume itself, IOPS; `None` where its type is unknown.
    #[serde(skip_serializing_if = "is_default")]
    pub volume_iops: Option<f64>,
}

/// The rates of a volume of a known type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnRates {
    /// The volume (`aws-gp2?size=50GiB`), or the run that identified it.
    pub volume: String,
    /// The source of that knowledge.
    pub known_by: KnownBy,
    /// The rate that can be held indefinitely, IOPS; `None` where no limit is known.
    pub sustained_iops: Option<f64>,
    /// The rate above it, where there is one.
    #[serde(skip_serializing_if = "is_default")]
    pub burst: Option<BurstRate>,
    /// The rates that limits with burst credits leave when these are exhausted, IOPS: one for each that the burst exceeds.
    #[serde(skip_serializing_if = "is_default")]
    pub exhausted_iops: Vec<f64>,
}

/// How the type of a volume is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// The target is a simulated volume.
    #[default]
    Simulated,
    /// The label `type`.
    Label,
    /// An expectation that names a type.
    Expectation,
    /// An identification of the same device.
    Identification,
}

/// A rate that burst credits allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BurstRate {
    /// IOPS while credits remain.
    pub iops: f64,
    /// Time for which full credits last at the measured rate, ns; `None` where they do not end, but are billed.
    pub lasts_ns: Option<u64>,
    /// Time to refill the credits when idle, ns.
    pub refill_ns: Option<u64>,
}

/// A volume that publishes a measured rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateMatch {
    /// Its type.
    pub id: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// The rate that can be held indefinitely, IOPS: the measured one, or the one that remains after the burst.
    pub sustained_iops: f64,
    /// The burst, where the measured rate is one.
    #[serde(skip_serializing_if = "is_default")]
    pub burst: Option<BurstRate>,
}
