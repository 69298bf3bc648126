//! What the catalogue adds to a finding: which volumes lift a limit, where it is known of which type the volume is.
//!
//! Findings themselves are functions of the record alone.

use fathom_analysis::{REQUESTS_WAIT, instance_limit_of};
use fathom_catalog::{Catalog, CatalogEntry, Lift, Parameters, VolumeNeed, VolumeOffer};
use fathom_model::Nanos;
use fathom_model::units::{duration, grouped};
use fathom_predict::{OfferedLoad, reach};
use fathom_record::{Finding, FindingId, RunRecord};

use crate::catalogue::VolumeTypes;
use crate::identify::KnownVolume;
use crate::published_rates::offered_load;

const GIB: u64 = 1 << 30;

/// Names the volumes among `types` that lift the limits that were found.
pub(crate) fn name_types(record: &mut RunRecord, types: &VolumeTypes) {
    // Without a catalogue the remedies stay as general as they are; the faults of a type that the user names were reported before.
    let Ok(catalog) = types.catalogue() else { return };
    name(catalog, record);
}

fn name(catalog: &Catalog, record: &mut RunRecord) {
    let Some(volume) = KnownVolume::of(catalog, &record.header) else { return };
    // What is known as measured alone has no rules that could name a remedy.
    let offered = volume.offered.filter(|(entry, _)| !entry.is_as_measured());
    let Some((entry, parameters)) = offered else { return };
    let mut findings = std::mem::take(&mut record.findings);
    let known = findings.clone();
    for finding in &mut findings {
        // No other volume is faster on this instance.
        if instance_limit_of(&known, &finding.tests).is_some() {
            continue;
        }
        let test = record.tests.iter().find(|test| finding.tests.contains(&test.id));
        let instance = test.and_then(|test| test.published.as_ref()?.sustained_by_instance());
        if let Some(instance) = instance.filter(|_| finding.id != FindingId::BurstSuspected) {
            finding.remedy = Some(format!("{REQUESTS_WAIT}. {}", instance_text(&instance.instance)));
            continue;
        }
        let besides = || entry.sustained_loads(&parameters);
        let Some(met) = met(record, finding, &parameters, besides) else { continue };
        finding.remedy = match finding.id {
            FindingId::BurstSuspected => lasting(catalog, entry, &parameters, &met).or(finding.remedy.take()),
            _ => {
                let lift = catalog.lifts(entry, &parameters, &met);
                if let Some(next) = lift.next.as_ref().filter(|_| !lift.is_below_own_limit) {
                    let text = format!("{}, {}{}", next.id, size(&next.parameters), price(next));
                    finding.evidence.insert("next_volume".to_owned(), text.into());
                }
                Some(format!("{REQUESTS_WAIT}. {}", lift_text(entry, &lift)))
            }
        };
        finding.evidence.insert("volume_type".to_owned(), entry.id().into());
    }
    record.findings = findings;
}

/// The rate that a finding tells of, as a need; `None` where it tells of none, or of a limit that is not the volume's.
fn met(
    record: &RunRecord,
    finding: &Finding,
    parameters: &Parameters,
    besides: impl FnOnce() -> Vec<(OfferedLoad, f64)>,
) -> Option<VolumeNeed> {
    let (value, group) = match finding.id {
        FindingId::IopsCap => ("iops", "group_limit_iops"),
        FindingId::BandwidthCap => ("bytes_per_second", "group_limit_bytes_per_second"),
        FindingId::BurstSuspected => ("burst_iops", ""),
        _ => return None,
    };
    if finding.evidence.get(group).is_some_and(|limit| !limit.is_null()) {
        return None;
    }
    let in_bytes = finding.id == FindingId::BandwidthCap;
    let value = finding.evidence.get(value)?.as_f64()?;
    let test = record.tests.iter().find(|test| finding.tests.contains(&test.id))?;
    let load = offered_load(test)?;
    let iops = if in_bytes { value / load.mean_bytes() } else { value };
    Some(VolumeNeed {
        in_ios: !in_bytes,
        in_bytes,
        besides: besides(),
        instance: parameters.instance.clone(),
        ..VolumeNeed::permanent(load, iops, parameters.size_bytes?)
    })
}

