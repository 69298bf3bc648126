//! The data sheet of a volume: limits, rates by block size and price; and the characteristic sizes of a type.

use fathom_model::LimitUnit;
use fathom_model::MonthlyCost;
use fathom_predict::{OfferedLoad, ReachedRate, limits_bytes, reach};
use fathom_volume::{Limit, LimitStage, TokenRate, VolumeModel};
use serde::Serialize;

use crate::amount::{self, GIB};
use crate::cost::MonthlyUse;
use crate::entry::CatalogEntry;
use crate::levels::{self, chooses_bytes, chooses_iops};
use crate::resolve::{ModelRefusal, Parameters};
use crate::wire::{IopsModel, Wire};

/// The direction of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitDirection {
    /// Reads and writes together.
    Total,
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl LimitDirection {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            LimitDirection::Total => "total",
            LimitDirection::Read => "read",
            LimitDirection::Write => "write",
        }
    }
}

/// The burst rule of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "burst", rename_all = "lowercase")]
pub enum Rule {
    /// No burst.
    None,
    /// Burst credits.
    Credit {
        /// Capacity of the bucket, tokens.
        capacity: u64,
    },
    /// A burst window, then a pause.
    Window,
    /// On-demand bursts, which are billed.
    Billed,
}

/// One limit of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SheetLimit {
    /// The direction.
    pub direction: LimitDirection,
    /// The unit.
    pub unit: LimitUnit,
    /// Sustained I/Os or bytes per second.
    pub baseline_rate: u64,
    /// I/Os or bytes per second in a burst.
    pub burst_rate: Option<u64>,
    /// The burst rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// Time until full credits are exhausted at the burst rate.
    pub empty_ns: Option<u64>,
    /// Time to refill empty credits when idle.
    pub refill_ns: Option<u64>,
}

/// The rates of one block size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockRow {
    /// Bytes of a request.
    pub block_size_bytes: u64,
    /// The direction, if each has its own limits.
    pub direction: LimitDirection,
    /// Random requests.
    pub random: ReachedRate,
    /// Sequential requests.
    pub sequential: ReachedRate,
    /// Queue depth that reaches the full random rate at the mean latency; `None` without a limit.
    pub iodepth: Option<u64>,
}

/// The data sheet of a volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sheet {
    /// Its size.
    pub size_bytes: u64,
    /// Its parameters, completed by the provider's defaults.
    pub parameters: Parameters,
    /// The tier it belongs to.
    pub tier: Option<String>,
    /// Its limits.
    pub limits: Vec<SheetLimit>,
    /// The largest request that counts as one I/O.
    pub io_unit_bytes: Option<u64>,
    /// Sequential requests share a unit.
    pub merges_sequential: bool,
    /// Mean latency of a read, ns.
    pub read_lat_mean_ns: u64,
    /// Mean latency of a write, ns.
    pub write_lat_mean_ns: u64,
    /// The latency is not published.
    pub is_latency_assumed: bool,
    /// Rates by block size; only the smallest if its bandwidth is not published.
    pub blocks: Vec<BlockRow>,
    /// Its monthly cost, if sourced.
    pub month: Option<MonthlyCost>,
    /// Assumptions beyond the source.
    pub assumptions: Vec<String>,
}

