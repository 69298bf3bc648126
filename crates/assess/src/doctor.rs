//! `doctor`: gathers what the checks of a machine and a target rest on. Judges nothing.
//!
//! Reads the kernel's facts, sets up each engine once without I/O, opens the target, and observes the machine for a second.
//! Writes nothing: in a directory it creates an unnamed file, as a test would, and leaves that empty.

use std::io::ErrorKind;
use std::path::Path;

use fathom_analysis::doctor::{DoctorFacts, LockedMemory, Refusal, SwapActivity, TargetLimit};
use fathom_engine::EngineError;
use fathom_model::Nanos;
use fathom_record::RunHeader;
use fathom_runner::{ClockFacts, StopHandle, observe_background};
use fathom_sys::clock::RealClock;
use fathom_sys::device::cgroup::{CgroupLimits, ThrottleKind};
use fathom_sys::device::tuning::{HostTuning, counts_io, numa_node_of, swapped_pages};
use fathom_sys::device::{BlockTrace, PathKind, SysRoot, TargetStack};
use fathom_sys::io::{OpenFlags, open_target};
use fathom_sys::uring::registered_memory_limit;

use crate::error::plain;
use crate::target::{absolute, not_a_target, stack_of, unseen};
use crate::{AssessError, enter_conditions, is_simulated, machine, working_file};

/// Length of the observation: longer than the shortest time over which findings judge such counters.
const OBSERVATION: Nanos = Nanos::from_millis(1_050);

/// The facts on this machine and on `path`. A `stop` shortens the observation.
///
/// # Errors
/// There is nothing at `path`, or a simulated volume, or its stack cannot be read.
pub fn doctor_facts(
    path: &Path,
    command: Vec<String>,
    stop: &StopHandle,
) -> Result<DoctorFacts, AssessError> {
    if is_simulated(path) {
        let reason = "no condition of this machine affects a simulated volume";
        let message = format!("{}: {reason}", path.display());
        return Err(AssessError::usage(message, "use a directory, a file or a block device"));
    }
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(unseen(path, &error)),
        _ => {}
    }
    let stack = stack_of(path)?;
    let (root, clock) = (SysRoot::real(), RealClock::start());
    let mut facts =
        DoctorFacts {
            header: header(path, command, &clock),
            clock_reading_ns: Some(clock.reading_ns()),
            is_root: is_root(&root),
            tracing: Some(BlockTrace::check(&root).map_err(|error| Refusal {
                reason: error.to_string(),
                hint: error.hint().map(str::to_owned),
            })),
            ..DoctorFacts::default()
        };
    enter_engines(&mut facts);
    enter_access(&mut facts, path, &stack);
    enter_devices(&mut facts, &root, &stack);
    enter_tuning(&mut facts, &root);
    let pages = swapped_pages(&root);
    let load = observe_background(path, OBSERVATION, &clock, stop);
    (facts.observed_ns, facts.host_load, facts.disks) = (load.elapsed_ns, load.host, load.disks);
    if let Some(swap) = &mut facts.swap {
        swap.pages = swapped_pages(&root).zip(pages).map(|(now, before)| now.saturating_sub(before));
    }
    Ok(facts)
}

fn header(path: &Path, command: Vec<String>, clock: &RealClock) -> RunHeader {
    let mut header = RunHeader {
        command,
        target: absolute(path).display().to_string(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..RunHeader::default()
    };
    enter_conditions(&mut header, &[path], ClockFacts { source: clock.source().name() });
    header
}

fn is_root(root: &SysRoot) -> bool {
    effective_user(&root.text("/proc/self/status").unwrap_or_default()) == Some("0")
}

/// The effective user id in `/proc/self/status`: the second of the four.
fn effective_user(status: &str) -> Option<&str> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace().nth(1)
}

fn enter_engines(facts: &mut DoctorFacts) {
    let probe = |engine: &str| {
        let refusal = |error: EngineError| Refusal { reason: plain(&error.source), hint: None };
        Some(machine::probe(engine).map_err(refusal))
    };
    facts.io_uring = probe("io_uring");
    facts.libaio = probe("libaio");
    facts.locked_memory = Some(match registered_memory_limit() {
        Some(bytes) => LockedMemory::Bytes(bytes),
        None => LockedMemory::Unlimited,
    });
}

