//! The stacks of devices.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::device::{clear, size_of};
use super::shell::{Undo, sh, wait_until};

/// What a device does with writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAccess {
    /// It takes all.
    Free,
    /// It refuses all.
    Protected,
    /// Only at the write pointers of its zones.
    HostManaged,
}

/// A stack and how it is built.
pub struct StackKind {
    /// Its name in the table.
    pub name: &'static str,
    /// Builds it.
    pub build: fn() -> anyhow::Result<Stack>,
}

/// A stack that has been built.
pub struct Stack {
    /// The device under test.
    pub device: PathBuf,
    /// Its kind in fathom's documents.
    pub kind: &'static str,
    /// The devices below it, which it holds.
    pub below: Vec<PathBuf>,
    /// What it does with writes.
    pub access: WriteAccess,
    /// Whether it may have partitions.
    pub is_disk: bool,
    _undo: Undo,
}

/// All stacks.
pub const STACKS: &[StackKind] = &[
    StackKind { name: "nvme", build: nvme },
    StackKind { name: "nvme-zns", build: nvme_zns },
    StackKind { name: "null-blk-zoned", build: null_blk_zoned },
    StackKind { name: "dm-linear", build: dm_linear },
    StackKind { name: "dm-crypt", build: dm_crypt },
    StackKind { name: "lvm", build: lvm },
    StackKind { name: "md-raid1", build: md_raid1 },
    StackKind { name: "scsi-4kn", build: scsi_4kn },
    StackKind { name: "scsi-protected", build: scsi_protected },
    StackKind { name: "multipath", build: multipath },
];

/// The namespaces of the controller that stacks are built on, and one for the device under test itself.
const NVME: u32 = 1;
const ZONED_NVME: u32 = 2;
const LOWER: [u32; 2] = [3, 4];
const KEY: &str = "/run/key";
/// LVM without udev, and with the devices of this stack alone.
const LVM_SETTINGS: &str = "activation/udev_sync=0\nactivation/udev_rules=0\n\
     activation/verify_udev_operations=0\ndevices/use_devicesfile=0\nglobal/event_activation=0\n";

fn disk(device: &str, kind: &'static str, access: WriteAccess, undo: Undo) -> anyhow::Result<Stack> {
    wait_until(device, || size_of(Path::new(device)).is_ok_and(|size| size > 0))?;
    let is_disk = access == WriteAccess::Free;
    Ok(Stack { device: device.into(), kind, below: Vec::new(), access, is_disk, _undo: undo })
}

fn over(below: &[&str], device: &str, kind: &'static str, undo: Undo) -> anyhow::Result<Stack> {
    let stack = disk(device, kind, WriteAccess::Free, undo)?;
    Ok(Stack { below: below.iter().map(PathBuf::from).collect(), is_disk: false, ..stack })
}

/// The node of a namespace. Kernels that scan several at once number the nodes in another order.
fn namespace(id: u32) -> anyhow::Result<String> {
    let mut found = None;
    wait_until(&format!("namespace {id}"), || {
        let blocks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let is_it = |path: &Path| {
            std::fs::read_to_string(path.join("nsid")).is_ok_and(|text| text.trim() == id.to_string())
        };
        let block = blocks.map(|entry| entry.path()).find(|path| is_it(path));
        found = block.and_then(|path| Some(format!("/dev/{}", path.file_name()?.to_string_lossy())));
        found.as_deref().is_some_and(|node| Path::new(node).exists())
    })?;
    found.context("it was there")
}

/// The two devices to build on, without the data of an earlier stack.
fn cleared_lower() -> anyhow::Result<[String; 2]> {
    let lower = [namespace(LOWER[0])?, namespace(LOWER[1])?];
    lower.iter().try_for_each(|device| clear(Path::new(device)))?;
    Ok(lower)
}

fn nvme() -> anyhow::Result<Stack> {
    disk(&namespace(NVME)?, "nvme", WriteAccess::Free, Undo::default())
}

fn nvme_zns() -> anyhow::Result<Stack> {
    disk(&namespace(ZONED_NVME)?, "nvme", WriteAccess::HostManaged, Undo::default())
}

