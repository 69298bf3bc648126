//! From an entry and its parameters to the model of a volume.

use fathom_model::units::bytes;
use fathom_volume::{
    Accounting, Cache, FirstTouch, Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel,
};
use thiserror::Error;

use serde::Serialize;

use crate::amount::{self, GIB};
use crate::entry::{CatalogEntry, Confidence};
use crate::host_cache::HostCaching;
use crate::instances::Instances;
use crate::levels::{self, Wanted};
use crate::limits;
use crate::wire::{IopsModel, LimitsScope, SharedBudget, Tier};

/// The parameters of a volume of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parameters {
    /// The size; `None` = 100 GiB, or the closest available size.
    pub size_bytes: Option<u64>,
    /// Provisioned IOPS.
    pub iops: Option<u64>,
    /// Provisioned bandwidth, bytes per second.
    pub bytes_per_second: Option<u64>,
    /// Name of the tier, if the size does not determine it.
    pub tier: Option<String>,
    /// On-demand bursts, which are billed, are enabled.
    pub on_demand: bool,
    /// The volume is restored or new: first accesses have this type's first-touch penalty.
    pub first_touch: bool,
    /// The rate, bytes per second, at which the provider initializes a volume made from a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<u64>,
    /// Volumes, or instances, that have equal parts of shared limits; `None` = it has them alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_by: Option<u64>,
    /// The host cache; `None` = that of the type, as far as it has one.
    pub cache: Option<HostCaching>,
    /// The instance that it is attached to, whose limits are in front of its own; `None` = one that limits nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// A resolved volume of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Its model.
    pub model: VolumeModel,
    /// The tier it belongs to.
    pub tier: Option<String>,
    /// Assumptions beyond the source, in whole sentences.
    pub assumptions: Vec<String>,
}

/// The reason why a volume has no model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{id}: {reason}")]
pub struct ModelRefusal {
    /// The entry.
    pub id: String,
    /// The reason.
    pub reason: String,
}

impl ModelRefusal {
    /// The remedy.
    pub fn hint(&self) -> Option<&str> {
        Some("`fathom catalog show ID` lists the choices; use `sim:custom` for other limits")
    }
}

/// A first touch of a block of the assumed size, which costs nothing.
pub(crate) fn first_touch() -> FirstTouch {
    FirstTouch { chunk_bytes: FIRST_TOUCH_BYTES, counts_as: 1, extra_ns: 0, initialization: None }
}

/// The default size.
pub(crate) const USUAL_SIZE: u64 = 100 * GIB;
/// Assumed block size of a first access; no provider publishes it.
const FIRST_TOUCH_BYTES: u32 = 512 << 10;

/// Time by which requests may be ahead of a rate of a type of the catalogue: no provider publishes it, but published measurements at
/// depth 1 reach limits that requests without slack do not.
const SLACK_NS: u64 = 10_000_000;

/// Limits on I/Os and bytes of one owner, without slack.
pub(crate) fn stage(
    name: &str,
    accounting: Accounting,
    ios: Option<Limit>,
    bytes: Option<Limit>,
) -> LimitStage {
    LimitStage { name: name.to_owned(), accounting, ios, bytes, slack_ns: 0, billing: None }
}

/// A stage of the catalogue, with the slack that is assumed.
pub(crate) fn with_slack(stage: LimitStage) -> LimitStage {
    LimitStage { slack_ns: SLACK_NS, ..stage }
}

/// Leaves one of `parts` equal parts of the limits.
fn divide(model: &mut VolumeModel, parts: u64) -> Result<(), String> {
    for stage in model.shared.iter_mut().chain(&mut model.reads).chain(&mut model.writes) {
        *stage = part_of(stage, parts)?;
    }
    Ok(())
}

/// One of `parts` equal parts of the limits of a stage.
pub(crate) fn part_of(stage: &LimitStage, parts: u64) -> Result<LimitStage, String> {
    stage.part(parts).ok_or_else(|| format!("shared_by={parts} leaves nothing of its limits"))
}

/// True if a stage limits anything; others are omitted.
pub(crate) fn is_limited(stage: &LimitStage) -> bool {
    stage.ios.is_some() || stage.bytes.is_some()
}

