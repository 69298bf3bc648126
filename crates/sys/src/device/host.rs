//! The machine that measures: its CPUs, memory, kernel, provider and the limits put on this process.
//!
//! Everything is read from `/proc` and `/sys`; no network request is made.

use super::cgroup::CgroupLimits;
use super::provider::{self, Dmi, Provider};
use super::root::SysRoot;

/// Facts about the host; `None` if unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostFacts {
    /// Its name.
    pub hostname: Option<String>,
    /// Release of the running kernel.
    pub kernel_release: Option<String>,
    /// The machine's architecture as the kernel names it.
    pub architecture: String,
    /// The first CPU's model.
    pub cpu_model: Option<String>,
    /// CPUs online.
    pub cpus_online: Option<u32>,
    /// CPUs this process may run on.
    pub cpus_allowed: Option<u32>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that could be had without swapping, in bytes.
    pub memory_available: Option<u64>,
    /// The kernel's clock source.
    pub clocksource: Option<String>,
    /// The identity of this boot.
    pub boot_id: Option<String>,
    /// Facts from the firmware.
    pub dmi: Dmi,
    /// Who runs the machine.
    pub provider: Option<Provider>,
    /// Whether it is a virtual machine, if the CPU or the kernel reports it.
    pub virtualized: Option<bool>,
    /// The hypervisor, where it can be named.
    pub hypervisor: Option<String>,
    /// Limits of this process's control groups.
    pub cgroup: CgroupLimits,
    /// Load average over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// `kernel.io_uring_disabled`: 0 allowed, 1 for privileged processes, 2 for none; `None` before Linux 6.6.
    pub io_uring_disabled: Option<u32>,
    /// `fs.aio-max-nr`, the libaio requests of the whole machine.
    pub aio_max_nr: Option<u64>,
    /// Whether the kernel measures pressure (`/proc/pressure/io`).
    pub pressure_available: bool,
}

impl HostFacts {
    /// Look at this host.
    pub fn read() -> HostFacts {
        HostFacts::read_in(&SysRoot::real())
    }

    /// Look at the host of a given root.
    pub fn read_in(root: &SysRoot) -> HostFacts {
        let cpuinfo = root.text("/proc/cpuinfo").unwrap_or_default();
        let meminfo = root.text("/proc/meminfo").unwrap_or_default();
        let status = root.text("/proc/self/status").unwrap_or_default();
        let dmi = Dmi::read(root);
        HostFacts {
            hostname: root.text("/proc/sys/kernel/hostname"),
            kernel_release: root.text("/proc/sys/kernel/osrelease"),
            architecture: rustix::system::uname().machine().to_string_lossy().into_owned(),
            cpu_model: cpu_model(&cpuinfo),
            cpus_online: root.text("/sys/devices/system/cpu/online").and_then(|list| count_cpus(&list)),
            cpus_allowed: field(&status, "Cpus_allowed_list").and_then(count_cpus),
            memory_bytes: kibibytes(&meminfo, "MemTotal"),
            memory_available: kibibytes(&meminfo, "MemAvailable"),
            clocksource: root.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            boot_id: root.text("/proc/sys/kernel/random/boot_id"),
            provider: provider::provider_of(&dmi),
            virtualized: hypervisor_flag(root).or_else(|| provider::hypervisor_of(&dmi).map(|_| true)),
            hypervisor: hypervisor_name(root, &dmi),
            dmi,
            cgroup: CgroupLimits::read(root),
            load_average: root.text("/proc/loadavg").and_then(|text| load_average(&text)),
            io_uring_disabled: root
                .text("/proc/sys/kernel/io_uring_disabled")
                .and_then(|text| text.parse().ok()),
            aio_max_nr: root.number("/proc/sys/fs/aio-max-nr"),
            pressure_available: root.exists("/proc/pressure/io"),
        }
    }
}

