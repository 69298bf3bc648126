//! Which types of the catalogue a volume that was identified may be, the nearest first.

use std::path::Path;

use fathom_analysis::identified::candidate::{
    CHOSEN, Candidate, LIKELY, OTHER_SIZE, SizeImplied, differing, distance,
};
use fathom_analysis::identified::{EachWay, Identified};
use fathom_catalog::{
    Catalog, CatalogEntry, Constraints, FoundVolume, Lifecycle, MeasuredVolume, Parameters, Resemblance,
    SizeSteps,
};
use fathom_record::{Finding, FindingId, RunHeader, Severity};

use crate::catalogue::VolumeTypes;
use crate::identify::KnownVolume;
use crate::simulated::{SimulatedVolume, is_simulated};

/// Most candidates in the result.
const MOST: usize = 8;
/// A size that differs by less is the same: file systems and partitions keep something for themselves.
const SAME_SIZE: f64 = 0.02;

/// The nearest types of `catalog` to `found`, which has `size_bytes` where that is known.
///
/// A volume of a type is first looked for at that size. Where another size fits better by more than [`OTHER_SIZE`] it is reported
/// of, with so much added to its distance: the target may be a part of a volume.
pub fn candidates(catalog: &Catalog, found: &Identified, size_bytes: Option<u64>) -> Vec<Candidate> {
    if distance_is_empty(found) {
        return Vec::new();
    }
    let mut near: Vec<(Candidate, Lifecycle)> = catalog
        .entries()
        .filter_map(|entry| Some((candidate(entry, found, size_bytes)?, entry.lifecycle())))
        .collect();
    let rank = |lifecycle: Lifecycle| match lifecycle {
        Lifecycle::Current => 0,
        Lifecycle::Previous => 1,
        Lifecycle::Historical => 2,
    };
    // Of those that are equally near the one that can be bought.
    let key = |(candidate, lifecycle): &(Candidate, Lifecycle)| {
        ((candidate.distance * 1e4).round() as u64, rank(*lifecycle))
    };
    near.sort_by(|one, other| key(one).cmp(&key(other)).then_with(|| one.0.id.cmp(&other.0.id)));
    near.into_iter().map(|(candidate, _)| candidate).take(MOST).collect()
}

fn distance_is_empty(found: &Identified) -> bool {
    distance(found, &fathom_volume::VolumeModel::unlimited(1 << 30)).is_none()
}

/// What contradicts the published rule of the type that the label `type`, or an expectation, names: no volume of it behaves like
/// what was `found`.
pub(crate) fn rule_differs(catalog: &Catalog, header: &RunHeader, found: &Identified) -> Option<Finding> {
    let size = header.conditions.target.devices.first().map(|device| device.size_bytes);
    let named = KnownVolume::named_by(catalog, &header.labels, &header.expectations, size);
    let known = named.and_then(|named| Some((named.offered?, named.model)));
    let chooses = |parameters: &Parameters| parameters.iops.or(parameters.bytes_per_second).is_some();
    let (entry, model) = match known {
        Some(((entry, parameters), model)) if chooses(&parameters) => (entry, model),
        Some(((entry, parameters), _)) => {
            (entry, nearest(entry, found, parameters.size_bytes)?.resolved.model)
        }
        None => {
            let (entry, size) = KnownVolume::labelled_type(catalog, header)?;
            (entry, nearest(entry, found, size)?.resolved.model)
        }
    };
    let differing = differing(found, &model);
    if distance(found, &model)? <= LIKELY || differing.is_empty() {
        return None;
    }
    let (id, read) = (entry.id(), entry.as_of());
    Some(Finding {
        id: FindingId::RuleDiffers,
        severity: Severity::Warning,
        claim: format!("No volume of type {id} has these figures: {}.", differing.join("; ")),
        remedy: Some(format!(
            "Its rule was read in {read} and may have changed, or the volume is of another type: `fathom catalog \
             show {id}` has the source."
        )),
        ..Finding::default()
    })
}

