//! An entry as stored in the file. Only this module knows the fields; `data/README.md` explains them.

use std::collections::BTreeMap;

use fathom_model::{IopsPrice, PriceConfidence};
use serde::Deserialize;

use crate::entry::{Confidence, Lifecycle};
use crate::host_cache::CachingMode;
use crate::measured::Measured;

/// A catalogue file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default)]
    pub(crate) volume: BTreeMap<String, Wire>,
}

/// The rule for the IOPS of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IopsModel {
    Fixed,
    LinearClamped,
    AffineClamped,
    Provisioned,
    TieredBySize,
    TieredByInstance,
    TieredByCount,
    DerivedFromThroughput,
    Range,
    MeasuredOnly,
    Unspecified,
}

impl IopsModel {
    /// The instance determines the limits, so that a tier is chosen by its name.
    pub(crate) fn is_tiered_by_name(self) -> bool {
        matches!(self, IopsModel::TieredByInstance | IopsModel::TieredByCount)
    }
}

/// The burst rule of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BurstModel {
    None,
    IoCreditBucket,
    ThroughputCreditBucket,
    DualCreditBucket,
    TimedWindow,
    OnDemandBilled,
    Unspecified,
}

/// Whether reads and writes share their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum SharedBudget {
    Known(bool),
    Unknown(Unknown),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unknown {
    Unknown,
}

/// Who shares the limits of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LimitsScope {
    /// All disks of the type that one instance has; their sizes count together.
    InstanceAndType,
    /// All instances that the volume is attached to.
    AllInstances,
}

impl LimitsScope {
    /// Behind `limits`.
    pub(crate) fn text(self) -> &'static str {
        match self {
            LimitsScope::InstanceAndType => "per instance, shared by all disks of the type",
            LimitsScope::AllInstances => "per volume, over all instances that it is attached to",
        }
    }
}

/// What a provider calls a megabyte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum ThroughputUnit {
    #[serde(rename = "MiB/s")]
    Mebibytes,
    #[serde(rename = "MB/s")]
    Megabytes,
}

/// The period that a published share of the time refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Period {
    Year,
}

/// A tier, selected by size (the smallest that is large enough) or by name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tier {
    pub(crate) name: String,
    pub(crate) size_gib: Option<f64>,
    pub(crate) iops: Option<f64>,
    pub(crate) read_iops: Option<f64>,
    pub(crate) write_iops: Option<f64>,
    pub(crate) throughput: Option<f64>,
    pub(crate) burst_iops: Option<f64>,
    pub(crate) burst_throughput: Option<f64>,
    pub(crate) burst_kind: Option<BurstKind>,
    pub(crate) price_month: Option<f64>,
    #[serde(rename = "iops_perf_plus")]
    _iops_perf_plus: Option<f64>,
    #[serde(rename = "throughput_perf_plus")]
    _throughput_perf_plus: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BurstKind {
    Credit,
    OnDemand,
}

/// The throughput of volumes larger than a size.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SizeStep {
    #[serde(default)]
    pub(crate) above_gib: f64,
    pub(crate) throughput: f64,
}

/// The throughput of volumes above a number of IOPS; the largest applicable one holds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IopsStep {
    #[serde(default)]
    pub(crate) above_iops: f64,
    pub(crate) per_iops: f64,
    pub(crate) throughput_max: f64,
}

