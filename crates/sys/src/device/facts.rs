//! One block device as sysfs describes it: identity, geometry, queue, cache, and underlying devices.
//!
//! A partition takes queue, model and the like from its disk. Unknown values are `None`.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::error::DeviceError;
use super::handle::numbers_of;
use super::host;
use super::kind::{self, DeviceKind};
use super::locality::{self, Evidence, Locality};
use super::root::SysRoot;
use super::topology;

/// Facts about one block device.
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
    /// Where it begins on what lies below, in bytes: of a partition, and of a loop device over a part of its file.
    pub start_bytes: Option<u64>,
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
    /// The kernel's rotational flag, which is often wrong for virtual disks.
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
    let number = root.text(dir.join("dev")).and_then(|text| topology::parse_number(&text));
    let Some((major, minor)) = number else {
        return Err(DeviceError::UnknownDevice { name: name.to_string() });
    };
    let disk_name = topology::disk_of(root, name);
    let disk = root.block_dir(disk_name.as_deref().unwrap_or(name));
    let queue = disk.join("queue");
    let kind = kind::kind_of(root, name, &disk);
    let identity = ModelFacts::read(root, &disk);
    let locality = match kind {
        DeviceKind::Partition { .. } => Locality::default(),
        _ => judge(root, &disk, &kind, &identity),
    };
    Ok(DeviceFacts {
        name: name.to_string(),
        path: topology::node_of(name),
        major,
        minor,
        size_bytes: root.number(dir.join("size")).unwrap_or(0).saturating_mul(512),
        start_bytes: start_bytes(root, &dir, &kind),
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
        under: topology::devices_under(root, name, &kind),
        kind,
        locality,
    })
}

/// Whether the device takes writes only at the write pointers of its zones, but for conventional ones.
pub(super) fn is_host_managed(root: &SysRoot, name: &str) -> bool {
    let disk = topology::disk_of(root, name);
    let queue = root.block_dir(disk.as_deref().unwrap_or(name)).join("queue");
    root.text(queue.join("zoned")).as_deref() == Some("host-managed")
}

/// The same of an open file; false if it is no block device.
pub fn is_host_managed_file(file: &File) -> bool {
    let root = SysRoot::real();
    let Ok(metadata) = file.metadata() else { return false };
    let (major, minor) = numbers_of(metadata.rdev());
    metadata.file_type().is_block_device()
        && root.block_name(major, minor).is_some_and(|name| is_host_managed(&root, &name))
}

fn start_bytes(root: &SysRoot, dir: &Path, kind: &DeviceKind) -> Option<u64> {
    match kind {
        // In sectors of 512 bytes, independent of the disk's.
        DeviceKind::Partition { .. } => Some(root.number(dir.join("start"))?.saturating_mul(512)),
        DeviceKind::Loop { .. } => root.number(dir.join("loop/offset")),
        _ => None,
    }
}

/// The word in brackets of a sysfs choice, or all of it when there is none.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

struct ModelFacts {
    model: Option<String>,
    vendor: Option<String>,
    serial: Option<String>,
    firmware: Option<String>,
}

