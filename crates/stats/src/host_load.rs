//! What the machine did per interval of time: plain sums, so that intervals add up.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// Counters of the machine and of the process's control groups; all only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostCounters {
    /// Time of all CPUs together, idle or not, ns.
    pub cpu_ns: u64,
    /// The part of it in which they worked, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub busy_ns: u64,
    /// The part of it that the host gave to others, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub steal_ns: u64,
    /// The part of it in which they were idle while a thread waited for I/O, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub iowait_ns: u64,
    /// Time for which a control group of this process withheld CPUs from its threads, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub throttled_ns: u64,
    /// Periods of the group's quota in which that happened.
    #[serde(skip_serializing_if = "is_default")]
    pub throttled_periods: u64,
    /// Time in which some thread of the machine waited for a CPU, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub cpu_pressure_ns: u64,
    /// Time in which some thread of the machine waited for I/O, ns.
    #[serde(skip_serializing_if = "is_default")]
    pub io_pressure_ns: u64,
}

impl HostCounters {
    /// What was counted since `earlier`; a counter that fell (a CPU went offline, a process changed its group) counts nothing.
    pub fn since(&self, earlier: &HostCounters) -> HostCounters {
        self.with(earlier, u64::saturating_sub)
    }

    /// What was counted in both spans together.
    pub fn plus(&self, other: &HostCounters) -> HostCounters {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &HostCounters, combine: fn(u64, u64) -> u64) -> HostCounters {
        macro_rules! each {
            ($($field:ident),*) => { HostCounters { $($field: combine(self.$field, other.$field)),* } };
        }
        each!(
            cpu_ns,
            busy_ns,
            steal_ns,
            iowait_ns,
            throttled_ns,
            throttled_periods,
            cpu_pressure_ns,
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
    /// Counted in it.
    pub counters: HostCounters,
}

/// Halves the number of intervals by adding up neighbours.
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
    fn a_counter_that_falls_counts_nothing() {
        let counters = |cpu_ns, steal_ns| HostCounters { cpu_ns, steal_ns, ..HostCounters::default() };
        assert_eq!(counters(7, 1).since(&counters(3, 2)), counters(4, 0));
    }
}
