//! Instances: what they permit all their block volumes together, below which a volume stays whatever its own limits are.
//!
//! The limits are those of published tables, with source and date. Burst credits of an instance hold the difference between maximum
//! and baseline for half an hour, as the providers describe them; an instance whose burst rule is not published has its baseline.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use fathom_volume::{Accounting, LimitStage, VolumeModel};
use serde::Deserialize;

use crate::entry::Confidence;
use crate::limits::credit;
use crate::resolve::{part_of, stage, with_slack};

/// The name of the stage with the limits of an instance.
pub const INSTANCE_STAGE: &str = "instance";
/// The built-in file.
const FILE: &str = include_str!("../data/instances.toml");
/// Seconds at the maximum that a full bucket holds.
const BURST_S: u64 = 1_800;
/// Instances that are suggested for an unknown one.
const MAX_NEAR: usize = 6;

/// The limits of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The provider's name of the type.
    pub id: String,
    /// Virtual CPUs; `None` if unknown.
    pub vcpus: Option<u64>,
    /// Most volumes that can be attached; `None` if unknown.
    pub most_volumes: Option<u64>,
    /// I/Os per second that it sustains, and at most; `None` if unpublished.
    pub iops: Option<InstanceRates>,
    /// Bytes per second; `None` if unpublished.
    pub bytes_per_second: Option<InstanceRates>,
    /// The place of its list.
    list: usize,
}

/// The two rates of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceRates {
    /// What is sustained.
    pub baseline: u64,
    /// The maximum.
    pub maximum: u64,
}

/// What is known of the bursts of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceBurst {
    /// Burst credits for half an hour, which the unused baseline refills.
    Credits,
    /// A maximum, without a rule.
    Unpublished,
}

/// A table of one provider and date.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceList {
    /// The provider.
    pub provider: String,
    /// The volume types that it holds for: beginnings of their ids.
    types: Vec<String>,
    /// The date of the source.
    pub as_of: String,
    /// Confidence in the figures.
    pub confidence: Confidence,
    /// The source.
    pub source: String,
    /// The burst rule.
    pub burst: InstanceBurst,
    /// The source of the burst rule.
    pub burst_source: Option<String>,
    /// What else to know.
    pub note: Option<String>,
    /// Families with the figures of another one.
    #[serde(default)]
    same_as: BTreeMap<String, String>,
    /// One instance a line.
    #[serde(default)]
    rows: String,
    /// Limits that follow from the number of virtual CPUs alone.
    per_vcpu: Option<PerVcpu>,
}

/// Limits for each virtual CPU of any instance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PerVcpu {
    /// The name of an instance is this, the number, and `vcpu`.
    begin: String,
    /// Most virtual CPUs.
    vcpus: u64,
    iops: u64,
    kilobytes_per_second: u64,
    most_iops: Option<u64>,
    most_kilobytes_per_second: Option<u64>,
}

impl PerVcpu {
    fn instances(&self, list: usize) -> impl Iterator<Item = Instance> {
        let steady = |each: u64, count: u64, most: Option<u64>| {
            let rate = (each * count).min(most.unwrap_or(u64::MAX));
            InstanceRates { baseline: rate, maximum: rate }
        };
        (1..=self.vcpus).map(move |count| Instance {
            id: format!("{}{count}vcpu", self.begin),
            vcpus: Some(count),
            most_volumes: None,
            iops: Some(steady(self.iops, count, self.most_iops)),
            bytes_per_second: Some(steady(
                self.kilobytes_per_second * 1_000,
                count,
                self.most_kilobytes_per_second.map(|most| most * 1_000),
            )),
            list,
        })
    }
}

impl InstanceList {
    /// The volume types that it holds for: beginnings of their ids.
    pub fn types(&self) -> &[String] {
        &self.types
    }
}

#[derive(Deserialize)]
struct InstanceFile {
    list: Vec<InstanceList>,
}

/// The instances that are known.
#[derive(Clone, Debug, Default)]
pub struct Instances {
    lists: Vec<InstanceList>,
    instances: Vec<Instance>,
}

