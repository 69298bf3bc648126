//! What a fair comparison of two runs needs to know about host and target.
//!
//! Everything is optional or empty where the kernel did not tell; a missing fact is never guessed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::InspectionRecord;
use crate::fleet::ClockState;
use crate::wire::is_default;

/// The target as it was when the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// What was measured.
    pub target: TargetRecord,
}

/// The machine the load came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRecord {
    /// Host name.
    pub hostname: String,
    /// Operating system name and version (`PRETTY_NAME` of os-release).
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine architecture.
    pub arch: String,
    /// Processor model.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus_online: u32,
    /// CPUs this process may use.
    pub cpus_allowed: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// The kernel's clock source.
    pub clocksource: String,
    /// The clock the measurement used (`tsc`, `clock_monotonic_raw`, `virtual`).
    pub clock: String,
    /// How well its wall clock was known at the start of the run; `None` where the kernel did not tell.
    #[serde(skip_serializing_if = "is_default")]
    pub clock_state: Option<ClockState>,
    /// The kernel's boot id.
    pub boot_id: String,
    /// Monotonic clock at the start of the run, ns; comparable within one `boot_id` only.
    #[serde(skip_serializing_if = "is_default")]
    pub started_monotonic_ns: u64,
    /// Kind of virtualization, where known (`kvm`, `none`, …).
    pub virtualization: Option<String>,
    /// What the firmware says of the machine.
    pub dmi: DmiRecord,
    /// The cloud provider, where the firmware or the user tells.
    pub provider: ProviderRecord,
    /// Limits of the control group this process runs in.
    pub cgroup: CgroupRecord,
    /// Load averages over 1, 5 and 15 minutes, as the kernel prints them; empty where unknown.
    pub load: Vec<f64>,
    /// Further facts by name.
    #[serde(skip_serializing_if = "is_default")]
    pub other: BTreeMap<String, String>,
}

/// Strings of the machine's firmware; empty where it tells nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DmiRecord {
    /// System vendor.
    pub sys_vendor: String,
    /// Product name.
    pub product_name: String,
    /// Product version.
    pub product_version: String,
    /// Product family.
    pub product_family: String,
    /// Board vendor.
    pub board_vendor: String,
    /// Board name.
    pub board_name: String,
    /// Chassis vendor.
    pub chassis_vendor: String,
    /// Chassis asset tag.
    pub chassis_asset_tag: String,
    /// BIOS vendor.
    pub bios_vendor: String,
    /// BIOS version.
    pub bios_version: String,
}

/// The cloud provider, as far as it is known without network access.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderRecord {
    /// Provider name.
    pub name: Option<String>,
    /// Instance type.
    pub instance_type: Option<String>,
    /// What tells so (`dmi sys_vendor`, `--label`).
    pub evidence: Option<String>,
}

/// Limits of the control group the process runs in; `None` = no limit or unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupRecord {
    /// Path of the group.
    pub path: Option<String>,
    /// CPUs granted (quota divided by period).
    pub cpu_limit: Option<f64>,
    /// Memory, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// I/O limits of the devices under the targets, as `7:0 read_iops 1500`; of all devices if those are unknown.
    pub io_limits: Vec<String>,
    /// Directory of the group that sets them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_group: Option<String>,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetRecord {
    /// Absolute path, or the `sim:` description.
    pub path: String,
    /// `directory`, `file`, `block_device`, `simulated` or `none`.
    pub kind: String,
    /// The file system the target lies on; `None` for raw devices and simulated volumes.
    pub filesystem: Option<FilesystemRecord>,
    /// The device under the target and every device under that one, uppermost first.
    pub devices: Vec<DeviceRecord>,
    /// What it showed before the tests; `None` where it was not inspected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspection: Option<InspectionRecord>,
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesystemRecord {
    /// Type (`ext4`).
    #[serde(rename = "type")]
    pub fs_type: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// What is mounted.
    pub source: String,
    /// Mount options.
    pub options: String,
    /// Size, bytes.
    pub total_bytes: u64,
    /// Free for this user, bytes.
    pub free_bytes: u64,
    /// The type of the file system that keeps the target in memory: its own, or that of an overlay's layer; `None` where
    /// none is known to.
    #[serde(skip_serializing_if = "is_default")]
    pub memory: Option<String>,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceRecord {
    /// Kernel name (`nvme0n1`).
    pub name: String,
    /// Path of its node.
    pub path: String,
    /// Name of the device that lies on this one; `None` for the target's own.
    pub under: Option<String>,
    /// `disk`, `partition`, `dm`, `md`, `loop`, …
    pub kind: String,
    /// Size, bytes.
    pub size_bytes: u64,
    /// Where a partition, or a loop device over a part of its file, begins on what lies below, bytes.
    #[serde(skip_serializing_if = "is_default")]
    pub start_bytes: Option<u64>,
    /// Logical block size, bytes.
    pub logical_block_size: u32,
    /// Physical block size, bytes.
    pub physical_block_size: u32,
    /// Model.
    pub model: String,
    /// Vendor.
    pub vendor: String,
    /// Serial number or world-wide name, where it may be read.
    #[serde(skip_serializing_if = "is_default")]
    pub serial: String,
    /// Rotating platters.
    pub rotational: Option<bool>,
    /// The I/O scheduler in force.
    pub scheduler: String,
    /// The write cache (`write back`, `write through`).
    pub write_cache: String,
    /// Writes can be forced to the medium one by one.
    pub fua: Option<bool>,
    /// Length of the kernel's queue.
    pub nr_requests: Option<u32>,
    /// Largest request the kernel sends down, bytes.
    pub max_request_bytes: Option<u64>,
    /// Read-ahead, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// Writes are refused.
    pub read_only: bool,
    /// `local`, `network`, `ephemeral`, or `None` where unknown.
    pub locality: Option<String>,
    /// What tells so.
    pub locality_why: Option<String>,
}
