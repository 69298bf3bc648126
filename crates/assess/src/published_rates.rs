//! Looks up in the catalogue what providers publish of the rate that each test reached.

use fathom_analysis::plateau::settled_iops;
use fathom_analysis::steady::levels::before_fall;
use fathom_catalog::{
    INSTANCE_STAGE, Instances, MeasuredRate, PublishedMatch, PublishedMatches, SAME_RATE, SimulatedTarget,
};
use fathom_model::LimitUnit;
use fathom_model::plan::Pattern;
use fathom_model::{BlockSize, Op};
use fathom_predict::{BurstReach, OfferedLoad, burst_lasts_ns, exhausted_rates, reach};
use fathom_record::import::ImportedLoad;
use fathom_record::{
    BurstRate, InstanceReach, JobRecord, OwnRates, PublishedRates, RateMatch, RunHeader, TestRecord,
    TestSummary,
};
use fathom_volume::{LimitStage, VolumeModel};

use crate::candidates::volume_size;
use crate::identify::{KnownVolume, instance_in};
use crate::site::RunSettings;

/// Enters the published rates for its load into `test`, of the run that `header` describes.
pub(crate) fn look_up(header: &RunHeader, settings: &RunSettings, test: &mut TestRecord) {
    // Faults of a file that the user names were reported before.
    let Ok(catalog) = settings.types.catalogue() else { return };
    let Some((load, iops)) = offered_load(test).zip(settled_iops(test)) else { return };
    let volume = KnownVolume::of(catalog, header);
    let instance = instance_reach(volume.as_ref(), header, &load);
    let earlier = || settings.earlier.iter().find(|earlier| earlier.is_of(header))?.rates(&load);
    // A burst lasts as long as its own rate says, not the mean of that and of what remained.
    let burst = before_fall(test).and_then(|before| settled_iops(&before)).unwrap_or(iops);
    let own = volume.map(|volume| own_rates(&volume, &load, burst)).or_else(earlier);
    let found = match own {
        Some(_) => PublishedMatches::default(),
        None => catalog.published_matches(&MeasuredRate {
            load,
            iops,
            size_bytes: volume_size(header, &settings.types),
            provider: header.host().provider.name.clone(),
            persistent: is_persistent(header),
        }),
    };
    test.published = Some(PublishedRates {
        own,
        matches: found.matches.iter().map(rate_match).collect(),
        longest_burst_ns: found.longest_burst_ns,
        instance,
    });
}

/// What the instance allows, where its limits are known and the volume's are not lower: those in the name of a simulated volume, else
/// those of the machine, on its network volumes.
fn instance_reach(
    volume: Option<&KnownVolume<'_>>,
    header: &RunHeader,
    load: &OfferedLoad,
) -> Option<InstanceReach> {
    let is_of_instance = |stage: &&LimitStage| stage.name == INSTANCE_STAGE;
    let named = volume.and_then(|volume| volume.model.shared.iter().find(is_of_instance));
    let (instance, stage) = match named {
        Some(stage) => (volume.and_then(KnownVolume::instance).unwrap_or_default(), stage.clone()),
        None => {
            let is_attached = !SimulatedTarget::is_one(&header.target) && is_persistent(header) == Some(true);
            let instance = header.host().provider.instance_type.as_deref().filter(|_| is_attached)?;
            let of_type = volume.and_then(|volume| Some(volume.offered.as_ref()?.0.id()));
            (instance, Instances::shipped().stage_on(instance, of_type).ok()?)
        }
    };
    reach_of(instance, stage, volume.map(|volume| &volume.model), load)
}

/// What the limits `stage` of an instance allow in front of a volume, where the volume's are not lower.
fn reach_of(
    instance: &str,
    stage: LimitStage,
    volume: Option<&VolumeModel>,
    load: &OfferedLoad,
) -> Option<InstanceReach> {
    let behind = |shared| VolumeModel { shared, ..VolumeModel::unlimited(u64::MAX) };
    let reached = reach(&behind(vec![stage]), load);
    let own = volume.and_then(|volume| {
        let mut model = volume.clone();
        model.shared.retain(|stage| stage.name != INSTANCE_STAGE);
        let own = reach(&model, load);
        own.burst.map(|burst| burst.iops).or(own.iops)
    });
    let sustained_iops = reached.iops?;
    let is_bandwidth = |limited_by: Option<LimitUnit>| limited_by == Some(LimitUnit::Bytes);
    own.is_none_or(|own| own > sustained_iops).then(|| InstanceReach {
        instance: instance.to_owned(),
        sustained_iops,
        is_sustained_bandwidth: is_bandwidth(reached.limited_by),
        burst: reached.burst.map(|burst| burst_rate(&burst, burst.lasts_ns)),
        is_burst_bandwidth: reached.burst.is_some_and(|burst| is_bandwidth(burst.limited_by)),
        volume_iops: own,
    })
}

