//! From what the kernel tells to what a record keeps. Copies; decides nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_record::conditions::{
    CgroupRecord, Conditions, DeviceRecord, DmiRecord, FilesystemRecord, HostRecord, ProviderRecord,
    TargetRecord,
};
use fathom_record::{Activity, ClockState, RunHeader};
use fathom_runner::{ClockFacts, Session};
use fathom_sys::clock::{WallClockState, wall_clock_state};
use fathom_sys::device::cgroup::{IoThrottle, ThrottleKind};
use fathom_sys::device::{DeviceFacts, FilesystemFacts, HostFacts, Locality, PathKind, TargetStack};
use fathom_sys::files::SYSTEM_TEXT;

use crate::launch::launch;
use crate::site::RunSettings;

/// Enters this machine and the first target into the header of a run that begins now; what cannot be found out stays empty. Labels of
/// the header say what the firmware does not (`provider`, `instance`).
pub fn enter_conditions(header: &mut RunHeader, targets: &[&Path], clock: ClockFacts) {
    header.started_unix_ms = fathom_sys::clock::unix_ms();
    let started_monotonic_ns = fathom_sys::clock::monotonic_ns();
    let mut facts = HostFacts::read();
    if let Some(devices) = devices_under(targets) {
        facts.cgroup.keep_limits_on(&devices);
    }
    let host = host(&facts, clock, &header.labels);
    header.hosts = vec![HostRecord { started_monotonic_ns, ..host }];
    header.conditions =
        Conditions { target: targets.first().map(|target| target_record(target)).unwrap_or_default() };
    header.launch = launch(|name| std::env::var(name).ok());
}

/// Most targets of which each is looked at: a job of fio may name thousands of files.
const MAX_TARGETS: usize = 16;

/// The numbers of the devices under all targets; `None` if they are unknown for one of these.
fn devices_under(targets: &[&Path]) -> Option<Vec<(u32, u32)>> {
    if targets.len() > MAX_TARGETS {
        return None;
    }
    let of_target = |target: &&Path| {
        let devices = TargetStack::of(target).ok()?.devices;
        let numbers = devices.iter().map(|device| (device.major, device.minor)).collect::<Vec<_>>();
        Some(numbers).filter(|numbers| !numbers.is_empty())
    };
    let each: Option<Vec<Vec<(u32, u32)>>> = targets.iter().map(of_target).collect();
    each.map(|each| each.concat()).filter(|devices| !devices.is_empty())
}

fn host(facts: &HostFacts, clock: ClockFacts, labels: &BTreeMap<String, String>) -> HostRecord {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let mut other = BTreeMap::new();
    let mut note =
        |name: &str, value: Option<String>| value.map(|value| other.insert(name.to_owned(), value));
    note("io_uring_disabled", facts.io_uring_disabled.map(|value| value.to_string()));
    note("aio_max_nr", facts.aio_max_nr.map(|value| value.to_string()));
    note("memory_available_bytes", facts.memory_available.map(|value| value.to_string()));
    note("pressure_stall_information", Some(if facts.pressure_available { "yes" } else { "no" }.to_owned()));
    HostRecord {
        hostname: text(&facts.hostname),
        os: os_name(),
        kernel: text(&facts.kernel_release),
        arch: facts.architecture.clone(),
        cpu_model: text(&facts.cpu_model),
        cpus_online: facts.cpus_online.unwrap_or(0),
        cpus_allowed: facts.cpus_allowed.unwrap_or(0),
        memory_bytes: facts.memory_bytes.unwrap_or(0),
        clocksource: text(&facts.clocksource),
        clock: clock.source.to_owned(),
        clock_state: wall_clock_state().map(clock_state),
        boot_id: text(&facts.boot_id),
        started_monotonic_ns: 0,
        virtualization: match (&facts.hypervisor, facts.virtualized) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(false)) => Some("none".to_owned()),
            (None, Some(true)) => Some("unknown".to_owned()),
            (None, None) => None,
        },
        dmi: dmi(facts),
        provider: provider(facts, labels),
        cgroup: cgroup(facts),
        load: facts.load_average.map(|load| load.to_vec()).unwrap_or_default(),
        other,
    }
}

