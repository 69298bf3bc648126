//! What a run measured, by names that stay the same from run to run: the device, and the type of the volume.

use crate::{DeviceRecord, RunHeader};

/// The label that names the type of a volume, with or without its parameters: `aws-gp2?size=50GiB`.
pub const TYPE_LABEL: &str = "type";
/// The scheme of simulated volumes.
const SIMULATED: &str = "sim:";

impl RunHeader {
    /// The type of the volume: that of a simulated one, else what the label `type` says, without parameters.
    pub fn volume_type(&self) -> Option<&str> {
        let simulated = self.target.strip_prefix(SIMULATED);
        let name = simulated.or_else(|| self.labels.get(TYPE_LABEL).map(String::as_str))?;
        let name = name.strip_prefix(SIMULATED).unwrap_or(name);
        Some(name.split('?').next().unwrap_or(name)).filter(|name| !name.is_empty())
    }

    /// The device that was measured: the serial number of the target's device, which a partition has from its disk; without
    /// one the host and the path of the device; without a device, as for a simulated volume, host and target.
    pub fn device_identity(&self) -> String {
        let devices = &self.conditions.target.devices;
        let host = self.host().hostname.as_str();
        let on_host = |name: &str| if host.is_empty() { name.to_owned() } else { format!("{host}:{name}") };
        let Some(first) = devices.first() else {
            return if self.target.starts_with(SIMULATED) {
                self.target.clone()
            } else {
                on_host(&self.target)
            };
        };
        let with_serial = std::iter::successors(Some(first), |&device| {
            let disk = |lower: &&DeviceRecord| lower.under.as_deref() == Some(&device.name);
            devices.iter().find(disk).filter(|_| device.kind == "partition")
        })
        .find(|device| !device.serial.is_empty());
        match with_serial {
            Some(device) if device.model.is_empty() => device.serial.clone(),
            Some(device) => format!("{} {}", device.model, device.serial),
            None if first.path.is_empty() => on_host(&first.name),
            None => on_host(&first.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostRecord;

    fn device(name: &str, under: Option<&str>, kind: &str, serial: &str) -> DeviceRecord {
        DeviceRecord {
            name: name.to_owned(),
            path: format!("/dev/{name}"),
            under: under.map(str::to_owned),
            kind: kind.to_owned(),
            serial: serial.to_owned(),
            ..DeviceRecord::default()
        }
    }

    fn header(target: &str, devices: Vec<DeviceRecord>) -> RunHeader {
        let mut header = RunHeader { target: target.to_owned(), ..RunHeader::default() };
        header.hosts = vec![HostRecord { hostname: "web1".to_owned(), ..HostRecord::default() }];
        header.conditions.target.devices = devices;
        header
    }

    #[test]
    fn devices_are_known_by_serial_number_or_by_host_and_path() {
        let check = |target: &str, devices: Vec<DeviceRecord>, expected: &str| {
            assert_eq!(header(target, devices).device_identity(), expected);
        };
        check("/mnt", vec![device("nvme0n1", None, "disk", "vol01")], "vol01");
        let partition = device("nvme0n1p1", None, "partition", "");
        check("/mnt", vec![partition, device("nvme0n1", Some("nvme0n1p1"), "disk", "vol01")], "vol01");
        check("/dev/vda", vec![device("vda", None, "disk", "")], "web1:/dev/vda");
        // The disk beneath a loop device has others besides.
        let over = vec![device("loop0", None, "loop", ""), device("vda", Some("loop0"), "disk", "x")];
        check("/dev/loop0", over, "web1:/dev/loop0");
        check("/dev/shm", Vec::new(), "web1:/dev/shm");
        check("sim:aws-gp3?size=1GiB", Vec::new(), "sim:aws-gp3?size=1GiB");
        let imported = RunHeader { target: "fio.txt".to_owned(), ..RunHeader::default() };
        assert_eq!(imported.device_identity(), "fio.txt");
    }

    #[test]
    fn types_come_from_the_target_or_the_label() {
        let of = |target: &str, label: Option<&str>| {
            let mut header = header(target, Vec::new());
            header.labels.extend(label.map(|label| (TYPE_LABEL.to_owned(), label.to_owned())));
            header.volume_type().map(str::to_owned)
        };
        assert_eq!(of("sim:aws-gp3?size=1GiB", None).as_deref(), Some("aws-gp3"));
        assert_eq!(of("/mnt", Some("aws-gp2?size=50GiB")).as_deref(), Some("aws-gp2"));
        assert_eq!(of("/mnt", Some("sim:aws-gp2")).as_deref(), Some("aws-gp2"));
        assert_eq!(of("/mnt", None), None);
    }
}