/// What there is to know of a burst that was spent, and which volumes give its rate for ever; `None` where the type has
/// no bursts.
fn lasting(
    catalog: &Catalog,
    entry: &CatalogEntry,
    parameters: &Parameters,
    met: &VolumeNeed,
) -> Option<String> {
    let model = entry.resolve(parameters).ok()?.model;
    let burst = reach(&model, &met.load).burst?;
    let (lasts, refill) = (duration(Nanos(burst.lasts_ns?)), duration(Nanos(burst.refill_ns?)));
    let id = entry.id();
    let mut text = format!(
        "By its published rules the burst credits of this {id} last {lasts} at full rate and refill in \
         {refill} when idle."
    );
    let (own, next) = catalog.sustained_alternatives(entry, met);
    let next = next.map(|next| format!("{}: {}{}", next.id, size(&next.parameters), price(&next)));
    let own = own.map(|own| format!("{id}: {}", size(&own)));
    let all: Vec<String> = own.into_iter().chain(next).collect();
    if !all.is_empty() {
        text += &format!(
            " A sustained rate of {} IOPS needs {}.",
            grouped(met.iops.round() as u64),
            all.join(", or ")
        );
    }
    Some(text)
}

/// What lifts the rate that an instance sustains.
fn instance_text(name: &str) -> String {
    let instance = if name.is_empty() { "the instance".to_owned() } else { format!("the instance {name}") };
    format!(
        "After bursts {instance} limits, not the volume: `fathom catalog list --instances` has larger ones with          their limits."
    )
}

/// `Of aws-gp2, 1,100 GiB give a tenth more for ever, 2,000 GiB twice as much.`
fn lift_text(entry: &CatalogEntry, lift: &Lift) -> String {
    let id = entry.id();
    let mut text = match (&lift.tenth, &lift.twice) {
        _ if lift.is_below_own_limit => {
            format!(
                "By its published rules this {id} has a higher sustained rate: another limit applies, such as that \
                 of the instance."
            )
        }
        (Some(tenth), Some(twice)) if tenth != twice => {
            format!("For {id}, {} sustain 10 % more, {} twice as much.", size(tenth), size(twice))
        }
        (_, Some(twice)) => format!("For {id}, {} sustain twice as much.", size(twice)),
        (Some(tenth), None) => {
            format!("For {id}, {} sustain 10 % more, and no size twice as much.", size(tenth))
        }
        (None, None) => format!("No {id} has a higher sustained rate."),
    };
    if let Some(next) = lift.next.as_ref().filter(|_| !lift.is_below_own_limit) {
        text += &format!(
            " The next type that sustains more is {}: {}{}.",
            next.id,
            size(&next.parameters),
            price(next)
        );
    }
    text
}

/// `50 GiB with 3,300 IOPS and 125 MiB/s`.
fn size(parameters: &Parameters) -> String {
    let size = parameters.size_bytes.unwrap_or_default().div_ceil(GIB);
    let chosen = [
        parameters.iops.map(|iops| format!("{} IOPS", grouped(iops))),
        parameters.bytes_per_second.map(|rate| format!("{:.0} MiB/s", rate as f64 / f64::from(1 << 20))),
    ];
    let chosen: Vec<String> = chosen.into_iter().flatten().collect();
    let with = if chosen.is_empty() { String::new() } else { format!(" with {}", chosen.join(" and ")) };
    format!("{} GiB{with}", grouped(size))
}

