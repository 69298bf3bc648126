//! Whether a device is in this machine, behind a network, gone with the instance, or only memory.
//!
//! Determined only from the device itself: by the model that a cloud gives its volumes, by its transport, or by its
//! driver. Everything else is unknown, because a wrong answer here would be believed.

use std::fmt;

use super::kind::DeviceKind;

/// Where a device keeps its data; each with the reason, as part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locality {
    /// A drive of this machine.
    Local(String),
    /// Behind a network: it outlives the machine and shares its path.
    Network(String),
    /// A drive of the machine that an instance runs on, empty after the instance stopped.
    Ephemeral(String),
    /// Memory of this machine.
    Memory(String),
    /// Unknown.
    Unknown(String),
}

impl Default for Locality {
    fn default() -> Locality {
        Locality::Unknown("the device does not report it".to_string())
    }
}

impl Locality {
    /// One word for tables and records: `local`, `network`, `ephemeral`, `memory`, `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Locality::Local(_) => "local",
            Locality::Network(_) => "network",
            Locality::Ephemeral(_) => "ephemeral",
            Locality::Memory(_) => "memory",
            Locality::Unknown(_) => "unknown",
        }
    }

    /// The reason.
    pub fn why(&self) -> &str {
        match self {
            Locality::Local(why)
            | Locality::Network(why)
            | Locality::Ephemeral(why)
            | Locality::Memory(why)
            | Locality::Unknown(why) => why,
        }
    }
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.word(), self.why())
    }
}

/// The properties of a device that determine its locality.
#[derive(Debug, Clone, Default)]
pub struct Evidence<'a> {
    /// The driver's kind.
    pub kind: DeviceKind,
    /// Model as reported by the device.
    pub model: Option<&'a str>,
    /// Vendor as reported by the device.
    pub vendor: Option<&'a str>,
    /// The resolved path in sysfs, which names the bus.
    pub sysfs_path: &'a str,
    /// NVMe transport (`pcie`, `tcp`, `rdma`, `fc`, `loop`).
    pub transport: Option<&'a str>,
    /// PCI vendor and device number of an NVMe controller.
    pub pci: Option<(u16, u16)>,
    /// `Some(false)` if the CPU reports no hypervisor.
    pub hypervisor: Option<bool>,
}

#[derive(Clone, Copy)]
enum DiskLocation {
    Network,
    Ephemeral,
}

/// Models that determine the locality: (vendor, model) as prefixes, an empty vendor for NVMe.
const MODELS: &[(&str, &str, DiskLocation, &str)] = &[
    ("", "Amazon Elastic Block Store", DiskLocation::Network, "the model is that of Amazon's EBS volumes"),
    (
        "",
        "Amazon EC2 NVMe Instance Storage",
        DiskLocation::Ephemeral,
        "the model is that of EC2's instance store",
    ),
    ("", "nvme_card-pd", DiskLocation::Network, "the model is that of Google's persistent disks over NVMe"),
    ("", "nvme_card", DiskLocation::Ephemeral, "the model is that of Google's local SSDs"),
    ("Google", "PersistentDisk", DiskLocation::Network, "the model is that of Google's persistent disks"),
    ("Google", "EphemeralDisk", DiskLocation::Ephemeral, "the model is that of Google's local SSDs"),
    (
        "",
        "MSFT NVMe Accelerator",
        DiskLocation::Network,
        "the model is that of Azure's remote disks over NVMe",
    ),
    (
        "",
        "Microsoft NVMe Direct Disk",
        DiskLocation::Ephemeral,
        "the model is that of Azure's local NVMe disks",
    ),
    (
        "",
        "Alibaba Cloud Elastic Block Storage",
        DiskLocation::Network,
        "the model is that of Alibaba's block storage",
    ),
    ("DO", "Volume", DiskLocation::Network, "the model is that of DigitalOcean's volumes"),
    ("HC", "Volume", DiskLocation::Network, "the model is that of Hetzner's volumes"),
    ("Linode", "Volume", DiskLocation::Network, "the model is that of Linode's volumes"),
    ("ORACLE", "BlockVolume", DiskLocation::Network, "the model is that of Oracle's block volumes"),
];