/// What the instance of a simulated volume allows a load, where its name has one.
pub(crate) fn of_simulated(target: &str, model: &VolumeModel, load: &OfferedLoad) -> Option<PublishedRates> {
    let stage = model.shared.iter().find(|stage| stage.name == INSTANCE_STAGE)?;
    let instance = reach_of(instance_in(target).unwrap_or_default(), stage.clone(), Some(model), load)?;
    Some(PublishedRates { instance: Some(instance), ..PublishedRates::default() })
}

fn own_rates(volume: &KnownVolume<'_>, load: &OfferedLoad, iops: f64) -> OwnRates {
    let reached = reach(&volume.model, load);
    OwnRates {
        volume: volume.name.clone(),
        known_by: volume.known_by,
        sustained_iops: reached.iops,
        burst: reached.burst.map(|burst| burst_rate(&burst, lasts_ns(&volume.model, load, &burst, iops))),
        exhausted_iops: exhausted_rates(&volume.model, load),
    }
}

/// Time for which the measured rate lasts; that of the burst where the measured rate is the burst.
fn lasts_ns(model: &VolumeModel, load: &OfferedLoad, burst: &BurstReach, iops: f64) -> Option<u64> {
    match (burst.iops - iops).abs() <= burst.iops * SAME_RATE {
        true => burst.lasts_ns,
        false => burst_lasts_ns(model, load, iops),
    }
}

fn burst_rate(burst: &BurstReach, lasts_ns: Option<u64>) -> BurstRate {
    BurstRate { iops: burst.iops, lasts_ns, refill_ns: burst.refill_ns }
}

fn rate_match(found: &PublishedMatch) -> RateMatch {
    let burst = found.burst_lasts_ns.and(found.reached.burst);
    RateMatch {
        id: found.id.clone(),
        size_bytes: found.size_bytes,
        sustained_iops: found.reached.iops.unwrap_or_default(),
        burst: burst.map(|burst| burst_rate(&burst, burst.lasts_ns)),
    }
}

/// The load of a test on one target whose jobs do the same; `None` of others, and of trims.
pub(crate) fn offered_load(test: &TestRecord) -> Option<OfferedLoad> {
    if let Some(imported) = test.imported() {
        return imported_load(&imported.load, &TestSummary::new(test));
    }
    let job = test.jobs.first()?;
    let is_alike = |other: &JobRecord| {
        other.worker.paths == job.worker.paths
            && other.rw() == job.rw()
            && other.plan.io.block_size == job.plan.io.block_size
    };
    if !test.jobs.iter().all(is_alike) {
        return None;
    }
    let summary = TestSummary::new(test);
    let ios = |ios: Option<u64>| ios.unwrap_or_default() as f64;
    let reads = ios(summary.read.as_ref().map(|read| read.ios));
    let writes = ios(summary.write.as_ref().map(|write| write.ios));
    if summary.trim.is_some() || reads + writes == 0.0 {
        return None;
    }
    let share = reads / (reads + writes);
    let sizes = &job.plan.io.block_size;
    let blocks = [(&sizes.read, share), (&sizes.write, 1.0 - share)];
    let blocks = blocks.into_iter().filter(|(_, share)| *share > 0.0);
    Some(OfferedLoad {
        blocks: blocks.flat_map(|(size, share)| shares(size, share)).collect(),
        sequential: !job.plan.io.pattern.random,
        synced_after: job.plan.io.synced_after(),
        read_fraction: Some(share),
    })
}

/// The load of a test of another program, where its output says it: one size of blocks. A mix is that of the options, or of what
/// was done.
fn imported_load(load: &ImportedLoad, summary: &TestSummary) -> Option<OfferedLoad> {
    let pattern = Pattern::named(load.rw.as_deref()?)?;
    if pattern.trims() {
        return None;
    }
    let share = match (pattern.reads(), pattern.writes()) {
        (true, false) => 1.0,
        (false, true) => 0.0,
        _ => match load.read_percent {
            Some(percent) => f64::from(percent) / 100.0,
            None => {
                let (read, write) = (summary.read.as_ref()?.ios, summary.write.as_ref()?.ios);
                (read > 0 && write > 0).then(|| read as f64 / (read + write) as f64)?
            }
        },
    };
    let size =
        |op: Op| load.block_size[op].filter(|range| range.min == range.max).map(|range| range.max as f64);
    let mut blocks = Vec::new();
    for (op, share) in [(Op::Read, share), (Op::Write, 1.0 - share)] {
        if share > 0.0 {
            blocks.push((size(op)?, share));
        }
    }
    Some(OfferedLoad {
        blocks,
        sequential: !pattern.random,
        synced_after: load.synced_after(),
        read_fraction: Some(share),
    })
}

