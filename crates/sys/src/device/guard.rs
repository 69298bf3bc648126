//! Protects data from write tests: determines the users of a target, and the data on it.
//!
//! Targets and what uses them are identified by the kernel's numbers, never by their paths, so an alias, a hard link or
//! a user-made node hides nothing. An object that cannot be inspected is an error or an obstacle, never "free". The
//! order matters: first a target is opened ([`TargetHandle`]) and, if it is a block device, claimed; then it is
//! surveyed; and it is written to through the same handle.

mod loops;
mod mounts;
mod owners;
mod shared;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::error::DeviceError;
use super::facts;
use super::filesystem;
use super::handle::{HandleKind, TargetHandle, TargetIdentity};
use super::obstacle::{Obstacle, ObstacleClass, Relation};
use super::root::SysRoot;
use super::signature::{self, SignatureClass};
use super::topology::{self, node_of};
use crate::io::{OpenFlags, block_device_size};
use loops::{Backing, Loop};
pub use mounts::Process;
use mounts::{MountedDevices, MountedFile};
use owners::DataOwner;

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.id, self.command)
    }
}

/// All obstacles to overwriting `path`; empty if it is free. A block device is claimed during the inspection.
///
/// # Errors
/// The path, `/proc` or the device's contents cannot be read and nothing else was found against it.
pub fn in_use(path: &Path) -> Result<Vec<Obstacle>, DeviceError> {
    let stat = |source| DeviceError::Io { attempted: "inspect", path: path.to_path_buf(), source };
    let handle = TargetHandle::open(path).map_err(stat)?;
    // Whether it was refused is asked of the handle.
    let _ = handle.claim();
    Survey::of(&SysRoot::real(), &[&handle])?.obstacles(&handle)
}

/// Whether the kernel refuses to open a block device exclusively: it does while the device, or a partition of it, is
/// mounted, held or used as swap, also by other namespaces. Opens for reading only, so nothing is disturbed.
///
/// # Errors
/// The device cannot be opened at all.
pub fn exclusive_open_fails(path: &Path) -> io::Result<bool> {
    let flags = libc::O_EXCL | libc::O_NONBLOCK;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(true),
        Err(error) => Err(error),
    }
}

/// The formats recognised on a device or image.
///
/// # Errors
/// It cannot be opened or read.
pub fn signatures_on(path: &Path) -> Result<Vec<signature::Signature>, DeviceError> {
    let handle = TargetHandle::open(path).map_err(|source| DeviceError::Io {
        attempted: "inspect",
        path: path.to_path_buf(),
        source,
    })?;
    signatures_of(&handle)
}

fn signatures_of(handle: &TargetHandle) -> Result<Vec<signature::Signature>, DeviceError> {
    let path = handle.path();
    let file = handle.reopen(OpenFlags::default()).map_err(|source| DeviceError::Io {
        attempted: "open",
        path: path.to_path_buf(),
        source,
    })?;
    let size = match handle.kind() {
        HandleKind::BlockDevice => block_device_size(&file),
        _ => handle.file_size(),
    };
    size.and_then(|size| signature::probe(&file, size)).map_err(|source| DeviceError::Io {
        attempted: "read",
        path: path.to_path_buf(),
        source,
    })
}

/// Where the first byte stands that is not zero, on a block device on which no format was recognised; `None` where it is
/// empty, bears a signature, or cannot be read.
pub fn unknown_data_on(handle: &TargetHandle) -> Option<u64> {
    if handle.kind() != HandleKind::BlockDevice || !signatures_of(handle).ok()?.is_empty() {
        return None;
    }
    let file = handle.reopen(OpenFlags::default()).ok()?;
    let size = block_device_size(&file).ok()?;
    signature::unknown_data(&file, size).ok()?
}

fn nodes_of(names: &[String]) -> Vec<PathBuf> {
    names.iter().map(|name| node_of(name)).collect()
}

