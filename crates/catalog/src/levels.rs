//! The baselines of a volume by its size, tier or provisioning, without bursts.

use crate::amount::{self, GIB, TIB};
use crate::wire::{IopsModel, Tier, Wire};

/// A limit on both directions together, or on each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directions {
    pub(crate) shared: Option<u64>,
    pub(crate) read: Option<u64>,
    pub(crate) write: Option<u64>,
}

impl Directions {
    fn shared(level: Option<u64>) -> Self {
        Directions { shared: level, ..Directions::default() }
    }

    /// A shared limit as separate equal ones for each direction.
    pub(crate) fn apart(self) -> Self {
        Directions { shared: None, read: self.read.or(self.shared), write: self.write.or(self.shared) }
    }
}

/// The requested volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) size_bytes: u64,
    pub(crate) tier: Option<&'a Tier>,
    pub(crate) iops: Option<u64>,
    pub(crate) bytes_per_second: Option<u64>,
}

/// IOPS and bytes per second, or the reason why there are none.
pub(crate) fn of(wire: &Wire, wanted: Wanted<'_>) -> Result<(Directions, Directions), String> {
    let unit = wire.unit_bytes();
    let wanted = Wanted { size_bytes: rated_bytes(wire, wanted.size_bytes), ..wanted };
    if let Some(per_throughput) = wire.iops_per_provisioned_throughput {
        if wanted.iops.is_some() {
            return Err("its IOPS follow from its bandwidth: omit the IOPS".to_owned());
        }
        let bytes = provisioned_bytes(wire, wanted, unit, 0)?;
        let ratio = amount::of(per_throughput, bytes) / unit;
        let most = wire.iops_max.map_or(u64::MAX, |most| amount::of(most, 1));
        return Ok((Directions::shared(Some(ratio.min(most))), Directions::shared(Some(bytes))));
    }
    let iops = iops(wire, wanted)?;
    let chosen = iops.shared.unwrap_or_default();
    let mut bytes = throughput(wire, wanted, unit, chosen)?;
    if let (Some(per_iops), Some(level)) = (wire.throughput_per_extra_iops, &mut bytes.shared) {
        let more = amount::of(per_iops, extra_iops(wire, wanted)?.saturating_mul(unit));
        let most = wire.throughput_total_max.map_or(u64::MAX, |most| amount::of(most, unit));
        *level = level.saturating_add(more).min(most.max(*level));
    }
    if wire.throughput_shared_read_write == Some(false) {
        bytes = bytes.apart();
    }
    Ok((iops, bytes))
}

/// The size that counts: whole allocation units, and at least one.
pub(crate) fn rated_bytes(wire: &Wire, size_bytes: u64) -> u64 {
    match wire.allocation_unit_gib.map(amount::gib) {
        Some(unit) if unit > 0 => (size_bytes / unit).max(1).saturating_mul(unit),
        _ => size_bytes,
    }
}

fn iops(wire: &Wire, wanted: Wanted<'_>) -> Result<Directions, String> {
    if wire.iops_model == IopsModel::Provisioned {
        return provisioned_iops(wire, wanted).map(|iops| Directions::shared(Some(iops)));
    }
    let base = baseline_iops(wire, wanted);
    match wanted.iops {
        Some(_) if wire.iops_extra_max.is_some() => {
            let (least, most) = iops_range(wire, wanted.size_bytes);
            Ok(Directions::shared(Some(choose("IOPS", wanted.iops, least, most, 1)?)))
        }
        Some(_) => Err("its IOPS cannot be chosen: omit them".to_owned()),
        None => Ok(base),
    }
}

/// IOPS that were bought beyond the baseline.
pub(crate) fn extra_iops(wire: &Wire, wanted: Wanted<'_>) -> Result<u64, String> {
    let base = baseline_iops(wire, wanted).shared.unwrap_or_default();
    Ok(iops(wire, wanted)?.shared.unwrap_or_default().saturating_sub(base))
}