/// `, 50.00 USD a month`, as far as it is known.
fn price(offer: &VolumeOffer) -> String {
    let Some(bill) = &offer.month else { return String::new() };
    let cents = (bill.total * 100.0).round() as u64;
    let month = format!(", {}.{:02} {} per month", grouped(cents / 100), cents % 100, bill.price.currency);
    if bill.is_whole() {
        month
    } else {
        format!("{month} plus the cost of its {}", bill.unknown.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::PerOp;
    use fathom_model::plan::{IoPlan, Pattern};
    use fathom_record::{DeviceRecord, JobRecord, PlanRecord, TestRecord};

    use super::*;

    /// What is advised against a cap of so many reads a second.
    fn remedy(target: &str, label: Option<&str>, iops: f64, group: Option<u64>) -> String {
        let finding = Finding { id: FindingId::IopsCap, ..Finding::default() };
        let finding = finding.with("direction", "read").with("iops", iops).with("group_limit_iops", group);
        advised(target, label, finding)
    }

    fn advised(target: &str, label: Option<&str>, finding: Finding) -> String {
        let pattern = Pattern { random: true, ..Pattern::default() };
        let io = IoPlan { pattern, block_size: PerOp::splat(4096.into()), ..IoPlan::default() };
        let plan = PlanRecord { io, ..PlanRecord::default() };
        let mut job = JobRecord { plan, ..JobRecord::default() };
        job.measured.read.ios = 1;
        let finding =
            Finding { tests: vec!["rand-read".to_owned()], remedy: Some("general".to_owned()), ..finding };
        let mut record = RunRecord {
            tests: vec![TestRecord { id: "rand-read".to_owned(), jobs: vec![job], ..TestRecord::default() }],
            findings: vec![finding],
            ..RunRecord::default()
        };
        record.header.target = target.to_owned();
        record.header.labels.extend(label.map(|label| ("type".to_owned(), label.to_owned())));
        record.header.conditions.target.devices =
            vec![DeviceRecord { size_bytes: 50 * GIB, ..DeviceRecord::default() }];
        name(Catalog::shipped(), &mut record);
        record.findings[0].remedy.clone().unwrap()
    }

    #[test]
    fn remedies_name_sizes_and_types_where_the_type_is_known() {
        let larger = "More depth or jobs only add queueing delay. For aws-gp2, 1,100 GiB sustain 10 % more, 2,000 GiB twice as much. The next type that sustains more is aws-gp3: 50 GiB with 3,300 IOPS and 125 MiB/s, 5.50 USD per month.";
        for (target, label, iops, expected) in [
            ("sim:aws-gp2?size=50GiB", None, 3000.0, larger),
            ("sim:aws-gp2?size=50GiB", None, 3000.4, larger),
            ("/dev/nvme1n1", Some("aws-gp2"), 3000.0, larger),
            ("/dev/nvme1n1", Some("sim:aws-gp2?size=50GiB"), 3000.0, larger),
            ("/dev/nvme1n1", Some("ssd"), 3000.0, "general"),
            ("/dev/nvme1n1", None, 3000.0, "general"),
            ("sim:custom?iops=3000", None, 3000.0, "general"),
            ("sim:qingcloud-capacity?size=50GiB", None, 9107.0, "general"),
            (
                "/dev/nvme1n1",
                Some("aws-gp2?size=1000GiB"),
                1000.0,
                "More depth or jobs only add queueing delay. By its published rules this aws-gp2 has a higher sustained rate: another limit applies, such as that of the instance.",
            ),
            (
                "sim:hetzner-volume?size=50GiB",
                None,
                5000.0,
                "More depth or jobs only add queueing delay. No hetzner-volume has a higher sustained rate.",
            ),
        ] {
            assert_eq!(remedy(target, label, iops, None), expected, "{target} {label:?}");
        }
        assert_eq!(remedy("sim:aws-gp2?size=50GiB", None, 3000.0, Some(3000)), "general");
    }

    #[test]
    fn a_spent_burst_is_told_by_the_rules_of_its_type() {
        let fell = |target: &str| {
            let finding = Finding { id: FindingId::BurstSuspected, ..Finding::default() };
            advised(target, None, finding.with("burst_iops", 2999.6).with("baseline_iops", 150.0))
        };
        assert_eq!(
            fell("sim:aws-gp2?size=50GiB"),
            "By its published rules the burst credits of this aws-gp2 last 31 min 35 s at full rate and refill in 10 h when idle. A sustained rate of 3,000 IOPS needs aws-gp2: 1,000 GiB, or aws-gp3: 50 GiB with 3,000 IOPS and 125 MiB/s, 4.00 USD per month."
        );
        // No burst is known of it, so that it was something else.
        assert_eq!(fell("sim:aws-gp3?size=50GiB"), "general");
        assert_eq!(fell("/dev/nvme1n1"), "general");
    }
}