impl Instances {
    /// The built-in ones, parsed once.
    pub fn shipped() -> &'static Instances {
        static SHIPPED: OnceLock<Instances> = OnceLock::new();
        // A test parses the file.
        SHIPPED.get_or_init(|| Instances::parse(FILE).unwrap_or_default())
    }

    fn parse(text: &str) -> Result<Instances, String> {
        let file: InstanceFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut instances = Vec::new();
        for (list, InstanceList { rows, same_as, per_vcpu, .. }) in file.list.iter().enumerate() {
            instances.extend(per_vcpu.iter().flat_map(|rule| rule.instances(list)));
            for row in rows.lines().filter(|row| !row.is_empty()) {
                let instance = Instance::read(row, list).ok_or_else(|| format!("no instance: {row}"))?;
                let (family, size) = instance.id.split_once('.').unwrap_or((&instance.id, ""));
                let alike = same_as.iter().filter(|(_, other)| *other == family);
                let alike: Vec<Instance> = alike
                    .map(|(family, _)| Instance { id: format!("{family}.{size}"), ..instance.clone() })
                    .collect();
                instances.push(instance);
                instances.extend(alike);
            }
        }
        instances.sort_by(|one, other| (&one.id, one.list).cmp(&(&other.id, other.list)));
        Ok(Instances { lists: file.list, instances })
    }

    /// All of them by their names; one with limits of its own for some volume types stands there once for each.
    pub fn all(&self) -> impl Iterator<Item = &Instance> {
        self.instances.iter()
    }

    /// The table that an instance is from.
    pub fn list_of(&self, instance: &Instance) -> &InstanceList {
        &self.lists[instance.list]
    }

    /// The limits of the instance `id`, one for each group of volume types.
    pub fn named(&self, id: &str) -> Vec<&Instance> {
        self.instances.iter().filter(|instance| instance.id == id).collect()
    }

    /// The limits of the instance `id` on a volume of the type `volume`; of custom volumes, those on most types.
    ///
    /// # Errors
    /// There is no such instance, or it is one of another provider.
    pub fn limits_on(&self, id: &str, volume: &str) -> Result<&Instance, String> {
        let named = self.named(id);
        if named.is_empty() {
            let near = self.nearest(id);
            let near =
                if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
            return Err(format!("unknown instance '{id}'{near}"));
        }
        let length = |instance: &Instance| {
            let types = self.list_of(instance).types.iter();
            types.filter(|begin| volume.starts_with(begin.as_str())).map(String::len).max()
        };
        if volume == crate::target::CUSTOM {
            // The general list has the shortest beginning.
            let general =
                named.into_iter().min_by_key(|one| self.list_of(one).types.iter().map(String::len).min());
            return general.ok_or_else(|| format!("unknown instance '{id}'"));
        }
        let provider = &self.list_of(named[0]).provider;
        let refusal = format!(
            "{id} is an instance of {provider}: a volume of the type {volume} cannot be attached to it"
        );
        let fitting = named.into_iter().filter_map(|one| Some((length(one)?, one)));
        fitting.max_by_key(|(length, _)| *length).map(|(_, instance)| instance).ok_or(refusal)
    }

    /// The limits of the instance `id` in front of a volume of the type `volume`; without a type, those on most.
    ///
    /// # Errors
    /// As [`Instances::limits_on`].
    pub fn stage_on(&self, id: &str, volume: Option<&str>) -> Result<LimitStage, String> {
        let instance = self.limits_on(id, volume.unwrap_or(crate::target::CUSTOM))?;
        Ok(instance.stage(self.list_of(instance))?.0)
    }

    /// Puts one of `parts` equal parts of the limits of the instance `id` in front of those of a volume of the type `volume`. Returns
    /// what they assume.
    ///
    /// # Errors
    /// As [`Instances::limits_on`].
    pub(crate) fn attach(
        &self,
        id: &str,
        volume: &str,
        parts: u64,
        model: &mut VolumeModel,
    ) -> Result<Vec<String>, String> {
        let instance = self.limits_on(id, volume)?;
        let (stage, mut assumptions) = instance.stage(self.list_of(instance))?;
        model.shared.insert(0, part_of(&stage, parts)?);
        assumptions.insert(
            0,
            match parts {
                1 => format!("it is the only volume of the instance {id}"),
                _ => format!("{parts} volumes have equal parts of the limits of the instance {id}"),
            },
        );
        Ok(assumptions)
    }

    /// Names that begin like `id`.
    fn nearest(&self, id: &str) -> Vec<&str> {
        let family = id.split(['.']).next().unwrap_or_default();
        let mut near: Vec<&str> = self
            .all()
            .map(|instance| instance.id.as_str())
            .filter(|known| !family.is_empty() && known.starts_with(family))
            .collect();
        near.dedup();
        near.truncate(MAX_NEAR);
        near
    }
}

impl Instance {
    /// `ID VCPUS VOLUMES IOPS MAXIMUM KB/S MAXIMUM`; 0 is unknown.
    fn read(row: &str, list: usize) -> Option<Instance> {
        let (id, figures) = row.split_once(' ')?;
        let figures: Vec<u64> = figures.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [vcpus, volumes, iops, most_iops, kilobytes, most_kilobytes] = figures[..] else { return None };
        let known = |number: u64| (number > 0).then_some(number);
        let rates = |baseline, maximum| Some(InstanceRates { baseline: known(baseline)?, maximum });
        Some(Instance {
            id: id.to_owned(),
            vcpus: known(vcpus),
            most_volumes: known(volumes),
            iops: rates(iops, most_iops),
            bytes_per_second: rates(kilobytes * 1_000, most_kilobytes * 1_000),
            list,
        })
    }

    /// True where it has a burst above a baseline.
    pub fn has_burst(&self) -> bool {
        [self.iops, self.bytes_per_second].iter().flatten().any(|rates| rates.maximum > rates.baseline)
    }

