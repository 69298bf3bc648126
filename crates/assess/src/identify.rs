//! Runs what finds out of what a volume is made: asks the method what to measure next, measures, and hands each
//! measurement out as it ends. What it found of a device, or what else is known of its type, applies to later runs on it.

use std::collections::BTreeMap;

use fathom_analysis::identified::Identified;
use fathom_analysis::identified::prediction::{LastPhase, WorkloadPrediction, predict};
use fathom_analysis::identify::probe::{IdentifyProbe, IoDirection, Seen};
use fathom_analysis::identify::script::{IdentifySpec, IdentifyStep, identified, identified_of, next};
use fathom_analysis::pattern::AccessPattern;
use fathom_catalog::{Catalog, CatalogEntry, Parameters, SimulatedTarget};
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_predict::OfferedLoad;
use fathom_record::{
    Activity, BurstRate, DeviceRecord, ExpectationRecord, IdentifyActivity, KnownBy, OwnRates, RunHeader,
    RunRecord, TYPE_LABEL,
};
use fathom_runner::Session;
use fathom_volume::VolumeModel;

use crate::candidates::rule_differs;
use crate::control::{StepObserver, Steps};
use crate::findings::findings_of;
use crate::measure::{NamedJob, measure_together};
use crate::planned::{pair, seed_pair, time_word};
use crate::site::RunSettings;
use crate::site::{JobWords, Site};
use crate::target::BenchTarget;
use crate::traffic::{OfferedTraffic, PlannedTraffic};
use crate::{AssessError, twin};

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct IdentifySettings {
    /// What every run is asked for.
    pub run: RunSettings,
    /// Time for everything, laying out included; `None` = [`USUAL_BUDGET`].
    pub budget: Option<Nanos>,
    /// Reads alone, also where writes could be made.
    pub read_only: bool,
    /// Latencies are measured as well, after the budget, for a twin of the volume.
    pub measures_latencies: bool,
}

/// What is going to be done, as far as that is known before.
#[derive(Clone, Debug)]
pub struct IdentifyPlan {
    /// Where.
    pub site: Site,
    /// What may be done: its budget is the most that time, requests and bytes can come to.
    pub spec: IdentifySpec,
    /// Why writes are not made; `None` where they are.
    pub no_writes: Option<String>,
    /// What was asked for.
    pub settings: IdentifySettings,
}

/// The usual budget: a bucket that lasts for half an hour is exhausted in it.
pub const USUAL_BUDGET: Nanos = Nanos::from_secs(3600);
/// Largest share of the time that laying out may take.
const LAYOUT_SHARE: u64 = 8;
/// Probes that the budget is thought to hold beside the emptying.
const USUAL_PROBES: u64 = 40;
/// The least time of a measurement: on a simulated volume, and on a real one, whose limits may let requests through by turns
/// of 20 to 100 ms.
const PROBE_NS: (u64, (u64, u64)) = (150_000_000, (4_000_000_000, 6_000_000_000));
/// Most requests in flight, and largest request: on a simulated volume, on a real one, where the kernel splits larger ones.
const MAX_DEPTH: (u32, u32) = (4096, 256);
const MAX_BLOCK: (u64, u64) = (64 << 20, 512 << 10);
/// Most bytes in flight.
const MAX_IN_FLIGHT: (u64, u64) = (1 << 40, 128 << 20);
/// Requests and bytes a second that a budget of time allows for.
const MAX_IOPS: u64 = 250_000;
const MAX_RATE: (u64, u64) = (64 << 30, 8 << 30);

impl IdentifyPlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The target is not there or cannot be used.
    pub fn make(settings: IdentifySettings) -> Result<IdentifyPlan, AssessError> {
        let target = Site::inspect(&settings.run)?;
        IdentifyPlan::on(target, settings)
    }

    /// Plans what was asked for on a target already looked at.
    ///
    /// # Errors
    /// As for [`IdentifyPlan::make`].
    pub fn on(target: BenchTarget, settings: IdentifySettings) -> Result<IdentifyPlan, AssessError> {
        let no_writes =
            if settings.read_only { Some("--read-only".to_owned()) } else { target.write_refusal() };
        let budget = settings.budget.unwrap_or(USUAL_BUDGET);
        let site = Site::on(target, &settings.run, Nanos(budget.0 / LAYOUT_SHARE))?;
        let spec = spec(&site, budget.0, no_writes.is_none());
        Ok(IdentifyPlan { site, spec, no_writes, settings })
    }

    /// What it moves.
    pub fn traffic(&self) -> PlannedTraffic {
        let limits = &self.spec.limits;
        let offered = OfferedTraffic {
            timed_ns: limits.budget_ns,
            writing_ns: if limits.writes { limits.budget_ns } else { 0 },
            reads: true,
            ..OfferedTraffic::default()
        };
        self.site.traffic(&self.settings.run, offered)
    }

    /// fio's options for one direction of `probe`.
    fn job_options(&self, probe: &IdentifyProbe, way: IoDirection) -> JobWords {
        let (rw, salt) = match way {
            IoDirection::Read => ("randread", 1),
            IoDirection::Write => ("randwrite", 2),
        };
        let range = probe.range.min(self.site.size);
        let mut options = self.site.job(rw, probe.block, probe.depth(way), Some(range));
        options.extend(probe.rate.map(|rate| pair("rate_iops", rate.to_string())));
        if probe.rest_ns > 0 {
            options.push(pair("startdelay", time_word(Nanos(probe.rest_ns))));
        }
        if probe.ramp_ns > 0 {
            options.push(pair("ramp_time", time_word(Nanos(probe.ramp_ns))));
        }
        // Not `time_based`: it ends with its requests or its time, whichever comes first.
        options.extend([
            pair("io_size", (probe.ios.saturating_mul(probe.block)).to_string()),
            pair("runtime", time_word(Nanos(probe.runtime_ns))),
            seed_pair(self.site.seed, probe.turn * 4 + salt),
        ]);
        options
    }
}