pub(crate) fn clock_state(state: WallClockState) -> ClockState {
    let WallClockState { synchronized, max_error_ns, estimated_error_ns } = state;
    ClockState { synchronized, max_error_ns, estimated_error_ns }
}

/// `PRETTY_NAME` of os-release.
fn os_name() -> String {
    let read = |path: &str| SYSTEM_TEXT.read_text(Path::new(path));
    let text = read("/etc/os-release").or_else(|_| read("/usr/lib/os-release")).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map(|name| name.trim_matches(['"', '\'']).to_owned()).unwrap_or_default()
}

fn dmi(facts: &HostFacts) -> DmiRecord {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    DmiRecord {
        sys_vendor: text(&facts.dmi.sys_vendor),
        product_name: text(&facts.dmi.product_name),
        product_version: text(&facts.dmi.product_version),
        chassis_asset_tag: text(&facts.dmi.chassis_asset_tag),
        bios_vendor: text(&facts.dmi.bios_vendor),
        bios_version: text(&facts.dmi.bios_version),
        ..DmiRecord::default()
    }
}

/// The user's word counts for more than the firmware's.
fn provider(facts: &HostFacts, labels: &BTreeMap<String, String>) -> ProviderRecord {
    let reported = facts.provider.as_ref();
    let given = labels.get("provider");
    ProviderRecord {
        name: given.cloned().or_else(|| reported.map(|provider| provider.name.clone())),
        instance_type: labels
            .get("instance")
            .cloned()
            .or_else(|| reported.and_then(|provider| provider.instance_type.clone())),
        evidence: match given {
            Some(_) => Some("--label provider".to_owned()),
            None => reported.map(|provider| provider.evidence.clone()),
        },
    }
}

fn cgroup(facts: &HostFacts) -> CgroupRecord {
    let limits = &facts.cgroup;
    let throttle = |limit: &IoThrottle| {
        let kind = match limit.kind {
            ThrottleKind::ReadBytes => "read_bytes_per_second",
            ThrottleKind::WriteBytes => "write_bytes_per_second",
            ThrottleKind::ReadIos => "read_iops",
            ThrottleKind::WriteIos => "write_iops",
        };
        format!("{}:{} {kind} {}", limit.major, limit.minor, limit.limit)
    };
    CgroupRecord {
        path: limits.path.clone(),
        cpu_limit: limits.cpu_quota,
        memory_limit_bytes: limits.memory_bytes,
        io_limits: limits.io.iter().map(throttle).collect(),
        io_group: limits.io_group.as_ref().map(|group| group.display().to_string()),
    }
}

fn target_record(path: &Path) -> TargetRecord {
    let absolute =
        path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned());
    let absolute = absolute.display().to_string();
    let Ok(stack) = TargetStack::of(path) else {
        return TargetRecord { path: absolute, kind: "none".to_owned(), ..TargetRecord::default() };
    };
    let kind = match stack.target {
        PathKind::Directory => "directory",
        PathKind::File => "file",
        PathKind::BlockDevice => "block_device",
        PathKind::CharDevice | PathKind::Missing | PathKind::Other => "none",
    };
    let over =
        |name: &str| stack.devices.iter().find(|device| device.under.iter().any(|below| below == name));
    let devices = stack.devices.iter().map(|facts| device(facts, over(&facts.name))).collect();
    TargetRecord {
        path: absolute,
        kind: kind.to_owned(),
        filesystem: stack.filesystem.as_ref().map(filesystem),
        devices,
        inspection: None,
    }
}

fn filesystem(facts: &FilesystemFacts) -> FilesystemRecord {
    FilesystemRecord {
        fs_type: facts.fs_type.clone(),
        mount_point: facts.mount_point.display().to_string(),
        source: facts.source.to_string_lossy().into_owned(),
        options: joined_options(&facts.mount_options, &facts.super_options),
        total_bytes: facts.total_bytes,
        free_bytes: facts.free_bytes,
        memory: facts.memory.clone(),
    }
}

