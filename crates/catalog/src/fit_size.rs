//! The smallest volume of a type that meets a need: its size, IOPS and bandwidth.
//!
//! Between two turning points of its rules a larger volume is never slower, so a binary search finds the smallest one.

use fathom_predict::serves;
use fathom_volume::VolumeModel;

use crate::amount::{self, GIB};
use crate::entry::CatalogEntry;
use crate::fit::VolumeNeed;
use crate::levels::{bytes_range, chooses_bytes, chooses_iops, iops_range};
use crate::resolve::Parameters;
use crate::sheet::turning_points;
use crate::wire::{IopsModel, ThroughputUnit};

/// Largest size to search if none is published.
pub(crate) const MOST_GIB: u64 = 65_536;
/// Highest rate to search if none is published.
const MOST_RATE: u64 = 1_000_000_000_000;
/// Rates with a smaller relative difference are equal.
const SAME: f64 = 1e-9;

/// The parameters of the smallest volume that meets the need; `None` if none does.
pub(crate) fn least(entry: &CatalogEntry, need: &VolumeNeed) -> Option<Parameters> {
    let wire = &entry.wire;
    let is_named = matches!(wire.iops_model, IopsModel::TieredByInstance | IopsModel::TieredByCount);
    if is_named {
        return wire.tiers.iter().find_map(|tier| of_tier(entry, need, Some(&tier.name)));
    }
    // A tier is bought as a whole.
    let whole = |size: Option<u64>| size.map(|size| whole_tier(entry, size));
    of_tier(entry, need, None).map(|least| Parameters { size_bytes: whole(least.size_bytes), ..least })
}

fn of_tier(entry: &CatalogEntry, need: &VolumeNeed, tier: Option<&str>) -> Option<Parameters> {
    let (least, most) = entry.size_range_gib();
    let first = need.size_bytes.div_ceil(GIB).max(least);
    let last = most.unwrap_or(first.max(MOST_GIB));
    let at = |gib: u64| choose(entry, need, gib.saturating_mul(GIB), tier);
    let mut begins = match entry.wire.iops_model {
        IopsModel::TieredBySize => tier_sizes(entry),
        _ => turning_points(&entry.wire),
    };
    begins.push(first);
    begins.retain(|gib| (first..=last).contains(gib));
    begins.sort_unstable();
    begins.dedup();
    for (index, &begin) in begins.iter().enumerate() {
        let end = begins.get(index + 1).map_or(last, |next| next - 1);
        if let Some(found) = at(begin) {
            return Some(found);
        }
        if at(end).is_none() {
            continue;
        }
        let (mut too_small, mut enough) = (begin, end);
        while enough - too_small > 1 {
            let middle = too_small + (enough - too_small) / 2;
            if at(middle).is_some() { enough = middle } else { too_small = middle }
        }
        return at(enough);
    }
    None
}

/// The size of a volume's tier, or its own size.
fn whole_tier(entry: &CatalogEntry, size_bytes: u64) -> u64 {
    let is_sized = entry.wire.iops_model == IopsModel::TieredBySize;
    let sizes =
        entry.wire.tiers.iter().filter(|_| is_sized).filter_map(|tier| tier.size_gib.map(amount::gib));
    sizes.filter(|tier| *tier >= size_bytes).min().unwrap_or(size_bytes)
}

/// The smallest size of each tier in GiB.
fn tier_sizes(entry: &CatalogEntry) -> Vec<u64> {
    let sizes = entry.wire.tiers.iter().filter_map(|tier| tier.size_gib.map(|gib| gib as u64));
    sizes.flat_map(|gib| [gib, gib + 1]).collect()
}

/// The lowest IOPS and bandwidth that meet the need at a size.
pub(crate) fn choose(
    entry: &CatalogEntry,
    need: &VolumeNeed,
    size_bytes: u64,
    tier: Option<&str>,
) -> Option<Parameters> {
    let wire = &entry.wire;
    let base = Parameters {
        size_bytes: Some(size_bytes),
        tier: tier.map(str::to_owned),
        instance: need.instance.clone(),
        ..Parameters::default()
    };
    let unit = wire.throughput_unit.map_or(1, ThroughputUnit::bytes);
    let with = |iops: Option<u64>, bytes_per_second: Option<u64>| {
        let chosen = Parameters { iops, bytes_per_second, ..base.clone() };
        let resolved = entry.resolve(&chosen).ok()?;
        meets(&resolved.model, need).then_some(chosen)
    };
    let besides = need.besides.iter().map(|(load, rate)| rate * load.mean_bytes());
    let most_bytes = besides.fold(need.iops * need.load.mean_bytes(), f64::max);
    let needed_bytes = (most_bytes * (1.0 - SAME)).ceil() as u64;
    let bytes_for = |iops: u64| {
        let (least, most) = bytes_range(wire, size_bytes, iops);
        (least <= most).then(|| needed_bytes.div_ceil(unit).saturating_mul(unit).clamp(least, most))
    };
    let with_iops = |iops: u64| {
        let bytes = if chooses_bytes(wire) { Some(bytes_for(iops)?) } else { None };
        with(Some(iops), bytes)
    };
    if wire.iops_per_provisioned_throughput.is_some() {
        let (least, most) = bytes_range(wire, size_bytes, 0);
        let range = (least.div_ceil(unit), most / unit);
        return least_of(range, |units| with(None, Some(units.saturating_mul(unit))));
    }
    if chooses_iops(wire) {
        return least_of(iops_range(wire, size_bytes), with_iops);
    }
    if chooses_bytes(wire) {
        return with(None, Some(bytes_for(0)?));
    }
    with(None, None)
}

/// The least value of a range for which `does` returns a result, if all larger ones do too.
fn least_of((least, most): (u64, u64), does: impl Fn(u64) -> Option<Parameters>) -> Option<Parameters> {
    let most = most.min(MOST_RATE);
    if least > most {
        return None;
    }
    if let Some(found) = does(least) {
        return Some(found);
    }
    let mut best = does(most)?;
    let (mut too_little, mut enough) = (least, most);
    while enough - too_little > 1 {
        let middle = too_little + (enough - too_little) / 2;
        match does(middle) {
            Some(found) => (enough, best) = (middle, found),
            None => too_little = middle,
        }
    }
    Some(best)
}

/// True if a volume meets the need, for any share of reads if that is open.
pub(crate) fn meets(model: &VolumeModel, need: &VolumeNeed) -> bool {
    serves(model, &need.load, need.iops, need.burst)
        && need.besides.iter().all(|(load, rate)| serves(model, load, *rate, None))
}
