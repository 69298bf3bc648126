//! The findings on a run, by the rules of its command; also on one that goes on.

use fathom_analysis::{Analysis, forecast, identify, prepare, surface, sweep};
use fathom_record::{ActivityKind, Finding, FindingId, RunRecord, Severity};

mod imported;

/// What the tests of `record` tell.
pub fn findings_of(record: &RunRecord) -> Vec<Finding> {
    match record.header.activity.kind() {
        ActivityKind::Sweep => sweep::findings(record),
        ActivityKind::Surface => surface::findings::findings(record, &surface::assess(record)),
        ActivityKind::Prepare => prepare::findings(record),
        ActivityKind::Identify => {
            // Probes are short, and go past every limit on purpose: what a single one suffers from counts, not what it is. Pauses come
            // under any load.
            let mut found = Analysis::of(record).findings();
            found.retain(|finding| finding.severity >= Severity::Error || finding.id == FindingId::Pauses);
            found.extend(identify::conclude::instance_findings(record));
            found
        }
        ActivityKind::Simulate => forecast::instance_findings(record),
        ActivityKind::Import => imported::findings(record),
        _ => Analysis::of(record).findings(),
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;
    use fathom_record::FindingId;
    use fathom_runner::StopHandle;

    use crate::catalogue::VolumeTypes;
    use crate::identify::{IdentifyPlan, IdentifySettings, identify};
    use crate::simulate::{JobLoad, SimulateSettings, SimulatedLoad, simulate};
    use crate::simulated::SimulatedVolume;
    use crate::site::RunSettings;
    use crate::target::BenchTarget;
    use crate::{engine_rows, findings_of};

    fn claims(record: &fathom_record::RunRecord) -> Vec<String> {
        assert_eq!(record.findings, findings_of(record));
        let of_instance = record.findings.iter().filter(|found| found.id == FindingId::InstanceCap);
        of_instance.map(|found| found.claim.clone()).collect()
    }

    fn identified(volume: &str) -> Vec<String> {
        let volume = SimulatedVolume::named(volume.as_ref(), &VolumeTypes::default()).unwrap();
        let target = BenchTarget::Simulated(Box::new(volume));
        let run = RunSettings { seed: Some(1), ..RunSettings::default() };
        let settings = IdentifySettings {
            run,
            budget: Some(Nanos::from_secs(300)),
            read_only: true,
            ..IdentifySettings::default()
        };
        let plan = IdentifyPlan::on(target, settings).unwrap();
        claims(&identify(&plan, &mut plan.site.session(), &mut ()).unwrap().0)
    }

    fn simulated(volume: &str) -> Vec<String> {
        let settings = SimulateSettings {
            volumes: vec![volume.to_owned()],
            types: VolumeTypes::default(),
            load: SimulatedLoad::Jobs(JobLoad::of_profile("oltp", &engine_rows()).unwrap()),
            load_text: String::new(),
            length: Some(Nanos::from_secs(60)),
            labels: std::collections::BTreeMap::new(),
            command: Vec::new(),
        };
        claims(&simulate(&settings, &StopHandle::default(), &mut ()).unwrap())
    }

    #[test]
    fn identify_reports_the_limits_of_the_instance() {
        assert_eq!(
            identified("sim:aws-gp3?size=500GiB&iops=16000&instance_iops=4000&instance_bandwidth=60MiB"),
            [
                "4,000 IOPS are the limit of the instance for this load; the volume allows 16,000 IOPS.",
                "60 MiB/s are the limit of the instance for this load; the volume allows 125 MiB/s.",
            ]
        );
        // The volume is slower than the burst of the instance.
        assert_eq!(identified("sim:aws-gp3?size=500GiB&iops=16000&instance=m6i.large"), [""; 0]);
    }

    #[test]
    fn simulate_reports_the_limits_of_the_instance_and_for_how_long_they_hold() {
        assert_eq!(
            simulated("aws-gp3?size=500GiB&iops=16000&instance_iops=2000"),
            [
                "2,000 IOPS are the limit of the instance for this load; the volume allows 14,539 IOPS. This limit \
              holds the rate for 1 min of 1 min (100 %).",
            ]
        );
        assert_eq!(simulated("aws-gp3?size=500GiB&iops=16000&instance_iops=12000"), [""; 0]);
    }
}
