//! One block device as sysfs describes it: identity, geometry, queue, cache, and what it lies on.
//!
//! A partition takes queue, model and the like from its disk. What a driver does not tell is `None`.

use std::path::{Path, PathBuf};

use super::error::DeviceError;
use super::filesystem;
use super::host;
use super::locality::{self, Evidence, Locality};
use super::root::SysRoot;

/// What sort of block device the driver makes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// A whole disk of a driver without a kind of its own here (SCSI, SATA, USB …).
    #[default]
    Disk,
    /// A partition of a disk.
    Partition {
        /// Its number on the disk.
        number: u32,
    },
    /// A loop device.
    Loop {
        /// The file or device behind it, as the kernel names it; `None` when none is attached.
        backing_file: Option<PathBuf>,
    },
    /// A device-mapper device.
    DeviceMapper {
        /// Its name below `/dev/mapper`.
        name: String,
        /// What made it, from its uuid: `LVM`, `CRYPT-LUKS2`, `mpath` …; empty when it has none.
        target: String,
    },
    /// A software RAID.
    Md {
        /// Its level, such as `raid1`; empty when it is not running.
        level: String,
    },
    /// A compressed disk in memory.
    Zram,
    /// A disk in memory (`brd`).
    Ram,
    /// An NVMe namespace.
    Nvme,
    /// A virtio disk.
    Virtio,
    /// A Xen virtual disk.
    Xen,
    /// A network block device.
    Nbd,
    /// A Ceph block device.
    Rbd,
    /// A replicated block device.
    Drbd,
    /// ATA over Ethernet.
    Aoe,
    /// A bcache device.
    Bcache,
    /// Persistent memory.
    Pmem,
    /// An SD card or eMMC.
    Mmc,
    /// A ZFS volume.
    Zvol,
}

impl DeviceKind {
    /// One word for tables and records.
    pub fn word(&self) -> &'static str {
        match self {
            DeviceKind::Disk => "disk",
            DeviceKind::Partition { .. } => "partition",
            DeviceKind::Loop { .. } => "loop",
            DeviceKind::DeviceMapper { .. } => "dm",
            DeviceKind::Md { .. } => "md",
            DeviceKind::Zram => "zram",
            DeviceKind::Ram => "ram",
            DeviceKind::Nvme => "nvme",
            DeviceKind::Virtio => "virtio",
            DeviceKind::Xen => "xen",
            DeviceKind::Nbd => "nbd",
            DeviceKind::Rbd => "rbd",
            DeviceKind::Drbd => "drbd",
            DeviceKind::Aoe => "aoe",
            DeviceKind::Bcache => "bcache",
            DeviceKind::Pmem => "pmem",
            DeviceKind::Mmc => "mmc",
            DeviceKind::Zvol => "zvol",
        }
    }
}

/// The kinds that the kernel's name alone tells, by prefix before a digit or letter.
const NAMED: &[(&str, DeviceKind)] = &[
    ("zram", DeviceKind::Zram),
    ("ram", DeviceKind::Ram),
    ("nvme", DeviceKind::Nvme),
    ("vd", DeviceKind::Virtio),
    ("xvd", DeviceKind::Xen),
    ("nbd", DeviceKind::Nbd),
    ("rbd", DeviceKind::Rbd),
    ("drbd", DeviceKind::Drbd),
    ("etherd!", DeviceKind::Aoe),
    ("bcache", DeviceKind::Bcache),
    ("pmem", DeviceKind::Pmem),
    ("mmcblk", DeviceKind::Mmc),
    ("zd", DeviceKind::Zvol),
];

