//! What the machine did while a test ran: where its CPU time went, and what held the process back.

use serde::{Deserialize, Serialize};

use fathom_stats::HostInterval;

use crate::wire::is_default;

/// One interval of the machine. Times are ns since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostIntervalRecord {
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
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
    /// Time for which a control group of this process withheld CPUs from its threads, ns, added up over CPUs.
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

impl HostIntervalRecord {
    /// Stores an interval.
    pub fn from_stats(interval: &HostInterval) -> Self {
        let HostInterval { start_ns, end_ns, counters } = *interval;
        HostIntervalRecord {
            start_ns,
            end_ns,
            cpu_ns: counters.cpu_ns,
            busy_ns: counters.busy_ns,
            steal_ns: counters.steal_ns,
            iowait_ns: counters.iowait_ns,
            throttled_ns: counters.throttled_ns,
            throttled_periods: counters.throttled_periods,
            cpu_pressure_ns: counters.cpu_pressure_ns,
            io_pressure_ns: counters.io_pressure_ns,
        }
    }
}