/// The IOPS of a size or tier.
fn baseline_iops(wire: &Wire, wanted: Wanted<'_>) -> Directions {
    let whole = |figure: Option<f64>| figure.map(|figure| amount::of(figure, 1));
    if let Some(tier) = wanted.tier {
        let (read, write) = (whole(tier.read_iops), whole(tier.write_iops));
        return Directions { shared: whole(tier.iops), read, write };
    }
    let clamped = |per_gib: f64, most: Option<f64>| {
        let intercept = wire.iops_intercept.unwrap_or_default();
        let level = amount::linear(intercept, (per_gib, GIB), wanted.size_bytes, 1);
        level.max(whole(wire.iops_min).unwrap_or(0)).min(whole(most).unwrap_or(u64::MAX))
    };
    let directions = Directions {
        shared: wire.iops_per_gib.map(|per_gib| clamped(per_gib, wire.iops_max)),
        read: wire.iops_read_per_gib.map(|per_gib| clamped(per_gib, wire.iops_read_max)),
        write: wire.iops_write_per_gib.map(|per_gib| clamped(per_gib, wire.iops_write_max)),
    };
    match directions == Directions::default() {
        true => Directions::shared(whole(wire.iops_max)),
        false => directions,
    }
}

/// The requested IOPS, or those included.
fn provisioned_iops(wire: &Wire, wanted: Wanted<'_>) -> Result<u64, String> {
    let (least, most) = iops_range(wire, wanted.size_bytes);
    let included = wire.iops_included.map(|included| amount::of(included, 1));
    choose("IOPS", wanted.iops.or(included), least, most, 1)
}

/// The range of IOPS to choose from, at a size.
pub(crate) fn iops_range(wire: &Wire, size_bytes: u64) -> (u64, u64) {
    let size_bytes = rated_bytes(wire, size_bytes);
    let whole = |figure: Option<f64>| figure.map(|figure| amount::of(figure, 1));
    let by_size = |ratio: Option<f64>| ratio.map(|ratio| amount::linear(0.0, (ratio, GIB), size_bytes, 1));
    if let Some(extra) = whole(wire.iops_extra_max) {
        let wanted = Wanted { size_bytes, tier: None, iops: None, bytes_per_second: None };
        let base = baseline_iops(wire, wanted).shared.unwrap_or_default();
        let is_sold = wire.iops_extra_from_gib.is_none_or(|least| size_bytes >= amount::gib(least));
        let totals = [whole(wire.iops_total_max), by_size(wire.iops_total_per_gib_max)];
        let most = totals.into_iter().flatten().fold(base.saturating_add(extra), u64::min);
        return (base, if is_sold { most.max(base) } else { base });
    }
    let mut steps = wire.iops_provisioned_by_size.iter();
    if let Some(step) = steps.rfind(|step| size_bytes >= amount::gib(step.from_gib)) {
        return (amount::of(step.least, 1), amount::of(step.most, 1));
    }
    let included = whole(wire.iops_included);
    let least = whole(wire.iops_provisioned_min).or(included).unwrap_or(1);
    let least = least.max(by_size(wire.iops_provisioned_per_gib_min).unwrap_or(0));
    let most = by_size(wire.iops_provisioned_per_gib_max).unwrap_or(u64::MAX);
    let most = most.min(whole(wire.iops_provisioned_max).unwrap_or(u64::MAX));
    (least, most.max(included.unwrap_or(0)))
}

fn throughput(wire: &Wire, wanted: Wanted<'_>, unit: u64, iops: u64) -> Result<Directions, String> {
    let bytes = |figure: Option<f64>| figure.map(|figure| amount::of(figure, unit));
    if wire.throughput_by_iops.is_empty() && wire.throughput_provisioned_max.is_some() {
        return provisioned_bytes(wire, wanted, unit, iops).map(|bytes| Directions::shared(Some(bytes)));
    }
    if wanted.bytes_per_second.is_some() {
        return Err("its bandwidth cannot be chosen: omit it".to_owned());
    }
    if let Some(tier) = wanted.tier {
        return Ok(Directions::shared(bytes(tier.throughput)));
    }
    let steps = wire.throughput_by_iops.iter().filter(|step| iops > amount::of(step.above_iops, 1));
    let by_iops = steps
        .map(|step| {
            amount::of(step.per_iops, iops.saturating_mul(unit)).min(amount::of(step.throughput_max, unit))
        })
        .max();
    let mut size_steps = wire.throughput_by_size.iter();
    let by_size =
        size_steps.rfind(|step| step.above_gib == 0.0 || wanted.size_bytes > amount::gib(step.above_gib));
    let clamp = |level: u64, most: Option<f64>| {
        level.max(bytes(wire.throughput_min).unwrap_or(0)).min(bytes(most).unwrap_or(u64::MAX))
    };
    if let (Some(read), Some(write)) = (wire.throughput_read_per_gib, wire.throughput_write_per_gib) {
        let of = |slope: f64, most: Option<f64>| {
            let intercept = wire.throughput_intercept.unwrap_or_default();
            let level = amount::linear(intercept, (slope, GIB), wanted.size_bytes, unit);
            Some(clamp(level, most.or(wire.throughput_max)))
        };
        let (read, write) = (of(read, wire.throughput_read_max), of(write, wire.throughput_write_max));
        return Ok(Directions { shared: None, read, write });
    }
    let per_gib = wire.throughput_per_gib.map(|figure| (figure, GIB));
    let slope = per_gib.or(wire.throughput_per_tib.map(|figure| (figure, TIB)));
    let linear = slope.map(|slope| {
        amount::linear(wire.throughput_intercept.unwrap_or_default(), slope, wanted.size_bytes, unit)
    });
    if wire.throughput_read_max.is_some() || wire.throughput_write_max.is_some() {
        let of = |most: Option<f64>| linear.map_or(bytes(most), |level| Some(clamp(level, most)));
        return Ok(Directions {
            shared: None,
            read: of(wire.throughput_read_max),
            write: of(wire.throughput_write_max),
        });
    }
    let linear = linear.map(|level| clamp(level, wire.throughput_max));
    let stepped = by_iops.or(by_size.map(|step| amount::of(step.throughput, unit)));
    Ok(Directions::shared(stepped.or(linear).or(bytes(wire.throughput_max))))
}