/// The block sizes of a sheet.
const BLOCKS_KIB: [u64; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Common sizes, GiB.
const USUAL_GIB: [u64; 14] = [1, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 16_384, 32_768, 65_536];

impl CatalogEntry {
    /// The data sheet of a volume; a required choice that is not given is the maximum.
    ///
    /// # Errors
    /// As for [`CatalogEntry::resolve`].
    pub fn sheet(&self, parameters: &Parameters) -> Result<Sheet, ModelRefusal> {
        let mut assumed = Vec::new();
        let mut parameters = self.completed(parameters, &mut assumed);
        let resolved = self.resolve(&parameters)?;
        let model = &resolved.model;
        parameters.size_bytes = Some(model.size_bytes);
        let stage = model.shared.iter().chain(&model.reads).next();
        let accounting = stage.map(|stage| stage.accounting).unwrap_or_default();
        assumed.extend(resolved.assumptions);
        if !limits_bytes(model) {
            assumed.push("its bandwidth is not published: rates of large requests are unknown".to_owned());
        }
        Ok(Sheet {
            size_bytes: model.size_bytes,
            tier: resolved.tier,
            limits: levels_of(model),
            io_unit_bytes: accounting.unit_bytes.map(u64::from),
            merges_sequential: accounting.merges_sequential,
            read_lat_mean_ns: model.read_latency.mean_ns(),
            write_lat_mean_ns: model.write_latency.mean_ns(),
            is_latency_assumed: assumed.iter().any(|notes| notes.starts_with(ASSUMED_LATENCY)),
            blocks: blocks(model),
            month: self.cost_of_month(&parameters, MonthlyUse::default()).ok().flatten(),
            parameters,
            assumptions: assumed,
        })
    }

    /// Completes required choices with their maximum.
    pub(crate) fn completed(&self, parameters: &Parameters, notes: &mut Vec<String>) -> Parameters {
        let wire = &self.wire;
        let mut whole = parameters.clone();
        let is_named = wire.iops_model.is_tiered_by_name();
        if let Some(tier) = wire.tiers.first().filter(|_| is_named && whole.tier.is_none()) {
            notes.push(format!("no instance given: shown for {}", tier.name));
            whole.tier = Some(tier.name.clone());
        }
        let size_bytes = whole.size_bytes.unwrap_or_else(|| self.usual_size());
        if chooses_iops(wire) && whole.iops.is_none() && wire.iops_included.is_none() {
            let (_, most) = levels::iops_range(wire, size_bytes);
            notes.push(format!("its IOPS must be chosen: shown with {most}, the maximum at this size"));
            whole.iops = Some(most);
        }
        if chooses_bytes(wire) && whole.bytes_per_second.is_none() && wire.throughput_included.is_none() {
            let (_, most) = levels::bytes_range(wire, size_bytes, whole.iops.unwrap_or_default());
            notes.push("its bandwidth must be chosen: shown with the maximum at this size".to_owned());
            whole.bytes_per_second = Some(most);
        }
        whole
    }

    /// The sizes at which the rules of a type change, in GiB, and common sizes.
    pub fn sizes_gib(&self) -> Vec<u64> {
        let wire = &self.wire;
        let (least, most) = self.size_range();
        let least = least.map_or(1, |bytes| bytes.div_ceil(GIB));
        let most = most.map_or(u64::MAX, |bytes| bytes / GIB);
        let sized = wire.iops_model == IopsModel::TieredBySize;
        let mut sizes: Vec<u64> = if sized {
            wire.tiers.iter().filter_map(|tier| tier.size_gib.map(|gib| gib as u64)).collect()
        } else {
            USUAL_GIB.to_vec()
        };
        sizes.extend(turning_points(wire));
        sizes.push(least);
        sizes.extend(self.size_range().1.map(|bytes| bytes / GIB));
        sizes.retain(|size| (least..=most).contains(size));
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// Start of the text of a latency assumption.
pub(crate) const ASSUMED_LATENCY: &str = "its latency";

/// Sizes in GiB at which a rule changes.
pub(crate) fn turning_points(wire: &Wire) -> Vec<u64> {
    // Where a rate per GiB reaches a fixed limit: the first whole GiB at or above that point.
    let meets = |intercept: Option<f64>, slope: Option<f64>, level: Option<f64>| {
        let (slope, level) = (slope?, level?);
        let size = (level - intercept.unwrap_or_default()) / slope;
        (size > 0.0 && size < 1e9).then(|| (size - 1e-9).ceil() as u64)
    };
    let per_tib = wire.throughput_per_tib.map(|per_tib| per_tib / 1024.0);
    let bursts_per_tib = wire.burst_throughput_per_tib.map(|per_tib| per_tib / 1024.0);
    let lines = [
        meets(wire.iops_intercept, wire.iops_per_gib, wire.iops_min).map(|size| size.saturating_sub(1)),
        meets(wire.iops_intercept, wire.iops_per_gib, wire.iops_min),
        meets(wire.iops_intercept, wire.iops_per_gib, wire.iops_max),
        meets(None, wire.iops_read_per_gib, wire.iops_read_max),
        meets(None, wire.iops_write_per_gib, wire.iops_write_max),
        meets(wire.throughput_intercept, wire.throughput_per_gib.or(per_tib), wire.throughput_max),
        meets(None, bursts_per_tib, wire.burst_throughput_max),
        wire.burst_applies_below_gib.map(|gib| gib.ceil() as u64),
    ];
    let steps = wire.throughput_by_size.iter().filter(|step| step.above_gib > 0.0);
    let steps = steps.map(|step| step.above_gib as u64 + 1);
    lines.into_iter().flatten().chain(steps).filter(|size| *size > 0).collect()
}

fn levels_of(model: &VolumeModel) -> Vec<SheetLimit> {
    let parts = [
        (LimitDirection::Total, &model.shared),
        (LimitDirection::Read, &model.reads),
        (LimitDirection::Write, &model.writes),
    ];
    let of = |direction: LimitDirection, stage: &LimitStage| {
        let ios = stage.ios.map(|limit| level(direction, LimitUnit::Ios, limit));
        [ios, stage.bytes.map(|limit| level(direction, LimitUnit::Bytes, limit))]
    };
    let all =
        parts.into_iter().flat_map(|(direction, stages)| stages.iter().map(move |stage| (direction, stage)));
    all.flat_map(|(direction, stage)| of(direction, stage)).flatten().collect()
}

fn level(direction: LimitDirection, counted: LimitUnit, limit: Limit) -> SheetLimit {
    let per_second = |rate: TokenRate| u64::try_from(rate.in_ns(1_000_000_000)).unwrap_or(u64::MAX);
    let (rule, capacity) = match limit {
        Limit::Rate(_) => (Rule::None, 0),
        Limit::Credit { capacity, .. } => (Rule::Credit { capacity }, capacity),
        Limit::Window { .. } => (Rule::Window, 0),
        Limit::OnDemand { .. } => (Rule::Billed, 0),
    };
    SheetLimit {
        direction,
        unit: counted,
        baseline_rate: per_second(limit.baseline()),
        burst_rate: limit.peak().filter(|_| rule != Rule::None).map(per_second),
        rule,
        empty_ns: limit.time_to_empty_ns(capacity),
        refill_ns: limit.time_to_refill_ns(),
    }
}

fn blocks(model: &VolumeModel) -> Vec<BlockRow> {
    let is_apart = !model.reads.is_empty() || !model.writes.is_empty();
    let directions: &[LimitDirection] =
        if is_apart { &[LimitDirection::Read, LimitDirection::Write] } else { &[LimitDirection::Total] };
    let row = |direction: LimitDirection, kib: u64| {
        let reads = match direction {
            LimitDirection::Total => None,
            LimitDirection::Read => Some(1.0),
            LimitDirection::Write => Some(0.0),
        };
        let of = |is_sequential| OfferedLoad {
            read_fraction: reads,
            ..OfferedLoad::of(kib as f64 * 1024.0, is_sequential)
        };
        let random = reach(model, &of(false));
        let latency = match direction {
            LimitDirection::Write => model.write_latency.mean_ns(),
            LimitDirection::Read => model.read_latency.mean_ns(),
            LimitDirection::Total => model.read_latency.mean_ns().max(model.write_latency.mean_ns()),
        };
        let most = random.burst.map(|burst| burst.iops).or(random.iops);
        BlockRow {
            block_size_bytes: kib << 10,
            direction,
            random,
            sequential: reach(model, &of(true)),
            iodepth: most.map(|most| ((most * latency as f64 / 1e9).ceil() as u64).max(1)),
        }
    };
    let sizes = if limits_bytes(model) { &BLOCKS_KIB[..] } else { &BLOCKS_KIB[..1] };
    directions.iter().flat_map(|direction| sizes.iter().map(|kib| row(*direction, *kib))).collect()
}

impl CatalogEntry {
    /// Its usual size, in its range.
    pub(crate) fn usual_size(&self) -> u64 {
        let (least, most) = self.size_range();
        let least = least.unwrap_or(1);
        crate::resolve::USUAL_SIZE.clamp(least, most.unwrap_or(u64::MAX).max(least))
    }

    /// The smallest and largest available size in whole GiB.
    pub(crate) fn size_range_gib(&self) -> (u64, Option<u64>) {
        let least = self.wire.size_min_gib.map_or(1, |gib| amount::gib(gib).div_ceil(GIB));
        (least, self.wire.size_max_gib.map(|gib| amount::gib(gib) / GIB))
    }
}
