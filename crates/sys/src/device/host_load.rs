//! The load of the machine: CPU time by use, throttling of control groups, and pressure, for repeated readings.
//!
//! Counters since boot; a span needs two readings. Values unknown to this kernel stay 0.

use std::path::PathBuf;

use super::cgroup;
use super::root::SysRoot;

/// Length of the ticks in `/proc/stat`: the kernel converts to hundredths of a second.
const TICK_NS: u64 = 10_000_000;

/// One reading; ns since boot unless stated otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostLoad {
    /// Time of all CPUs together, idle or not.
    pub cpu_ns: u64,
    /// The part of it in which they worked.
    pub busy_ns: u64,
    /// The part of it that the host gave to others.
    pub steal_ns: u64,
    /// The part of it in which they were idle while a thread waited for I/O.
    pub iowait_ns: u64,
    /// Time for which this process's control groups withheld CPUs, added up over CPUs.
    pub throttled_ns: u64,
    /// Periods of the quota in which that happened.
    pub throttled_periods: u64,
    /// Time in which some thread waited for a CPU.
    pub cpu_pressure_ns: u64,
    /// Time in which some thread waited for I/O.
    pub io_pressure_ns: u64,
}

/// Reads the load of the machine.
#[derive(Debug)]
pub struct HostLoadSampler {
    root: SysRoot,
    /// `cpu.stat` of this process's group and of those above it.
    groups: Vec<PathBuf>,
}

impl HostLoadSampler {
    /// Looks once where the counters are.
    pub fn open(root: SysRoot) -> HostLoadSampler {
        let groups = cgroup::cpu_groups(&root).into_iter().map(|dir| dir.join("cpu.stat"));
        HostLoadSampler { groups: groups.filter(|path| root.exists(path)).collect(), root }
    }

    /// The current counters; `None` if the kernel does not report CPU times.
    pub fn sample(&self) -> Option<HostLoad> {
        let mut load = parse_cpu(&self.root.text("/proc/stat")?)?;
        for path in &self.groups {
            let (ns, periods) = parse_throttling(&self.root.text(path).unwrap_or_default());
            // A group is throttled together with its parent: a sum would count that twice.
            load.throttled_ns = load.throttled_ns.max(ns);
            load.throttled_periods = load.throttled_periods.max(periods);
        }
        let pressure =
            |of: &str| self.root.text(format!("/proc/pressure/{of}")).map_or(0, |text| parse_some(&text));
        load.cpu_pressure_ns = pressure("cpu");
        load.io_pressure_ns = pressure("io");
        Some(load)
    }
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user.
fn parse_cpu(text: &str) -> Option<HostLoad> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> =
        line.split_ascii_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let tick = |index: usize| ticks.get(index).copied().unwrap_or(0) * TICK_NS;
    let busy_ns = [0, 1, 2, 5, 6].map(tick).iter().sum();
    let (idle_ns, iowait_ns, steal_ns) = (tick(3), tick(4), tick(7));
    let cpu_ns = busy_ns + idle_ns + iowait_ns + steal_ns;
    (ticks.len() >= 4).then(|| HostLoad { cpu_ns, busy_ns, steal_ns, iowait_ns, ..HostLoad::default() })
}

/// Time, ns, and periods in which a group was throttled: `throttled_usec` in version 2, `throttled_time` in version 1.
fn parse_throttling(text: &str) -> (u64, u64) {
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let ns = value("throttled_usec").map(|us| us.saturating_mul(1000)).or_else(|| value("throttled_time"));
    (ns.unwrap_or(0), value("nr_throttled").unwrap_or(0))
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`: the total in us.
fn parse_some(text: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with("some "));
    let total = line.and_then(|line| line.rsplit_once("total=")?.1.trim().parse::<u64>().ok());
    total.unwrap_or(0).saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_by_use() {
        let load = parse_cpu("cpu  10 1 20 300 40 2 3 50 7 0\ncpu0 1 2 3 4\n").unwrap();
        let ms = |ns: u64| ns / 1_000_000;
        assert_eq!((ms(load.cpu_ns), ms(load.busy_ns)), (4260, 360));
        assert_eq!((ms(load.iowait_ns), ms(load.steal_ns)), (400, 500));
        let old = parse_cpu("cpu 10 1 20 300\n").unwrap();
        assert_eq!((ms(old.cpu_ns), old.steal_ns), (3310, 0));
        assert_eq!(parse_cpu("cpu 10\n"), None);
        assert_eq!(parse_cpu("cpu0 1 2 3 4\n"), None);
    }

    #[test]
    fn throttling_of_both_versions() {
        let check = |text: &str, expected: (u64, u64)| assert_eq!(parse_throttling(text), expected, "{text}");
        check("usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 1500\n", (1_500_000, 3));
        check("nr_periods 9\nnr_throttled 4\nthrottled_time 2500\n", (2500, 4));
        check("usage_usec 5\n", (0, 0));
        check("", (0, 0));
    }

    #[test]
    fn pressure() {
        let check = |text: &str, expected: u64| assert_eq!(parse_some(text), expected, "{text}");
        check("some avg10=0.10 avg60=0.0 avg300=0.0 total=1234\nfull avg10=0.0 total=9", 1_234_000);
        check("full avg10=0.0 total=9", 0);
        check("", 0);
    }

    #[test]
    fn parent_groups_count_too() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/stat", "cpu 1 0 0 9 0 0 0 0 0 0\n"),
            ("proc/self/cgroup", "0::/user/me\n"),
            ("proc/self/mountinfo", "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/user/me/cpu.stat", "nr_throttled 0\nthrottled_usec 0\n"),
            ("sys/fs/cgroup/user/cpu.stat", "nr_throttled 2\nthrottled_usec 7\n"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let sampler = HostLoadSampler::open(SysRoot::at(dir.path()));
        let load = sampler.sample().unwrap();
        assert_eq!((load.throttled_ns, load.throttled_periods, load.cpu_ns), (7000, 2, 100_000_000));
        let nowhere = tempfile::tempdir().unwrap();
        assert_eq!(HostLoadSampler::open(SysRoot::at(nowhere.path())).sample(), None);
    }
}
