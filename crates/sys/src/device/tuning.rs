//! Settings and states of the machine that change what a measurement shows: frequency governors, swap, NUMA, I/O statistics.
//!
//! Read from `/proc` and `/sys`; an attribute that cannot be read is absent.

use std::collections::BTreeSet;

use super::host::count_cpus;
use super::root::SysRoot;
use super::topology;

/// Settings of the machine; `None` or empty if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostTuning {
    /// The frequency governors of the CPUs, each once, sorted.
    pub governors: Vec<String>,
    /// The driver that sets the frequencies.
    pub frequency_driver: Option<String>,
    /// Nodes with memory or CPUs of their own.
    pub numa_nodes: Option<u32>,
    /// libaio requests of the whole machine that are reserved.
    pub aio_requests: Option<u64>,
    /// Swap, where the kernel lists it.
    pub swap: Option<SwapUse>,
}

/// The swap space of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwapUse {
    /// Bytes in all.
    pub total_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
}

impl HostTuning {
    /// Looks at the host of a given root.
    pub fn read(root: &SysRoot) -> HostTuning {
        let cpus = "/sys/devices/system/cpu";
        let is_cpu =
            |name: &&String| name.strip_prefix("cpu").is_some_and(|rest| rest.parse::<u32>().is_ok());
        let names = root.names(cpus);
        let setting = |name: &String, file: &str| root.text(format!("{cpus}/{name}/cpufreq/{file}"));
        let governors: BTreeSet<String> =
            names.iter().filter(is_cpu).filter_map(|name| setting(name, "scaling_governor")).collect();
        HostTuning {
            governors: governors.into_iter().collect(),
            frequency_driver: names.iter().filter(is_cpu).find_map(|name| setting(name, "scaling_driver")),
            numa_nodes: root.text("/sys/devices/system/node/online").and_then(|list| count_cpus(&list)),
            aio_requests: root.number("/proc/sys/fs/aio-nr"),
            swap: root.text("/proc/swaps").map(|text| swap_use(&text)),
        }
    }
}

/// `/proc/swaps`: a line for each area behind a head; sizes are in KiB.
fn swap_use(text: &str) -> SwapUse {
    let mut swap = SwapUse::default();
    for line in text.lines().skip(1) {
        // A blank in the name of a file is an escape.
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let bytes = |index: usize| {
            let kibibytes = fields.get(index).and_then(|field| field.parse::<u64>().ok());
            kibibytes.unwrap_or(0).saturating_mul(1024)
        };
        swap.total_bytes += bytes(2);
        swap.used_bytes += bytes(3);
    }
    swap
}

/// Pages that were swapped in or out since boot.
pub fn swapped_pages(root: &SysRoot) -> Option<u64> {
    let text = root.text("/proc/vmstat")?;
    let count =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(count("pswpin ")?.saturating_add(count("pswpout ")?))
}

/// The NUMA node that a block device is attached to; `None` where it is attached to none or that is unknown.
pub fn numa_node_of(root: &SysRoot, name: &str) -> Option<u32> {
    let device = root.path(root.block_dir(name)).canonicalize().ok()?;
    // The bus that a disk is on says so, some directories above the disk.
    let said = device.ancestors().find_map(|dir| std::fs::read_to_string(dir.join("numa_node")).ok())?;
    said.trim().parse().ok()
}

/// Whether the kernel counts the I/O of a block device or partition; `None` where that is unknown.
pub fn counts_io(root: &SysRoot, name: &str) -> Option<bool> {
    let disk = topology::disk_of(root, name);
    root.switch(root.block_dir(disk.as_deref().unwrap_or(name)).join("queue/iostats"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fixture::Fixture;

    #[test]
    fn settings_are_read_as_the_kernel_writes_them() {
        let fixture = Fixture::new();
        let root = fixture.root();
        assert_eq!(
            HostTuning::read(&root),
            HostTuning { swap: Some(SwapUse::default()), ..HostTuning::default() }
        );
        for cpu in 0..3 {
            let governor = if cpu == 2 { "powersave\n" } else { "performance\n" };
            let place = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
            fixture.write(&format!("{place}/scaling_governor"), governor);
            fixture.write(&format!("{place}/scaling_driver"), "acpi-cpufreq\n");
        }
        fixture.write("sys/devices/system/cpu/cpufreq/policy0/x", "");
        fixture.write("sys/devices/system/node/online", "0-1\n");
        fixture.write("proc/sys/fs/aio-nr", "128\n");
        fixture.write(
            "proc/swaps",
            "Filename\tType\tSize\tUsed\tPriority\n/dev/vda2  partition\t2048\t1024\t-2\n/a\\040b file\t4\t4\t-3\n",
        );
        let expected = HostTuning {
            governors: vec!["performance".to_owned(), "powersave".to_owned()],
            frequency_driver: Some("acpi-cpufreq".to_owned()),
            numa_nodes: Some(2),
            aio_requests: Some(128),
            swap: Some(SwapUse { total_bytes: (2 << 20) + 4096, used_bytes: (1 << 20) + 4096 }),
        };
        assert_eq!(HostTuning::read(&root), expected);
    }

    #[test]
    fn swapping_is_the_sum_of_both_directions() {
        let fixture = Fixture::new();
        assert_eq!(swapped_pages(&fixture.root()), None);
        fixture.write("proc/vmstat", "nr_free_pages 5\npswpin 7\npswpout 4\npswpout_other 9\n");
        assert_eq!(swapped_pages(&fixture.root()), Some(11));
    }

    #[test]
    fn a_disk_is_on_the_node_of_its_bus() {
        let fixture = Fixture::new();
        fixture.disk("pci0000:00/0000:00:04.0/nvme/nvme0", "nvme0n1", "259:0", &[("size", "16")]);
        fixture.disk("virtio1", "vda", "254:0", &[("size", "16")]);
        fixture.write("sys/devices/pci0000:00/0000:00:04.0/numa_node", "1\n");
        fixture.write("sys/devices/virtio1/numa_node", "-1\n");
        let root = fixture.root();
        assert_eq!((numa_node_of(&root, "nvme0n1"), numa_node_of(&root, "vda")), (Some(1), None));
        assert_eq!(numa_node_of(&root, "sdq"), None);
    }

    #[test]
    fn statistics_may_be_disabled() {
        let fixture = Fixture::new();
        fixture.disk("virtio1", "vda", "254:0", &[("queue/iostats", "0")]);
        fixture.disk("virtio2", "vdb", "254:16", &[("queue/iostats", "1")]);
        let root = fixture.root();
        assert_eq!([counts_io(&root, "vda"), counts_io(&root, "vdb")], [Some(false), Some(true)]);
        assert_eq!(counts_io(&root, "vdc"), None);
        fixture.partition("vda", 1, "vda1", "254:1").partition("vdb", 1, "vdb1", "254:17");
        assert_eq!([counts_io(&root, "vda1"), counts_io(&root, "vdb1")], [Some(false), Some(true)]);
    }
}
