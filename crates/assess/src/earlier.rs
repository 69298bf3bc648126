//! Identifications in the history: what they found of a device applies to later runs on it.

use fathom_analysis::identified::Identified;
use fathom_analysis::identified::prediction::{LastPhase, WorkloadPrediction, predict};
use fathom_analysis::identify::script::identified_of;
use fathom_analysis::pattern::AccessPattern;
use fathom_predict::OfferedLoad;
use fathom_record::{BurstRate, DeviceRecord, KnownBy, OwnRates, RunHeader, RunRecord};

/// An earlier identification of a volume.
#[derive(Clone, Debug)]
pub struct EarlierIdentification {
    /// The run that it was, for people.
    run: String,
    header: RunHeader,
    found: Identified,
}

impl EarlierIdentification {
    /// That of `record`, a run that people know as `run`; `None` if the run identified nothing.
    pub fn of(run: String, record: &RunRecord) -> Option<EarlierIdentification> {
        Some(EarlierIdentification { run, header: record.header.clone(), found: identified_of(record)? })
    }

    /// True if the run that `header` describes uses the same device. Names of devices may change with a boot, and a volume
    /// that was resized has other limits.
    pub(crate) fn is_of(&self, header: &RunHeader) -> bool {
        let (own, other) = (bottom(&self.header), bottom(header));
        let (Some(own), Some(other)) = (own, other) else { return false };
        let is_same_boot = self.header.host().boot_id == header.host().boot_id;
        let is_same_name = match own.serial.is_empty() {
            true => is_same_boot && own.name == other.name,
            false => own.serial == other.serial,
        };
        is_same_name && own.size_bytes == other.size_bytes
    }

    /// The rates that follow for `load`; `None` if the identification does not support it.
    pub(crate) fn rates(&self, load: &OfferedLoad) -> Option<OwnRates> {
        let [(block, _)] = load.blocks[..] else { return None };
        let pattern = match (load.read_fraction?, load.sequential) {
            (1.0, true) => AccessPattern::Read,
            (1.0, false) => AccessPattern::RandRead,
            (0.0, true) => AccessPattern::Write,
            (0.0, false) => AccessPattern::RandWrite,
            _ => return None,
        };
        let WorkloadPrediction { phases, seconds_to_refill, last_phase, .. } =
            predict(&self.found, pattern, block as u64)?;
        let (last, first) = (phases.last()?, phases.first()?);
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let burst = first.seconds.map(|seconds| BurstRate {
            iops: first.iops,
            lasts_ns: Some(ns(seconds.value)),
            refill_ns: seconds_to_refill.map(ns),
        });
        (last_phase == LastPhase::Sustained).then(|| OwnRates {
            volume: self.run.clone(),
            known_by: KnownBy::Identification,
            sustained_iops: Some(last.iops),
            burst,
            exhausted_iops: phases[1..].iter().map(|phase| phase.iops).collect(),
        })
    }
}

/// The device at the bottom of the target's stack; `None` if there are several or none.
fn bottom(header: &RunHeader) -> Option<&DeviceRecord> {
    let devices = &header.conditions.target.devices;
    let is_bottom =
        |device: &&DeviceRecord| devices.iter().all(|other| other.under.as_ref() != Some(&device.name));
    let mut bottom = devices.iter().filter(is_bottom);
    bottom.next().filter(|_| bottom.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunSettings;
    use crate::identify::{IdentifyPlan, IdentifySettings, identify};
    use fathom_model::Nanos;

    fn identification(target: &str, minutes: u64) -> EarlierIdentification {
        let settings = IdentifySettings {
            run: RunSettings { target: target.into(), ..RunSettings::default() },
            budget: Some(Nanos::from_secs(60 * minutes)),
            read_only: true,
            ..IdentifySettings::default()
        };
        let plan = IdentifyPlan::make(settings).unwrap();
        let (record, _) = identify(&plan, &mut plan.site.session(), &mut ()).unwrap();
        EarlierIdentification::of("run 12".to_owned(), &record).unwrap()
    }

    fn random_reads() -> OfferedLoad {
        OfferedLoad { read_fraction: Some(1.0), ..OfferedLoad::of(4096.0, false) }
    }

    #[test]
    fn the_baseline_that_was_identified_is_the_sustained_rate() {
        let burst = "sim:custom?iops=300&burst_iops=3000&bucket_ios=54000&latency=500us&size=10GiB";
        let rates = identification(burst, 10).rates(&random_reads()).unwrap();
        assert!((rates.sustained_iops.unwrap() / 300.0 - 1.0).abs() < 0.02, "{rates:?}");
        let burst = rates.burst.unwrap();
        assert!((burst.iops / 3000.0 - 1.0).abs() < 0.02, "{burst:?}");
        assert!((burst.lasts_ns.unwrap() as f64 / 20e9 - 1.0).abs() < 0.05, "{burst:?}");
    }

    #[test]
    fn a_bucket_that_was_not_exhausted_leaves_the_sustained_rate_unknown() {
        let found = identification("sim:aws-gp2?size=500GiB", 10);
        assert_eq!(found.rates(&random_reads()), None);
    }

    #[test]
    fn devices_are_recognised_by_serial_or_within_a_boot_by_name() {
        let header = |name: &str, serial: &str, size_bytes: u64, boot_id: &str| {
            let mut header = RunHeader::default();
            header
                .hosts
                .push(fathom_record::HostRecord { boot_id: boot_id.to_owned(), ..Default::default() });
            header.conditions.target.devices = vec![DeviceRecord {
                name: name.to_owned(),
                serial: serial.to_owned(),
                size_bytes,
                ..DeviceRecord::default()
            }];
            header
        };
        let is_same = |one: RunHeader, other: RunHeader| {
            let earlier =
                EarlierIdentification { run: String::new(), header: one, found: Identified::default() };
            earlier.is_of(&other)
        };
        assert!(is_same(header("sdb", "vol-1", 9, "a"), header("sdc", "vol-1", 9, "b")));
        assert!(!is_same(header("sdb", "vol-1", 9, "a"), header("sdb", "vol-2", 9, "a")));
        assert!(!is_same(header("sdb", "vol-1", 9, "a"), header("sdb", "vol-1", 10, "a")));
        assert!(is_same(header("sdb", "", 9, "a"), header("sdb", "", 9, "a")));
        assert!(!is_same(header("sdb", "", 9, "a"), header("sdb", "", 9, "b")));
    }
}
