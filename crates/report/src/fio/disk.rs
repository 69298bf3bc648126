//! Which devices fio's outputs list, and their aggregates.

use fathom_record::{DiskCounters, DiskOutcome};

/// A device of fio's list with the devices it is made of.
pub(crate) struct ListedDisk<'a> {
    pub disk: &'a DiskOutcome,
    /// The devices directly below, where the kernel lists them as slaves (device mapper, MD).
    pub slaves: Vec<&'a DiskOutcome>,
    /// Mean of the slaves' counters and the greatest of their utilizations, where there are slaves.
    pub aggregate: Option<(DiskCounters, f64)>,
}

/// The devices in fio's way: the whole disk in place of a partition, and slaves only of stacked devices.
pub(crate) fn listed(disks: &[DiskOutcome]) -> Vec<ListedDisk<'_>> {
    let mut listed: Vec<ListedDisk> = Vec::new();
    for top in disks.iter().filter(|disk| disk.under.is_none()) {
        let disk = whole_disk(disks, top).unwrap_or(top);
        if listed.iter().any(|known| known.disk.name == disk.name) {
            continue;
        }
        let stacked = disk.name.starts_with("dm-") || disk.name.starts_with("md");
        let slaves: Vec<&DiskOutcome> = if stacked { below(disks, disk) } else { Vec::new() };
        let aggregate = aggregate(&slaves);
        listed.push(ListedDisk { disk, slaves, aggregate });
    }
    listed
}

fn below<'a>(disks: &'a [DiskOutcome], upper: &DiskOutcome) -> Vec<&'a DiskOutcome> {
    disks.iter().filter(|disk| disk.under.as_deref() == Some(upper.name.as_str())).collect()
}

/// The disk that `device` is a partition of (`vda1` of `vda`, `nvme0n1p2` of `nvme0n1`).
fn whole_disk<'a>(disks: &'a [DiskOutcome], device: &DiskOutcome) -> Option<&'a DiskOutcome> {
    below(disks, device).into_iter().find(|lower| {
        let number = device.name.strip_prefix(lower.name.as_str()).unwrap_or_default();
        let number = number.strip_prefix('p').unwrap_or(number);
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Share of the time with any request in flight, percent.
pub(crate) fn utilization(disk: &DiskOutcome) -> f64 {
    let elapsed_ms = disk.elapsed_ns as f64 / 1e6;
    if elapsed_ms <= 0.0 { 0.0 } else { (disk.counters.busy_ms as f64 * 100.0 / elapsed_ms).min(100.0) }
}

fn aggregate(slaves: &[&DiskOutcome]) -> Option<(DiskCounters, f64)> {
    let count = slaves.len() as u64;
    if count == 0 {
        return None;
    }
    let mean = |field: fn(&DiskCounters) -> u64| {
        slaves.iter().map(|disk| field(&disk.counters)).sum::<u64>() / count
    };
    let counters = DiskCounters {
        read_ios: mean(|c| c.read_ios),
        write_ios: mean(|c| c.write_ios),
        read_sectors: mean(|c| c.read_sectors),
        write_sectors: mean(|c| c.write_sectors),
        read_merges: mean(|c| c.read_merges),
        write_merges: mean(|c| c.write_merges),
        read_ticks_ms: mean(|c| c.read_ticks_ms),
        write_ticks_ms: mean(|c| c.write_ticks_ms),
        queue_ms: mean(|c| c.queue_ms),
        ..DiskCounters::default()
    };
    Some((counters, slaves.iter().map(|disk| utilization(disk)).fold(0.0, f64::max)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(name: &str, under: Option<&str>) -> DiskOutcome {
        DiskOutcome { name: name.to_owned(), under: under.map(str::to_owned), ..Default::default() }
    }

    fn check(disks: &[DiskOutcome], expected: &[(&str, usize)]) {
        let found = listed(disks);
        let found: Vec<(&str, usize)> =
            found.iter().map(|l| (l.disk.name.as_str(), l.slaves.len())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn partitions_give_way_to_their_disk_and_stacks_show_their_slaves() {
        check(&[disk("vda1", None), disk("vda", Some("vda1"))], &[("vda", 0)]);
        check(&[disk("nvme0n1p2", None), disk("nvme0n1", Some("nvme0n1p2"))], &[("nvme0n1", 0)]);
        check(&[disk("loop0", None), disk("vda", Some("loop0"))], &[("loop0", 0)]);
        check(&[disk("dm-0", None), disk("sda", Some("dm-0")), disk("sdb", Some("dm-0"))], &[("dm-0", 2)]);
        check(&[], &[]);
    }
}