/// The volume of this type that is nearest, of this size where it is known.
fn nearest(entry: &CatalogEntry, found: &Identified, size_bytes: Option<u64>) -> Option<FoundVolume> {
    // More than the type offers resembles its maximum.
    let known = |each: &EachWay, most: Option<f64>| {
        let value = each.named().find_map(|(_, figure)| figure.value())?;
        Some(most.map_or(value, |most| value.min(most)))
    };
    let (most_iops, most_bytes) = entry.most();
    let measured = MeasuredVolume {
        size_bytes,
        iops: known(&found.iops, most_iops),
        bytes_per_second: known(&found.bytes_per_second, most_bytes),
    };
    let apart = |model: &fathom_volume::VolumeModel| distance(found, model);
    let asked = Resemblance { measured, distance: &apart, chosen: CHOSEN, steps: SizeSteps::Fine };
    entry.search(Constraints::Resembles(&asked)).ok()
}

/// The volume of this type that is nearest.
fn candidate(entry: &CatalogEntry, found: &Identified, size_bytes: Option<u64>) -> Option<Candidate> {
    let cost = |alike: &FoundVolume| alike.distance + f64::from(alike.chosen) * CHOSEN;
    let at_the_targets = size_bytes.and_then(|_| nearest(entry, found, size_bytes));
    let any = || nearest(entry, found, None);
    let is_near = at_the_targets.as_ref().is_some_and(|alike| cost(alike) <= OTHER_SIZE);
    let other = if is_near { None } else { any() };
    let extra = |alike: &FoundVolume| if fits(alike, size_bytes) { 0.0 } else { OTHER_SIZE };
    let alike = at_the_targets
        .into_iter()
        .chain(other)
        .min_by(|one, other| (cost(one) + extra(one)).total_cmp(&(cost(other) + extra(other))))?;
    let size = SizeImplied {
        bytes: alike.resolved.model.size_bytes,
        low_bytes: alike.sizes.0,
        high_bytes: alike.sizes.1,
        is_target_size: size_bytes.map(|_| fits(&alike, size_bytes)),
    };
    Some(Candidate {
        id: entry.id().to_owned(),
        provider: entry.provider().to_owned(),
        type_name: entry.type_name().to_owned(),
        lifecycle: entry.lifecycle().to_string(),
        distance: cost(&alike) + extra(&alike),
        size: (!alike.is_any_size).then_some(size),
        provisioned_iops: alike.parameters.iops,
        provisioned_bytes_per_second: alike.parameters.bytes_per_second,
        on_demand: alike.parameters.on_demand,
        tier: alike.parameters.tier,
    })
}

/// The size of the volume that a run measured, bytes; `None` where it is made of several, or not known.
pub fn volume_size(header: &RunHeader, types: &VolumeTypes) -> Option<u64> {
    let name = Path::new(&header.target);
    if is_simulated(name) {
        return SimulatedVolume::named(name, types).ok().map(|volume| volume.size());
    }
    let devices = &header.conditions.target.devices;
    let mut device = devices.first()?;
    // A partition or mapping is a part of what it lies on.
    while ["partition", "dm"].contains(&device.kind.as_str()) {
        let mut below = devices.iter().filter(|other| other.under.as_ref() == Some(&device.name));
        match (below.next(), below.next()) {
            (Some(one), None) => device = one,
            (None, _) => break,
            (Some(_), Some(_)) => return None,
        }
    }
    Some(device.size_bytes).filter(|&size| size > 0)
}