/// What may be done on `site` in so many ns, writing or not.
fn spec(site: &Site, budget_ns: u64, writes: bool) -> IdentifySpec {
    let (is_simulated, size, unit) = (site.target.is_simulated(), site.size, site.unit);
    let (virtual_ns, (least, most)) = PROBE_NS;
    let real_ns = (budget_ns / USUAL_PROBES).clamp(least, most);
    let of = |(simulated, real): (u64, u64)| if is_simulated { simulated } else { real };
    let largest = of(MAX_BLOCK).min(size / 8);
    let seconds = budget_ns / 1_000_000_000 + 1;
    let limits = IdentifyActivity {
        unit_bytes: unit,
        most_block_bytes: (largest / unit).max(1) * unit,
        most_depth: if is_simulated { MAX_DEPTH.0 } else { MAX_DEPTH.1 },
        most_in_flight_bytes: of(MAX_IN_FLIGHT),
        writes,
        probe_ns: if is_simulated { virtual_ns } else { real_ns },
        budget_ns,
        budget_ios: MAX_IOPS.saturating_mul(seconds),
        budget_bytes: of(MAX_RATE).saturating_mul(seconds),
    };
    IdentifySpec { size, limits }
}

/// Runs `plan` on `session`; what was found is there also where it was broken off.
///
/// # Errors
/// The working file could not be made or laid out; nothing has been measured then.
pub fn identify(
    plan: &IdentifyPlan,
    session: &mut Session,
    observer: &mut dyn StepObserver,
) -> Result<(RunRecord, Identified), AssessError> {
    let mut plan = plan.clone();
    let began = session.now();
    let activity = Activity::Identify(IdentifyActivity::default());
    let mut header = plan.site.begin(activity, &plan.settings.run, session, observer)?;
    let mut spec = IdentifySpec { size: plan.site.size, ..plan.spec.clone() };
    let (limits, unit) = (&mut spec.limits, plan.site.unit);
    limits.budget_ns = limits.budget_ns.saturating_sub(session.now() - began);
    limits.most_block_bytes = limits.most_block_bytes.min(spec.size / 8 / unit * unit).max(unit);
    header.activity = Activity::Identify(spec.limits.clone());
    let target = header.conditions.target.clone();
    let mut steps = Steps::begin(header, &plan.settings.run, session, observer);
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        let probe = match next(&spec, &seen) {
            IdentifyStep::Run(probe) => probe,
            IdentifyStep::Done => break,
            IdentifyStep::OutOfBudget => {
                let budget = duration(Nanos(plan.spec.limits.budget_ns));
                steps.note(format!(
                    "the time budget ({budget}) ended before all was measured; use a longer --budget"
                ));
                break;
            }
        };
        let (id, title) = (probe.id(seen.len()), probe.title());
        steps.next(&id, &title, steps.elapsed_ns());
        let jobs: Vec<NamedJob<'_>> =
            probe.ways().map(|way| (way.name(), plan.job_options(&probe, way))).collect();
        let test = measure_together(id, title, &jobs, steps.session, steps.observer);
        seen.extend(Seen::of(&test, &target));
        steps.keep(test);
        if steps.is_over() {
            break;
        }
    }
    let found = identified(&spec, &seen);
    if plan.settings.measures_latencies && !steps.is_over() {
        twin::measure_latencies(&plan.site, &found, &spec.limits, &mut steps);
    }
    let mut record = steps.end();
    record.findings = findings_of(&record);
    // Faults of a file that the user names were reported before.
    if let Ok(catalog) = plan.settings.run.types.catalogue() {
        record.findings.extend(rule_differs(catalog, &record.header, &found));
    }
    Ok((record, found))
}

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
