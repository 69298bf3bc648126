//! A rate that is a limit of the instance, as it is published, while the volume would allow more: the rule that all commands share.

use fathom_model::{Nanos, units};
use fathom_record::{Finding, FindingId, InstanceReach};

use crate::plateau::AGREE;
use crate::say::{self, count, mebibytes};

/// Requests in flight from which on a rate may be that of a limit.
pub(crate) const QUEUE: f64 = 1.5;
/// The evidence that a known limit of an instance alone has.
pub(crate) const INSTANCE_IOPS: &str = "instance_iops";
/// The volume allows at least this share more than the instance.
const MORE: f64 = 0.05;
/// Rates of one limit differ by less.
const SAME: f64 = 1e-3;

/// A rate that is a limit of the instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstanceHold<'a> {
    reach: &'a InstanceReach,
    level: &'static str,
    /// The limit counts bytes.
    pub(crate) is_bandwidth: bool,
    /// The rate that was reached, IOPS.
    iops: f64,
    /// The published rate, IOPS.
    level_iops: f64,
    /// Mean bytes of an I/O.
    mean_bytes: f64,
}

impl<'a> InstanceHold<'a> {
    /// The limit that `iops` is, with I/Os of `mean_bytes`; `None` where it is none, or the volume allows hardly more.
    pub(crate) fn of(reach: &'a InstanceReach, iops: f64, mean_bytes: f64) -> Option<InstanceHold<'a>> {
        if reach.volume_iops.is_some_and(|volume| volume < iops * (1.0 + MORE)) {
            return None;
        }
        let sustained = if reach.burst.is_some() { "baseline" } else { "limit" };
        let burst = reach.burst.map(|burst| ("maximum", burst.iops, reach.is_burst_bandwidth));
        let levels =
            burst.into_iter().chain([(sustained, reach.sustained_iops, reach.is_sustained_bandwidth)]);
        let (level, level_iops, is_bandwidth) =
            levels.into_iter().find(|(_, level, _)| (iops / level - 1.0).abs() <= AGREE)?;
        Some(InstanceHold { reach, level, is_bandwidth, iops, level_iops, mean_bytes })
    }

    fn is_like(&self, other: &InstanceHold<'_>) -> bool {
        let published = |hold: &InstanceHold<'_>| hold.in_unit(hold.level_iops);
        self.reach.instance == other.reach.instance
            && self.level == other.level
            && self.is_bandwidth == other.is_bandwidth
            && (published(self) / published(other) - 1.0).abs() < SAME
    }

    /// A rate of these I/Os, IOPS, in the unit of the limit.
    fn in_unit(&self, iops: f64) -> f64 {
        if self.is_bandwidth { iops * self.mean_bytes } else { iops }
    }

    /// A rate in the unit of the limit.
    fn text(&self, rate: f64) -> String {
        if self.is_bandwidth { mebibytes(rate) } else { format!("{} IOPS", count(rate)) }
    }
}

/// The places of those that are held by the same limit.
pub(crate) fn alike(holds: &[InstanceHold<'_>]) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = Vec::new();
    for (index, hold) in holds.iter().enumerate() {
        match all.iter_mut().find(|others| holds[others[0]].is_like(hold)) {
            Some(others) => others.push(index),
            None => all.push(vec![index]),
        }
    }
    all
}

/// The finding that one limit of the instance, the same for all of `holds`, holds rates.
pub(crate) fn finding(holds: &[InstanceHold<'_>]) -> Finding {
    let first = &holds[0];
    let InstanceHold { reach, level, .. } = first;
    let name = if reach.instance.is_empty() { "" } else { " " };
    let mut claim = format!(
        "{} are the {level} of the instance{name}{} for this load",
        first.text(first.in_unit(first.iops)),
        reach.instance
    );
    let lasts = reach.burst.filter(|_| *level == "maximum").and_then(|burst| burst.lasts_ns);
    if let Some(ns) = lasts {
        let sustained = first.text(first.in_unit(reach.sustained_iops));
        let lasts = units::duration(Nanos(ns));
        claim += &format!(": full burst credits last {lasts}, then {sustained} remain");
    }
    let volumes = || holds.iter().filter_map(|hold| Some(hold.in_unit(hold.reach.volume_iops?)));
    let (least, most) = (volumes().reduce(f64::min), volumes().fold(0.0, f64::max));
    if let Some(least) = least {
        let at_least = if most > least * (1.0 + SAME) { "at least " } else { "" };
        claim += &format!("; the volume allows {at_least}{}", first.text(least));
    }
    let mut remedy = "Use a larger instance: `fathom catalog list --instances` has their limits.".to_owned();
    if least.is_some() {
        remedy += " On this one a larger volume is not faster.";
    }
    let found = say::finding(FindingId::InstanceCap, [], claim + ".", remedy)
        .with("instance", reach.instance.as_str())
        .with("level", *level)
        .with("limit", if first.is_bandwidth { "bandwidth" } else { "iops" })
        .with("iops", first.iops)
        .with(INSTANCE_IOPS, first.level_iops)
        .with("volume_iops", reach.volume_iops);
    match first.is_bandwidth {
        true => found.with("bytes_per_second", first.in_unit(first.iops)),
        false => found,
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::BurstRate;

    use super::*;

    /// An instance with 4,000 IOPS and 64 MiB/s in front of a volume of 16,000 IOPS and 125 MiB/s, for I/Os of so many KiB.
    fn reach(kib: f64) -> InstanceReach {
        let of = |ios: f64, mebibytes: f64| ios.min(mebibytes * 1024.0 / kib);
        InstanceReach {
            instance: "m9.large".to_owned(),
            sustained_iops: of(4000.0, 64.0),
            is_sustained_bandwidth: kib > 16.0,
            volume_iops: Some(of(16_000.0, 125.0)),
            ..InstanceReach::default()
        }
    }

    fn claims(cases: &[(InstanceReach, f64, f64)]) -> Vec<String> {
        let holds: Vec<InstanceHold<'_>> = cases
            .iter()
            .filter_map(|(reach, kib, iops)| InstanceHold::of(reach, *iops, kib * 1024.0))
            .collect();
        let of_limit = |places: &Vec<usize>| {
            finding(&places.iter().map(|place| holds[*place]).collect::<Vec<_>>()).claim
        };
        alike(&holds).iter().map(of_limit).collect()
    }

    #[test]
    fn a_limit_is_one_finding_in_its_own_unit_at_all_sizes() {
        let at = |kib: f64, iops: f64| (reach(kib), kib, iops);
        assert_eq!(
            claims(&[at(4.0, 4000.0), at(16.0, 4010.0), at(64.0, 1024.0), at(1024.0, 64.5)]),
            [
                "4,000 IOPS are the limit of the instance m9.large for this load; the volume allows at least 8,000 IOPS.",
                "64 MiB/s are the limit of the instance m9.large for this load; the volume allows 125 MiB/s.",
            ]
        );
        assert_eq!(claims(&[at(4.0, 3000.0), at(1024.0, 60.0)]), [""; 0]);
    }

    #[test]
    fn a_burst_has_a_unit_of_its_own() {
        let burst = BurstRate { iops: 2000.0, lasts_ns: Some(1_800_000_000_000), refill_ns: None };
        let reach = InstanceReach { burst: Some(burst), is_burst_bandwidth: false, ..reach(64.0) };
        assert_eq!(
            claims(&[
                (reach.clone(), 64.0, 1024.0),
                (InstanceReach { volume_iops: None, ..reach }, 64.0, 2000.0)
            ]),
            [
                "64 MiB/s are the baseline of the instance m9.large for this load; the volume allows 125 MiB/s.",
                "2,000 IOPS are the maximum of the instance m9.large for this load: full burst credits last 30 min, \
                 then 1,024 IOPS remain.",
            ]
        );
    }
}