/// The IOPS to choose from for volumes of a size and above.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProvisionedStep {
    pub(crate) from_gib: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// An entry. Throughputs are in `throughput_unit`, sizes in GiB.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wire {
    pub(crate) provider: String,
    pub(crate) type_name: String,
    pub(crate) api_name: Option<String>,
    pub(crate) media: String,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) persistent: Option<bool>,
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) sources_more: Vec<String>,
    pub(crate) as_of: String,
    pub(crate) confidence: Confidence,
    #[serde(default)]
    pub(crate) from_memory_fields: Vec<String>,
    #[serde(default)]
    pub(crate) derived_fields: Vec<String>,
    #[serde(default)]
    pub(crate) fitted_to: Vec<String>,
    pub(crate) notes: Option<String>,
    #[serde(default)]
    pub(crate) facts: toml::Table,

    pub(crate) size_min_gib: Option<f64>,
    pub(crate) size_max_gib: Option<f64>,
    pub(crate) allocation_unit_gib: Option<f64>,
    pub(crate) limits_shared_read_write: SharedBudget,
    pub(crate) throughput_shared_read_write: Option<bool>,
    pub(crate) limits_scope: Option<LimitsScope>,
    pub(crate) limits_window_ms: Option<f64>,

    pub(crate) iops_model: IopsModel,
    pub(crate) iops_intercept: Option<f64>,
    pub(crate) iops_per_gib: Option<f64>,
    pub(crate) iops_read_per_gib: Option<f64>,
    pub(crate) iops_write_per_gib: Option<f64>,
    pub(crate) iops_min: Option<f64>,
    pub(crate) iops_max: Option<f64>,
    pub(crate) iops_read_max: Option<f64>,
    pub(crate) iops_write_max: Option<f64>,
    pub(crate) iops_included: Option<f64>,
    pub(crate) iops_provisioned_min: Option<f64>,
    pub(crate) iops_provisioned_max: Option<f64>,
    pub(crate) iops_provisioned_per_gib_min: Option<f64>,
    pub(crate) iops_provisioned_per_gib_max: Option<f64>,
    #[serde(default)]
    pub(crate) iops_provisioned_by_size: Vec<ProvisionedStep>,
    pub(crate) iops_per_provisioned_throughput: Option<f64>,
    pub(crate) iops_extra_max: Option<f64>,
    pub(crate) iops_extra_from_gib: Option<f64>,
    pub(crate) iops_total_max: Option<f64>,
    pub(crate) iops_total_per_gib_max: Option<f64>,
    #[serde(default)]
    pub(crate) tiers: Vec<Tier>,

    pub(crate) throughput_unit: Option<ThroughputUnit>,
    pub(crate) throughput_intercept: Option<f64>,
    pub(crate) throughput_per_gib: Option<f64>,
    pub(crate) throughput_read_per_gib: Option<f64>,
    pub(crate) throughput_write_per_gib: Option<f64>,
    pub(crate) throughput_per_tib: Option<f64>,
    pub(crate) throughput_min: Option<f64>,
    pub(crate) throughput_max: Option<f64>,
    pub(crate) throughput_read_max: Option<f64>,
    pub(crate) throughput_write_max: Option<f64>,
    pub(crate) throughput_included: Option<f64>,
    pub(crate) throughput_provisioned_min: Option<f64>,
    pub(crate) throughput_provisioned_max: Option<f64>,
    pub(crate) throughput_provisioned_per_tib_min: Option<f64>,
    pub(crate) throughput_provisioned_per_tib_max: Option<f64>,
    pub(crate) throughput_per_provisioned_iops_min: Option<f64>,
    pub(crate) throughput_per_provisioned_iops_max: Option<f64>,
    pub(crate) throughput_per_extra_iops: Option<f64>,
    pub(crate) throughput_total_max: Option<f64>,
    #[serde(default)]
    pub(crate) throughput_by_size: Vec<SizeStep>,
    #[serde(default)]
    pub(crate) throughput_by_iops: Vec<IopsStep>,

    pub(crate) burst_model: BurstModel,
    pub(crate) burst_iops: Option<f64>,
    pub(crate) burst_applies_below_gib: Option<f64>,
    pub(crate) burst_bucket_ios: Option<f64>,
    pub(crate) burst_initial_ios: Option<f64>,
    pub(crate) burst_bucket_mib_per_tib: Option<f64>,
    pub(crate) burst_initial_fill_fraction: Option<f64>,
    pub(crate) burst_duration_s: Option<f64>,
    pub(crate) burst_cooldown_s: Option<f64>,
    pub(crate) burst_throughput: Option<f64>,
    pub(crate) burst_throughput_per_tib: Option<f64>,
    pub(crate) burst_throughput_max: Option<f64>,
    pub(crate) burst_transaction_bytes: Option<f64>,

    pub(crate) io_unit_kib_max: Option<f64>,
    #[serde(default)]
    pub(crate) io_merge_sequential: bool,
    #[serde(default)]
    pub(crate) io_whole_units: bool,

    pub(crate) latency_typical_ms: Option<f64>,
    pub(crate) latency_read_ms_max: Option<f64>,
    pub(crate) latency_write_ms_max: Option<f64>,
    pub(crate) queue_depth_per_iops: Option<f64>,
    pub(crate) first_touch_penalty_fraction: Option<f64>,
    pub(crate) initialization_min: Option<f64>,
    pub(crate) initialization_max: Option<f64>,
    #[serde(default)]
    pub(crate) caching_modes: Vec<CachingMode>,
    pub(crate) measured: Option<Measured>,
    pub(crate) sla_iops_fraction: Option<f64>,
    pub(crate) sla_time_fraction: Option<f64>,
    pub(crate) sla_period: Option<Period>,

    pub(crate) price_currency: Option<String>,
    pub(crate) price_region: Option<String>,
    pub(crate) price_as_of: Option<String>,
    pub(crate) price_per_gib_month: Option<f64>,
    pub(crate) price_per_iops_month: Option<f64>,
    #[serde(default)]
    pub(crate) price_iops_steps: Vec<IopsPrice>,
    pub(crate) price_iops_up_to: Option<f64>,
    pub(crate) price_per_throughput_month: Option<f64>,
    pub(crate) price_per_million_ios: Option<f64>,
    #[serde(default)]
    pub(crate) price_ios_unknown: bool,
    pub(crate) price_source: Option<String>,
    pub(crate) price_confidence: Option<PriceConfidence>,
}

impl Wire {
    /// Bytes of a unit of throughput.
    pub(crate) fn unit_bytes(&self) -> u64 {
        match self.throughput_unit {
            Some(ThroughputUnit::Mebibytes) => 1 << 20,
            Some(ThroughputUnit::Megabytes) => 1_000_000,
            None => 1,
        }
    }
}