impl CatalogEntry {
    /// The model of a volume of this type; refused if the provider publishes no rule or does not offer the volume.
    pub fn resolve(&self, parameters: &Parameters) -> Result<Resolved, ModelRefusal> {
        let refuse = |reason| ModelRefusal { id: self.id().to_owned(), reason };
        let mut resolved = self.resolved(parameters).map_err(refuse)?;
        let parts = parameters.shared_by.unwrap_or(1);
        if parts > 1 && self.wire.limits_scope.is_none() && parameters.instance.is_none() {
            return Err(refuse("its limits are its own: omit shared_by, or add instance".to_owned()));
        }
        let Some(instance) = &parameters.instance else { return Ok(resolved) };
        if !self.is_persistent() {
            return Err(refuse("it is a part of its instance: omit instance".to_owned()));
        }
        let mut assumptions =
            Instances::shipped().attach(instance, self.id(), parts, &mut resolved.model).map_err(refuse)?;
        resolved.assumptions.append(&mut assumptions);
        Ok(resolved)
    }

    /// Why no volume of this type can be simulated, if so.
    pub fn unmodelled(&self) -> Option<&'static str> {
        match self.wire.iops_model {
            _ if self.is_as_measured() => None,
            IopsModel::MeasuredOnly => Some("its provider publishes no limits"),
            IopsModel::Range => Some("its provider publishes a range, not a rule"),
            IopsModel::Unspecified => Some("its provider publishes no rule"),
            _ => None,
        }
    }

    fn resolved(&self, parameters: &Parameters) -> Result<Resolved, String> {
        if let Some(reason) = self.unmodelled() {
            return Err(reason.to_owned());
        }
        let wire = &self.wire;
        let mut assumptions = Vec::new();
        if self.confidence() == Confidence::FromMemory {
            assumptions.push("its rules have no published source".to_owned());
        }
        let size_bytes = self.size(parameters.size_bytes, &mut assumptions)?;
        if let Some(measured) = &wire.measured {
            let model = self.measured_model(measured, parameters, size_bytes, &mut assumptions)?;
            model.validate().map_err(|error| error.to_string())?;
            return Ok(Resolved { model, tier: None, assumptions });
        }
        let tier = self.tier(size_bytes, parameters.tier.as_deref())?;
        let parts = parameters.shared_by.filter(|_| wire.limits_scope.is_some()).unwrap_or(1);
        let rated_bytes = match wire.limits_scope {
            Some(LimitsScope::InstanceAndType) => size_bytes.saturating_mul(parts),
            Some(LimitsScope::AllInstances) | None => size_bytes,
        };
        let wanted = Wanted {
            size_bytes: rated_bytes,
            tier,
            iops: parameters.iops,
            bytes_per_second: parameters.bytes_per_second,
        };
        let (mut ios, mut bytes) = levels::of(wire, wanted)?;
        if let Some(unit) = wire.allocation_unit_gib
            && levels::rated_bytes(wire, size_bytes) != size_bytes
        {
            assumptions.push(format!(
                "its rates rise by whole units of {unit} GiB: a part of a unit is assumed to add nothing"
            ));
        }
        match wire.limits_shared_read_write {
            SharedBudget::Known(true) if ios.read.is_some() || ios.write.is_some() => assumptions.push(
                "reads and writes share its limits by a rule that is not published: each has its own limit, and a mix \
                 may get less"
                    .to_owned(),
            ),
            SharedBudget::Known(true) => {}
            SharedBudget::Known(false) => (ios, bytes) = (ios.apart(), bytes.apart()),
            SharedBudget::Unknown(_) => {
                assumptions.push(
                    "whether reads and writes share its limits is not published: assumed shared".to_owned(),
                );
            }
        }
        let mut shared = limits::of(wire, wanted, ios.shared, bytes.shared, parameters.on_demand)?;
        let is_ordered =
            [shared.ios, shared.bytes].iter().flatten().any(|limit| matches!(limit, Limit::OnDemand { .. }));
        if parameters.on_demand && !is_ordered {
            return Err("it has no on-demand bursts of a published rate: omit on_demand".to_owned());
        }
        assumptions.append(&mut shared.assumptions);
        let accounting = self.accounting();
        let stage = |ios, bytes, billing| LimitStage {
            billing,
            ..with_slack(stage("volume", accounting, ios, bytes))
        };
        let one_way = |ios, bytes| -> Result<Vec<LimitStage>, String> {
            let stage = stage(limits::plain(ios)?, limits::plain(bytes)?, None);
            Ok(Some(stage).filter(is_limited).into_iter().collect())
        };
        let (read_latency, write_latency) = self.latencies(&mut assumptions);
        let mut model = VolumeModel {
            shared: Some(stage(shared.ios, shared.bytes, shared.billing))
                .filter(is_limited)
                .into_iter()
                .collect(),
            reads: one_way(ios.read, bytes.read)?,
            writes: one_way(ios.write, bytes.write)?,
            read_latency,
            write_latency,
            first_touch: self.first_touch(parameters, &mut assumptions)?,
            cache: self.cache(parameters.cache.as_ref(), None, &mut assumptions)?,
            ..VolumeModel::unlimited(size_bytes)
        };
        if let Some(window) = wire.limits_window_ms {
            model.set_slack(amount::milliseconds(window));
            assumptions.push(format!(
                "its limits are dealt out every {window} ms: assumed that requests may be ahead of them by that time"
            ));
        }
        if parts > 1 {
            divide(&mut model, parts)?;
            let sharers = match wire.limits_scope {
                Some(LimitsScope::InstanceAndType) => "volumes of the type, on one instance,",
                Some(LimitsScope::AllInstances) | None => "instances",
            };
            assumptions.push(format!("{parts} {sharers} have equal parts of its limits"));
        }
        model.validate().map_err(|error| error.to_string())?;
        Ok(Resolved { model, tier: tier.map(|tier| tier.name.clone()), assumptions })
    }

    fn size(&self, asked: Option<u64>, assumptions: &mut Vec<String>) -> Result<u64, String> {
        let (least, most) = self.size_range();
        let (least, most) = (least.unwrap_or(1), most.unwrap_or(u64::MAX));
        let size = asked.unwrap_or_else(|| USUAL_SIZE.clamp(least, most.max(least)));
        if asked.is_none() {
            assumptions.push(format!("no size given: assumed {} GiB", size / GIB));
        }
        if (least..=most).contains(&size) {
            return Ok(size);
        }
        let range = match (self.wire.size_min_gib, self.wire.size_max_gib) {
            (Some(least), Some(most)) => format!("from {least} to {most} GiB"),
            (Some(least), None) => format!("from {least} GiB on"),
            (None, _) => format!("up to {}", bytes(most)),
        };
        let size = if size.is_multiple_of(GIB) { format!("{} GiB", size / GIB) } else { bytes(size) };
        Err(format!("not available with {size}, only {range}"))
    }

    fn tier(&self, size_bytes: u64, name: Option<&str>) -> Result<Option<&Tier>, String> {
        let tiers = &self.wire.tiers;
        let names = || tiers.iter().map(|tier| tier.name.as_str()).collect::<Vec<_>>().join(", ");
        let by_size = |tier: &&Tier| tier.size_gib.is_some_and(|size| size_bytes <= amount::gib(size));
        match (self.wire.iops_model, name) {
            (IopsModel::TieredBySize, None) => {
                tiers.iter().find(by_size).map(Some).ok_or_else(|| "no tier has that size".to_owned())
            }
            (IopsModel::TieredByInstance | IopsModel::TieredByCount, None) => {
                Err(format!("its limits depend on the instance: choose a tier of {}", names()))
            }
            (
                IopsModel::TieredBySize | IopsModel::TieredByInstance | IopsModel::TieredByCount,
                Some(name),
            ) => {
                let found = tiers.iter().find(|tier| tier.name == name);
                let found = found.ok_or_else(|| format!("unknown tier {name}; use one of {}", names()))?;
                // A higher tier may be bought for a size, a lower one may not.
                match found.size_gib.filter(|size| size_bytes > amount::gib(*size)) {
                    Some(size) => Err(format!("its tier {name} holds at most {size} GiB")),
                    None => Ok(Some(found)),
                }
            }
            (_, Some(_)) => Err("it has no tiers: omit the tier".to_owned()),
            (_, None) => Ok(None),
        }
    }

    fn accounting(&self) -> Accounting {
        Accounting {
            unit_bytes: self.wire.io_unit_kib_max.and_then(|kib| u32::try_from(amount::of(kib, 1024)).ok()),
            merges_sequential: self.wire.io_merge_sequential,
            whole_units: self.wire.io_whole_units,
        }
    }

    /// Of reads and of writes.
    pub(crate) fn latencies(&self, assumptions: &mut Vec<String>) -> (VolumeLatency, VolumeLatency) {
        let wire = &self.wire;
        if let Some(typical) = wire.latency_typical_ms {
            let latency = VolumeLatency::around(amount::milliseconds(typical));
            return (latency.clone(), latency);
        }
        if let Some(depth_per_iops) = wire.queue_depth_per_iops {
            // A published queue depth per IOPS is the latency of a request.
            let latency = VolumeLatency::fixed(amount::seconds(depth_per_iops));
            return (latency.clone(), latency);
        }
        let usual: f64 = match wire.media.as_str() {
            "hdd" => 5.0,
            "nvme" | "local" | "local_ssd" | "local_nvme" => 0.2,
            _ => 0.5,
        };
        assumptions.push(format!("its latency is not published: assumed about {usual} ms"));
        let below = |most: Option<f64>| {
            let typical = most.map_or(usual, |most| usual.min(most));
            VolumeLatency::around(amount::milliseconds(typical))
        };
        (below(wire.latency_read_ms_max), below(wire.latency_write_ms_max))
    }

    /// The host cache, if it is requested and the type offers it.
    pub(crate) fn cache(
        &self,
        wanted: Option<&HostCaching>,
        known: Option<&Cache>,
        assumptions: &mut Vec<String>,
    ) -> Result<Option<Cache>, String> {
        let Some(caching) = wanted else { return Ok(None) };
        let modes = &self.wire.caching_modes;
        if !modes.is_empty() && !modes.contains(&caching.mode) {
            let names: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
            let mode = caching.mode.name();
            return Err(format!("its host caching modes are {}; got {mode}", names.join(", ")));
        }
        let cache = caching.model(known, assumptions)?;
        if cache.is_some() && known.is_none() && modes.is_empty() {
            assumptions.push(
                "its provider does not offer a host cache: it is added in front of the volume".to_owned(),
            );
        }
        if cache.is_some() {
            assumptions.push("its limits apply behind the host cache".to_owned());
        }
        Ok(cache)
    }

    /// The first-touch penalty and the initialization, if they are requested.
    pub(crate) fn first_touch(
        &self,
        parameters: &Parameters,
        assumptions: &mut Vec<String>,
    ) -> Result<Option<FirstTouch>, String> {
        if !parameters.first_touch && parameters.initialization.is_none() {
            return Ok(None);
        }
        let initialization = parameters.initialization.map(|rate| self.initialization(rate)).transpose()?;
        let lost = match self.wire.first_touch_penalty_fraction {
            Some(lost) if parameters.first_touch => lost,
            None if parameters.first_touch => {
                return Err("its first-touch penalty is not published: omit first_touch".to_owned());
            }
            _ => 0.0,
        };
        assumptions.push("the first-touch block size is not published: assumed 512 KiB".to_owned());
        if initialization.is_some() {
            assumptions.push(
                "the order of its initialization is not published: assumed from its beginning, and blocks that are \
                 accessed at once"
                    .to_owned(),
            );
        }
        // If the penalty is a share of the rate, each I/O counts as 1 / (1 - share) I/Os.
        let counts_as = (1.0 / (1.0 - lost)).round() as u32;
        Ok(Some(FirstTouch { counts_as, initialization, ..first_touch() }))
    }

    fn initialization(&self, rate: u64) -> Result<TokenRate, String> {
        let (Some(least), Some(most)) = self.initialization_range() else {
            return Err("no rate of its initialization is published: omit initialization".to_owned());
        };
        match TokenRate::per_second(rate).filter(|_| (least..=most).contains(&rate)) {
            Some(rate) => Ok(rate),
            None => Err(format!(
                "its initialization is from {}/s to {}/s; got {}/s",
                bytes(least),
                bytes(most),
                bytes(rate)
            )),
        }
    }

    /// The rates, bytes per second, at which a volume made from a snapshot may be initialized.
    pub(crate) fn initialization_range(&self) -> (Option<u64>, Option<u64>) {
        let unit = self.wire.unit_bytes();
        let rate = |figure: Option<f64>| figure.map(|figure| amount::of(figure, unit));
        (rate(self.wire.initialization_min), rate(self.wire.initialization_max))
    }
}
