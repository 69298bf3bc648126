//! The backing file or device of each loop device, by device and inode number, so that a hard link, a renamed or
//! removed file and a name with a blank at its end hide nothing.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::device::handle::{TargetHandle, TargetIdentity, numbers_of};
use crate::device::root::SysRoot;
use crate::device::topology::{self, name_of_node};

/// An attached loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Loop {
    /// The kernel's name.
    pub name: String,
    /// The backing file.
    pub backing: Backing,
}

/// The backing file of a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Backing {
    /// A block device, by its kernel name.
    Device(String),
    /// A file.
    File(TargetIdentity),
    /// A file whose identity this process cannot learn.
    Unknown(UnknownFile),
}

/// Known properties of a backing file that cannot be identified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UnknownFile {
    /// As the kernel shows it, seen from the file's own mount namespace; `None` where the kernel does not show it.
    path: Option<PathBuf>,
    /// Bytes that the file had at least when it was attached.
    least_bytes: u64,
}

impl UnknownFile {
    /// False only where `target` is surely another file: it is smaller, or it has one name and that is another one.
    pub(super) fn may_be(&self, target: &TargetHandle) -> bool {
        if target.file_size().is_ok_and(|size| size < self.least_bytes) {
            return false;
        }
        let Some(name) = self.path.as_deref().and_then(Path::file_name) else { return true };
        let was_removed = name.as_bytes().ends_with(b" (deleted)");
        let has_another_name = target.path().canonicalize().is_ok_and(|path| path.file_name() != Some(name));
        let has_one_name = target.links() == Some(1) && !target.is_mount_point();
        was_removed || !(has_another_name && has_one_name)
    }
}

/// All loop devices that are attached.
pub(super) fn attached(root: &SysRoot) -> Vec<Loop> {
    let mut names = root.names("/sys/class/block");
    // Without sysfs the kernel still lists every device that has a size.
    let partitions = root.text("/proc/partitions").unwrap_or_default();
    names.extend(partitions.lines().filter_map(|line| line.split_whitespace().nth(3)).map(str::to_owned));
    names.retain(|name| is_loop(name));
    names.sort();
    names.dedup();
    names.into_iter().filter_map(|name| Some(Loop { backing: backing_of(root, &name)?, name })).collect()
}

/// `loop0`, but not its partition `loop0p1`.
fn is_loop(name: &str) -> bool {
    name.strip_prefix("loop").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// The backing file of a loop device; `None` if none is attached.
fn backing_of(root: &SysRoot, name: &str) -> Option<Backing> {
    let dir = root.block_dir(name);
    let shown = root.bytes(dir.join("loop/backing_file")).map(path_of);
    let has_sysfs = root.exists(&dir);
    if has_sysfs && shown.is_none() && !root.exists(dir.join("loop")) {
        return None;
    }
    if root.is_real()
        && let Some(answer) = asked(root, name)
    {
        return answer;
    }
    if let Some(path) = &shown {
        if let Some(device) = name_of_node(root, path) {
            return Some(Backing::Device(device));
        }
        // In another mount namespace the same path is another file, so on the running system a path identifies nothing.
        let metadata = std::fs::metadata(root.path(path)).ok().filter(|_| !root.is_real());
        if let Some(found) = metadata.filter(std::fs::Metadata::is_file) {
            let (major, minor) = numbers_of(found.dev());
            return Some(Backing::File(TargetIdentity::File(major, minor, found.ino())));
        }
    }
    Some(Backing::Unknown(UnknownFile { path: shown, least_bytes: least_bytes(root, name) }))
}

/// The path in an attribute: everything but the newline that the kernel adds.
fn path_of(mut bytes: Vec<u8>) -> PathBuf {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Bytes that the file behind a loop device must have had: where its data begins, and the size of the device.
fn least_bytes(root: &SysRoot, name: &str) -> u64 {
    let dir = root.block_dir(name);
    let of_device = root.number(dir.join("size")).unwrap_or(0).saturating_mul(512);
    of_device.saturating_add(root.number(dir.join("loop/offset")).unwrap_or(0))
}

/// The backing file that the device itself reports, if any; `None` if it cannot be queried.
fn asked(root: &SysRoot, name: &str) -> Option<Option<Backing>> {
    let node = topology::node_of(name);
    let (major, minor) = topology::block_number(&node)?;
    // A node of that name for another device is not evidence.
    if root.block_name(major, minor).is_some_and(|named| named != name) {
        return None;
    }
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&node).ok()?;
    match loop_status(&file) {
        Ok(status) => Some(Some(identified(root, &status))),
        Err(rustix::io::Errno::NXIO) => Some(None),
        Err(_) => None,
    }
}

fn identified(root: &SysRoot, status: &LoopStatus) -> Backing {
    let (major, minor) = numbers(status.rdevice);
    if status.rdevice != 0 {
        let name = root.block_name(major, minor).unwrap_or_else(|| name_by_number(root, major, minor));
        return Backing::Device(name);
    }
    let (major, minor) = numbers(status.device);
    Backing::File(TargetIdentity::File(major, minor, status.inode))
}

/// The name of a block device from `/proc/partitions`; a number as a name, which no device has, where it is not listed.
pub(super) fn name_by_number(root: &SysRoot, major: u32, minor: u32) -> String {
    let partitions = root.text("/proc/partitions").unwrap_or_default();
    let listed = partitions.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [this_major, this_minor, _, name] = fields[..] else { return None };
        (this_major.parse() == Ok(major) && this_minor.parse() == Ok(minor)).then(|| name.to_owned())
    });
    listed.unwrap_or_else(|| format!("{major}:{minor}"))
}

