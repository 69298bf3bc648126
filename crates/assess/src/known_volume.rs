//! The type of the volume that a run measured, as far as it is known: of a simulated volume, by the label `type=`, or by the
//! published specification that it is checked against.

use std::collections::BTreeMap;

use fathom_catalog::{Catalog, CatalogEntry, Parameters, SimulatedTarget};
use fathom_record::{ExpectationRecord, KnownBy, RunHeader, TYPE_LABEL};
use fathom_volume::VolumeModel;

/// A volume of a known type.
pub(crate) struct KnownVolume<'a> {
    /// As it was named.
    pub(crate) name: String,
    /// The source of that knowledge.
    pub(crate) known_by: KnownBy,
    /// Its type, and the parameters of the volume; `None` for custom limits.
    pub(crate) offered: Option<(&'a CatalogEntry, Parameters)>,
    /// Its limits.
    pub(crate) model: VolumeModel,
}

impl<'a> KnownVolume<'a> {
    /// The volume of a run; `None` where its type is unknown, or several are named.
    pub(crate) fn of(catalog: &'a Catalog, header: &RunHeader) -> Option<KnownVolume<'a>> {
        let device = header.conditions.target.devices.first().map(|device| device.size_bytes);
        if SimulatedTarget::is_one(&header.target) {
            return KnownVolume::named(catalog, &header.target, KnownBy::Simulated, None);
        }
        KnownVolume::named_by(catalog, &header.labels, &header.expectations, device)
    }

    /// The volume that the label `type` names, else the only one among the sources of expectations; `device` is the size of the
    /// target's device.
    pub(crate) fn named_by(
        catalog: &'a Catalog,
        labels: &BTreeMap<String, String>,
        expectations: &[ExpectationRecord],
        device: Option<u64>,
    ) -> Option<KnownVolume<'a>> {
        if let Some(name) = labels.get(TYPE_LABEL) {
            return KnownVolume::named(catalog, name, KnownBy::Label, device);
        }
        let mut sources: Vec<&str> = expectations.iter().map(|one| one.source.as_str()).collect();
        sources.dedup();
        let named = |name: &&str| KnownVolume::named(catalog, name, KnownBy::Expectation, device);
        let mut volumes = sources.iter().filter_map(named);
        volumes.next().filter(|_| volumes.next().is_none())
    }

    /// The type that the label `type` names, and the size that it states, also where no rule of the type is known.
    pub(crate) fn labelled_type(
        catalog: &'a Catalog,
        header: &RunHeader,
    ) -> Option<(&'a CatalogEntry, Option<u64>)> {
        let target = SimulatedTarget::parse(catalog, header.labels.get(TYPE_LABEL)?).ok()?;
        Some((catalog.get(&target.id)?, target.chosen?.size_bytes))
    }

    /// The id of its type.
    pub(crate) fn type_name(&self) -> &str {
        self.offered.as_ref().map_or("the volume", |(entry, _)| entry.id())
    }

    /// The type of the instance in its name.
    pub(crate) fn instance(&self) -> Option<&str> {
        instance_in(&self.name)
    }

    fn named(
        catalog: &'a Catalog,
        name: &str,
        known_by: KnownBy,
        device: Option<u64>,
    ) -> Option<KnownVolume<'a>> {
        let target = SimulatedTarget::parse(catalog, &without_rested(name)).ok()?;
        let known = |offered, model| KnownVolume { name: name.to_owned(), known_by, offered, model };
        let Some(mut parameters) = target.chosen else { return Some(known(None, target.model)) };
        let entry = catalog.get(&target.id)?;
        // No rule is published of it that a real volume would follow.
        if entry.is_as_measured() && known_by != KnownBy::Simulated {
            return None;
        }
        if parameters.size_bytes.is_some() || known_by == KnownBy::Simulated {
            parameters.size_bytes.get_or_insert(target.model.size_bytes);
            return Some(known(Some((entry, parameters)), target.model));
        }
        // With its size the name still has the limits of an instance.
        let name = without_rested(name);
        let separator = if name.contains('?') { '&' } else { '?' };
        let sized = format!("{name}{separator}size={}", device?);
        let model = SimulatedTarget::parse(catalog, &sized).ok()?.model;
        parameters.size_bytes = device;
        Some(known(Some((entry, parameters)), model))
    }
}

/// The name of a volume without the state of its credits, which published specifications may have.
fn without_rested(volume: &str) -> String {
    let (id, rest) = volume.split_once('?').unwrap_or((volume, ""));
    let parts: Vec<&str> = rest.split('&').filter(|part| !part.starts_with("rested=")).collect();
    if parts.concat().is_empty() { id.to_owned() } else { format!("{id}?{}", parts.join("&")) }
}

/// The type of the instance in the name of a volume.
pub(crate) fn instance_in(volume: &str) -> Option<&str> {
    volume.split(['?', '&']).find_map(|part| part.strip_prefix("instance="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_specification_names_its_instance_whatever_gives_the_size() {
        let named = |name: &str| {
            let labels = BTreeMap::from([(TYPE_LABEL.to_owned(), name.to_owned())]);
            let volume = KnownVolume::named_by(Catalog::shipped(), &labels, &[], Some(500 << 30)).unwrap();
            let stages: Vec<&str> = volume.model.shared.iter().map(|stage| stage.name.as_str()).collect();
            (volume.model.size_bytes >> 30, stages.join(" "), volume.instance().map(str::to_owned))
        };
        let m6i = Some("m6i.large".to_owned());
        for (name, expected) in [
            ("aws-gp3?size=100GiB&instance=m6i.large", (100, "instance volume".to_owned(), m6i.clone())),
            ("aws-gp3?instance=m6i.large&rested=1", (500, "instance volume".to_owned(), m6i)),
            ("aws-gp2?rested=1", (500, "volume".to_owned(), None)),
            ("aws-gp2", (500, "volume".to_owned(), None)),
        ] {
            assert_eq!(named(name), expected, "{name}");
        }
    }
}