/// The options of mount and file system as `mount` shows them: each once.
fn joined_options(mount: &str, filesystem: &str) -> String {
    let mut options: Vec<&str> = mount.split(',').filter(|option| !option.is_empty()).collect();
    for option in filesystem.split(',').filter(|option| !option.is_empty()) {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    options.join(",")
}

fn device(facts: &DeviceFacts, over: Option<&DeviceFacts>) -> DeviceRecord {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let whole = |value: Option<u64>| value.and_then(|value| u32::try_from(value).ok());
    DeviceRecord {
        name: facts.name.clone(),
        path: facts.path.display().to_string(),
        under: over.map(|device| device.name.clone()),
        kind: facts.kind.word().to_owned(),
        size_bytes: facts.size_bytes,
        start_bytes: facts.start_bytes,
        logical_block_size: whole(facts.logical_block_size).unwrap_or(0),
        physical_block_size: whole(facts.physical_block_size).unwrap_or(0),
        model: text(&facts.model),
        vendor: text(&facts.vendor),
        serial: text(&facts.serial),
        rotational: facts.rotational,
        scheduler: text(&facts.scheduler),
        write_cache: text(&facts.write_cache),
        fua: facts.fua,
        nr_requests: whole(facts.nr_requests),
        max_request_bytes: facts.max_sectors_kb.map(|kib| kib.saturating_mul(1024)),
        read_ahead_bytes: None,
        read_only: facts.read_only,
        locality: (!matches!(facts.locality, Locality::Unknown(_))).then(|| facts.locality.word().to_owned()),
        locality_why: Some(facts.locality.why().to_owned()),
    }
}

/// The header of a run that begins now, on the target of `settings` and `further` ones, by a name that means the same everywhere on this machine. One in virtual time
/// has no facts about this machine.
pub(crate) fn header(
    activity: Activity,
    target_name: &str,
    settings: &RunSettings,
    further: &[PathBuf],
    seed: u64,
    notes: &[String],
    session: &Session,
) -> RunHeader {
    let mut header = RunHeader {
        command: settings.command.clone(),
        activity,
        target: target_name.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        labels: settings.labels.clone(),
        scheduled: settings.scheduled.clone(),
        seed: Some(seed),
        notes: notes.to_vec(),
        ..RunHeader::default()
    };
    if !session.is_simulated() {
        let targets: Vec<&Path> =
            std::iter::once(&settings.target).chain(further).map(PathBuf::as_path).collect();
        enter_conditions(&mut header, &targets, session.clock_facts());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: ClockFacts = ClockFacts { source: "tsc" };

    #[test]
    fn options_are_listed_once() {
        assert_eq!(joined_options("rw,relatime", "rw,discard"), "rw,relatime,discard");
        assert_eq!(joined_options("", ""), "");
    }

    #[test]
    fn labels_overrule_the_firmware() {
        let facts = HostFacts {
            provider: Some(fathom_sys::device::provider::Provider {
                name: "Amazon".to_owned(),
                instance_type: Some("i4i.large".to_owned()),
                evidence: "sys_vendor".to_owned(),
            }),
            ..HostFacts::default()
        };
        let labels = BTreeMap::from([("provider".to_owned(), "Mine".to_owned())]);
        let record = host(&facts, CLOCK, &labels);
        assert_eq!(record.provider.name.as_deref(), Some("Mine"));
        assert_eq!(record.provider.instance_type.as_deref(), Some("i4i.large"));
        assert_eq!(host(&facts, CLOCK, &BTreeMap::new()).provider.evidence.as_deref(), Some("sys_vendor"));
    }

    #[test]
    fn this_machine_tells_of_itself() {
        let mut found = RunHeader::default();
        enter_conditions(&mut found, &[Path::new("/")], CLOCK);
        let (host, target) = (found.host(), &found.conditions.target);
        assert!(!host.kernel.is_empty() && host.cpus_online > 0 && host.memory_bytes > 0);
        assert_eq!((target.path.as_str(), target.kind.as_str()), ("/", "directory"));
        assert!(target.filesystem.as_ref().is_some_and(|filesystem| !filesystem.fs_type.is_empty()));
        enter_conditions(&mut found, &[Path::new("/no/such/place/at/all")], CLOCK);
        assert_eq!(found.conditions.target.kind, "none");
    }
}