/// The requested bandwidth, or the included one.
fn provisioned_bytes(wire: &Wire, wanted: Wanted<'_>, unit: u64, iops: u64) -> Result<u64, String> {
    let (least, most) = bytes_range(wire, wanted.size_bytes, iops);
    let included = wire.throughput_included.map(|included| amount::of(included, unit));
    let chosen = wanted.bytes_per_second.or(included.map(|included| included.max(least)));
    choose("bandwidth", chosen, least, most, unit)
}

/// The range of bandwidth to choose from, at a size and with these IOPS.
pub(crate) fn bytes_range(wire: &Wire, size_bytes: u64, iops: u64) -> (u64, u64) {
    let unit = wire.unit_bytes();
    let bytes = |figure: Option<f64>| figure.map(|figure| amount::of(figure, unit));
    let ratio =
        |figure: Option<f64>, of: u64| figure.map(|figure| amount::of(figure, of.saturating_mul(unit)));
    let by_size =
        |figure: Option<f64>| figure.map(|per_tib| amount::linear(0.0, (per_tib, TIB), size_bytes, unit));
    let included = bytes(wire.throughput_included);
    let lows = [
        bytes(wire.throughput_provisioned_min).or(included),
        ratio(wire.throughput_per_provisioned_iops_min, iops),
        by_size(wire.throughput_provisioned_per_tib_min),
    ];
    let highs = [
        bytes(wire.throughput_provisioned_max),
        ratio(wire.throughput_per_provisioned_iops_max, iops),
        by_size(wire.throughput_provisioned_per_tib_max),
    ];
    let least = lows.into_iter().flatten().max().unwrap_or(1);
    let most = highs.into_iter().flatten().min().unwrap_or(u64::MAX).max(included.unwrap_or(0));
    (least, most)
}

/// True if bandwidth is provisioned.
pub(crate) fn chooses_bytes(wire: &Wire) -> bool {
    wire.iops_per_provisioned_throughput.is_some()
        || wire.throughput_by_iops.is_empty() && wire.throughput_provisioned_max.is_some()
}

/// True if IOPS are provisioned, or bought beyond the baseline.
pub(crate) fn chooses_iops(wire: &Wire) -> bool {
    let is_provisioned = wire.iops_model == IopsModel::Provisioned;
    is_provisioned && wire.iops_per_provisioned_throughput.is_none() || wire.iops_extra_max.is_some()
}

/// `chosen` if it is in the range; the message is in `unit`s.
fn choose(what: &str, chosen: Option<u64>, least: u64, most: u64, unit: u64) -> Result<u64, String> {
    let name = match unit {
        1 => String::new(),
        1_000_000 => " MB/s".to_owned(),
        _ => " MiB/s".to_owned(),
    };
    let range = format!("between {} and {}{name}", least / unit, most / unit);
    match chosen {
        Some(chosen) if (least..=most).contains(&chosen) => Ok(chosen),
        Some(chosen) => Err(format!("{what} must be {range}; got {}{name}", chosen / unit)),
        None => Err(format!("its {what} must be chosen, {range}")),
    }
}
