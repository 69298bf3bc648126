//! The kinds of block devices, by their sysfs attributes, their driver, or the kernel's name.

use std::path::{Path, PathBuf};

use super::root::SysRoot;

/// The kind of a block device.
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
        /// Its creator, from its uuid: `LVM`, `CRYPT-LUKS2`, `mpath` …; empty when it has none.
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

/// The kinds that the kernel's name determines, by prefix before a digit or letter.
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

/// The kind of the device `name`, whose disk's directory is `disk`.
pub(super) fn kind_of(root: &SysRoot, name: &str, disk: &Path) -> DeviceKind {
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

/// True when the name is this prefix and more.
pub(super) fn begins(name: &str, prefix: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    #[test]
    fn kinds_by_name() {
        let check = |name: &str, expected: DeviceKind| {
            let fixture = Fixture::new();
            fixture.disk("virtual", name, "1:1", &[]);
            let root = fixture.root();
            assert_eq!(kind_of(&root, name, &root.block_dir(name)), expected, "{name}");
        };
        check("sda", DeviceKind::Disk);
        check("vda", DeviceKind::Virtio);
        check("nvme0n1", DeviceKind::Nvme);
        check("xvdf", DeviceKind::Xen);
        check("nbd3", DeviceKind::Nbd);
        check("rbd0", DeviceKind::Rbd);
        check("ram0", DeviceKind::Ram);
        check("zram1", DeviceKind::Zram);
        check("drbd0", DeviceKind::Drbd);
        check("etherd!e1.0", DeviceKind::Aoe);
        check("pmem0", DeviceKind::Pmem);
        check("zd16", DeviceKind::Zvol);
        check("loop7", DeviceKind::Loop { backing_file: None });
        check("zd", DeviceKind::Disk);
    }

    #[test]
    fn kinds_by_attributes() {
        let check = |name: &str, attributes: &[(&str, &str)], expected: DeviceKind| {
            let fixture = Fixture::new();
            fixture.disk("virtual", name, "1:1", &[]);
            for (attribute, value) in attributes {
                fixture.write(&format!("sys/devices/virtual/block/{name}/{attribute}"), value);
            }
            let root = fixture.root();
            assert_eq!(kind_of(&root, name, &root.block_dir(name)), expected, "{name}");
        };
        let dm =
            |name: &str, target: &str| DeviceKind::DeviceMapper { name: name.into(), target: target.into() };
        check("dm-0", &[("dm/name", "vg-lv\n"), ("dm/uuid", "LVM-abcdef\n")], dm("vg-lv", "LVM"));
        check(
            "dm-1",
            &[("dm/name", "safe"), ("dm/uuid", "CRYPT-LUKS2-00ff-safe")],
            dm("safe", "CRYPT-LUKS2"),
        );
        check("dm-2", &[("dm/name", "mpatha"), ("dm/uuid", "mpath-3600508b4")], dm("mpatha", "mpath"));
        check("dm-3", &[("dm/name", "plain")], dm("plain", ""));
        check("md127", &[("md/level", "raid10\n")], DeviceKind::Md { level: "raid10".into() });
        let file = Some(PathBuf::from("/srv/my disk.img"));
        check(
            "loop0",
            &[("loop/backing_file", "/srv/my disk.img\n")],
            DeviceKind::Loop { backing_file: file },
        );
        check("sda1", &[("partition", "1\n")], DeviceKind::Partition { number: 1 });
    }
}
