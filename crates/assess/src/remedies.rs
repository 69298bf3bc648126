//! What the catalogue adds to a finding: which volumes lift a limit, where it is known of which type the volume is.
//!
//! It is known of a modelled volume, of what a label `type=` names, and of what was promised of it. Findings themselves are
//! functions of the record alone.

use fathom_analysis::REQUESTS_WAIT;
use fathom_catalog::{Catalog, Entry, Lift, Load, Need, Offer, Parameters, Target};
use fathom_model::units::grouped;
use fathom_record::{Finding, RunHeader, RunRecord};

use crate::catalogue::catalogue;

/// The label that says of which type the volume is, with or without what is chosen of it: `aws-gp2?size=50GiB`.
const LABEL: &str = "type";
const GIB: u64 = 1 << 30;

/// Names the volumes that lift the limits that were found.
pub(crate) fn name_types(record: &mut RunRecord) {
    // Without a catalogue the remedies stay as general as they are; who names a type was told of its faults already.
    let Ok(catalog) = catalogue() else { return };
    name(catalog, record);
}

fn name(catalog: &Catalog, record: &mut RunRecord) {
    let Some((entry, parameters)) = volume(catalog, &record.header) else { return };
    let mut findings = std::mem::take(&mut record.findings);
    for finding in &mut findings {
        if let Some(met) = met(record, finding, &parameters) {
            let lift = catalog.lifts(entry, &parameters, &met);
            finding.remedy = Some(format!("{REQUESTS_WAIT}. {}", told(entry, &lift)));
            finding.evidence.insert("volume_type".to_owned(), entry.id().into());
        }
    }
    record.findings = findings;
}

/// The type of the volume, and what is chosen of it.
fn volume<'a>(catalog: &'a Catalog, header: &RunHeader) -> Option<(&'a Entry, Parameters)> {
    let promised = header.promises.iter().map(|promise| promise.source.as_str());
    let said = [
        Some(header.target.as_str()).filter(|target| Target::is_one(target)),
        header.labels.get(LABEL).map(String::as_str),
    ];
    let target =
        said.into_iter().flatten().chain(promised).find_map(|text| Target::parse(catalog, text).ok())?;
    let entry = catalog.get(&target.id)?;
    let mut parameters = target.chosen?;
    let device = header.conditions.target.devices.first().map(|device| device.size_bytes);
    let is_model = Target::is_one(&header.target);
    parameters.size_bytes = match parameters.size_bytes {
        None if is_model => Some(target.model.size_bytes),
        None => Some(device?),
        said => said,
    };
    Some((entry, parameters))
}

/// The limit that a finding tells of, as a need; `None` where it tells of none, or of one that is not the volume's.
fn met(record: &RunRecord, finding: &Finding, parameters: &Parameters) -> Option<Need> {
    let (value, group) = match finding.id.as_str() {
        "iops-cap" => ("iops", "group_limit_iops"),
        "bandwidth-cap" => ("bytes_per_second", "group_limit_bytes_per_second"),
        _ => return None,
    };
    if finding.evidence.get(group).is_some_and(|limit| !limit.is_null()) {
        return None;
    }
    let in_bytes = finding.id == "bandwidth-cap";
    let reads = finding.evidence.get("direction")?.as_str()? == "read";
    let value = finding.evidence.get(value)?.as_f64()?;
    let test = record.tests.iter().find(|test| finding.tests.contains(&test.id))?;
    let job = test.jobs.first()?;
    let block = if reads { job.block_sizes.read } else { job.block_sizes.write };
    let load = Load {
        reads: Some(f64::from(u8::from(reads))),
        ..Load::of(block as f64, !job.rw.starts_with("rand"))
    };
    Some(Need {
        size_bytes: parameters.size_bytes?,
        rate: if in_bytes { value / block as f64 } else { value },
        load,
        in_ios: !in_bytes,
        in_bytes,
        spell: None,
        latency: Vec::new(),
        persistent: true,
    })
}

