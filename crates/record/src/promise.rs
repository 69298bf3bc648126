//! What was promised of the volume, as it was said; whether it held is told anew from the rest of the record.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// One thing that was promised of one test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromiseRecord {
    /// Where it is said: `--expect`, the name of a file, a suite, or a type of the catalogue.
    pub source: String,
    /// The class of machine or volume it holds for; empty = any.
    #[serde(skip_serializing_if = "is_default")]
    pub class: String,
    /// The test it is about, by id.
    pub test: String,
    /// The quantity within the test: `read.iops`, or `iops` where the direction is the one that the test has.
    pub metric: String,
    /// `>=`, `<=`, `>` or `<`.
    pub is: String,
    /// Requests per second, bytes per second or ns, as the metric has it.
    pub value: f64,
    /// By how much, in percent of it, the measured value may miss.
    pub tolerance_percent: f64,
    /// It is promised for a share of the time, second by second, and not of the mean.
    #[serde(skip_serializing_if = "is_default")]
    pub share: Option<ShareRecord>,
    /// What has to hold for it to mean anything.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: PromiseConditions,
    /// Why it cannot be judged, where that was known before anything was measured.
    #[serde(skip_serializing_if = "is_default")]
    pub cannot: Option<String>,
}

/// The share of the time for which something is promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareRecord {
    /// 0 to 1.
    pub fraction: f64,
    /// Over what time, ns (a year); `None` where nobody says.
    pub period_ns: Option<u64>,
}

/// What has to hold for a promise to mean anything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromiseConditions {
    /// Requests of at most so many bytes for a rate of requests, of at least so many for one of bytes.
    #[serde(skip_serializing_if = "is_default")]
    pub block_size_bytes: Option<u64>,
    /// Requests that have to be under way.
    #[serde(skip_serializing_if = "is_default")]
    pub depth: Option<f64>,
    /// The machine it holds on.
    #[serde(skip_serializing_if = "is_default")]
    pub instance: Option<String>,
    /// What the machine lets through, in the unit of the metric.
    #[serde(skip_serializing_if = "is_default")]
    pub instance_limit: Option<f64>,
    /// It holds only for as long as there is credit.
    #[serde(skip_serializing_if = "is_default")]
    pub credit: Option<CreditRecord>,
}

/// Credit for a burst, in tokens: requests as the provider counts them, or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CreditRecord {
    /// Tokens are bytes.
    pub is_bytes: bool,
    /// The most bytes that count as one request; 0 = any request is one.
    pub unit_bytes: u64,
    /// Tokens that come in each second, and those that may be spent in one.
    pub base: f64,
    /// Tokens that may be spent in a second while there is credit.
    pub burst: f64,
    /// Tokens of a volume that rested.
    pub full: f64,
    /// It is not saved but granted anew: so long a burst, then so long none (ns).
    #[serde(skip_serializing_if = "is_default")]
    pub window_ns: Option<(u64, u64)>,
    /// The user says that the volume had rested when the run began.
    pub is_rested: bool,
}