/// Whether the CPU reports a hypervisor; `None` on architectures without such a flag.
pub fn hypervisor_flag(root: &SysRoot) -> Option<bool> {
    if root.exists("/sys/hypervisor/type") {
        return Some(true);
    }
    let cpuinfo = root.text("/proc/cpuinfo")?;
    let flags = field(&cpuinfo, "flags")?;
    Some(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

fn hypervisor_name(root: &SysRoot, dmi: &Dmi) -> Option<String> {
    if let Some(kind) = root.text("/sys/hypervisor/type") {
        return Some(if kind == "xen" { "Xen".to_string() } else { kind });
    }
    if let Some(name) = provider::hypervisor_of(dmi) {
        return Some(name.to_string());
    }
    // ACPI tables carry their maker's id in bytes 10 to 16.
    let table = root.bytes("/sys/firmware/acpi/tables/DSDT")?;
    (table.get(10..16)? == b"FIRECK").then(|| "Firecracker".to_string())
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value_of = |line: &'a str| {
        line.split_once(':').filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    text.lines().find_map(value_of).filter(|value| !value.is_empty())
}

fn kibibytes(meminfo: &str, name: &str) -> Option<u64> {
    let number = field(meminfo, name)?.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// How many CPUs a list such as `0-3,8,10-11` names; `None` when it is no such list.
pub fn count_cpus(list: &str) -> Option<u32> {
    let count = |part: &str| match part.split_once('-') {
        None => part.parse::<u32>().ok().map(|_| 1),
        Some((first, last)) => last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1),
    };
    list.trim().split(',').map(count).sum()
}

fn load_average(text: &str) -> Option<[f64; 3]> {
    let mut fields = text.split_ascii_whitespace().map(|field| field.parse::<f64>().ok());
    Some([fields.next()??, fields.next()??, fields.next()??])
}

/// ARM's kernel gives numbers only: (implementer, part) as in `/proc/cpuinfo`.
const ARM_CORES: &[(&str, &str, &str)] = &[
    ("0x41", "0xd08", "ARM Cortex-A72"),
    ("0x41", "0xd0b", "ARM Cortex-A76"),
    ("0x41", "0xd0c", "ARM Neoverse-N1"),
    ("0x41", "0xd40", "ARM Neoverse-V1"),
    ("0x41", "0xd49", "ARM Neoverse-N2"),
    ("0x41", "0xd4f", "ARM Neoverse-V2"),
    ("0xc0", "0xac3", "Ampere-1"),
    ("0xc0", "0xac4", "Ampere-1a"),
];

fn cpu_model(cpuinfo: &str) -> Option<String> {
    // x86 and s390 have a name, POWER calls it `cpu`.
    let named = ["model name", "processor 0", "cpu"].iter().find_map(|name| field(cpuinfo, name));
    if let Some(name) = named {
        return Some(name.to_string());
    }
    let implementer = field(cpuinfo, "CPU implementer")?;
    let part = field(cpuinfo, "CPU part")?;
    let known = ARM_CORES.iter().find(|(by, number, _)| (*by, *number) == (implementer, part));
    Some(known.map_or_else(
        || format!("CPU implementer {implementer} part {part}"),
        |(.., name)| (*name).to_string(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        let check = |list: &str, expected: Option<u32>| assert_eq!(count_cpus(list), expected, "{list:?}");
        check("0", Some(1));
        check("0-1\n", Some(2));
        check("0-3,8,10-11", Some(7));
        check("", None);
        check("3-1", None);
        check("a-b", None);
    }

    #[test]
    fn cpu_models() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(cpu_model(text).as_deref(), expected);
        check(
            "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R)\n",
            Some("Intel(R) Xeon(R)"),
        );
        check("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", Some("ARM Neoverse-N1"));
        check(
            "processor\t: 0\nCPU implementer\t: 0x61\nCPU part\t: 0x022\n",
            Some("CPU implementer 0x61 part 0x022"),
        );
        check("processor\t: 0\ncpu\t\t: POWER9 (raw)\n", Some("POWER9 (raw)"));
        check("", None);
    }

    #[test]
    fn from_text() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/cpuinfo", "model name : X\nflags : fpu hypervisor tsc\n");
        write("proc/meminfo", "MemTotal:       2048 kB\nMemFree: 5 kB\nMemAvailable:   1024 kB\n");
        write("proc/self/status", "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n");
        write("proc/loadavg", "0.50 1.25 2.00 1/100 999\n");
        write("proc/sys/kernel/io_uring_disabled", "2\n");
        write("sys/devices/system/cpu/online", "0-3\n");
        write("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        write("sys/class/dmi/id/product_name", "i4i.large\n");
        let host = HostFacts::read_in(&SysRoot::at(dir.path()));
        assert_eq!((host.memory_bytes, host.memory_available), (Some(2 << 20), Some(1 << 20)));
        assert_eq!((host.cpus_online, host.cpus_allowed), (Some(4), Some(2)));
        assert_eq!((host.load_average, host.io_uring_disabled), (Some([0.5, 1.25, 2.0]), Some(2)));
        assert_eq!((host.virtualized, host.hypervisor.as_deref()), (Some(true), Some("Nitro")));
        assert_eq!(host.provider.unwrap().instance_type.as_deref(), Some("i4i.large"));
        assert_eq!((host.pressure_available, host.boot_id, host.aio_max_nr), (false, None, None));
    }

    #[test]
    fn running_host() {
        let host = HostFacts::read();
        assert!(
            host.kernel_release.is_some() && host.cpus_online.is_some() && host.boot_id.is_some(),
            "{host:?}"
        );
        assert!(host.memory_available <= host.memory_bytes && !host.architecture.is_empty());
    }
}
