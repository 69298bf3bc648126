//! Which devices carry mounted file systems: in every mount namespace that can be seen, with logs, journals and members.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::device::error::DeviceError;
use crate::device::filesystem::{self, Mount};
use crate::device::handle::{HandleKind, TargetHandle, TargetIdentity};
use crate::device::root::SysRoot;
use crate::device::topology::{self, name_of_node};

/// A process by whose mount namespace something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub id: u32,
    /// Its name, truncated by the kernel.
    pub command: String,
}

/// A mounted file system and the devices it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MountedDevices {
    /// Kernel names of the devices with its data.
    pub devices: Vec<String>,
    /// Kernel names of the devices with its log or real-time data.
    pub logs: Vec<String>,
    /// The file that it has its data in, without a loop device: as erofs and servers in user space can.
    pub file: Option<MountedFile>,
    pub mount_point: PathBuf,
    pub fs_type: String,
    /// A process that sees it, where this one does not.
    pub seen_by: Option<Process>,
}

/// A file that a file system is mounted from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MountedFile {
    /// Which.
    Known(TargetIdentity),
    /// Its name as given to the server, relative to an unknown directory.
    Named(OsString),
}

/// Every mount that uses a block device or a file, those of this process first.
///
/// # Errors
/// The mounts of this process cannot be read.
pub(super) fn all(root: &SysRoot) -> Result<Vec<MountedDevices>, DeviceError> {
    let mut found: Vec<MountedDevices> = filesystem::read_mounts(root)?
        .iter()
        .map(|mount| of_mount(root, mount, None))
        .filter(MountedDevices::has_data_here)
        .collect();
    for (process, mounts) in other_namespaces(root) {
        for mount in &mounts {
            let there = of_mount(root, mount, Some(&process));
            let is_known = found.iter().any(|known| {
                (&known.devices, &known.logs, &known.file) == (&there.devices, &there.logs, &there.file)
            });
            if there.has_data_here() && !is_known {
                found.push(there);
            }
        }
    }
    Ok(found)
}

impl MountedDevices {
    fn has_data_here(&self) -> bool {
        !self.devices.is_empty() || self.file.is_some()
    }
}

fn of_mount(root: &SysRoot, mount: &Mount, seen_by: Option<&Process>) -> MountedDevices {
    let logs = ["logdev", "rtdev"].iter().filter_map(|option| mount.super_option(option));
    let devices = topology::devices_of_mount(root, mount);
    let file = if devices.is_empty() { file_of(root, mount, seen_by) } else { None };
    MountedDevices {
        devices,
        file,
        logs: logs.filter_map(|node| name_of_node(root, Path::new(node))).collect(),
        mount_point: mount.mount_point.clone(),
        fs_type: mount.fs_type.clone(),
        seen_by: seen_by.cloned(),
    }
}

/// The file that was named as the source of a mount that lies on no device.
fn file_of(root: &SysRoot, mount: &Mount, seen_by: Option<&Process>) -> Option<MountedFile> {
    let is_of_server = mount.fs_type.starts_with("fuse");
    if !is_of_server && mount.fs_type != "erofs" {
        return None;
    }
    let source = Path::new(&mount.source);
    if source.is_relative() {
        let has_name = is_of_server && source.extension().is_some() || source.components().count() > 1;
        return has_name.then(|| source.file_name().map(|name| MountedFile::Named(name.to_owned())))?;
    }
    let from =
        seen_by.map_or_else(|| PathBuf::from("/"), |process| format!("/proc/{}/root", process.id).into());
    let path = root.path(from.join(source.strip_prefix("/").ok()?));
    let handle = TargetHandle::open(&path).ok()?;
    (handle.kind() == HandleKind::File).then(|| MountedFile::Known(handle.identity()))
}

/// The mounts of each mount namespace but this process's, with one process that is in it. Namespaces of processes that
/// this user cannot inspect are omitted.
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
