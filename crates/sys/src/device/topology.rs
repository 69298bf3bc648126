//! Which device lies on which: partition and disk, members, backing files, and the devices of a mount.

use std::path::{Path, PathBuf};

use super::filesystem::{self, Mount};
use super::kind::DeviceKind;
use super::root::SysRoot;

/// The node of a kernel name: `cciss!c0d0` is `/dev/cciss/c0d0`.
pub fn node_of(name: &str) -> PathBuf {
    Path::new("/dev").join(name.replace('!', "/"))
}

/// The node that users know a device by: `/dev/mapper/NAME` of a device-mapper device, else [`node_of`] its name.
pub fn shown_node(root: &SysRoot, name: &str) -> PathBuf {
    match root.text(root.block_dir(name).join("dm/name")) {
        Some(mapped) => Path::new("/dev/mapper").join(mapped),
        None => node_of(name),
    }
}

/// `8:16` as major and minor number.
pub fn parse_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The disk of a partition; `None` for other devices.
pub fn disk_of(root: &SysRoot, name: &str) -> Option<String> {
    let dir = root.block_dir(name);
    if !root.exists(dir.join("partition")) {
        return None;
    }
    let real = root.path(dir).canonicalize().ok()?;
    Some(real.parent()?.file_name()?.to_str()?.to_string())
}

/// The partitions that the kernel knows of a disk.
pub fn partitions_of(root: &SysRoot, disk: &str) -> Vec<String> {
    let dir = root.block_dir(disk);
    let mut names = root.names(&dir);
    names.retain(|name| root.exists(dir.join(name).join("partition")));
    names
}

/// Kernel names of the devices directly below one.
pub(super) fn devices_under(root: &SysRoot, name: &str, kind: &DeviceKind) -> Vec<String> {
    match kind {
        DeviceKind::Partition { .. } => disk_of(root, name).into_iter().collect(),
        DeviceKind::Loop { backing_file: Some(file) } => devices_of_backing(root, file),
        _ => root.names(root.block_dir(name).join("slaves")),
    }
}

fn devices_of_backing(root: &SysRoot, file: &Path) -> Vec<String> {
    if let Some(device) = name_of_node(root, file) {
        return vec![device];
    }
    let Ok(mounts) = filesystem::read_mounts(root) else { return Vec::new() };
    // Behind a deleted file only the directory it was in is left to ask.
    let place = if root.exists(file) { Some(file) } else { file.parent() };
    let mount = place.and_then(|place| filesystem::mount_of(root, &mounts, place).ok());
    mount.map(|mount| devices_of_mount(root, mount)).unwrap_or_default()
}

/// The kernel name of the block device that a path is a node of, or names in `/dev` though the node is missing.
pub fn name_of_node(root: &SysRoot, path: &Path) -> Option<String> {
    if root.is_real()
        && let Some((major, minor)) = block_number(path)
    {
        return root.block_name(major, minor);
    }
    let name = path.strip_prefix("/dev").ok()?;
    if let Ok(mapped) = name.strip_prefix("mapper") {
        let is_it = |dm: &String| root.text(root.block_dir(dm).join("dm/name")).as_deref() == mapped.to_str();
        return root.names("/sys/class/block").into_iter().filter(|dm| dm.starts_with("dm-")).find(is_it);
    }
    let name = name.to_str()?.replace('/', "!");
    root.exists(root.block_dir(&name).join("dev")).then_some(name)
}

/// Major and minor number of a block device node; `None` for everything else.
pub fn block_number(path: &Path) -> Option<(u32, u32)> {
    let stat = rustix::fs::stat(path).ok()?;
    let is_block = rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::BlockDevice;
    is_block.then(|| (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)))
}

