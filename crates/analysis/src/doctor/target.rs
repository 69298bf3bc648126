//! The target and the devices under it.

use fathom_model::units;
use fathom_record::{DeviceRecord, DiskOutcome};

use super::Judgement;
use super::facts::{DoctorFacts, TargetLimit};
use crate::findings::device_view::{FOREIGN, FOREIGN_REMEDY, ForeignIo};
use crate::findings::memory_backed;
use crate::say::{count, mebibytes, percent};

/// Schedulers that reorder and hold back I/O, which costs rate and CPU time on fast devices.
const FAIR_SCHEDULERS: [&str; 2] = ["bfq", "cfq"];

/// A sentence from a part of one.
fn sentence(part: &str) -> String {
    let mut letters = part.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

pub(super) fn access(facts: &DoctorFacts) -> Judgement {
    let is_directory = facts.header.conditions.target.kind == "directory";
    match &facts.access {
        None => Judgement::unknown("not tested."),
        Some(Ok(())) if is_directory => Judgement::ok("a test file can be created."),
        Some(Ok(())) => Judgement::ok("it can be opened for reading."),
        Some(Err(refusal)) => {
            let remedy = refusal.hint.as_deref().unwrap_or("choose another target, or check its permissions");
            Judgement::problem(format!("{}.", refusal.reason), sentence(remedy))
        }
    }
}

pub(super) fn direct_io(facts: &DoctorFacts) -> Judgement {
    match &facts.direct_io {
        None => Judgement::unknown("not tested, as the target cannot be opened."),
        Some(Ok(())) => {
            let devices = &facts.header.conditions.target.devices;
            match devices.iter().map(|device| device.logical_block_size).max().filter(|size| *size > 0) {
                Some(size) => Judgement::ok(format!("supported, in multiples of {size} bytes.")),
                None => Judgement::ok("supported."),
            }
        }
        Some(Err(refusal)) => {
            let remedy =
                refusal.hint.as_deref().unwrap_or("use --buffered to measure through the page cache");
            Judgement::problem(format!("{}.", refusal.reason), sentence(remedy))
        }
    }
}

pub(super) fn storage(facts: &DoctorFacts) -> Judgement {
    let target = &facts.header.conditions.target;
    if let Some(claim) = memory_backed::claim(target) {
        return Judgement::problem(format!("{claim}."), memory_backed::REMEDY);
    }
    match target.devices.last() {
        None => Judgement::note(
            "no block device is known under the target: its counters are not available to a run.",
            "To see I/O of others and splitting, measure the block device or a file system on one.",
        ),
        Some(device) => {
            let place = device.locality.as_ref().map(|place| format!(", {place}")).unwrap_or_default();
            Judgement::ok(format!("the data is on {}{place}.", device.name))
        }
    }
}

/// What a device did while nothing was measured.
fn of_others(disk: &DiskOutcome) -> ForeignIo {
    let counters = &disk.counters;
    ForeignIo {
        requests: (counters.read_ios + counters.write_ios) as f64,
        bytes: (counters.read_sectors + counters.write_sectors) as f64 * 512.0,
        device: disk.name.clone(),
        seconds: disk.elapsed_ns as f64 / 1e9,
    }
}

/// How long a device was in use. The kernel counts busy time in ticks of some milliseconds and misses I/Os that are shorter; their
/// own times, one after another, are the most that it can have been.
fn busy_ms(disk: &DiskOutcome) -> u64 {
    let counters = &disk.counters;
    counters.busy_ms.max(counters.read_ticks_ms + counters.write_ticks_ms)
}

pub(super) fn background_io(facts: &DoctorFacts) -> Judgement {
    if let Some(name) = facts.uncounted.first() {
        return Judgement::unknown(format!("the kernel does not count the I/O of {name}."))
            .with_remedy(format!("Run `echo 1 > /sys/block/{name}/queue/iostats` as root."));
    }
    let busiest = facts.disks.iter().max_by_key(|disk| busy_ms(disk));
    let Some(busiest) = busiest.filter(|disk| disk.elapsed_ns > 0) else {
        return Judgement::unknown("the devices under the target have no counters.");
    };
    let load = of_others(busiest);
    let busy = busy_ms(busiest) as f64 * 1e6 / busiest.elapsed_ns as f64;
    let iops = load.requests / load.seconds;
    if load.requests == 0.0 {
        return Judgement::ok(format!("none on {} in {}.", load.device, observed(facts)));
    }
    let rate = format!(
        "{} IOPS and {} on {}, which was busy for {} of the time",
        count(iops),
        mebibytes(load.bytes / load.seconds),
        load.device,
        percent(busy.min(1.0))
    );
    // Less than that a run does not report either.
    match load.is_load() && busy > FOREIGN {
        true => Judgement::problem(format!("other processes issue {rate}."), FOREIGN_REMEDY),
        false => Judgement::ok(format!("little: {rate}.")),
    }
}

/// The length of the observation.
pub(super) fn observed(facts: &DoctorFacts) -> String {
    crate::say::seconds(facts.observed_ns)
}

pub(super) fn io_limits(facts: &DoctorFacts) -> Judgement {
    if facts.header.conditions.target.devices.is_empty() {
        return Judgement::unknown("no block device is known under the target.");
    }
    let limit = |one: &TargetLimit| {
        let op = if one.is_write { "writes" } else { "reads" };
        let rate = match one.is_bytes {
            true => mebibytes(one.limit as f64),
            false => format!("{} IOPS", units::grouped(one.limit)),
        };
        format!("{op} on {} to {rate}", one.device)
    };
    let limits: Vec<String> = facts.io_limits.iter().map(limit).collect();
    let group = facts.header.host().cgroup.io_group.as_ref().map(|group| format!(" {group}"));
    match limits.is_empty() {
        true => Judgement::ok("the control group sets none on the devices under the target."),
        false => Judgement::problem(
            format!("the control group{} limits {}.", group.unwrap_or_default(), limits.join(", ")),
            "Measure outside the group, or remove the limits, unless they are what is to be measured.",
        ),
    }
}

pub(super) fn scheduler(facts: &DoctorFacts) -> Judgement {
    let scheduled = |device: &&DeviceRecord| !device.scheduler.is_empty();
    let devices: Vec<&DeviceRecord> =
        facts.header.conditions.target.devices.iter().filter(scheduled).collect();
    let is_fair = |device: &&&DeviceRecord| FAIR_SCHEDULERS.contains(&device.scheduler.as_str());
    if let Some(device) = devices.iter().find(is_fair) {
        let name = &device.name;
        return Judgement::note(
            format!("{} on {name}: figures hold with this scheduler only.", device.scheduler),
            format!("Run `echo none > /sys/block/{name}/queue/scheduler` as root for figures of the device."),
        );
    }
    let named = |device: &&DeviceRecord| format!("{} on {}", device.scheduler, device.name);
    // A partition has the scheduler of its disk.
    match devices.last() {
        None => Judgement::unknown("no block device with a scheduler is known under the target."),
        Some(device) => Judgement::ok(format!("{}.", named(device))),
    }
}

pub(super) fn numa(facts: &DoctorFacts) -> Judgement {
    match (facts.numa_nodes, facts.device_node) {
        (None | Some(0 | 1), _) => Judgement::ok("one node."),
        (Some(nodes), Some(node)) => Judgement::note(
            format!("the device is attached to node {node} of {nodes}; threads run on any."),
            format!("Run `numactl --cpunodebind={node} --membind={node} fathom ...` for the least latency."),
        ),
        (Some(nodes), None) => {
            Judgement::unknown(format!("{nodes} nodes; the node of the device is unknown."))
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::FilesystemRecord;

    use super::super::CheckStatus::{Note, Ok as Good, Problem, Unknown};
    use super::super::facts::Refusal;
    use super::super::facts::fixture::{good, refused};
    use super::*;

    #[test]
    fn what_cannot_be_opened_is_a_problem_with_its_own_remedy() {
        let hint = Some("run as root, or add yourself to the disk group".to_owned());
        let refusal = Refusal { reason: "cannot be opened: permission denied".to_owned(), hint };
        let facts = DoctorFacts { access: Some(Err(refusal)), direct_io: None, ..good() };
        let judged = access(&facts);
        assert_eq!(
            (judged.status, judged.result.as_str()),
            (Problem, "cannot be opened: permission denied.")
        );
        assert_eq!(judged.remedy.as_deref(), Some("Run as root, or add yourself to the disk group."));
        assert_eq!(direct_io(&facts).status, Unknown);
    }

    #[test]
    fn direct_io_that_is_refused_is_a_problem() {
        let judged = direct_io(&DoctorFacts { direct_io: refused("its file system has none"), ..good() });
        assert_eq!(judged.status, Problem);
        assert!(judged.remedy.is_some_and(|remedy| remedy.contains("--buffered")));
        assert!(direct_io(&good()).result.contains("512 bytes"));
    }

    #[test]
    fn data_in_memory_is_a_problem_and_an_unknown_device_a_note() {
        let mut facts = good();
        assert_eq!(storage(&facts).result, "the data is on nvme0n1, local.");
        facts.header.conditions.target.devices.clear();
        assert_eq!(storage(&facts).status, Note);
        facts.header.conditions.target.filesystem = Some(FilesystemRecord {
            fs_type: "tmpfs".into(),
            memory: Some("tmpfs".into()),
            ..Default::default()
        });
        assert_eq!(storage(&facts).status, Problem);
    }

    #[test]
    fn background_io_is_a_problem_where_a_run_would_report_it() {
        let check = |ios: u64, busy_ms: u64, expected| {
            let mut facts = good();
            let counters = &mut facts.disks[0].counters;
            (counters.read_ios, counters.write_ios, counters.busy_ms) = (ios, 0, busy_ms);
            let judged = background_io(&facts);
            assert_eq!(judged.status, expected, "{ios} {busy_ms}: {}", judged.result);
        };
        check(0, 0, Good);
        check(5, 500, Good);
        check(1000, 19, Good);
        check(9, 30, Good);
        check(10, 30, Problem);
        // Short I/Os, one at a time, between two ticks of the kernel's clock.
        let mut short = good();
        let counters = &mut short.disks[0].counters;
        (counters.read_ios, counters.busy_ms, counters.read_ticks_ms) = (5000, 0, 100);
        assert_eq!(background_io(&short).status, Problem);
        check(500, 1000, Problem);
        let uncounted = DoctorFacts { uncounted: vec!["vda".to_owned()], ..good() };
        assert_eq!(background_io(&uncounted).status, Unknown);
        assert_eq!(background_io(&DoctorFacts { disks: Vec::new(), ..good() }).status, Unknown);
    }

    #[test]
    fn limits_of_the_group_are_named() {
        let limit =
            |is_write, is_bytes, limit| TargetLimit { device: "vda".into(), is_write, is_bytes, limit };
        let io_limits = vec![limit(false, false, 3000), limit(true, true, 10 << 20)];
        let judged = super::io_limits(&DoctorFacts { io_limits, ..good() });
        assert_eq!(judged.status, Problem);
        assert_eq!(
            judged.result,
            "the control group limits reads on vda to 3,000 IOPS, writes on vda to 10 MiB/s."
        );
        let mut facts = good();
        facts.header.conditions.target.devices.clear();
        assert_eq!(super::io_limits(&facts).status, Unknown);
    }

    #[test]
    fn fair_schedulers_are_noted() {
        let status = |name: &str| {
            let mut facts = good();
            facts.header.conditions.target.devices[0].scheduler = name.to_owned();
            scheduler(&facts).status
        };
        assert_eq!(["none", "mq-deadline", "bfq", ""].map(status), [Good, Good, Note, Unknown]);
    }

    #[test]
    fn several_nodes_are_noted_with_that_of_the_device() {
        let status =
            |numa_nodes, device_node| numa(&DoctorFacts { numa_nodes, device_node, ..good() }).status;
        assert_eq!([status(None, None), status(Some(1), Some(0))], [Good, Good]);
        assert_eq!([status(Some(2), Some(1)), status(Some(2), None)], [Note, Unknown]);
    }
}