/// Opens the target as a run would, without and with direct I/O.
fn enter_access(facts: &mut DoctorFacts, path: &Path, stack: &TargetStack) {
    let attempt = |direct: bool| match stack.target {
        PathKind::Directory => working_file::make(path, direct).map(drop),
        PathKind::File | PathKind::BlockDevice => open_for_reading(path, direct),
        PathKind::CharDevice | PathKind::Missing | PathKind::Other => Err(not_a_target(path)),
    };
    // The report has the path in its head.
    let refusal = |error: AssessError| Refusal { reason: error.reason(path).to_owned(), hint: error.hint };
    let attempt = |direct: bool| attempt(direct).map_err(refusal);
    let access = attempt(false);
    facts.direct_io = access.is_ok().then(|| attempt(true));
    facts.access = Some(access);
}

fn open_for_reading(path: &Path, direct: bool) -> Result<(), AssessError> {
    const EPERM: i32 = 1;
    const EINVAL: i32 = 22;
    match open_target(path, OpenFlags { direct, ..OpenFlags::default() }) {
        Ok(_) => Ok(()),
        Err(error) if direct && error.raw_os_error() == Some(EINVAL) => Err(working_file::no_direct_io(path)),
        Err(error) => {
            let hint = match error.raw_os_error() {
                Some(EPERM) => "allow the device in the container or control group, or use a directory on it",
                _ => "run as root, or add yourself to the disk group",
            };
            Err(AssessError::target(path, format!("cannot be opened: {}", plain(&error)), hint))
        }
    }
}

fn enter_devices(facts: &mut DoctorFacts, root: &SysRoot, stack: &TargetStack) {
    let limits = CgroupLimits::read(root).io;
    for device in &stack.devices {
        let own = limits.iter().filter(|limit| (limit.major, limit.minor) == (device.major, device.minor));
        facts.io_limits.extend(own.map(|limit| TargetLimit {
            device: device.name.clone(),
            is_write: matches!(limit.kind, ThrottleKind::WriteBytes | ThrottleKind::WriteIos),
            is_bytes: matches!(limit.kind, ThrottleKind::ReadBytes | ThrottleKind::WriteBytes),
            limit: limit.limit,
        }));
        if counts_io(root, &device.name) == Some(false) {
            facts.uncounted.push(device.name.clone());
        }
    }
    facts.device_node = stack.devices.iter().find_map(|device| numa_node_of(root, &device.name));
}

fn enter_tuning(facts: &mut DoctorFacts, root: &SysRoot) {
    let tuning = HostTuning::read(root);
    let most: Option<u64> = facts.header.host().other.get("aio_max_nr").and_then(|most| most.parse().ok());
    facts.aio_requests = tuning.aio_requests.zip(most);
    facts.numa_nodes = tuning.numa_nodes;
    facts.governors = tuning.governors;
    facts.frequency_driver = tuning.frequency_driver;
    facts.swap = tuning.swap.map(|swap| SwapActivity {
        total_bytes: swap.total_bytes,
        used_bytes: swap.used_bytes,
        pages: None,
    });
}

#[cfg(test)]
mod tests {
    use fathom_analysis::doctor::{CheckStatus, examine};

    use super::*;

    fn facts(path: &Path) -> Result<DoctorFacts, AssessError> {
        let stop = StopHandle::default();
        stop.request("test");
        doctor_facts(path, Vec::new(), &stop)
    }

    #[test]
    fn this_machine_is_examined_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let found = facts(dir.path()).unwrap();
        assert!(found.io_uring.is_some() && found.libaio.is_some() && found.locked_memory.is_some());
        assert_eq!(found.access, Some(Ok(())));
        assert_eq!(found.header.conditions.target.kind, "directory");
        assert!(found.clock_reading_ns.is_some_and(|ns| ns > 0) && found.tracing.is_some());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_is_opened_and_what_cannot_be_measured_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, b"data").unwrap();
        assert_eq!(facts(&file).unwrap().access, Some(Ok(())));
        assert_eq!(std::fs::read(&file).unwrap(), b"data");
        let device = facts(Path::new("/dev/null")).unwrap();
        let access = examine(&device).into_iter().find(|result| result.id == "access").unwrap();
        assert_eq!(access.status, CheckStatus::Problem);
        assert!(access.result.starts_with("is neither"), "{}", access.result);
        assert_eq!(device.direct_io, None);
    }

    #[test]
    fn a_target_that_is_not_there_or_simulated_is_refused() {
        let error = facts(Path::new("/no/such/place")).unwrap_err();
        assert!(error.to_string().contains("no such file or directory"), "{error}");
        let error = facts(Path::new("sim:custom?iops=1")).unwrap_err();
        assert!(error.kind == crate::ErrorKind::Usage && error.hint.is_some(), "{error}");
    }

    #[test]
    fn the_effective_user_counts() {
        assert_eq!(effective_user("Name:\tx\nUid:\t1000\t0\t0\t0\n"), Some("0"));
        assert_eq!(effective_user("Name:\tx\n"), None);
    }
}