/// The block devices a mount lies on: by its device number, or by its source and btrfs's own list of members where the
/// number is anonymous. None for tmpfs, NFS, overlay, FUSE.
pub fn devices_of_mount(root: &SysRoot, mount: &Mount) -> Vec<String> {
    let mut devices: Vec<String> = root.block_name(mount.major, mount.minor).into_iter().collect();
    if devices.is_empty() {
        // A node may lie anywhere: the kernel takes it by its numbers.
        devices = mount.source_nodes().into_iter().filter_map(|node| name_of_node(root, node)).collect();
    }
    if mount.fs_type == "btrfs" {
        let others =
            btrfs_members(root).into_iter().find(|members| devices.iter().any(|d| members.contains(d)));
        devices.extend(others.unwrap_or_default());
        devices.sort();
        devices.dedup();
    }
    devices
}

/// The devices of each mounted btrfs, from `/sys/fs/btrfs`.
pub fn btrfs_members(root: &SysRoot) -> Vec<Vec<String>> {
    let base = Path::new("/sys/fs/btrfs");
    root.names(base)
        .into_iter()
        .map(|id| root.names(base.join(id).join("devices")))
        .filter(|d| !d.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    #[test]
    fn nodes_and_numbers() {
        assert_eq!(node_of("cciss!c0d0p1"), Path::new("/dev/cciss/c0d0p1"));
        assert_eq!(parse_number("259:12\n"), Some((259, 12)));
        assert_eq!(parse_number("259"), None);
        assert_eq!(parse_number("a:b"), None);
    }

    #[test]
    fn names_of_nodes() {
        let fixture = Fixture::new();
        fixture
            .disk("virtual", "dm-3", "253:3", &[])
            .write("sys/devices/virtual/block/dm-3/dm/name", "vg-lv\n");
        fixture.disk("pci", "cciss!c0d0", "104:0", &[]);
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(name_of_node(&fixture.root(), Path::new(path)).as_deref(), expected, "{path}");
        };
        check("/dev/dm-3", Some("dm-3"));
        check("/dev/mapper/vg-lv", Some("dm-3"));
        check("/dev/mapper/other", None);
        check("/dev/cciss/c0d0", Some("cciss!c0d0"));
        check("/dev/root", None);
        check("/srv/dm-3", None);
        assert_eq!(block_number(Path::new("/dev/null")), None);
    }

    #[test]
    fn partitions_know_their_disk() {
        let fixture = Fixture::new();
        fixture.disk("pci/nvme", "nvme0n1", "259:0", &[("queue/rotational", "0")]);
        fixture.partition("nvme0n1", 1, "nvme0n1p1", "259:1").partition("nvme0n1", 2, "nvme0n1p2", "259:2");
        let root = fixture.root();
        assert_eq!(partitions_of(&root, "nvme0n1"), ["nvme0n1p1", "nvme0n1p2"]);
        assert_eq!(disk_of(&root, "nvme0n1p2").as_deref(), Some("nvme0n1"));
        assert_eq!(disk_of(&root, "nvme0n1"), None);
        assert_eq!(partitions_of(&root, "nvme0n1p1"), [] as [&str; 0]);
    }

    #[test]
    fn devices_of_mounts() {
        let mut fixture = Fixture::new();
        for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32"), ("sdd", "8:48")] {
            fixture.disk("pci", name, number, &[]);
        }
        fixture
            .write("sys/fs/btrfs/some-uuid/devices/sdb", "")
            .write("sys/fs/btrfs/some-uuid/devices/sdc", "");
        fixture.write("sys/fs/btrfs/features/x", "");
        fixture
            .mount("8:0", "/", "ext4", "/dev/root")
            .mount("0:40", "/pool", "btrfs", "/dev/sdc")
            .mount("0:41", "/tmp", "tmpfs", "tmpfs")
            .mount("0:42", "/merged", "overlay", "overlay")
            .mount("0:43", "/nfs", "nfs4", "server:/export")
            .mount("0:44", "/other", "bcachefs", "/dev/sda:/dev/sdd");
        let root = fixture.root();
        let mounts = filesystem::read_mounts(&root).unwrap();
        let all: Vec<Vec<String>> = mounts.iter().map(|mount| devices_of_mount(&root, mount)).collect();
        let expected: [&[&str]; 6] = [&["sda"], &["sdb", "sdc"], &[], &[], &[], &["sda", "sdd"]];
        assert_eq!(all, expected);
    }
}