/// Sizes in bytes with their shares of all requests.
fn shares(size: &BlockSize, of_all: f64) -> Vec<(f64, f64)> {
    size.shares().into_iter().map(|(bytes, share)| (bytes as f64, share * of_all)).collect()
}

/// Whether the target lies on a volume of the network or on storage of the machine, where its devices tell.
fn is_persistent(header: &RunHeader) -> Option<bool> {
    let devices = &header.conditions.target.devices;
    match devices.iter().find_map(|device| device.locality.as_deref())? {
        "network" => Some(true),
        "local" | "ephemeral" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fathom_analysis::Analysis;
    use fathom_catalog::{Catalog, Parameters};
    use fathom_record::{DeviceRecord, Finding, FindingId, HostRecord, RunRecord};

    use super::*;
    use crate::plan::{BenchPlan, BenchSettings, Effort};
    use crate::target::BenchTarget;

    /// A run on a volume of a type that nothing names.
    fn measured(id: &str, gib: u64) -> RunRecord {
        let parameters = Parameters { size_bytes: Some(gib << 30), ..Parameters::default() };
        let model = Catalog::shipped().get(id).unwrap().resolve(&parameters).unwrap().model;
        let settings = BenchSettings {
            run: RunSettings { seed: Some(1), ..RunSettings::default() },
            suite: "standard".to_owned(),
            effort: Effort::Quick,
            only: vec!["lat-read".to_owned(), "rand-read".to_owned()],
            ..BenchSettings::default()
        };
        let target = BenchTarget::simulated("unknown", model);
        let plan = BenchPlan::on(vec![target], settings).unwrap();
        crate::bench::run(&plan, &mut plan.session(), &mut ()).unwrap()
    }

    /// As if it had been measured on a network volume of this provider.
    fn attach(record: &mut RunRecord, provider: &str, size_bytes: u64) {
        let mut host = HostRecord::default();
        host.provider.name = Some(provider.to_owned());
        record.header.hosts = vec![host];
        let device =
            DeviceRecord { size_bytes, locality: Some("network".to_owned()), ..DeviceRecord::default() };
        record.header.conditions.target.devices = vec![device];
        let header = record.header.clone();
        record.tests.iter_mut().for_each(|test| look_up(&header, &RunSettings::default(), test));
    }

    fn bursts(record: &RunRecord) -> Vec<Finding> {
        let found = Analysis::of(record).findings();
        found.into_iter().filter(|found| found.id == FindingId::BurstPossible).collect()
    }

    #[test]
    fn an_unknown_volume_may_be_any_type_that_publishes_its_rate() {
        for id in ["aws-gp2", "aws-gp3"] {
            let mut record = measured(id, 100);
            assert_eq!(bursts(&record), [], "nothing names the provider");
            attach(&mut record, "AWS", 100 << 30);
            let found = bursts(&record);
            assert_eq!(found.len(), 1, "{:#?}", record.findings);
            assert_eq!(found[0].tests, ["rand-read"]);
            let types = found[0].evidence["types"].as_array().unwrap();
            let of = |id: &str| types.iter().find(|one| one["id"] == id);
            assert!(of("aws-gp2").unwrap()["burst"].is_object(), "{types:#?}");
            assert!(of("aws-gp3").unwrap().get("burst").is_none(), "{types:#?}");
            // No size of a type with a burst of 3,000 IOPS, and no such provider.
            attach(&mut record, "AWS", 2 << 40);
            assert_eq!(bursts(&record), []);
            attach(&mut record, "a reseller", 100 << 30);
            assert_eq!(bursts(&record), []);
        }
    }

    #[test]
    fn a_named_type_is_the_only_one() {
        let mut record = measured("aws-gp2", 100);
        let mut own = |label: &str| {
            record.header.labels.insert("type".to_owned(), label.to_owned());
            let test = &mut record.tests[1];
            look_up(&record.header, &RunSettings::default(), test);
            test.published.clone().unwrap().own
        };
        let gp2 = own("aws-gp2?size=100GiB").unwrap();
        assert_eq!((gp2.sustained_iops, gp2.burst.unwrap().iops), (Some(300.0), 3000.0));
        assert_eq!(own("ssd"), None);
    }
}