    /// Its limits in front of a volume, and what they assume.
    ///
    /// # Errors
    /// Its limits are not possible.
    pub(crate) fn stage(&self, list: &InstanceList) -> Result<(LimitStage, Vec<String>), String> {
        let mut assumptions = Vec::new();
        let limit = |rates: Option<InstanceRates>| {
            let Some(rates) = rates else { return Ok(None) };
            let burst = (list.burst == InstanceBurst::Credits).then_some(rates.maximum);
            let capacity = rates.maximum.saturating_sub(rates.baseline).saturating_mul(BURST_S);
            credit(Some(rates.baseline), burst, capacity, capacity)
        };
        let limits = [limit(self.iops)?, limit(self.bytes_per_second)?];
        let stage = with_slack(stage(INSTANCE_STAGE, Accounting::default(), limits[0], limits[1]));
        match list.burst {
            InstanceBurst::Credits if self.has_burst() => assumptions.push(format!(
                "the burst credits of {} are full at the beginning, last 30 min at the maximum and refill at the unused \
                 baseline",
                self.id
            )),
            InstanceBurst::Unpublished if self.has_burst() => assumptions
                .push(format!("the burst rule of {} is not published: its bursts are omitted", self.id)),
            _ => {}
        }
        Ok((stage, assumptions))
    }
}

#[cfg(test)]
mod tests {
    use fathom_volume::Limit;

    use super::*;

    #[test]
    fn every_instance_has_possible_limits_and_every_list_a_source() {
        let shipped = Instances::parse(FILE).unwrap();
        assert!(shipped.instances.len() > 900);
        for instance in shipped.all() {
            let list = shipped.list_of(instance);
            assert!(!list.source.is_empty() && list.as_of.starts_with("20"), "{}", instance.id);
            assert!(list.burst == InstanceBurst::Unpublished || list.burst_source.is_some());
            assert!(instance.iops.or(instance.bytes_per_second).is_some(), "{}", instance.id);
            for rates in [instance.iops, instance.bytes_per_second].into_iter().flatten() {
                assert!(rates.baseline > 0 && rates.maximum >= rates.baseline, "{}", instance.id);
            }
            instance.stage(list).unwrap();
        }
        for pair in shipped.instances.windows(2) {
            assert!(pair[0].id != pair[1].id || pair[0].list != pair[1].list, "{} twice", pair[0].id);
        }
    }

    #[test]
    fn limits_depend_on_the_volume_type() {
        let shipped = Instances::shipped();
        let on = |volume| shipped.limits_on("Standard_E2bs_v5", volume).map(|one| one.iops.unwrap().baseline);
        let (premium, second) = (on("azure-premium-ssd").unwrap(), on("azure-premium-ssd-v2").unwrap());
        assert!(second > premium);
        assert_eq!(on("custom").unwrap(), premium);
        let error = on("aws-gp3").unwrap_err();
        assert!(error.starts_with("Standard_E2bs_v5 is an instance of Azure: a volume"), "{error}");
        let error = shipped.limits_on("m5.huge", "aws-gp3").unwrap_err();
        assert!(error.starts_with("unknown instance 'm5.huge'; did you mean m5.12xlarge"), "{error}");
        assert_eq!(shipped.limits_on("", "aws-gp3").unwrap_err(), "unknown instance ''");
    }

    #[test]
    fn limits_follow_from_the_vcpus_and_unknown_ones_limit_nothing() {
        let shipped = Instances::shipped();
        let on = |id: &str, volume: &str| {
            let instance = shipped.limits_on(id, volume).unwrap();
            let rate = |rates: Option<InstanceRates>| rates.map(|rates| rates.baseline);
            (rate(instance.iops), rate(instance.bytes_per_second))
        };
        assert_eq!(on("yandex-4vcpu", "yandex-network-ssd"), (Some(14_000), Some(180_000_000)));
        assert_eq!(on("yandex-32vcpu", "yandex-network-ssd-io-m3"), (Some(100_000), Some(1_000_000_000)));
        assert_eq!(on("oci-paravirtualized", "oci-block-ultra-high-120"), (Some(150_000), None));
        let scaleway = shipped.limits_on("DEV1-S", "scaleway-sbs-5k").unwrap();
        let (stage, _) = scaleway.stage(shipped.list_of(scaleway)).unwrap();
        assert!(stage.ios.is_none() && stage.bytes.is_some(), "{stage:?}");
    }

    #[test]
    fn credits_are_half_an_hour_of_the_difference() {
        let shipped = Instances::shipped();
        let instance = shipped.limits_on("m5.large", "aws-gp3").unwrap();
        let (stage, assumptions) = instance.stage(shipped.list_of(instance)).unwrap();
        let Some(Limit::Credit { capacity, initial, .. }) = stage.ios else { panic!("{stage:?}") };
        assert_eq!((capacity, initial), ((18_750 - 3_600) * 1_800, capacity));
        assert_eq!(assumptions.len(), 1);
        let steady = shipped.limits_on("m5.24xlarge", "aws-gp3").unwrap();
        let (stage, _) = steady.stage(shipped.list_of(steady)).unwrap();
        assert!(matches!(stage.bytes, Some(Limit::Rate(_))));
        // A family with the figures of another.
        assert_eq!(shipped.limits_on("m5d.large", "aws-gp2").unwrap().iops, instance.iops);
    }
}