/// What is known of one block device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The kernel's name: `vda`, `nvme0n1p1`, `dm-0`.
    pub name: String,
    /// Its node in `/dev`.
    pub path: PathBuf,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Smallest unit it can be addressed in, in bytes.
    pub logical_block_size: Option<u64>,
    /// Smallest unit it writes without reading first, in bytes.
    pub physical_block_size: Option<u64>,
    /// Model as reported by the device.
    pub model: Option<String>,
    /// Vendor as reported by the device.
    pub vendor: Option<String>,
    /// Serial number; on some clouds the volume's id.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// What the kernel believes of rotation; virtual disks often claim it wrongly.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// `write back` when it has a volatile cache that must be flushed, else `write through`.
    pub write_cache: Option<String>,
    /// Whether it can force a single write to the medium.
    pub fua: Option<bool>,
    /// Requests that its queue holds.
    pub nr_requests: Option<u64>,
    /// Largest request in KiB; a larger one is split.
    pub max_sectors_kb: Option<u64>,
    /// Unit of a discard in bytes; 0 when it has none.
    pub discard_granularity: Option<u64>,
    /// True when the kernel refuses writes.
    pub read_only: bool,
    /// The sort of device.
    pub kind: DeviceKind,
    /// Kernel names of the devices directly below it.
    pub under: Vec<String>,
    /// Where its data is.
    pub locality: Locality,
}

/// The facts of the block device with this kernel name; its locality is judged by itself, without what lies below.
pub fn device_facts(root: &SysRoot, name: &str) -> Result<DeviceFacts, DeviceError> {
    let dir = root.block_dir(name);
    let number = root.text(dir.join("dev")).and_then(|text| parse_number(&text));
    let Some((major, minor)) = number else {
        return Err(DeviceError::UnknownDevice { name: name.to_string() });
    };
    let disk_name = disk_of(root, name);
    let disk = root.block_dir(disk_name.as_deref().unwrap_or(name));
    let queue = disk.join("queue");
    let kind = kind_of(root, name, &disk);
    let identity = Identity::read(root, &disk);
    let locality = match kind {
        DeviceKind::Partition { .. } => Locality::default(),
        _ => judge(root, &disk, &kind, &identity),
    };
    Ok(DeviceFacts {
        name: name.to_string(),
        path: node_of(name),
        major,
        minor,
        size_bytes: root.number(dir.join("size")).unwrap_or(0).saturating_mul(512),
        logical_block_size: root.number(queue.join("logical_block_size")),
        physical_block_size: root.number(queue.join("physical_block_size")),
        model: identity.model,
        vendor: identity.vendor,
        serial: identity.serial,
        firmware: identity.firmware,
        rotational: root.switch(queue.join("rotational")),
        scheduler: root.text(queue.join("scheduler")).map(|text| chosen(&text).to_string()),
        write_cache: root.text(queue.join("write_cache")),
        fua: root.switch(queue.join("fua")),
        nr_requests: root.number(queue.join("nr_requests")),
        max_sectors_kb: root.number(queue.join("max_sectors_kb")),
        discard_granularity: root.number(queue.join("discard_granularity")),
        read_only: root.switch(dir.join("ro")).unwrap_or(false),
        under: devices_under(root, name, &kind),
        kind,
        locality,
    })
}

/// The node of a kernel name: `cciss!c0d0` is `/dev/cciss/c0d0`.
pub fn node_of(name: &str) -> PathBuf {
    Path::new("/dev").join(name.replace('!', "/"))
}

/// `8:16` as major and minor number.
pub fn parse_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The disk of a partition; `None` for everything that is no partition.
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

/// The word in brackets of a sysfs choice, or all of it when there is none.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