/// Major and minor number in the kernel's own coding (`huge_encode_dev` in `linux/kdev_t.h`).
fn numbers(encoded: u64) -> (u32, u32) {
    let major = (encoded & 0xf_ff00) >> 8;
    let minor = (encoded & 0xff) | ((encoded >> 12) & 0xf_ff00);
    (major as u32, minor as u32)
}

/// The start of `struct loop_info64` (`linux/loop.h`); the rest is names and keys.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopStatus {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    rest: [u64; 24],
}

const _: () = assert!(size_of::<LoopStatus>() == 232);

fn loop_status(device: &File) -> rustix::io::Result<LoopStatus> {
    const LOOP_GET_STATUS64: rustix::ioctl::Opcode = 0x4c05;
    // SAFETY: LOOP_GET_STATUS64 writes one loop_info64, whose size the assertion above holds, to what the getter owns.
    let getter = unsafe { rustix::ioctl::Getter::<LOOP_GET_STATUS64, LoopStatus>::new() };
    // SAFETY: as above; any other driver refuses the request with an error.
    unsafe { rustix::ioctl::ioctl(device, getter) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    #[test]
    fn device_numbers_are_decoded() {
        let check = |encoded, expected| assert_eq!(numbers(encoded), expected, "{encoded:#x}");
        check(0x0801, (8, 1));
        check(0x0001_0302, (259, 2));
        check(0x0010_0700, (7, 256));
    }

    #[test]
    fn loop_devices_are_distinguished_from_their_partitions() {
        for (name, expected) in
            [("loop0", true), ("loop12", true), ("loop0p1", false), ("loop", false), ("dm-0", false)]
        {
            assert_eq!(is_loop(name), expected, "{name}");
        }
    }

    fn fixture(backing: &str) -> Fixture {
        let fixture = Fixture::new();
        fixture.disk("virtual", "loop3", "7:3", &[("size", "16")]);
        fixture.write("sys/devices/virtual/block/loop3/loop/backing_file", &format!("{backing}\n"));
        fixture.disk("virtual", "loop4", "7:4", &[("size", "0")]);
        fixture
    }

    fn backing(fixture: &Fixture) -> Backing {
        let found = attached(&fixture.root());
        assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["loop3"]);
        found[0].backing.clone()
    }

    #[test]
    fn a_name_may_end_in_a_blank_or_newline() {
        for name in ["image ", "image\n", " image", "a b"] {
            let fixture = fixture(&format!("/srv/{name}"));
            fixture.write(&format!("srv/{name}"), &"x".repeat(16 * 512));
            let path = fixture.root().path(format!("/srv/{name}"));
            let expected = TargetHandle::open(&path).unwrap().identity();
            assert_eq!(backing(&fixture), Backing::File(expected), "{name:?}");
        }
    }

    #[test]
    fn an_unidentified_file_may_be_any_large_enough_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: usize| {
            let path = dir.path().join(name);
            std::fs::write(&path, vec![1; bytes]).unwrap();
            TargetHandle::open(&path).unwrap()
        };
        let unknown = |path: &str| {
            let Backing::Unknown(unknown) = backing(&fixture(path)) else { panic!("{path} was identified") };
            unknown
        };
        let (same, other, small) = (file("image", 8192), file("other", 8192), file("small", 8191));
        let elsewhere = unknown("/not/here/image");
        assert_eq!([&same, &other, &small].map(|target| elsewhere.may_be(target)), [true, false, false]);
        // A second name may be the one that the kernel shows.
        std::fs::hard_link(other.path(), dir.path().join("link")).unwrap();
        assert!(elsewhere.may_be(&other));
        let removed = unknown("/srv/image (deleted)");
        assert_eq!(
            [&same, &file("third", 8192), &small].map(|target| removed.may_be(target)),
            [true, true, false]
        );
    }

    #[test]
    fn without_sysfs_every_listed_loop_device_may_have_any_file() {
        let fixture = Fixture::new();
        fixture.write(
            "proc/partitions",
            "major minor  #blocks  name\n\n   7        0      16384 loop0\n 259 0 9 nvme0n1\n",
        );
        let found = attached(&fixture.root());
        assert_eq!(found, [Loop { name: "loop0".into(), backing: Backing::Unknown(UnknownFile::default()) }]);
    }
}
