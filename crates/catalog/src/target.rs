//! Names of simulated volumes on the command line: `sim:ID?size=50GiB&…` for a type of the catalogue, and
//! `sim:custom?iops=…` for custom limits.

use fathom_volume::{Accounting, VolumeLatency, VolumeModel};
use thiserror::Error;

use crate::catalog::Catalog;
use crate::custom;
use crate::host_cache;
use crate::instances::{INSTANCE_STAGE, Instances};
use crate::limits::plain;
use crate::parts::UnusedParts;
use crate::resolve::{Parameters, is_limited, stage, with_slack};

/// A simulated target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedTarget {
    /// The entry's id, or `custom`.
    pub id: String,
    /// The parameters of the entry; `None` for custom limits.
    pub chosen: Option<Parameters>,
    /// The model of the volume.
    pub model: VolumeModel,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The tier it belongs to.
    pub tier: Option<String>,
    /// Assumptions beyond the source.
    pub assumptions: Vec<String>,
}

/// An invalid simulated target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{target}: {reason}")]
pub struct TargetError {
    /// The name as given.
    pub target: String,
    /// The reason.
    pub reason: String,
    remedy: String,
}

impl TargetError {
    /// The remedy.
    pub fn hint(&self) -> Option<String> {
        Some(self.remedy.clone())
    }
}

/// Prefix of a simulated target.
const PREFIX: &str = "sim:";
/// The id for custom limits.
pub(crate) const CUSTOM: &str = "custom";

