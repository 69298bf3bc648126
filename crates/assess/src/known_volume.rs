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
        self.name.split(['?', '&']).find_map(|part| part.strip_prefix("instance="))
    }

    fn named(
        catalog: &'a Catalog,
        name: &str,
        known_by: KnownBy,
        device: Option<u64>,
    ) -> Option<KnownVolume<'a>> {
        let target = SimulatedTarget::parse(catalog, name).ok()?;
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
        parameters.size_bytes = Some(device?);
        let model = entry.resolve(&parameters).ok()?.model;
        Some(known(Some((entry, parameters)), model))
    }
}
