//! Expectations of the tests, as they were given; their results are derived from the rest of the record.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// One expectation of one test, from the user or from a published specification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpectationRecord {
    /// Where it comes from: `--expect`, the name of a file, a suite, or a volume type of the catalogue.
    pub source: String,
    /// The class of machine or volume it applies to; empty = any.
    #[serde(skip_serializing_if = "is_default")]
    pub class: String,
    /// The id of the test.
    pub test: String,
    /// The metric of the test: `read.iops`, or `iops` for the direction that the test has.
    pub metric: String,
    /// `>=`, `<=`, `>` or `<`.
    pub is: String,
    /// I/Os per second, bytes per second or ns, as the metric has it.
    pub value: f64,
    /// By how much, in percent of it, the measured value may miss it.
    pub tolerance_percent: f64,
    /// The share of the seconds that must meet the value; `None` where the mean must.
    #[serde(skip_serializing_if = "is_default")]
    pub share: Option<ShareRecord>,
    /// The conditions under which it applies.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: ExpectationConditions,
    /// Why it cannot be checked, where that is known before the run.
    #[serde(skip_serializing_if = "is_default")]
    pub cannot: Option<String>,
}

/// A share of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareRecord {
    /// 0 to 1.
    pub fraction: f64,
    /// The period it refers to, ns (a year); `None` where none is given.
    pub period_ns: Option<u64>,
}

/// The conditions under which an expectation applies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpectationConditions {
    /// The largest block size for IOPS, and the smallest for bandwidth.
    #[serde(skip_serializing_if = "is_default")]
    pub block_size_bytes: Option<u64>,
    /// The queue depth that it needs.
    #[serde(skip_serializing_if = "is_default")]
    pub depth: Option<f64>,
    /// The instance type that it applies to.
    #[serde(skip_serializing_if = "is_default")]
    pub instance: Option<String>,
    /// The limit of the machine, in the unit of the metric.
    #[serde(skip_serializing_if = "is_default")]
    pub instance_limit: Option<f64>,
    /// The rate of the machine while its burst credits last, where that is higher: a rate above the limit was reached with them.
    #[serde(skip_serializing_if = "is_default")]
    pub instance_maximum: Option<f64>,
    /// The rate has to be held indefinitely: one that lasts as long as burst credits remain does not meet it.
    #[serde(skip_serializing_if = "is_default")]
    pub sustained: bool,
    /// It applies while burst credits remain.
    #[serde(skip_serializing_if = "is_default")]
    pub credit: Option<CreditRecord>,
}

/// Burst credits, in tokens: I/Os as the provider counts them, or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CreditRecord {
    /// Tokens are bytes.
    pub is_bytes: bool,
    /// The most bytes that count as one I/O; 0 = any I/O is one.
    pub unit_bytes: u64,
    /// The baseline: tokens earned per second.
    pub base: f64,
    /// The burst rate: most tokens spent per second while credits remain.
    pub burst: f64,
    /// The capacity: tokens of a rested volume.
    pub full: f64,
    /// Credits come in fixed windows instead: burst time, then time without burst, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub window_ns: Option<(u64, u64)>,
    /// The user declares that the volume was rested when the run began.
    pub is_rested: bool,
}