impl SimulatedTarget {
    /// True where `text` names a simulated volume.
    pub fn is_one(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Parses `sim:ID?KEY=VALUE&…`.
    pub fn parse(catalog: &Catalog, text: &str) -> Result<SimulatedTarget, TargetError> {
        let named = text.strip_prefix(PREFIX).unwrap_or(text);
        let (id, rest) = named.split_once('?').unwrap_or((named, ""));
        let refuse = |reason| TargetError { target: text.to_owned(), reason, remedy: remedy(catalog, id) };
        if id.is_empty() {
            return Err(refuse("no volume type given".to_owned()));
        }
        let mut parts = UnusedParts::read(rest).map_err(refuse)?;
        let target = if id == CUSTOM {
            custom::read(&mut parts)
        } else {
            SimulatedTarget::of_catalog(catalog, id, &mut parts)
        };
        let mut target = target.map_err(refuse)?;
        target.add_common(&mut parts).map_err(refuse)?;
        parts.finish().map_err(refuse)?;
        target.model.validate().map_err(|error| refuse(error.to_string()))?;
        Ok(target)
    }

    /// A volume of `model`, with the parameters that every volume takes behind its name in `text`.
    ///
    /// # Errors
    /// Another parameter, or a value that makes no sense.
    pub fn of_model(text: &str, model: VolumeModel) -> Result<SimulatedTarget, TargetError> {
        let named = text.strip_prefix(PREFIX).unwrap_or(text);
        let (id, rest) = named.split_once('?').unwrap_or((named, ""));
        let refuse = |reason| TargetError {
            target: text.to_owned(),
            reason,
            remedy: "use size=, seed=, credits=, stall= or instance=, or omit them".to_owned(),
        };
        let mut parts = UnusedParts::read(rest).map_err(refuse)?;
        let size_bytes = parts.capacity("size").map_err(refuse)?.unwrap_or(model.size_bytes);
        let mut target = SimulatedTarget {
            id: id.to_owned(),
            chosen: None,
            model: VolumeModel { size_bytes, ..model },
            seed: 0,
            tier: None,
            assumptions: Vec::new(),
        };
        target.add_common(&mut parts).map_err(refuse)?;
        parts.finish().map_err(refuse)?;
        target.model.validate().map_err(|error| refuse(error.to_string()))?;
        Ok(target)
    }

    fn of_catalog(
        catalog: &Catalog,
        id: &str,
        parts: &mut UnusedParts<'_>,
    ) -> Result<SimulatedTarget, String> {
        let Some(entry) = catalog.get(id) else {
            return Err(format!("unknown volume type '{id}'"));
        };
        let parameters = Parameters {
            size_bytes: parts.capacity("size")?,
            iops: parts.number("iops")?,
            bytes_per_second: parts.bytes("bandwidth")?,
            tier: parts.text("tier").map(str::to_owned),
            on_demand: parts.switch("on_demand")?.unwrap_or(false),
            first_touch: parts.switch("first_touch")?.unwrap_or(false),
            initialization: parts.bytes("initialization")?,
            shared_by: parts.number("shared_by")?,
            cache: host_cache::read(parts)?,
            instance: parts.text("instance").map(str::to_owned),
        };
        let resolved = entry.resolve(&parameters).map_err(|refusal| refusal.reason)?;
        let mut target = SimulatedTarget {
            id: id.to_owned(),
            chosen: Some(parameters),
            model: resolved.model,
            seed: 0,
            tier: resolved.tier,
            assumptions: resolved.assumptions,
        };
        if let Some(ns) = parts.duration("latency")? {
            target.assumptions.retain(|assumption| !assumption.starts_with("its latency"));
            (target.model.read_latency, target.model.write_latency) =
                (VolumeLatency::fixed(ns), VolumeLatency::fixed(ns));
        }
        Ok(target)
    }

    /// Adds the parameters of every volume: the instance limit, and injected faults.
    fn add_common(&mut self, parts: &mut UnusedParts<'_>) -> Result<(), String> {
        self.seed = parts.seed("seed")?.unwrap_or(0);
        if let Some(parallelism) =
            self.model.measured.is_none().then(|| parts.number("parallelism")).transpose()?.flatten()
        {
            self.model.parallelism = Some(u32::try_from(parallelism).unwrap_or(u32::MAX));
        }
        let (ios, bytes) = (parts.number("instance_iops")?, parts.bytes("instance_bandwidth")?);
        // The instance of a type of the catalogue is one of its parameters.
        let known = self.chosen.as_ref().and_then(|chosen| chosen.instance.as_deref());
        let named = known.or_else(|| parts.text("instance"));
        if named.is_some() && (ios.is_some() || bytes.is_some()) {
            return Err("instance= has limits: omit instance_iops= and instance_bandwidth=".to_owned());
        }
        if let (Some(id), None) = (named, known) {
            let count = parts.number("shared_by")?.unwrap_or(1);
            let mut assumptions = Instances::shipped().attach(id, &self.id, count, &mut self.model)?;
            self.assumptions.append(&mut assumptions);
        }
        let instance = with_slack(stage(INSTANCE_STAGE, Accounting::default(), plain(ios)?, plain(bytes)?));
        if is_limited(&instance) {
            self.model.shared.insert(0, instance);
        }
        if let Some(slack_ns) = parts.duration("slack")?
            && !self.model.set_slack(slack_ns)
        {
            return Err("slack= has no effect: the volume has no limit".to_owned());
        }
        self.model.faults = parts.stalls()?;
        if let Some(percent) = parts.percent("credits")?
            && !self.model.begin_with_credits(percent)
        {
            return Err("credits= has no effect: the volume has no burst bucket".to_owned());
        }
        Ok(())
    }
}

/// The remedy for an invalid name of type `id`.
fn remedy(catalog: &Catalog, id: &str) -> String {
    match catalog.get(id) {
        Some(entry) if entry.unmodelled().is_some() => {
            format!("see `fathom catalog show {id}`, or use sim:custom for other limits")
        }
        Some(_) => {
            format!("choose by size=, iops=, bandwidth= or tier=; see `fathom catalog show {id}`")
        }
        None if id == CUSTOM => {
            "use, for example, sim:custom?iops=3000&bandwidth=128MiB&latency=500us".to_owned()
        }
        None => match catalog.nearest(id).as_slice() {
            [] => "use sim:ID?size=50GiB with an ID of `fathom catalog list`, or sim:custom?iops=3000"
                .to_owned(),
            near => format!("did you mean {}? run `fathom catalog list` for all types", near.join(", ")),
        },
    }
}

impl Parameters {
    /// The name of a volume of the type `id` with these parameters, without a host cache: `sim:aws-gp3?size=100GiB&iops=4000`.
    pub fn target_name(&self, id: &str) -> String {
        let amount = |bytes: u64| match bytes {
            bytes if bytes.is_multiple_of(1 << 30) => format!("{}GiB", bytes >> 30),
            bytes if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
            bytes if bytes.is_multiple_of(1_000_000) => format!("{}MB", bytes / 1_000_000),
            bytes => format!("{bytes}B"),
        };
        // A tier that is chosen by its name has the size of its instance.
        let size = self.size_bytes.filter(|_| self.tier.is_none());
        let parts = [
            size.map(|bytes| format!("size={}", amount(bytes))),
            self.tier.as_ref().map(|tier| format!("tier={tier}")),
            self.iops.map(|iops| format!("iops={iops}")),
            self.bytes_per_second.map(|bytes| format!("bandwidth={}", amount(bytes))),
            self.on_demand.then(|| "on_demand=1".to_owned()),
            self.first_touch.then(|| "first_touch=1".to_owned()),
            self.initialization.map(|bytes| format!("initialization={}", amount(bytes))),
            self.instance.as_ref().map(|instance| format!("instance={instance}")),
            self.shared_by.map(|count| format!("shared_by={count}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let separator = if parts.is_empty() { "" } else { "?" };
        format!("{PREFIX}{id}{separator}{}", parts.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_the_same_parameters() {
        let of =
            |size_bytes, iops, bytes_per_second, tier: Option<&str>, instance: Option<&str>| Parameters {
                size_bytes,
                iops,
                bytes_per_second,
                tier: tier.map(str::to_owned),
                instance: instance.map(str::to_owned),
                ..Parameters::default()
            };
        for (id, parameters, expected) in [
            ("aws-gp2", of(Some(50 << 30), None, None, None, None), "sim:aws-gp2?size=50GiB"),
            (
                "aws-gp3",
                of(Some(100 << 30), Some(4000), Some(200 << 20), None, Some("m6i.large")),
                "sim:aws-gp3?size=100GiB&iops=4000&bandwidth=200MiB&instance=m6i.large",
            ),
            (
                "azure-premium-ssd-v2",
                of(Some(100 << 30), Some(4000), Some(200_000_000), None, None),
                "sim:azure-premium-ssd-v2?size=100GiB&iops=4000&bandwidth=200MB",
            ),
        ] {
            assert_eq!(parameters.target_name(id), expected);
            let target = SimulatedTarget::parse(Catalog::shipped(), expected).unwrap();
            assert_eq!(target.chosen, Some(parameters), "{expected}");
        }
        assert_eq!(Parameters::default().target_name("aws-gp2"), "sim:aws-gp2");
    }
}
