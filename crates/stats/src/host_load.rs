//! CPU and pressure counters of the machine per interval; all are sums, so that intervals add up.

use serde::{Deserialize, Serialize};

use fathom_model::is_default;

/// Counters of the machine and of the process's control groups, all cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostCounters {
    /// Total time of all CPUs, idle time included, ns.
    pub cpu_ns: u64,
    /// Busy time, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub busy_ns: u64,
    /// Steal time, which the hypervisor gave to other guests, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub steal_ns: u64,
    /// I/O wait, idle time while a thread waited for I/O, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub iowait_ns: u64,
    /// Time for which a control group throttled threads of this process, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub throttled_ns: u64,
    /// Quota periods with throttling.
    #[serde(skip_serializing_if = "is_default")]
    pub throttled_periods: u64,
    /// Time in which at least one thread of the machine waited for a CPU, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub cpu_pressure_ns: u64,
    /// Time in which at least one thread of the machine waited for I/O, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub io_pressure_ns: u64,
}

impl HostCounters {
    /// The counts since `earlier`; 0 for a counter that fell (a CPU went offline, a process changed its group).
    pub fn since(&self, earlier: &HostCounters) -> HostCounters {
        self.with(earlier, u64::saturating_sub)
    }

    /// The sums of both spans.
    pub fn plus(&self, other: &HostCounters) -> HostCounters {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &HostCounters, combine: fn(u64, u64) -> u64) -> HostCounters {
        macro_rules! each {
            ($($field:ident),*) => { HostCounters { $($field: combine(self.$field, other.$field)),* } };
        }
        each!(
            cpu_ns, busy_ns, steal_ns, iowait_ns, throttled_ns, throttled_periods, cpu_pressure_ns,
            io_pressure_ns
        )
    }
}

/// One interval of the machine. Times are ns since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostInterval {
    /// Index of the host among those of the run.
    #[serde(skip_serializing_if = "is_default")]
    pub host: u32,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Counts of the interval.
    pub counters: HostCounters,
}

/// Halves the number of intervals by merging adjacent pairs.
pub fn halve(intervals: &mut Vec<HostInterval>) {
    let joined = intervals.chunks(2).map(|pair| match pair {
        [one, next] => {
            HostInterval { end_ns: next.end_ns, counters: one.counters.plus(&next.counters), ..*one }
        }
        alone => alone[0],
    });
    *intervals = joined.collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_keeps_every_count() {
        let at = |number: u64| HostInterval {
            start_ns: number * 10,
            end_ns: number * 10 + 10,
            counters: HostCounters { cpu_ns: number, ..HostCounters::default() },
            ..HostInterval::default()
        };
        let mut intervals: Vec<HostInterval> = (0..5).map(at).collect();
        halve(&mut intervals);
        let found: Vec<_> = intervals.iter().map(|i| (i.start_ns, i.end_ns, i.counters.cpu_ns)).collect();
        assert_eq!(found, [(0, 20, 1), (20, 40, 5), (40, 50, 4)]);
    }

    #[test]
    fn a_counter_that_falls_counts_as_zero() {
        let counters = |cpu_ns, steal_ns| HostCounters { cpu_ns, steal_ns, ..HostCounters::default() };
        assert_eq!(counters(7, 1).since(&counters(3, 2)), counters(4, 0));
    }
}
