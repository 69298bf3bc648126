//! What the checks rest on.

use fathom_record::{DiskOutcome, HostInterval, RunHeader};

/// Why something is not possible, and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, as part of a sentence.
    pub reason: String,
    /// The remedy, as a part of a sentence in the imperative.
    pub hint: Option<String>,
}

/// The memory that may be registered for I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedMemory {
    /// No limit applies.
    Unlimited,
    /// So many bytes.
    Bytes(u64),
}

/// A limit of the control group on a device under the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetLimit {
    /// Kernel name of the device.
    pub device: String,
    /// Writes, not reads.
    pub is_write: bool,
    /// Bytes per second, not IOPS.
    pub is_bytes: bool,
    /// The limit.
    pub limit: u64,
}

/// Swap, and what was swapped during the observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapActivity {
    /// Bytes of swap space.
    pub total_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Pages swapped in or out during the observation; `None` where that is unknown.
    pub pages: Option<u64>,
}

/// Facts of a machine and a target; `None` and empty mean unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DoctorFacts {
    /// Program, host and target, as a run records them.
    pub header: RunHeader,
    /// Whether an io_uring can be set up.
    pub io_uring: Option<Result<(), Refusal>>,
    /// Whether a libaio context can be set up.
    pub libaio: Option<Result<(), Refusal>>,
    /// Requests of libaio that are reserved on the whole machine, and the most there may be.
    pub aio_requests: Option<(u64, u64)>,
    /// The memory that may be registered for I/O.
    pub locked_memory: Option<LockedMemory>,
    /// Whether the target can be opened, or a test file created in it.
    pub access: Option<Result<(), Refusal>>,
    /// Whether the target takes direct I/O.
    pub direct_io: Option<Result<(), Refusal>>,
    /// Limits of the control group on the devices under the target.
    pub io_limits: Vec<TargetLimit>,
    /// Devices under the target whose I/O the kernel does not count.
    pub uncounted: Vec<String>,
    /// Length of the observation, ns.
    pub observed_ns: u64,
    /// The load of the machine during the observation.
    pub host_load: Vec<HostInterval>,
    /// The load of the devices under the target during the observation, topmost first.
    pub disks: Vec<DiskOutcome>,
    /// NUMA nodes of the machine.
    pub numa_nodes: Option<u32>,
    /// The node that the device is attached to.
    pub device_node: Option<u32>,
    /// The frequency governors of the CPUs, each once.
    pub governors: Vec<String>,
    /// The driver that sets the frequencies.
    pub frequency_driver: Option<String>,
    /// Time that a reading of the clock takes, ns.
    pub clock_reading_ns: Option<u64>,
    /// Swap.
    pub swap: Option<SwapActivity>,
    /// Whether the user is root.
    pub is_root: bool,
    /// Whether single requests can be traced.
    pub tracing: Option<Result<(), Refusal>>,
}

#[cfg(test)]
pub(super) mod fixture {
    use fathom_record::{
        Conditions, DeviceRecord, DiskCounters, FilesystemRecord, HostCounters, HostRecord, TargetRecord,
    };

    use super::*;
    use crate::fixture::SECOND_NS;

    /// A machine with nothing to complain about.
    pub(in crate::doctor) fn good() -> DoctorFacts {
        let device = DeviceRecord {
            name: "nvme0n1".to_owned(),
            kind: "disk".to_owned(),
            scheduler: "none".to_owned(),
            locality: Some("local".to_owned()),
            logical_block_size: 512,
            ..DeviceRecord::default()
        };
        let filesystem = FilesystemRecord { fs_type: "ext4".to_owned(), ..FilesystemRecord::default() };
        let target = TargetRecord {
            path: "/mnt/data".to_owned(),
            kind: "directory".to_owned(),
            filesystem: Some(filesystem),
            devices: vec![device],
            ..TargetRecord::default()
        };
        let host = HostRecord {
            cpus_online: 4,
            cpus_allowed: 4,
            clocksource: "tsc".to_owned(),
            clock: "tsc".to_owned(),
            ..HostRecord::default()
        };
        let header = RunHeader {
            target: "/mnt/data".to_owned(),
            hosts: vec![host],
            conditions: Conditions { target },
            ..RunHeader::default()
        };
        let counters =
            HostCounters { cpu_ns: 4 * SECOND_NS, busy_ns: SECOND_NS / 10, ..HostCounters::default() };
        let disk = DiskOutcome {
            name: "nvme0n1".to_owned(),
            elapsed_ns: SECOND_NS,
            counters: DiskCounters { write_ios: 3, write_sectors: 24, busy_ms: 2, ..DiskCounters::default() },
            ..DiskOutcome::default()
        };
        DoctorFacts {
            header,
            io_uring: Some(Ok(())),
            libaio: Some(Ok(())),
            aio_requests: Some((0, 65_536)),
            locked_memory: Some(LockedMemory::Unlimited),
            access: Some(Ok(())),
            direct_io: Some(Ok(())),
            io_limits: Vec::new(),
            uncounted: Vec::new(),
            observed_ns: SECOND_NS,
            host_load: vec![HostInterval { end_ns: SECOND_NS, counters, ..HostInterval::default() }],
            disks: vec![disk],
            numa_nodes: Some(1),
            device_node: None,
            governors: vec!["performance".to_owned()],
            frequency_driver: Some("intel_pstate".to_owned()),
            clock_reading_ns: Some(12),
            swap: Some(SwapActivity { pages: Some(0), ..SwapActivity::default() }),
            is_root: true,
            tracing: Some(Ok(())),
        }
    }

    pub(in crate::doctor) fn refused(reason: &str) -> Option<Result<(), Refusal>> {
        Some(Err(Refusal { reason: reason.to_owned(), hint: None }))
    }
}