/// The users of the devices and files of this machine, read once for all targets of a run.
pub struct Survey<'a> {
    root: &'a SysRoot,
    loops: Vec<Loop>,
    swaps: Vec<(PathBuf, Option<TargetIdentity>)>,
    /// Read at the first inspection of a device: a file that no loop device uses needs none of it.
    mounts: OnceCell<Vec<MountedDevices>>,
    owners: Vec<DataOwner>,
}

impl Survey<'_> {
    /// Looks at the machine. Only `targets` can be asked about afterwards.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn of<'a>(root: &'a SysRoot, targets: &[&TargetHandle]) -> Result<Survey<'a>, DeviceError> {
        // Without it mounts, swap and other processes would be unknown, and everything would seem free.
        filesystem::read_mounts(root)?;
        let swaps = parse_swaps(&root.bytes("/proc/swaps").unwrap_or_default());
        let identify = |path: PathBuf| {
            let handle = TargetHandle::open(&root.path(&path)).ok();
            (path, handle.map(|handle| handle.identity()))
        };
        let mut survey = Survey {
            root,
            loops: loops::attached(root),
            swaps: swaps.into_iter().map(identify).collect(),
            mounts: OnceCell::new(),
            owners: Vec::new(),
        };
        let shared: Vec<TargetIdentity> =
            targets.iter().flat_map(|target| survey.shared_with(target)).collect();
        survey.owners = owners::owners(root, &shared);
        Ok(survey)
    }

    /// Everything that stands against overwriting `target`. For a file only its active uses count, since replacing a
    /// file's contents is what a file target is for.
    ///
    /// # Errors
    /// The device's contents cannot be read and nothing else was found against it.
    pub fn obstacles(&self, target: &TargetHandle) -> Result<Vec<Obstacle>, DeviceError> {
        self.mounts()?;
        let mut found = match target.kind() {
            HandleKind::File => self.of_file(target),
            HandleKind::BlockDevice => self.of_block_device(target)?,
            HandleKind::Directory | HandleKind::PseudoDevice | HandleKind::CharDevice | HandleKind::Other => {
                return Ok(Vec::new());
            }
        };
        self.owners_of(target, &mut found);
        Ok(found)
    }

    /// The loop device whose data lies in `file`, in use or not.
    pub fn loop_device_over(&self, file: &TargetHandle) -> Option<PathBuf> {
        let is_here = |one: &&Loop| one.backing == Backing::File(file.identity());
        self.loops.iter().find(is_here).map(|one| node_of(&one.name))
    }

    /// Open files and locks of other processes on the target and on all objects that share its data.
    fn owners_of(&self, target: &TargetHandle, found: &mut Vec<Obstacle>) {
        let shared = self.shared_with(target);
        let path_of = |of: TargetIdentity| match of {
            TargetIdentity::Device(major, minor) if of != target.identity() => {
                self.root.block_name(major, minor).map(|name| topology::shown_node(self.root, &name))
            }
            _ => None,
        };
        for owner in self.owners.iter().filter(|owner| shared.contains(&owner.of)) {
            let path = path_of(owner.of).unwrap_or_else(|| target.path().to_path_buf());
            let by = owner.process.clone();
            found.push(match owner.locks {
                true => Obstacle::Locked { path, by: Some(by) },
                false => Obstacle::OpenForWriting { path, by },
            });
        }
        if !found.iter().any(|obstacle| matches!(obstacle, Obstacle::Locked { .. }))
            && let Some(by) = owners::lock_on(self.root, target)
        {
            found.push(Obstacle::Locked { path: target.path().to_path_buf(), by });
        }
    }

    fn of_file(&self, target: &TargetHandle) -> Vec<Obstacle> {
        let mut found = self.users_of_file(target.identity(), &mut BTreeSet::new());
        // `/proc/swaps` has the path in the mount namespace of whoever activated it, which leads elsewhere here, or nowhere.
        if found.is_empty() && target.is_swap_file() {
            found.push(Obstacle::SwapInUse { path: target.path().to_path_buf() });
        }
        let name = target.path().canonicalize().ok().and_then(|path| path.file_name().map(ToOwned::to_owned));
        for mount in self.mounts().unwrap_or_default() {
            let is_it = match &mount.file {
                Some(MountedFile::Known(identity)) => *identity == target.identity(),
                Some(MountedFile::Named(mounted)) => name.as_ref() == Some(mounted),
                None => false,
            };
            if is_it {
                found.push(Obstacle::Mounted {
                    device: target.path().to_path_buf(),
                    relation: Relation::Itself,
                    mount_point: mount.mount_point.clone(),
                    seen_by: mount.seen_by.clone(),
                });
            }
        }
        for one in &self.loops {
            if let Backing::Unknown(unknown) = &one.backing
                && unknown.may_be(target)
            {
                found.push(Obstacle::UnknownBackingFile { device: node_of(&one.name) });
            }
        }
        found
    }

    fn of_block_device(&self, target: &TargetHandle) -> Result<Vec<Obstacle>, DeviceError> {
        let TargetIdentity::Device(major, minor) = target.identity() else { return Ok(Vec::new()) };
        let name = self
            .root
            .block_name(major, minor)
            .ok_or_else(|| DeviceError::UnknownDevice { name: target.path().display().to_string() })?;
        let device = topology::shown_node(self.root, &name);
        let mut found = self.users_of_device(&name, &mut BTreeSet::new());
        if found.is_empty() && !target.is_claimed() {
            found.push(Obstacle::Busy { device: device.clone() });
        }
        if self.root.switch(self.root.block_dir(&name).join("ro")) == Some(true) {
            found.push(Obstacle::ReadOnly { device: device.clone() });
        }
        if facts::is_host_managed(self.root, &name) {
            found.push(Obstacle::HostManaged { device });
        }
        match signatures_of(target) {
            Ok(signatures) => {
                let has_table =
                    signatures.iter().any(|signature| signature.class == SignatureClass::PartitionTable);
                found.extend(signatures.into_iter().map(|what| Obstacle::Signature { what }));
                let partitions = topology::partitions_of(self.root, &name);
                if !has_table && !partitions.is_empty() {
                    found.push(Obstacle::Partitioned { partitions: nodes_of(&partitions) });
                }
            }
            Err(error) if found.is_empty() => return Err(error),
            Err(_) => {}
        }
        Ok(found)
    }

    fn mounts(&self) -> Result<&[MountedDevices], DeviceError> {
        if self.mounts.get().is_none() {
            let read = mounts::all(self.root)?;
            return Ok(self.mounts.get_or_init(|| read));
        }
        Ok(self.mounts.get().map_or(&[], Vec::as_slice))
    }

    /// The users of a device: mounts and holders, and the users of the file or device behind it where it is a loop
    /// device.
    fn users_of_device(&self, name: &str, seen: &mut BTreeSet<String>) -> Vec<Obstacle> {
        let mut found = self.users_above(name, seen);
        // Writes to a loop device arrive in its backing file, which may have other users.
        let disk = topology::disk_of(self.root, name);
        let is_this = |one: &&Loop| one.name == name || disk.as_ref() == Some(&one.name);
        if let Some(one) = self.loops.iter().find(is_this) {
            seen.insert(one.name.clone());
            match &one.backing {
                Backing::Device(behind) => found.extend(self.users_of_device(behind, seen)),
                Backing::File(identity) => found.extend(self.users_of_file(*identity, seen)),
                Backing::Unknown(_) => {}
            }
        }
        found
    }

    /// Mounts and holders of a device, its partitions and its disk. Each device is inspected once.
    fn users_above(&self, name: &str, seen: &mut BTreeSet<String>) -> Vec<Obstacle> {
        let mut found = Vec::new();
        if !seen.insert(name.to_owned()) {
            return found;
        }
        let partitions = topology::partitions_of(self.root, name);
        let disk = topology::disk_of(self.root, name);
        self.direct(name, Relation::Itself, seen, &mut found);
        for partition in &partitions {
            self.direct(partition, Relation::Partition, seen, &mut found);
        }
        if let Some(disk) = &disk {
            self.direct(disk, Relation::Disk, seen, &mut found);
        }
        let is_here =
            |behind: &String| behind == name || partitions.contains(behind) || disk.as_ref() == Some(behind);
        for one in &self.loops {
            if matches!(&one.backing, Backing::Device(behind) if is_here(behind)) {
                found.extend(self.user_of_loop(&one.name, seen));
            }
        }
        found
    }

    /// Mounts, swap and holders of exactly this device.
    fn direct(&self, name: &str, relation: Relation, seen: &mut BTreeSet<String>, found: &mut Vec<Obstacle>) {
        let device = topology::shown_node(self.root, name);
        let before = found.len();
        for mount in self.mounts().unwrap_or_default() {
            let (mount_point, seen_by) = (mount.mount_point.clone(), mount.seen_by.clone());
            if mount.devices.iter().any(|candidate| candidate == name) {
                found.push(Obstacle::Mounted { device: device.clone(), relation, mount_point, seen_by });
            } else if mount.logs.iter().any(|candidate| candidate == name) {
                let role = format!("the log of the {} mounted at {}", mount.fs_type, mount_point.display());
                found.push(Obstacle::PartOfMounted { device: device.clone(), role });
            }
        }
        if mounts::is_external_journal(self.root, name) {
            let role = "the journal of a mounted file system".to_owned();
            found.push(Obstacle::PartOfMounted { device: device.clone(), role });
        }
        if found.len() == before
            && let Some(id) = mounts::btrfs_of(self.root, name)
        {
            let role = format!("a member of the mounted btrfs {id}");
            found.push(Obstacle::PartOfMounted { device: device.clone(), role });
        }
        let is_swap = |path: &PathBuf, identity: &Option<TargetIdentity>| match identity {
            Some(TargetIdentity::Device(major, minor)) if self.root.is_real() => {
                self.root.block_name(*major, *minor).as_deref() == Some(name)
            }
            _ => topology::name_of_node(self.root, path).as_deref() == Some(name),
        };
        if self.swaps.iter().any(|(path, identity)| is_swap(path, identity)) {
            found.push(Obstacle::SwapInUse { path: device.clone() });
        }
        for holder in self.root.names(self.root.block_dir(name).join("holders")) {
            let user = self.users_above(&holder, seen).into_iter().next().map(Box::new);
            let holder = topology::shown_node(self.root, &holder);
            found.push(Obstacle::Holder { device: device.clone(), holder, user });
        }
    }

    /// The users of a file.
    fn users_of_file(&self, file: TargetIdentity, seen: &mut BTreeSet<String>) -> Vec<Obstacle> {
        let swap = self.swaps.iter().find(|(_, identity)| *identity == Some(file));
        let mut found: Vec<Obstacle> =
            swap.map(|(path, _)| Obstacle::SwapInUse { path: path.clone() }).into_iter().collect();
        for one in self.loops.iter().filter(|one| one.backing == Backing::File(file)) {
            found.extend(self.user_of_loop(&one.name, seen));
        }
        found
    }

    /// The users of the loop device, as users of its backing file.
    fn user_of_loop(&self, name: &str, seen: &mut BTreeSet<String>) -> Option<Obstacle> {
        let was_seen = seen.contains(name);
        let mut users = self.users_above(name, seen);
        let node = node_of(name);
        let is_busy = || self.root.is_real() && exclusive_open_fails(&node).unwrap_or(false);
        if users.is_empty() && !was_seen && is_busy() {
            users.push(Obstacle::Busy { device: node.clone() });
        }
        let user = users.into_iter().find(|user| user.class() == ObstacleClass::InUse)?;
        Some(Obstacle::BackingFile { device: node, user: Box::new(user) })
    }
}

/// The first column of `/proc/swaps`, below its heading.
fn parse_swaps(text: &[u8]) -> Vec<PathBuf> {
    let first = |line: &[u8]| {
        let end = line.iter().position(|byte| byte.is_ascii_whitespace())?;
        Some(PathBuf::from(filesystem::unescape(&line[..end])))
    };
    text.split(|&byte| byte == b'\n').skip(1).filter_map(first).collect()
}

#[cfg(test)]
mod tests;
