//! The kernel's own counters of the devices under a target.

use serde::{Deserialize, Serialize};

use fathom_model::is_default;

/// The kernel's counters of one block device (`/proc/diskstats`); sectors are 512 bytes, ticks are ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskCounters {
    /// Reads completed.
    #[serde(skip_serializing_if = "is_default")]
    pub read_ios: u64,
    /// Reads merged into others.
    #[serde(skip_serializing_if = "is_default")]
    pub read_merges: u64,
    /// Sectors read.
    #[serde(skip_serializing_if = "is_default")]
    pub read_sectors: u64,
    /// Time spent reading.
    #[serde(skip_serializing_if = "is_default")]
    pub read_ticks_ms: u64,
    /// Writes completed.
    #[serde(skip_serializing_if = "is_default")]
    pub write_ios: u64,
    /// Writes merged into others.
    #[serde(skip_serializing_if = "is_default")]
    pub write_merges: u64,
    /// Sectors written.
    #[serde(skip_serializing_if = "is_default")]
    pub write_sectors: u64,
    /// Time spent writing.
    #[serde(skip_serializing_if = "is_default")]
    pub write_ticks_ms: u64,
    /// Time with at least one request in flight.
    #[serde(skip_serializing_if = "is_default")]
    pub busy_ms: u64,
    /// Time weighted by requests in flight.
    #[serde(skip_serializing_if = "is_default")]
    pub queue_ms: u64,
    /// Discards completed.
    #[serde(skip_serializing_if = "is_default")]
    pub discard_ios: u64,
    /// Sectors discarded.
    #[serde(skip_serializing_if = "is_default")]
    pub discard_sectors: u64,
    /// Flushes completed.
    #[serde(skip_serializing_if = "is_default")]
    pub flush_ios: u64,
    /// Time spent flushing.
    #[serde(skip_serializing_if = "is_default")]
    pub flush_ticks_ms: u64,
}

impl DiskCounters {
    /// The counts since `earlier`.
    pub fn since(&self, earlier: &DiskCounters) -> DiskCounters {
        self.with(earlier, u64::wrapping_sub)
    }

    /// The sums of both spans.
    pub fn plus(&self, other: &DiskCounters) -> DiskCounters {
        self.with(other, u64::wrapping_add)
    }

    fn with(&self, other: &DiskCounters, combine: fn(u64, u64) -> u64) -> DiskCounters {
        macro_rules! each {
            ($($field:ident),*) => { DiskCounters { $($field: combine(self.$field, other.$field)),* } };
        }
        each!(
            read_ios, read_merges, read_sectors, read_ticks_ms, write_ios, write_merges, write_sectors,
            write_ticks_ms, busy_ms, queue_ms, discard_ios, discard_sectors, flush_ios, flush_ticks_ms
        )
    }
}

/// One interval of one device. Times are ns since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskInterval {
    /// Number of the tick that closed it.
    pub tick: u32,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Counts of the interval.
    pub counters: DiskCounters,
}

/// The kernel's counters of one device over a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskOutcome {
    /// Index of its host among those of the run.
    #[serde(skip_serializing_if = "is_default")]
    pub host: u32,
    /// Kernel name (`nvme0n1`).
    pub name: String,
    /// Name of the device stacked on top of this one; `None` for the target itself.
    #[serde(skip_serializing_if = "is_default")]
    pub under: Option<String>,
    /// Counts of the measured part, from the measured start of the first worker to the end of the last.
    pub counters: DiskCounters,
    /// Length of that part, ns.
    pub elapsed_ns: u64,
    /// Counts per tick of the observer, aligned with the workers' series.
    #[serde(skip_serializing_if = "is_default")]
    pub intervals: Vec<DiskInterval>,
}

impl DiskOutcome {
    /// Appends an interval, or adds it to the last one if both have the same tick.
    pub fn push_interval(&mut self, interval: DiskInterval) {
        match self.intervals.last_mut() {
            Some(last) if last.tick == interval.tick => {
                last.end_ns = interval.end_ns;
                last.counters = last.counters.plus(&interval.counters);
            }
            _ => self.intervals.push(interval),
        }
    }

    /// Halves the number of intervals by adding up those with the same `tick / 2`.
    pub fn halve_intervals(&mut self) {
        for interval in std::mem::take(&mut self.intervals) {
            self.push_interval(DiskInterval { tick: interval.tick / 2, ..interval });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_disk_intervals_keeps_every_count() {
        let counters = |reads| DiskCounters { read_ios: reads, busy_ms: 10, ..DiskCounters::default() };
        let mut disk = DiskOutcome::default();
        (0..5u32).for_each(|tick| {
            let start_ns = u64::from(tick) * 5;
            disk.push_interval(DiskInterval {
                tick,
                start_ns,
                end_ns: start_ns + 5,
                counters: counters(u64::from(tick)),
            });
        });
        disk.halve_intervals();
        let found: Vec<_> = disk
            .intervals
            .iter()
            .map(|i| (i.tick, i.start_ns, i.end_ns, i.counters.read_ios, i.counters.busy_ms))
            .collect();
        assert_eq!(found, [(0, 0, 10, 1, 20), (1, 10, 20, 5, 20), (2, 20, 25, 4, 10)]);
        assert_eq!(counters(7).since(&counters(3)), DiskCounters { read_ios: 4, ..DiskCounters::default() });
    }
}