/// PCI vendors that make flash drives and nothing that stands in for one over a network.
const DRIVE_MAKERS: &[(u16, &str)] = &[
    (0x025e, "Solidigm"),
    (0x10ec, "Realtek"),
    (0x1179, "Toshiba"),
    (0x126f, "Silicon Motion"),
    (0x1344, "Micron"),
    (0x144d, "Samsung"),
    (0x15b7, "Western Digital"),
    (0x1987, "Phison"),
    (0x1bb1, "Seagate"),
    (0x1c58, "HGST"),
    (0x1c5c, "SK hynix"),
    (0x1cc1, "ADATA"),
    (0x1e0f, "KIOXIA"),
    (0x1e4b, "MAXIO"),
    (0x2646, "Kingston"),
    (0x8086, "Intel"),
    (0xc0a9, "Crucial"),
];

/// Intel's number that QEMU's emulated NVMe controller once carried.
const QEMU_AS_INTEL: (u16, u16) = (0x8086, 0x5845);

/// Judge one device by itself; devices that lie on others take [`inherited`] instead.
pub fn judge(evidence: &Evidence) -> Locality {
    by_driver(&evidence.kind)
        .or_else(|| by_model(evidence))
        .or_else(|| by_transport(evidence))
        .or_else(|| by_bus(evidence))
        .unwrap_or_default()
}

fn by_driver(kind: &DeviceKind) -> Option<Locality> {
    let network = |driver: &str| Some(Locality::Network(format!("it is attached by the {driver} driver")));
    let memory = |what: &str| Some(Locality::Memory(format!("it is a {what}")));
    match kind {
        DeviceKind::Nbd => network("network block device"),
        DeviceKind::Rbd => network("Ceph"),
        DeviceKind::Aoe => network("ATA-over-Ethernet"),
        DeviceKind::Zram => memory("compressed disk in memory"),
        DeviceKind::Ram => memory("disk in memory"),
        DeviceKind::Drbd => Some(Locality::Unknown("it is replicated between machines".to_string())),
        _ => None,
    }
}

fn by_model(evidence: &Evidence) -> Option<Locality> {
    let model = evidence.model?;
    let vendor = evidence.vendor.unwrap_or("");
    let is_nvme = evidence.kind == DeviceKind::Nvme;
    let (_, _, place, why) = MODELS.iter().find(|(known_vendor, known_model, ..)| {
        let vendor_fits = if known_vendor.is_empty() { is_nvme } else { vendor == *known_vendor };
        vendor_fits && model.starts_with(known_model)
    })?;
    let why = (*why).to_string();
    Some(match place {
        DiskLocation::Network => Locality::Network(why),
        DiskLocation::Ephemeral => Locality::Ephemeral(why),
    })
}

fn by_transport(evidence: &Evidence) -> Option<Locality> {
    if let Some(transport @ ("tcp" | "rdma" | "fc")) = evidence.transport {
        return Some(Locality::Network(format!("it is NVMe over {transport}")));
    }
    // An iSCSI session is a directory between host and target: …/host3/session1/target3:0:0/…
    if has_component(evidence.sysfs_path, "session") {
        return Some(Locality::Network("it is attached by iSCSI".to_string()));
    }
    if has_component(evidence.sysfs_path, "rport-") {
        return Some(Locality::Network("it is attached by Fibre Channel".to_string()));
    }
    None
}

fn by_bus(evidence: &Evidence) -> Option<Locality> {
    if evidence.kind == DeviceKind::Nvme && evidence.transport.is_none_or(|transport| transport == "pcie") {
        let pci = evidence.pci?;
        let (_, maker) = DRIVE_MAKERS.iter().find(|(vendor, _)| *vendor == pci.0)?;
        return (pci != QEMU_AS_INTEL)
            .then(|| Locality::Local(format!("it is an NVMe drive by {maker} on PCI Express")));
    }
    if evidence.hypervisor != Some(false) {
        return None;
    }
    let buses = [("ata", "SATA"), ("usb", "USB"), ("mmc", "MMC")];
    let (_, bus) = buses.iter().find(|(prefix, _)| has_component(evidence.sysfs_path, prefix))?;
    Some(Locality::Local(format!("it is attached by {bus} to a machine without a hypervisor")))
}

