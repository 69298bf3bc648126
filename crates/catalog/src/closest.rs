//! The volume of a type that is closest to a measured one: a search over its sizes and choices.
//!
//! The caller gives the distance.

use fathom_volume::VolumeModel;

use crate::amount::GIB;
use crate::entry::CatalogEntry;
use crate::resolve::Parameters;
use crate::wire::{BurstKind, IopsModel, ThroughputUnit};

/// Ratio of the sizes that are tried first.
const STEP: f64 = 1.1;
/// Largest size if none is published.
const LARGEST: u64 = 1 << 47;
/// Sizes whose distance is within this of the minimum fit equally well.
const TOLERANCE: f64 = 0.005;
/// Largest relative difference between a measured figure and the round figure assumed for it.
const ROUNDING: f64 = 0.015;

/// The measurements of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredVolume {
    /// Its size, if it is known.
    pub size_bytes: Option<u64>,
    /// Its highest IOPS.
    pub iops: Option<f64>,
    /// Its highest bandwidth, bytes per second.
    pub bytes_per_second: Option<f64>,
}

/// The closest volume of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosestVolume {
    /// Its parameters.
    pub parameters: Parameters,
    /// Its size, bytes: the smallest of those that are equally close.
    pub size_bytes: u64,
    /// The smallest and largest size that are equally close, bytes.
    pub sizes: (u64, u64),
    /// True if all sizes of this type are equally close.
    pub is_any_size: bool,
    /// Its distance, without the cost of chosen figures.
    pub distance: f64,
    /// Number of figures that were chosen to fit.
    pub chosen: u32,
}

/// One choice of a type's options, for any size.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeChoice {
    tier: Option<String>,
    iops: Option<u64>,
    bytes_per_second: Option<u64>,
    on_demand: bool,
}

impl CatalogEntry {
    /// The volume of this type with the least `distance`; each chosen figure adds `chosen`. `None` if no volume can be
    /// simulated, or none has a distance.
    pub fn closest_volume(
        &self,
        measured: &MeasuredVolume,
        chosen: f64,
        distance: &dyn Fn(&VolumeModel) -> Option<f64>,
    ) -> Option<ClosestVolume> {
        if self.unmodelled().is_some() || self.is_as_measured() {
            return None;
        }
        let found = self.choices(measured).into_iter().filter_map(|choice| {
            let search = TypeSearch { entry: self, choice, distance };
            match measured.size_bytes {
                Some(size) => search.at_size(size),
                None => search.over_sizes(),
            }
        });
        let cost = |found: &ClosestVolume| found.distance + f64::from(found.chosen) * chosen;
        found.min_by(|one, other| cost(one).total_cmp(&cost(other)))
    }

    /// The possible choices, the simplest first.
    pub(crate) fn choices(&self, measured: &MeasuredVolume) -> Vec<TypeChoice> {
        let wire = &self.wire;
        if matches!(wire.iops_model, IopsModel::TieredByInstance | IopsModel::TieredByCount) {
            let named = |tier: &crate::wire::Tier| TypeChoice {
                tier: Some(tier.name.clone()),
                ..TypeChoice::default()
            };
            return wire.tiers.iter().map(named).collect();
        }
        if wire.tiers.iter().any(|tier| tier.burst_kind == Some(BurstKind::OnDemand)) {
            return vec![TypeChoice::default(), TypeChoice { on_demand: true, ..TypeChoice::default() }];
        }
        let per_throughput = wire.iops_per_provisioned_throughput;
        let is_by_throughput = per_throughput.is_some();
        let can_iops = wire.iops_model == IopsModel::Provisioned && !is_by_throughput;
        let can_bytes = wire.throughput_provisioned_max.is_some();
        let unit = wire.throughput_unit.map_or(1, ThroughputUnit::bytes);
        let iops = figures(measured.iops.filter(|_| can_iops), &[100, 1]);
        // If IOPS follow from bandwidth, bandwidth is derived from the measured IOPS.
        let by_iops = || Some(measured.iops? / per_throughput? * unit as f64);
        let bytes = measured.bytes_per_second.or_else(by_iops);
        let bytes = figures(bytes.filter(|_| can_bytes), &[unit]);
        let one = |iops: Option<u64>| {
            let with = move |bytes_per_second| TypeChoice { iops, bytes_per_second, ..TypeChoice::default() };
            bytes.clone().into_iter().map(with)
        };
        iops.into_iter().flat_map(one).collect()
    }
}

