//! Which devices carry mounted file systems: in every mount namespace that can be seen, with logs, journals and members.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::device::error::DeviceError;
use crate::device::filesystem::{self, Mount};
use crate::device::root::SysRoot;
use crate::device::topology::{self, name_of_node};

/// A process by whose mount namespace something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub id: u32,
    /// Its name, as far as the kernel keeps it.
    pub command: String,
}

/// A mounted file system and the devices it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MountedDevices {
    /// Kernel names of the devices with its data.
    pub devices: Vec<String>,
    /// Kernel names of the devices with its log or real-time data.
    pub logs: Vec<String>,
    pub mount_point: PathBuf,
    pub fs_type: String,
    /// A process that sees it, where this one does not.
    pub seen_by: Option<Process>,
}

/// Every mount that uses a block device, those of this process first.
///
/// # Errors
/// The mounts of this process cannot be read.
pub(super) fn all(root: &SysRoot) -> Result<Vec<MountedDevices>, DeviceError> {
    let mut found: Vec<MountedDevices> = filesystem::read_mounts(root)?
        .iter()
        .map(|mount| of_mount(root, mount, None))
        .filter(|mount| !mount.devices.is_empty())
        .collect();
    for (process, mounts) in other_namespaces(root) {
        for mount in &mounts {
            let there = of_mount(root, mount, Some(&process));
            let is_known =
                found.iter().any(|known| known.devices == there.devices && known.logs == there.logs);
            if !there.devices.is_empty() && !is_known {
                found.push(there);
            }
        }
    }
    Ok(found)
}

fn of_mount(root: &SysRoot, mount: &Mount, seen_by: Option<&Process>) -> MountedDevices {
    let logs = ["logdev", "rtdev"].iter().filter_map(|option| mount.super_option(option));
    MountedDevices {
        devices: topology::devices_of_mount(root, mount),
        logs: logs.filter_map(|node| name_of_node(root, Path::new(node))).collect(),
        mount_point: mount.mount_point.clone(),
        fs_type: mount.fs_type.clone(),
        seen_by: seen_by.cloned(),
    }
}

/// The mounts of each mount namespace but this process's, with one process that is in it. Namespaces of processes that
/// this user may not look at are left out.
fn other_namespaces(root: &SysRoot) -> Vec<(Process, Vec<Mount>)> {
    let namespace = |process: &str| std::fs::read_link(root.path(format!("/proc/{process}/ns/mnt"))).ok();
    let mut seen: BTreeSet<PathBuf> = namespace("self").into_iter().collect();
    let mut found = Vec::new();
    for name in root.names("/proc") {
        let (Ok(id), Some(namespace)) = (name.parse::<u32>(), namespace(&name)) else { continue };
        if seen.contains(&namespace) {
            continue;
        }
        // A process may end meanwhile; another one of its namespace is as good.
        let Some(text) = root.bytes(format!("/proc/{name}/mountinfo")) else { continue };
        seen.insert(namespace);
        found.push((process_of(root, id), filesystem::parse_mountinfo(&text)));
    }
    found
}

/// A process with its name.
pub(super) fn process_of(root: &SysRoot, id: u32) -> Process {
    let command = root.text(format!("/proc/{id}/comm")).unwrap_or_default();
    Process { id, command }
}

/// True where the kernel's journal of this very device belongs to a file system on another one: the journal of a file
/// system on its own device has a hyphen and an inode behind its name.
pub(super) fn is_external_journal(root: &SysRoot, name: &str) -> bool {
    root.exists(Path::new("/proc/fs/jbd2").join(name))
}

/// The identifier of the mounted btrfs that the device is a member of.
pub(super) fn btrfs_of(root: &SysRoot, name: &str) -> Option<String> {
    let base = Path::new("/sys/fs/btrfs");
    root.names(base)
        .into_iter()
        .find(|id| root.names(base.join(id).join("devices")).iter().any(|d| d == name))
}