/// True when a component of the path is `prefix` followed by a number.
fn has_component(path: &str, prefix: &str) -> bool {
    path.split('/').any(|part| {
        part.strip_prefix(prefix).is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// The place of a device that lies on others: theirs where they agree.
pub fn inherited<'a>(below: impl IntoIterator<Item = (&'a str, &'a Locality)>) -> Locality {
    let mut below = below.into_iter();
    let Some((name, first)) = below.next() else { return Locality::default() };
    if let Some((other, different)) = below.find(|(_, locality)| locality.word() != first.word()) {
        let (a, b) = (first.word(), different.word());
        return Locality::Unknown(format!("it lies on {name} ({a}) and on {other} ({b})"));
    }
    let why = format!("it lies on {name}: {}", first.why());
    match first {
        Locality::Local(_) => Locality::Local(why),
        Locality::Network(_) => Locality::Network(why),
        Locality::Ephemeral(_) => Locality::Ephemeral(why),
        Locality::Memory(_) => Locality::Memory(why),
        Locality::Unknown(_) => Locality::Unknown(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nvme(model: &'static str) -> Evidence<'static> {
        Evidence {
            kind: DeviceKind::Nvme,
            model: Some(model),
            transport: Some("pcie"),
            ..Evidence::default()
        }
    }

    fn scsi(vendor: &'static str, model: &'static str) -> Evidence<'static> {
        Evidence { vendor: Some(vendor), model: Some(model), ..Evidence::default() }
    }

    #[test]
    fn places() {
        let check = |evidence: Evidence, expected: &str| {
            let locality = judge(&evidence);
            assert_eq!(locality.word(), expected, "{evidence:?}: {locality}");
        };
        check(nvme("Amazon Elastic Block Store"), "network");
        check(nvme("Amazon EC2 NVMe Instance Storage"), "ephemeral");
        check(nvme("nvme_card"), "ephemeral");
        check(nvme("nvme_card-pd"), "network");
        check(nvme("MSFT NVMe Accelerator v1.0"), "network");
        check(nvme("Microsoft NVMe Direct Disk v2"), "ephemeral");
        check(nvme("QEMU NVMe Ctrl"), "unknown");
        check(scsi("Google", "PersistentDisk"), "network");
        check(scsi("Google", "EphemeralDisk"), "ephemeral");
        check(scsi("Msft", "Virtual Disk"), "unknown");
        check(scsi("DO", "Volume"), "network");
        check(scsi("QEMU", "QEMU HARDDISK"), "unknown");
        check(scsi("Seagate", "Volume"), "unknown");
        let kind = |kind: DeviceKind| Evidence { kind, ..Evidence::default() };
        check(kind(DeviceKind::Virtio), "unknown");
        check(kind(DeviceKind::Nbd), "network");
        check(kind(DeviceKind::Rbd), "network");
        check(kind(DeviceKind::Zram), "memory");
        check(kind(DeviceKind::Ram), "memory");
        check(kind(DeviceKind::Drbd), "unknown");
        check(kind(DeviceKind::Pmem), "unknown");
        check(Evidence { transport: Some("tcp"), ..nvme("Linux") }, "network");
        check(Evidence { transport: Some("loop"), ..nvme("Linux") }, "unknown");
    }

    #[test]
    fn buses() {
        let at = |sysfs_path: &'static str, hypervisor: Option<bool>| {
            judge(&Evidence { sysfs_path, hypervisor, ..Evidence::default() }).word()
        };
        let iscsi = "/sys/devices/platform/host3/session1/target3:0:0/3:0:0:1/block/sdc";
        let sata = "/sys/devices/pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0/block/sda";
        assert_eq!(at(iscsi, Some(true)), "network");
        assert_eq!(at(sata, Some(false)), "local");
        assert_eq!(at(sata, Some(true)), "unknown");
        assert_eq!(at(sata, None), "unknown");
        assert_eq!(at("/sys/devices/platform/sessions/block/sda", Some(true)), "unknown");
        let pci = |pci| judge(&Evidence { pci: Some(pci), ..nvme("X") }).word();
        assert_eq!(pci((0x144d, 0xa80a)), "local");
        assert_eq!(pci(QEMU_AS_INTEL), "unknown");
        assert_eq!(pci((0x1b36, 0x0010)), "unknown");
    }

    #[test]
    fn inheritance() {
        let (net, mem) = (Locality::Network("a".into()), Locality::Memory("b".into()));
        assert_eq!(inherited([]), Locality::default());
        assert_eq!(inherited([("sda", &net), ("sdb", &net)]).word(), "network");
        assert_eq!(inherited([("sda", &net)]).why(), "it lies on sda: a");
        assert_eq!(
            inherited([("sda", &net), ("ram0", &mem)]).to_string(),
            "unknown (it lies on sda (network) and on ram0 (memory))"
        );
    }
}