impl TypeChoice {
    /// The parameters of a volume of this size.
    pub(crate) fn parameters(&self, size_bytes: u64) -> Parameters {
        Parameters {
            size_bytes: Some(size_bytes),
            iops: self.iops,
            bytes_per_second: self.bytes_per_second,
            tier: self.tier.clone(),
            on_demand: self.on_demand,
            ..Parameters::default()
        }
    }
}

/// `None`, and the measured figure in whole units of the first unit that is close enough.
fn figures(measured: Option<f64>, units: &[u64]) -> Vec<Option<u64>> {
    let near = |value: f64, unit: u64| {
        let rounded = ((value / unit as f64).round() as u64).saturating_mul(unit);
        let is_near = (rounded as f64 - value).abs() <= value * ROUNDING;
        (rounded > 0 && is_near).then_some(rounded)
    };
    let figure = measured.and_then(|value| units.iter().find_map(|&unit| near(value, unit)));
    std::iter::once(None).chain(figure.map(Some)).collect()
}

struct TypeSearch<'a> {
    entry: &'a CatalogEntry,
    choice: TypeChoice,
    distance: &'a dyn Fn(&VolumeModel) -> Option<f64>,
}

impl TypeSearch<'_> {
    fn distance(&self, size_bytes: u64) -> Option<f64> {
        let resolved = self.entry.resolve(&self.choice.parameters(size_bytes)).ok()?;
        (self.distance)(&resolved.model)
    }

    fn closest(&self, size_bytes: u64, sizes: (u64, u64), distance: f64) -> ClosestVolume {
        let TypeChoice { iops, bytes_per_second, on_demand, .. } = &self.choice;
        let chosen = [iops, bytes_per_second].into_iter().flatten().count() as u32 + u32::from(*on_demand);
        let parameters = self.choice.parameters(size_bytes);
        ClosestVolume { parameters, size_bytes, sizes, is_any_size: false, distance, chosen }
    }

    fn at_size(&self, size: u64) -> Option<ClosestVolume> {
        Some(self.closest(size, (size, size), self.distance(size)?))
    }

    /// The closest of all sizes in whole GiB.
    fn over_sizes(&self) -> Option<ClosestVolume> {
        let gib = |bytes: u64| bytes.div_ceil(GIB).max(1);
        let (least, most) = self.entry.size_range();
        let (least, most) = (gib(least.unwrap_or(GIB)), most.unwrap_or(LARGEST).max(GIB) / GIB);
        let mut sizes = Vec::new();
        let mut size = least;
        while size < most {
            sizes.push(size);
            size = ((size as f64 * STEP) as u64).max(size + 1);
        }
        sizes.push(most.max(least));
        let at = |gib: u64| self.distance(gib * GIB);
        let known: Vec<(u64, f64)> = sizes.iter().filter_map(|&gib| Some((gib, at(gib)?))).collect();
        let index = (0..known.len()).min_by(|&a, &b| known[a].1.total_cmp(&known[b].1))?;
        let below = known[index.saturating_sub(1)].0;
        let above = known.get(index + 1).map_or(known[index].0, |next| next.0);
        let (best, distance) = self.refined((below, known[index].0, above), known[index].1);
        let fits = |gib: u64| at(gib).is_some_and(|other| other <= distance + TOLERANCE);
        let low = edge(best, known.iter().rev().map(|(gib, _)| *gib).filter(|&gib| gib < best), &fits);
        let high = edge(best, known.iter().map(|(gib, _)| *gib).filter(|&gib| gib > best), &fits);
        let is_any_size = known.first().is_some_and(|first| low <= first.0)
            && known.last().is_some_and(|last| high >= last.0)
            && known.len() > 1;
        let found = self.closest(best * GIB, (low * GIB, high * GIB), distance);
        Some(ClosestVolume { is_any_size, ..found })
    }

    /// The closest size between two others, and its distance, which falls and then grows.
    fn refined(&self, (below, from, above): (u64, u64, u64), distance: f64) -> (u64, f64) {
        let mut best = (from, distance);
        let (mut low, mut high) = (below, above);
        while low < high {
            let step = ((high - low) / 16).max(1);
            for gib in (low..=high).step_by(usize::try_from(step).unwrap_or(1)) {
                let distance = self.distance(gib * GIB).unwrap_or(f64::INFINITY);
                if distance < best.1 - 1e-12 || (distance <= best.1 + 1e-12 && gib < best.0) {
                    best = (gib, distance.min(best.1));
                }
            }
            if step == 1 {
                break;
            }
            (low, high) = (best.0.saturating_sub(step).max(below), (best.0 + step).min(above));
        }
        best
    }
}

