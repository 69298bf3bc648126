//! What lies under a target: its file system, the device that carries it, and every device beneath that one.
//!
//! partition → disk, device-mapper and md → members, loop → the device of its backing file's file system. Targets
//! without a block device (tmpfs, overlay, NFS, FUSE) have an empty stack.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::error::DeviceError;
use super::facts::{self, DeviceFacts, DeviceKind};
use super::filesystem::{self, FilesystemFacts};
use super::locality::{self, Locality};
use super::root::SysRoot;

/// Devices listed at most; a stack beyond it is cut off.
const MAX_DEVICES: usize = 1024;

/// What a target path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// Nothing yet: the stack is that of the directory it would be made in.
    Missing,
    /// A pipe, a socket, or the like.
    Other,
}

/// A target with everything beneath it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetStack {
    /// The path as given.
    pub path: PathBuf,
    /// What it is.
    pub target: TargetKind,
    /// The file system it lives on; `None` for a device.
    pub filesystem: Option<FilesystemFacts>,
    /// Top first: every device stands before those it lies on.
    pub devices: Vec<DeviceFacts>,
}

impl TargetStack {
    /// Look at a path; a symbolic link is followed, a file that does not exist yet stands for its directory.
    pub fn of(path: &Path) -> Result<TargetStack, DeviceError> {
        let root = SysRoot::real();
        let (target, place) = classify(path)?;
        let (filesystem, tops) = match target {
            TargetKind::BlockDevice => (None, facts::name_of_node(&root, path).into_iter().collect()),
            TargetKind::CharDevice => (None, Vec::new()),
            _ => {
                let mounts = filesystem::read_mounts(&root)?;
                let mount = filesystem::mount_of(&root, &mounts, &place)?;
                let facts = filesystem::facts_of(&root, &mounts, mount, &place);
                (Some(facts), facts::devices_of_mount(&root, mount))
            }
        };
        Ok(TargetStack { path: path.to_path_buf(), target, filesystem, devices: beneath(&root, &tops) })
    }

    /// Kernel names of all devices, top first, as [`super::DiskSampler`] takes them.
    pub fn names(&self) -> Vec<&str> {
        self.devices.iter().map(|device| device.name.as_str()).collect()
    }

    /// The devices that lie on no other: the disks themselves.
    pub fn bottoms(&self) -> impl Iterator<Item = &DeviceFacts> {
        self.devices.iter().filter(|device| device.under.is_empty())
    }
}

fn classify(path: &Path) -> Result<(TargetKind, PathBuf), DeviceError> {
    match rustix::fs::stat(path) {
        Ok(stat) => {
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => TargetKind::Directory,
                FileType::RegularFile => TargetKind::File,
                FileType::BlockDevice => TargetKind::BlockDevice,
                FileType::CharacterDevice => TargetKind::CharDevice,
                _ => TargetKind::Other,
            };
            Ok((kind, path.to_path_buf()))
        }
        Err(rustix::io::Errno::NOENT) if path.file_name().is_some() => {
            let parent =
                path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match rustix::fs::stat(parent) {
                Ok(_) => Ok((TargetKind::Missing, parent.to_path_buf())),
                Err(errno) => Err(DeviceError::Stat { path: parent.to_path_buf(), source: errno.into() }),
            }
        }
        Err(errno) => Err(DeviceError::Stat { path: path.to_path_buf(), source: errno.into() }),
    }
}

/// The facts of these devices and all beneath them, each once, every device before those it lies on. A device whose
/// facts cannot be read is left out.
pub fn beneath(root: &SysRoot, tops: &[String]) -> Vec<DeviceFacts> {
    let mut found: Vec<DeviceFacts> = Vec::new();
    let mut waiting: VecDeque<String> = tops.iter().cloned().collect();
    while let Some(name) = waiting.pop_front() {
        if found.len() == MAX_DEVICES || found.iter().any(|device| device.name == name) {
            continue;
        }
        if let Ok(device) = facts::device_facts(root, &name) {
            waiting.extend(device.under.iter().cloned());
            found.push(device);
        }
    }
    let mut sorted = top_first(found);
    place_from_below(root, &mut sorted);
    sorted
}

/// Order so that each device stands before all it lies on: repeatedly take one that nothing left lies on.
fn top_first(mut left: Vec<DeviceFacts>) -> Vec<DeviceFacts> {
    let mut sorted = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_free =
            |candidate: &DeviceFacts| !left.iter().any(|other| other.under.contains(&candidate.name));
        // A cycle cannot exist in the kernel; should a report of one arrive, it is broken at its first member.
        let next = left.iter().position(is_free).unwrap_or(0);
        sorted.push(left.remove(next));
    }
    sorted
}

fn place_from_below(root: &SysRoot, devices: &mut [DeviceFacts]) {
    for index in (0..devices.len()).rev() {
        let (upper, lower) = devices.split_at_mut(index + 1);
        let device = &mut upper[index];
        let below: Vec<(&str, &Locality)> = lower
            .iter()
            .filter(|candidate| device.under.contains(&candidate.name))
            .map(|candidate| (candidate.name.as_str(), &candidate.locality))
            .collect();
        if !below.is_empty() {
            device.locality = locality::inherited(below);
        } else if let DeviceKind::Loop { backing_file: Some(file) } = &device.kind {
            device.locality = place_of_file(root, file);
        }
    }
}

fn place_of_file(root: &SysRoot, file: &Path) -> Locality {
    let mounts = filesystem::read_mounts(root).unwrap_or_default();
    match filesystem::mount_of(root, &mounts, file).map(|mount| mount.fs_type.as_str()) {
        Ok(memory @ ("tmpfs" | "ramfs" | "hugetlbfs")) => {
            Locality::Memory(format!("its backing file is on {memory}"))
        }
        Ok(network @ ("nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "glusterfs" | "lustre")) => {
            Locality::Network(format!("its backing file is on {network}"))
        }
        Ok(other) => Locality::Unknown(format!("its backing file is on {other} without a block device")),
        Err(_) => Locality::default(),
    }
}
