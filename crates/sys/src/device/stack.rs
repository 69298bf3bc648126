//! The stack of a target: its file system, its device, and every device beneath.
//!
//! partition → disk, device-mapper and md → members, loop → the device of its backing file's file system. Targets
//! without a block device (tmpfs, overlay, NFS, FUSE) have an empty stack.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::error::DeviceError;
use super::facts::{self, DeviceFacts};
use super::filesystem::{self, FilesystemFacts};
use super::kind::DeviceKind;
use super::locality::{self, Locality};
use super::memory;
use super::root::SysRoot;
use super::topology;

/// Devices listed at most; a stack beyond it is cut off.
const MAX_DEVICES: usize = 1024;

/// The kind of a target path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
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
    /// Its kind.
    pub target: PathKind,
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
            PathKind::BlockDevice => (None, topology::name_of_node(&root, path).into_iter().collect()),
            PathKind::CharDevice => (None, Vec::new()),
            _ => {
                let mounts = filesystem::read_mounts(&root)?;
                let mount = filesystem::mount_of(&root, &mounts, &place)?;
                let facts = filesystem::facts_of(&root, &mounts, mount, &place);
                (Some(facts), topology::devices_of_mount(&root, mount))
            }
        };
        Ok(TargetStack { path: path.to_path_buf(), target, filesystem, devices: beneath(&root, &tops) })
    }

    /// Kernel names of all devices, top first, as [`super::DiskSampler`] takes them.
    pub fn names(&self) -> Vec<&str> {
        self.devices.iter().map(|device| device.name.as_str()).collect()
    }
}