impl ModelFacts {
    fn read(root: &SysRoot, disk: &Path) -> ModelFacts {
        let device = disk.join("device");
        let controller = nvme_controller(root, disk);
        let first = |places: &[PathBuf]| places.iter().find_map(|place| root.text(place));
        // virtio shows its PCI vendor number there, which is not a name.
        let vendor = root.text(device.join("vendor")).filter(|vendor| !vendor.starts_with("0x"));
        ModelFacts {
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
    match names
        .iter()
        .find(|name| kind::begins(name, "nvme") && root.exists(device.join(name).join("transport")))
    {
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

fn judge(root: &SysRoot, disk: &Path, kind: &DeviceKind, identity: &ModelFacts) -> Locality {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    const NVME: &str = "pci0000:00/0000:00:04.0/nvme/nvme0";

    fn ebs() -> Fixture {
        let fixture = Fixture::new();
        fixture.write(&format!("sys/devices/{NVME}/model"), "Amazon Elastic Block Store              \n");
        fixture.write(&format!("sys/devices/{NVME}/serial"), "vol0123456789abcdef0\n");
        fixture.write(&format!("sys/devices/{NVME}/firmware_rev"), "1.0     \n");
        fixture.write(&format!("sys/devices/{NVME}/transport"), "pcie\n");
        let place = format!("sys/devices/{NVME}/block/nvme0n1");
        fixture.disk(NVME, "nvme0n1", "259:0", &[("size", "209715200"), ("ro", "0")]);
        let queue = [
            ("scheduler", "[none] mq-deadline\n"),
            ("rotational", "0\n"),
            ("write_cache", "write through\n"),
            ("fua", "0\n"),
            ("nr_requests", "1023\n"),
            ("max_sectors_kb", "128\n"),
            ("logical_block_size", "512\n"),
            ("physical_block_size", "4096\n"),
            ("discard_granularity", "0\n"),
        ];
        for (name, value) in queue {
            fixture.write(&format!("{place}/queue/{name}"), value);
        }
        let controller = fixture.root().path(format!("/sys/devices/{NVME}"));
        fixture.link(&format!("{place}/device"), &controller);
        fixture.partition("nvme0n1", 1, "nvme0n1p1", "259:1");
        fixture
    }

    #[test]
    fn nvme_volume() {
        let expected = DeviceFacts {
            name: "nvme0n1".into(),
            path: "/dev/nvme0n1".into(),
            major: 259,
            minor: 0,
            size_bytes: 100 << 30,
            start_bytes: None,
            logical_block_size: Some(512),
            physical_block_size: Some(4096),
            model: Some("Amazon Elastic Block Store".into()),
            vendor: None,
            serial: Some("vol0123456789abcdef0".into()),
            firmware: Some("1.0".into()),
            rotational: Some(false),
            scheduler: Some("none".into()),
            write_cache: Some("write through".into()),
            fua: Some(false),
            nr_requests: Some(1023),
            max_sectors_kb: Some(128),
            discard_granularity: Some(0),
            read_only: false,
            kind: DeviceKind::Nvme,
            under: Vec::new(),
            locality: Locality::Network("the model is that of Amazon's EBS volumes".into()),
        };
        assert_eq!(device_facts(&ebs().root(), "nvme0n1").unwrap(), expected);
    }

    #[test]
    fn partition_takes_the_queue_of_its_disk() {
        let fixture = ebs();
        fixture.write(&format!("sys/devices/{NVME}/block/nvme0n1/nvme0n1p1/start"), "2048\n");
        let facts = device_facts(&fixture.root(), "nvme0n1p1").unwrap();
        assert_eq!(facts.start_bytes, Some(1 << 20));
        assert_eq!((facts.kind, facts.size_bytes), (DeviceKind::Partition { number: 1 }, 1 << 20));
        assert_eq!((facts.major, facts.minor), (259, 1));
        assert_eq!(facts.under, ["nvme0n1"]);
        assert_eq!(facts.model.as_deref(), Some("Amazon Elastic Block Store"));
        assert_eq!(facts.nr_requests, Some(1023));
    }

    #[test]
    fn virtio_and_scsi_identity() {
        let fixture = Fixture::new();
        fixture.disk("virtio1", "vda", "254:0", &[("size", "16"), ("serial", "abc")]);
        fixture.write("sys/devices/virtio1/block/vda/device/vendor", "0x1af4\n");
        let virtio = device_facts(&fixture.root(), "vda").unwrap();
        assert_eq!((virtio.vendor, virtio.serial.as_deref(), virtio.model), (None, Some("abc"), None));
        assert_eq!((virtio.kind, virtio.locality.word()), (DeviceKind::Virtio, "unknown"));
        fixture.disk("host2", "sda", "8:0", &[("size", "16"), ("ro", "1")]);
        let device = "sys/devices/host2/block/sda/device";
        fixture
            .write(&format!("{device}/vendor"), "DO      \n")
            .write(&format!("{device}/model"), "Volume          \n");
        fixture.write(&format!("{device}/vpd_pg80"), "\0\u{1}\0\u{0}");
        let page = b"\0\x80\0\x06vol-1 trailing";
        std::fs::write(fixture.root().path(format!("/{device}/vpd_pg80")), page).unwrap();
        let scsi = device_facts(&fixture.root(), "sda").unwrap();
        assert_eq!((scsi.vendor.as_deref(), scsi.serial.as_deref()), (Some("DO"), Some("vol-1")));
        assert_eq!((scsi.locality.word(), scsi.read_only), ("network", true));
    }

    #[test]
    fn unknown_names_and_choices() {
        let root = Fixture::new().root();
        assert!(matches!(device_facts(&root, "sdq"), Err(DeviceError::UnknownDevice { .. })));
        let check = |text: &str, expected: &str| assert_eq!(chosen(text), expected);
        check("none [mq-deadline] kyber", "mq-deadline");
        check("[none]", "none");
        check("none", "none");
        assert_eq!(scsi_serial(b"\0\x80\0\x09abc"), None);
    }
}