/// The farthest size on one side of `best` up to which all fit; `outwards` are the sizes on that side, the closest
/// first.
fn edge(best: u64, outwards: impl Iterator<Item = u64>, fits: &dyn Fn(u64) -> bool) -> u64 {
    let mut inside = best;
    for gib in outwards {
        if fits(gib) {
            inside = gib;
            continue;
        }
        // Between the last that fits and the first that does not.
        let mut outside = gib;
        while inside.abs_diff(outside) > 1 {
            let middle = inside.midpoint(outside);
            if fits(middle) { inside = middle } else { outside = middle }
        }
        return inside;
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    /// The distance of the IOPS baselines.
    fn by_iops(expected: f64) -> impl Fn(&VolumeModel) -> Option<f64> {
        move |model| {
            let limit = model.shared.first()?.ios?;
            Some((limit.baseline().as_f64() / expected).ln().abs())
        }
    }

    fn check(id: &str, iops: f64, expected: (u64, u64, u64)) {
        let measured = MeasuredVolume { iops: Some(iops), ..MeasuredVolume::default() };
        let found =
            Catalog::shipped().get(id).unwrap().closest_volume(&measured, 0.01, &by_iops(iops)).unwrap();
        let (low, high) = found.sizes;
        assert_eq!((found.size_bytes / GIB, low / GIB, high / GIB), expected, "{id} {iops} {found:?}");
    }

    #[test]
    fn sizes_follow_from_iops() {
        check("aws-gp2", 150.0, (50, 50, 50));
        check("aws-gp2", 5000.0, (1667, 1659, 1675));
        // 100 is the minimum, for all sizes up to 33 GiB.
        check("aws-gp2", 100.0, (1, 1, 33));
        check("aws-gp2", 90_000.0, (5334, 5307, 16_384));
    }

    #[test]
    fn a_known_size_is_kept() {
        let measured = MeasuredVolume { size_bytes: Some(100 * GIB), ..MeasuredVolume::default() };
        let entry = Catalog::shipped().get("aws-gp2").unwrap();
        let found = entry.closest_volume(&measured, 0.01, &by_iops(150.0)).unwrap();
        assert_eq!(found.size_bytes, 100 * GIB);
        assert!((found.distance - 2f64.ln()).abs() < 1e-9);
        let tiny = MeasuredVolume { size_bytes: Some(64 << 20), ..measured };
        assert_eq!(entry.closest_volume(&tiny, 0.01, &by_iops(150.0)), None);
    }

    #[test]
    fn on_demand_bursts_are_a_choice() {
        let by_peak = |expected: f64| {
            move |model: &VolumeModel| {
                let peak = model.shared.first()?.ios?.peak()?;
                Some((peak.as_f64() / expected).ln().abs())
            }
        };
        let entry = Catalog::shipped().get("azure-premium-ssd").unwrap();
        let measured = MeasuredVolume { size_bytes: Some(1024 * GIB), ..MeasuredVolume::default() };
        let at = |iops: f64| {
            let found = entry.closest_volume(&measured, 0.01, &by_peak(iops)).unwrap();
            (found.parameters.on_demand, found.chosen)
        };
        assert_eq!(at(30_000.0), (true, 1));
        assert_eq!(at(5_000.0), (false, 0));
    }

    #[test]
    fn unmeasured_bandwidth_follows_from_iops() {
        let entry = Catalog::shipped().get("gcp-hyperdisk-throughput").unwrap();
        let measured = MeasuredVolume { iops: Some(2881.0), ..MeasuredVolume::default() };
        let found = entry.closest_volume(&measured, 0.01, &by_iops(2880.0)).unwrap();
        assert_eq!(found.parameters.bytes_per_second, Some(720 << 20));
        assert!(found.distance < 1e-9, "{found:?}");
    }

    #[test]
    fn provisioned_figures_are_chosen_as_round_numbers() {
        let entry = Catalog::shipped().get("aws-gp3").unwrap();
        let at = |iops: f64| {
            let measured = MeasuredVolume { iops: Some(iops), ..MeasuredVolume::default() };
            let found = entry.closest_volume(&measured, 0.01, &by_iops(iops)).unwrap();
            (found.parameters.iops, found.chosen)
        };
        assert_eq!(at(4989.0), (Some(5000), 1));
        // Included IOPS need no choice.
        assert_eq!(at(3004.0), (None, 0));
        assert_eq!(at(12_345.0).1, 1);
    }
}