fn classify(path: &Path) -> Result<(PathKind, PathBuf), DeviceError> {
    match rustix::fs::stat(path) {
        Ok(stat) => {
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => PathKind::Directory,
                FileType::RegularFile => PathKind::File,
                FileType::BlockDevice => PathKind::BlockDevice,
                FileType::CharacterDevice => PathKind::CharDevice,
                _ => PathKind::Other,
            };
            Ok((kind, path.to_path_buf()))
        }
        Err(rustix::io::Errno::NOENT) if path.file_name().is_some() => {
            let parent =
                path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match rustix::fs::stat(parent) {
                Ok(_) => Ok((PathKind::Missing, parent.to_path_buf())),
                Err(errno) => Err(DeviceError::Io {
                    attempted: "inspect",
                    path: parent.to_path_buf(),
                    source: errno.into(),
                }),
            }
        }
        Err(errno) => {
            Err(DeviceError::Io { attempted: "inspect", path: path.to_path_buf(), source: errno.into() })
        }
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
    if let Some(memory) = memory::memory_behind(root, &mounts, file) {
        return Locality::Memory(format!("its backing file is on {memory}"));
    }
    match filesystem::mount_of(root, &mounts, file).map(|mount| mount.fs_type.as_str()) {
        Ok(network @ ("nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "glusterfs" | "lustre")) => {
            Locality::Network(format!("its backing file is on {network}"))
        }
        Ok(other) => Locality::Unknown(format!("its backing file is on {other} without a block device")),
        Err(_) => Locality::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    fn check(fixture: &Fixture, top: &str, expected: &[(&str, &[&str])]) -> Vec<DeviceFacts> {
        let devices = beneath(&fixture.root(), &[top.to_string()]);
        let relation: Vec<(&str, Vec<&str>)> =
            devices.iter().map(|d| (d.name.as_str(), d.under.iter().map(String::as_str).collect())).collect();
        let expected: Vec<(&str, Vec<&str>)> =
            expected.iter().map(|(name, under)| (*name, under.to_vec())).collect();
        assert_eq!(relation, expected);
        devices
    }

    #[test]
    fn logical_volume_on_raid_on_partitions() {
        let fixture = Fixture::new();
        fixture.disk("a", "sda", "8:0", &[]).partition("sda", 1, "sda1", "8:1");
        fixture.disk("b", "sdb", "8:16", &[]).partition("sdb", 1, "sdb1", "8:17");
        fixture.disk("virtual", "md0", "9:0", &[]).write("sys/devices/virtual/block/md0/md/level", "raid1\n");
        fixture
            .disk("virtual", "dm-0", "253:0", &[])
            .write("sys/devices/virtual/block/dm-0/dm/name", "vg-lv\n");
        fixture.holds("md0", "sda1").holds("md0", "sdb1").holds("dm-0", "md0");
        let stack: [(&str, &[&str]); 6] = [
            ("dm-0", &["md0"]),
            ("md0", &["sda1", "sdb1"]),
            ("sda1", &["sda"]),
            ("sdb1", &["sdb"]),
            ("sda", &[]),
            ("sdb", &[]),
        ];
        let devices = check(&fixture, "dm-0", &stack);
        assert_eq!(devices[1].kind, DeviceKind::Md { level: "raid1".into() });
    }

    #[test]
    fn a_device_reached_by_two_paths_is_below_both() {
        let fixture = Fixture::new();
        for (name, number) in [("sda", "8:0"), ("dm-0", "253:0"), ("dm-1", "253:1")] {
            fixture.disk("virtual", name, number, &[]);
        }
        fixture.holds("dm-1", "sda").holds("dm-1", "dm-0").holds("dm-0", "sda");
        check(&fixture, "dm-1", &[("dm-1", &["dm-0", "sda"]), ("dm-0", &["sda"]), ("sda", &[])]);
    }

    #[test]
    fn cycle_ends() {
        let fixture = Fixture::new();
        fixture.disk("virtual", "dm-0", "253:0", &[]).disk("virtual", "dm-1", "253:1", &[]);
        fixture.holds("dm-0", "dm-1").holds("dm-1", "dm-0");
        check(&fixture, "dm-0", &[("dm-0", &["dm-1"]), ("dm-1", &["dm-0"])]);
    }

    #[test]
    fn a_loop_device_is_on_the_device_of_its_file() {
        let mut fixture = Fixture::new();
        fixture.disk("a", "vda", "254:0", &[]).disk("virtual", "loop0", "7:0", &[]).disk(
            "virtual",
            "loop1",
            "7:1",
            &[],
        );
        fixture.mount("254:0", "/", "ext4", "/dev/root").mount("0:30", "/tmp", "tmpfs", "tmpfs");
        fixture
            .write("srv/a.img", "")
            .write("sys/devices/virtual/block/loop0/loop/backing_file", "/srv/a.img\n");
        fixture
            .write("tmp/b.img", "")
            .write("sys/devices/virtual/block/loop1/loop/backing_file", "/tmp/b.img\n");
        check(&fixture, "loop0", &[("loop0", &["vda"]), ("vda", &[])]);
        let in_memory = check(&fixture, "loop1", &[("loop1", &[])]);
        assert_eq!(in_memory[0].locality.to_string(), "memory (its backing file is on tmpfs)");
    }

    #[test]
    fn localities_are_inherited_from_below() {
        let fixture = Fixture::new();
        fixture.disk("x", "nbd0", "43:0", &[]).partition("nbd0", 1, "nbd0p1", "43:1");
        let devices = beneath(&fixture.root(), &["nbd0p1".to_string()]);
        assert_eq!(
            devices[0].locality.why(),
            "it lies on nbd0: it is attached by the network block device driver"
        );
    }

    #[test]
    fn targets_of_the_running_system() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let check = |path: &Path, kind: PathKind, has_filesystem: bool| {
            let stack = TargetStack::of(path).unwrap();
            assert_eq!((stack.target, stack.filesystem.is_some()), (kind, has_filesystem), "{path:?}");
            stack
        };
        let of_dir = check(dir.path(), PathKind::Directory, true);
        assert_eq!(check(&file, PathKind::File, true).devices, of_dir.devices);
        assert_eq!(check(&dir.path().join("new"), PathKind::Missing, true).devices, of_dir.devices);
        check(Path::new("fathom-no-such-file"), PathKind::Missing, true);
        assert_eq!(check(Path::new("/dev/null"), PathKind::CharDevice, false).devices, []);
        assert_eq!(check(Path::new("/proc/self/stat"), PathKind::File, true).devices, []);
        assert!(matches!(
            TargetStack::of(&dir.path().join("no/new")),
            Err(DeviceError::Io { attempted: "inspect", .. })
        ));
        assert!(matches!(
            TargetStack::of(&file.join("x")),
            Err(DeviceError::Io { attempted: "inspect", .. })
        ));
    }
}