/// The first four of its zones are conventional.
fn null_blk_zoned() -> anyhow::Result<Stack> {
    let mut undo = Undo::default();
    undo.now("modprobe null_blk nr_devices=0", "modprobe -r null_blk")?;
    undo.now("mount -t configfs configfs /sys/kernel/config", "umount /sys/kernel/config")?;
    let directory = "/sys/kernel/config/nullb/nullz0";
    undo.now(&format!("busybox mkdir {directory}"), &format!("busybox rmdir {directory}"))?;
    for (attribute, value) in [
        ("size", "32"),
        ("memory_backed", "1"),
        ("zoned", "1"),
        ("zone_size", "4"),
        ("zone_nr_conv", "4"),
        ("power", "1"),
    ] {
        std::fs::write(format!("{directory}/{attribute}"), value)?;
    }
    let names = std::fs::read_dir("/sys/block")?.flatten().map(|entry| entry.file_name());
    let name = names.map(|name| name.to_string_lossy().into_owned()).find(|name| name.starts_with("null"));
    disk(&format!("/dev/{}", name.unwrap_or_default()), "disk", WriteAccess::HostManaged, undo)
}

/// Over 16 MiB of each.
fn dm_linear() -> anyhow::Result<Stack> {
    let [first, second] = &cleared_lower()?;
    let undo = mapped("linear", &format!("0 32768 linear {first} 0\n32768 32768 linear {second} 0\n"))?;
    over(&[first, second], "/dev/mapper/linear", "dm", undo)
}

fn mapped(name: &str, table: &str) -> anyhow::Result<Undo> {
    std::fs::write("/run/table", table)?;
    let mut undo = Undo::default();
    undo.now(&format!("dmsetup create {name} /run/table"), &format!("dmsetup remove {name}"))?;
    Ok(undo)
}

/// Iterations so few that an emulated processor has no work with them.
fn dm_crypt() -> anyhow::Result<Stack> {
    let [first, _] = &cleared_lower()?;
    std::fs::write(KEY, "a key of the campaign")?;
    let format = "cryptsetup luksFormat --batch-mode --pbkdf pbkdf2 --pbkdf-force-iterations 1000";
    sh(&format!("{format} {first} {KEY}"))?;
    let mut undo = Undo::default();
    undo.now(&format!("cryptsetup open --key-file {KEY} {first} crypt"), "cryptsetup close crypt")?;
    // What decrypts to noise would be data of an unknown format.
    clear(Path::new("/dev/mapper/crypt"))?;
    over(&[first], "/dev/mapper/crypt", "dm", undo)
}

fn lvm() -> anyhow::Result<Stack> {
    let [first, second] = &cleared_lower()?;
    std::fs::create_dir_all("/etc/lvm")?;
    std::fs::write("/etc/lvm/lvm.conf", LVM_SETTINGS)?;
    let mut undo = Undo::default();
    sh(&format!("lvm pvcreate --yes {first} {second}"))?;
    sh(&format!("lvm vgcreate group {first} {second}"))?;
    let create = "lvm lvcreate --yes --stripes 2 --extents 8 --name volume group";
    undo.now(create, "lvm vgchange --activate n group")?;
    over(&[first, second], "/dev/group/volume", "dm", undo)
}

/// Its members are equal already: a resync would write meanwhile.
fn md_raid1() -> anyhow::Result<Stack> {
    let [first, second] = &cleared_lower()?;
    let create = "mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --metadata=1.2 --assume-clean";
    let mut undo = Undo::default();
    undo.now(&format!("{create} --bitmap=none {first} {second}"), "mdadm --stop /dev/md0")?;
    over(&[first, second], "/dev/md0", "md", undo)
}

fn scsi_debug(options: &str) -> anyhow::Result<Undo> {
    sh("modprobe sd_mod")?;
    let mut undo = Undo::default();
    undo.now(&format!("modprobe scsi_debug delay=0 dev_size_mb=32 {options}"), "modprobe -r scsi_debug")?;
    Ok(undo)
}

fn scsi_4kn() -> anyhow::Result<Stack> {
    disk("/dev/sda", "disk", WriteAccess::Free, scsi_debug("sector_size=4096")?)
}

fn scsi_protected() -> anyhow::Result<Stack> {
    disk("/dev/sda", "disk", WriteAccess::Protected, scsi_debug("wp=1")?)
}

/// Two hosts that share their storage are two paths to it.
fn multipath() -> anyhow::Result<Stack> {
    let mut undo = scsi_debug("add_host=2 per_host_store=0 vpd_use_hostno=0")?;
    let paths = ["/dev/sda", "/dev/sdb"];
    for path in paths {
        wait_until(path, || size_of(Path::new(path)).is_ok_and(|size| size > 0))?;
    }
    sh("modprobe dm-multipath")?;
    sh("modprobe dm-round-robin")?;
    let sectors = size_of(Path::new(paths[0]))? / 512;
    let table = format!("0 {sectors} multipath 0 0 1 1 round-robin 0 2 1 {} 1 {} 1\n", paths[0], paths[1]);
    std::fs::write("/run/table", table)?;
    undo.now("dmsetup create paths /run/table", "dmsetup remove paths")?;
    over(&paths, "/dev/mapper/paths", "dm", undo)
}