fn kind_of(root: &SysRoot, name: &str, disk: &Path) -> DeviceKind {
    let dir = root.block_dir(name);
    if let Some(number) = root.number(dir.join("partition")) {
        return DeviceKind::Partition { number: u32::try_from(number).unwrap_or(0) };
    }
    if root.exists(dir.join("dm")) {
        let uuid = root.text(dir.join("dm/uuid")).unwrap_or_default();
        let dm_name = root.text(dir.join("dm/name")).unwrap_or_default();
        return DeviceKind::DeviceMapper { name: dm_name, target: maker_of(&uuid) };
    }
    if root.exists(dir.join("md")) {
        return DeviceKind::Md { level: root.text(dir.join("md/level")).unwrap_or_default() };
    }
    if begins(name, "loop") {
        return DeviceKind::Loop {
            backing_file: root.text(dir.join("loop/backing_file")).map(PathBuf::from),
        };
    }
    let driver = std::fs::read_link(root.path(disk.join("device/driver"))).ok();
    if driver.is_some_and(|link| link.ends_with("virtio_blk")) {
        return DeviceKind::Virtio;
    }
    NAMED.iter().find(|(prefix, _)| begins(name, prefix)).map_or(DeviceKind::Disk, |(_, kind)| kind.clone())
}

fn begins(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Device-mapper users put their name first: `LVM-x…`, `CRYPT-LUKS2-…`, `mpath-…`, `part1-mpath-…`.
fn maker_of(uuid: &str) -> String {
    let mut parts = uuid.split('-');
    let first = parts.next().unwrap_or("");
    match (first, parts.next()) {
        ("CRYPT", Some(format)) => format!("CRYPT-{format}"),
        _ => first.to_string(),
    }
}

fn devices_under(root: &SysRoot, name: &str, kind: &DeviceKind) -> Vec<String> {
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
pub fn devices_of_mount(root: &SysRoot, mount: &filesystem::Mount) -> Vec<String> {
    let mut devices: Vec<String> = root.block_name(mount.major, mount.minor).into_iter().collect();
    if devices.is_empty() {
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

struct Identity {
    model: Option<String>,
    vendor: Option<String>,
    serial: Option<String>,
    firmware: Option<String>,
}

impl Identity {
    fn read(root: &SysRoot, disk: &Path) -> Identity {
        let device = disk.join("device");
        let controller = nvme_controller(root, disk);
        let first = |places: &[PathBuf]| places.iter().find_map(|place| root.text(place));
        // virtio shows its PCI vendor number there, which names nobody.
        let vendor = root.text(device.join("vendor")).filter(|vendor| !vendor.starts_with("0x"));
        Identity {
            model: first(&[device.join("model"), controller.join("model"), device.join("name")]),
            vendor,
            serial: first(&[disk.join("serial"), device.join("serial"), controller.join("serial")])
                .or_else(|| root.bytes(device.join("vpd_pg80")).and_then(|page| scsi_serial(&page))),
            firmware: first(&[
                device.join("firmware_rev"),
                controller.join("firmware_rev"),
                device.join("rev"),
            ]),
        }
    }
}

/// The directory of an NVMe namespace's controller: `device` itself, or below it when paths are multiplied.
fn nvme_controller(root: &SysRoot, disk: &Path) -> PathBuf {
    let device = disk.join("device");
    if root.exists(device.join("transport")) {
        return device;
    }
    let names = root.names(&device);
    match names.iter().find(|name| begins(name, "nvme") && root.exists(device.join(name).join("transport"))) {
        Some(name) => device.join(name),
        None => device,
    }
}

/// The unit serial number out of SCSI's vital product data page 0x80.
fn scsi_serial(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let text = String::from_utf8_lossy(page.get(4..4 + length)?).trim_matches(['\0', ' ']).to_string();
    (!text.is_empty()).then_some(text)
}

fn judge(root: &SysRoot, disk: &Path, kind: &DeviceKind, identity: &Identity) -> Locality {
    let controller = nvme_controller(root, disk);
    let hex = |file: &str| {
        let text = root.text(controller.join("device").join(file))?;
        u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
    };
    let transport = root.text(controller.join("transport"));
    let real = root.path(disk).canonicalize().unwrap_or_default();
    locality::judge(&Evidence {
        kind: kind.clone(),
        model: identity.model.as_deref(),
        vendor: identity.vendor.as_deref(),
        sysfs_path: &real.to_string_lossy(),
        transport: transport.as_deref(),
        pci: hex("vendor").zip(hex("device")),
        hypervisor: host::hypervisor_flag(root),
    })
}