/// `Of aws-gp2, 1,100 GiB give a tenth more for ever, 2,000 GiB twice as much.`
fn told(entry: &Entry, lift: &Lift) -> String {
    let id = entry.id();
    let mut text = match (&lift.tenth, &lift.twice) {
        _ if lift.is_below_its_rules => {
            format!(
                "By its rules this {id} gives more for ever: something else holds it, the instance for one."
            )
        }
        (Some(tenth), Some(twice)) if tenth != twice => {
            format!("Of {id}, {} give a tenth more for ever, {} twice as much.", size(tenth), size(twice))
        }
        (_, Some(twice)) => format!("Of {id}, {} give twice as much for ever.", size(twice)),
        (Some(tenth), None) => {
            format!("Of {id}, {} give a tenth more for ever, and none twice as much.", size(tenth))
        }
        (None, None) => format!("No {id} gives more for ever."),
    };
    if let Some(next) = lift.next.as_ref().filter(|_| !lift.is_below_its_rules) {
        text +=
            &format!(" The next type that does is {}: {}{}.", next.id, size(&next.parameters), price(next));
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
fn price(offer: &Offer) -> String {
    let Some(bill) = &offer.bill else { return String::new() };
    let month = format!(", {:.2} {} a month", bill.total(), bill.price.currency);
    if bill.is_whole() { month } else { format!("{month} and what its {} cost", bill.unknown.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use fathom_record::{BlockSizes, DeviceRecord, JobRecord, TestRecord};

    use super::*;

    /// What is advised against a cap of so many reads a second.
    fn remedy(target: &str, label: Option<&str>, iops: f64, group: Option<u64>) -> String {
        let block_sizes = BlockSizes { read: 4096, write: 4096, ..BlockSizes::default() };
        let job = JobRecord { rw: "randread".to_owned(), block_sizes, ..JobRecord::default() };
        let finding = Finding {
            id: "iops-cap".to_owned(),
            tests: vec!["rand-read".to_owned()],
            remedy: Some("general".to_owned()),
            ..Finding::default()
        };
        let finding = finding.with("direction", "read").with("iops", iops).with("group_limit_iops", group);
        let mut record = RunRecord {
            tests: vec![TestRecord { id: "rand-read".to_owned(), jobs: vec![job], ..TestRecord::default() }],
            findings: vec![finding],
            ..RunRecord::default()
        };
        record.header.target = target.to_owned();
        record.header.labels.extend(label.map(|label| (LABEL.to_owned(), label.to_owned())));
        record.header.conditions.target.devices =
            vec![DeviceRecord { size_bytes: 50 * GIB, ..DeviceRecord::default() }];
        name(Catalog::shipped(), &mut record);
        record.findings[0].remedy.clone().unwrap()
    }

    #[test]
    fn remedies_name_sizes_and_types_where_the_type_is_known() {
        let larger = "More depth or jobs only make requests wait. Of aws-gp2, 1,100 GiB give a tenth more for ever, 2,000 GiB \
                      twice as much. The next type that does is aws-gp3: 50 GiB with 3,300 IOPS and 125 MiB/s, 4.00 USD a month \
                      and what its provisioned IOPS cost.";
        for (target, label, iops, expected) in [
            ("sim:aws-gp2?size=50GiB", None, 3000.0, larger),
            ("/dev/nvme1n1", Some("aws-gp2"), 3000.0, larger),
            ("/dev/nvme1n1", Some("sim:aws-gp2?size=50GiB"), 3000.0, larger),
            ("/dev/nvme1n1", Some("ssd"), 3000.0, "general"),
            ("/dev/nvme1n1", None, 3000.0, "general"),
            ("sim:custom?iops=3000", None, 3000.0, "general"),
            (
                "/dev/nvme1n1",
                Some("aws-gp2?size=1000GiB"),
                1000.0,
                "More depth or jobs only make requests wait. By its rules this aws-gp2 gives more for ever: something else \
                 holds it, the instance for one.",
            ),
            (
                "sim:hetzner-volume?size=50GiB",
                None,
                5000.0,
                "More depth or jobs only make requests wait. No hetzner-volume gives more for ever.",
            ),
        ] {
            assert_eq!(remedy(target, label, iops, None), expected, "{target} {label:?}");
        }
        assert_eq!(remedy("sim:aws-gp2?size=50GiB", None, 3000.0, Some(3000)), "general");
    }
}