/// True where the volume may have the target's size.
fn fits(alike: &FoundVolume, size_bytes: Option<u64>) -> bool {
    let Some(size) = size_bytes else { return true };
    let (low, high) = alike.sizes;
    (low as f64 * (1.0 - SAME_SIZE)..=high as f64 * (1.0 + SAME_SIZE)).contains(&(size as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_analysis::estimate::Estimate;
    use fathom_analysis::identified::{BucketUnit, Burst, Figure, IoScope};
    use fathom_catalog::{Parameters, Resolved};
    use fathom_record::DeviceRecord;
    use fathom_volume::{Limit, LimitStage, VolumeModel};

    fn exactly(value: f64) -> Figure {
        Figure::known(value, value, value)
    }

    /// What there is to be seen of a volume by whoever sees everything.
    fn seen(model: &VolumeModel) -> Identified {
        let peak = |limit: Option<Limit>| limit.and_then(|limit| limit.peak()).map(|rate| rate.as_f64());
        let least = |own: &[LimitStage], of: &dyn Fn(&LimitStage) -> Option<f64>| {
            let least = model.shared.iter().chain(own).filter_map(of).min_by(f64::total_cmp);
            Some(least.map_or_else(|| Figure::bound(Estimate::AtLeast(1.0), "no limit"), exactly))
        };
        let each = |of: &dyn Fn(&LimitStage) -> Option<f64>| EachWay {
            read: least(&model.reads, of),
            write: least(&model.writes, of),
        };
        let requests = |stage: &LimitStage| {
            let unit = stage.accounting.unit_bytes.filter(|_| stage.accounting.whole_units);
            let by_unit = unit.and_then(|unit| Some(peak(stage.bytes)? / f64::from(unit)));
            [peak(stage.ios), by_unit].into_iter().flatten().min_by(f64::total_cmp)
        };
        let bucket = |limit: Option<Limit>, unit| match limit? {
            Limit::Credit { base, burst, capacity, .. } => Some(Burst {
                unit,
                scope: IoScope::Both,
                burst_rate: exactly(burst?.as_f64()),
                baseline_rate: exactly(base.as_f64()),
                capacity: exactly(capacity as f64),
                refill_rate: exactly(base.as_f64()),
                seconds_to_empty: exactly(1.0),
                seconds_to_refill: exactly(1.0),
            }),
            _ => None,
        };
        let of_stage =
            |stage: &LimitStage| [bucket(stage.ios, BucketUnit::Ios), bucket(stage.bytes, BucketUnit::Bytes)];
        let is_apart = !model.reads.is_empty() || !model.writes.is_empty();
        Identified {
            iops: each(&requests),
            bytes_per_second: each(&|stage| peak(stage.bytes)),
            shares_limits: (model.shared.is_empty() || !is_apart).then_some(!is_apart),
            bursts: model.shared.iter().flat_map(of_stage).flatten().collect(),
            longest_peak_ns: Some(2_400_000_000_000),
            ..Identified::default()
        }
    }

    fn resolved(id: &str, gib: u64) -> Resolved {
        let size_bytes = Some(gib << 30);
        let parameters = Parameters { size_bytes, ..Parameters::default() };
        Catalog::shipped().get(id).unwrap().resolve(&parameters).unwrap()
    }

    fn nearest(id: &str, gib: u64, known: bool) -> Candidate {
        let found = seen(&resolved(id, gib).model);
        candidates(Catalog::shipped(), &found, known.then_some(gib << 30)).remove(0)
    }

    #[test]
    fn gp2_of_50_gib_is_what_it_is() {
        for known in [true, false] {
            let first = nearest("aws-gp2", 50, known);
            assert_eq!((first.id.as_str(), first.provisioned_iops), ("aws-gp2", None), "{first:?}");
            let size = first.size.unwrap();
            assert_eq!((size.bytes, size.is_target_size), (50 << 30, known.then_some(true)));
            assert!(first.distance < 1e-9);
        }
    }

    #[test]
    fn a_rule_that_has_changed_is_told_and_one_that_holds_is_not() {
        let claim = |named: &str, found: &Identified| {
            let labels = [("type".to_owned(), named.to_owned())].into();
            let header = RunHeader { labels, ..RunHeader::default() };
            rule_differs(Catalog::shipped(), &header, found).map(|found| found.claim)
        };
        let of = |name: &str| {
            seen(&fathom_catalog::SimulatedTarget::parse(Catalog::shipped(), name).unwrap().model)
        };
        // Before 2025 gp3 ended at 16,000 IOPS; what a chosen rate gives is within the rule, and beyond its end is not.
        assert_eq!(claim("aws-gp3?size=1000GiB", &of("aws-gp3?size=1000GiB&iops=40000")), None);
        assert_eq!(claim("aws-gp2?size=50GiB", &of("aws-gp2?size=50GiB")), None);
        let beyond = of("custom?iops=200000&bandwidth=2000MiB");
        let told = claim("aws-gp3?size=1000GiB", &beyond).unwrap();
        assert!(
            told.contains("No volume of type aws-gp3")
                && told.contains("200,000 IOPS found, 80,000 IOPS published"),
            "{told}"
        );
        // The label states what was chosen.
        let old = claim("aws-gp3?size=1000GiB&iops=40000", &of("aws-gp3?size=1000GiB&iops=16000")).unwrap();
        assert!(old.contains("16,000 IOPS found, 40,000 IOPS published"), "{old}");
        // Another baseline and other credits.
        let other = claim(
            "aws-gp2?size=50GiB",
            &of("custom?iops=300&burst_iops=3000&bucket_ios=1000000&bandwidth=128MiB"),
        );
        assert!(other.is_some_and(|told| {
            told.contains("a baseline of 300 IOPS found, a baseline of 150 IOPS published")
        }));
        assert_eq!(claim("unheard-of", &beyond), None);
    }

    #[test]
    fn a_part_of_a_volume_implies_the_size_of_the_whole() {
        let found = seen(&resolved("aws-gp2", 50).model);
        let first = candidates(Catalog::shipped(), &found, Some(10 << 30)).remove(0);
        let size = first.size.unwrap();
        assert_eq!((first.id.as_str(), size.bytes, size.is_target_size), ("aws-gp2", 50 << 30, Some(false)));
        assert!((first.distance - OTHER_SIZE).abs() < 1e-9);
    }

    #[test]
    fn every_type_with_a_model_is_nearest_to_itself_or_its_equal() {
        let catalog = Catalog::shipped();
        let mut tried = 0;
        for entry in catalog.entries() {
            for gib in [50, 1000] {
                let size_bytes = Some(gib << 30);
                let Ok(volume) = entry.resolve(&Parameters { size_bytes, ..Parameters::default() }) else {
                    continue;
                };
                if entry.is_as_measured() {
                    continue;
                }
                tried += 1;
                let found = seen(&volume.model);
                if distance_is_empty(&found) {
                    continue;
                }
                let all = candidates(catalog, &found, size_bytes);
                let own = all.iter().find(|candidate| candidate.id == entry.id());
                let own = own.unwrap_or_else(|| panic!("{} {gib}: {all:#?}", entry.id()));
                assert!(own.distance <= all[0].distance + 1e-9, "{} {gib}: {all:#?}", entry.id());
            }
        }
        assert!(tried > 50, "{tried}");
    }

    #[test]
    fn the_volume_is_the_disk_below_a_partition() {
        let device = |name: &str, kind: &str, under: Option<&str>, size_bytes: u64| DeviceRecord {
            name: name.to_owned(),
            kind: kind.to_owned(),
            under: under.map(str::to_owned),
            size_bytes,
            ..DeviceRecord::default()
        };
        let check = |devices: Vec<DeviceRecord>, expected: Option<u64>| {
            let mut header = RunHeader::default();
            header.conditions.target.devices = devices;
            assert_eq!(volume_size(&header, &VolumeTypes::default()), expected);
        };
        check(vec![], None);
        check(vec![device("sda", "disk", None, 9)], Some(9));
        check(vec![device("sda1", "partition", None, 5), device("sda", "disk", Some("sda1"), 9)], Some(9));
        check(vec![device("loop0", "loop", None, 5), device("sda", "disk", Some("loop0"), 9)], Some(5));
        let two = [device("sda", "disk", Some("dm-0"), 9), device("sdb", "disk", Some("dm-0"), 9)];
        check([vec![device("dm-0", "dm", None, 18)], two.to_vec()].concat(), None);
        let target = "sim:custom?size=3GiB&iops=5".to_owned();
        let header = RunHeader { target, ..RunHeader::default() };
        assert_eq!(volume_size(&header, &VolumeTypes::default()), Some(3 << 30));
    }

    #[test]
    fn nothing_found_is_no_candidate() {
        assert_eq!(candidates(Catalog::shipped(), &Identified::default(), None), []);
    }
}
