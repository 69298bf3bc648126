//! The record of many hosts that did the same: what was merged, and what each host did.
//!
//! A merged record has one job for each job of the ranks, in which all their workers are added up, so that its size does not
//! grow with their series and histograms. The figures of each host stand beside it, in the test: rates, latencies, its course in
//! cells of equal length, and its stalls. [ADR 0035](../../../docs/adr/0035-merged-records.md) has the reasons.

mod alignment;
mod capacity;
mod course;
mod divided;
mod header;
mod jobs;
mod merger;
mod pending;
mod shape;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use merger::{FleetMerger, MergeRules};
pub use shape::MergeRefusal;

pub(crate) use capacity::Capacity;

use crate::merge::WorkerSums;
use crate::wire::is_default;
use crate::{Finding, HostRecord, JobRecord, LatencySummary, Stall, TestStatus};

/// Place of this process in a parallel job, as its launcher tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaunchRecord {
    /// What started the job (`slurm`, `pmi`, `open-mpi`, `kubernetes`).
    pub launcher: String,
    /// Number of this process, from 0.
    pub rank: u32,
    /// Processes of the job; `None` where the launcher does not tell.
    #[serde(skip_serializing_if = "is_default")]
    pub ranks: Option<u32>,
    /// Which numbers the processes of the job have.
    #[serde(skip_serializing_if = "is_default")]
    pub numbers: RankNumbers,
    /// What this process does, where those of the job do different things.
    #[serde(skip_serializing_if = "is_default")]
    pub role: Option<String>,
}

/// The numbers of the processes of a job: the first, and how far each is from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankNumbers {
    /// The least.
    pub first: u32,
    /// From one to the next; 0 where they are a list that nobody tells.
    pub step: u32,
}

impl RankNumbers {
    /// Any numbers.
    pub const UNKNOWN: RankNumbers = RankNumbers { first: 0, step: 0 };
}

impl Default for RankNumbers {
    fn default() -> Self {
        RankNumbers { first: 0, step: 1 }
    }
}

/// How well the wall clock of a host is known, by the kernel's own estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockState {
    /// A time service keeps it: its error is bounded.
    pub synchronized: bool,
    /// Largest error, ns.
    pub max_error_ns: u64,
    /// Estimated error, ns.
    pub estimated_error_ns: u64,
}

/// What a merged record was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetRecord {
    /// Ranks of the job: as the user says, else as its launcher; `None` where neither does.
    #[serde(skip_serializing_if = "is_default")]
    pub ranks: Option<u32>,
    /// One for each merged record, by rank where they have ranks, in the order of the hosts of the header.
    pub members: Vec<FleetMember>,
    /// Ranks without a record.
    #[serde(skip_serializing_if = "is_default")]
    pub missing: Vec<u32>,
    /// Records that could not be read.
    #[serde(skip_serializing_if = "is_default")]
    pub unreadable: Vec<LeftOutRecord>,
    /// How far the wall clocks of the hosts can be apart.
    pub clock: ClockAgreement,
    /// Findings on single hosts, from their own records.
    #[serde(skip_serializing_if = "is_default")]
    pub host_findings: Vec<HostFinding>,
}

/// One merged record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetMember {
    /// Its rank, where the record has one.
    #[serde(skip_serializing_if = "is_default")]
    pub rank: Option<u32>,
    /// The file or run that it came from.
    pub source: String,
    /// The target as its user named it.
    pub target: String,
    /// The device, by a name that is the same on every host that shares it.
    pub device: String,
    /// Start of its run by its own wall clock, ms since the epoch; 0 for a simulated run.
    pub started_unix_ms: u64,
    /// How its run ended.
    pub status: TestStatus,
}

/// A record that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOutRecord {
    /// The file or run.
    pub source: String,
    /// Why.
    pub reason: String,
}

/// How far the wall clocks of the hosts can be apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockAgreement {
    /// Largest difference between the clocks of any two hosts, ns; `None` where it is unknown.
    pub error_ns: Option<u64>,
    /// Why it is unknown, or what else there is to know.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: Option<String>,
}

/// A finding of the same kind on the same test of several hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFinding {
    /// As it is on the first of them.
    pub finding: Finding,
    /// The hosts, as indices into those of the header.
    pub hosts: Vec<u32>,
}

/// What each host did in a test of a merged record. Times are ns since the start of the first host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetTest {
    /// The hosts that took part, in the order of the header.
    pub hosts: Vec<HostOutcome>,
    /// The time in which every worker of every host was measuring, one for each phase; empty where there is none.
    pub windows: Vec<CommonWindow>,
    /// Phases with I/Os in which the hosts have no time in common: there is no rate of all phases then.
    #[serde(skip_serializing_if = "is_default")]
    pub apart: Vec<u32>,
    /// Length of the cells of the hosts' courses; 0 without them.
    #[serde(skip_serializing_if = "is_default")]
    pub cell_ns: u64,
}

/// A time in which every worker of every host was measuring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommonWindow {
    /// The phase of the jobs.
    pub phase: u32,
    /// Latest start.
    pub start_ns: u64,
    /// Earliest end.
    pub end_ns: u64,
    /// Completed I/Os of all hosts in this time: read, write, trim. What lies at its edges counts in proportion.
    pub ios: [f64; 3],
    /// Bytes of these.
    pub bytes: [f64; 3],
}

/// What one host did in a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostOutcome {
    /// Index of the host in the header.
    #[serde(rename = "host_index")]
    pub host: u32,
    /// How the test ended there.
    pub status: TestStatus,
    /// Why it was skipped, failed or interrupted.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: Option<String>,
    /// Start of its first worker's measured part.
    pub start_ns: u64,
    /// End of its last worker's.
    pub end_ns: u64,
    /// Completed I/Os: read, write, trim.
    pub ios: [u64; 3],
    /// Bytes of these.
    pub bytes: [u64; 3],
    /// Failed I/Os.
    #[serde(skip_serializing_if = "is_default")]
    pub failed: u64,
    /// I/Os per second over its own measured time.
    pub iops: f64,
    /// Bytes per second over its own measured time.
    pub bytes_per_second: f64,
    /// Total latency of all its I/Os; completion latency where the total was not recorded.
    pub lat_ns: LatencySummary,
    /// Mean share of its CPUs that was busy.
    #[serde(skip_serializing_if = "is_default")]
    pub cpu_busy_fraction: Option<f64>,
    /// Mean share of its CPUs that the hypervisor gave to others.
    #[serde(skip_serializing_if = "is_default")]
    pub cpu_steal_fraction: Option<f64>,
    /// Completed I/Os in each cell from time 0 on; empty where it recorded no series.
    #[serde(skip_serializing_if = "is_default")]
    pub course: Vec<u64>,
    /// Its longest stalls, in order of time.
    #[serde(skip_serializing_if = "is_default")]
    pub stalls: Vec<Stall>,
}

impl FleetRecord {
    /// Ranks that should have a record: those of the job, else as many as there are records and missing or unreadable ones.
    pub fn expected(&self) -> usize {
        // A record that cannot be read may be that of a missing rank.
        let known = self.members.len() + self.unreadable.len().max(self.missing.len());
        self.ranks.map_or(known, |ranks| (ranks as usize).max(self.members.len()))
    }

    /// Every rank that should have a record has one.
    pub fn is_complete(&self) -> bool {
        self.members.len() >= self.expected() && self.unreadable.is_empty() && self.missing.is_empty()
    }

    /// What the hosts are called: by their names, with ranks where several records are of one host; else by rank or source.
    pub fn host_names(&self, hosts: &[HostRecord]) -> Vec<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for host in hosts {
            *counts.entry(&host.hostname).or_default() += 1;
        }
        let name = |(place, member): (usize, &FleetMember)| {
            let name = hosts.get(place).map_or("", |host| host.hostname.as_str());
            match (name, counts.get(name), member.rank) {
                ("", _, Some(rank)) => format!("rank {rank}"),
                ("", _, None) => member.source.clone(),
                (_, Some(1), _) => name.to_owned(),
                (_, _, Some(rank)) => format!("{name} rank {rank}"),
                (_, _, None) => format!("{name} #{}", place + 1),
            }
        };
        self.members.iter().enumerate().map(name).collect()
    }
}

impl FleetTest {
    /// From the first start to the last, ns.
    pub fn start_spread_ns(&self) -> u64 {
        let starts = || self.measured().map(|host| host.start_ns);
        starts().max().unwrap_or(0) - starts().min().unwrap_or(0)
    }

    /// The hosts that measured anything.
    pub fn measured(&self) -> impl Iterator<Item = &HostOutcome> {
        self.hosts.iter().filter(|host| host.end_ns > host.start_ns)
    }

    /// Every phase has a common window, so there is a rate of all operations.
    pub fn has_total(&self) -> bool {
        !self.windows.is_empty() && self.apart.is_empty()
    }

    /// Length of the common windows, ns.
    pub fn window_ns(&self) -> u64 {
        self.windows.iter().map(|window| window.end_ns.saturating_sub(window.start_ns)).sum()
    }

    /// Share of all completed I/Os that lies outside the common windows.
    pub fn outside_fraction(&self) -> f64 {
        let all: u64 = self.hosts.iter().flat_map(|host| host.ios).sum();
        let within: f64 = self.windows.iter().flat_map(|window| window.ios).sum();
        if all == 0 { 0.0 } else { (1.0 - within / all as f64).clamp(0.0, 1.0) }
    }

    /// The same of one phase, without the courses.
    pub fn of_phase(&self, phase: u32) -> FleetTest {
        let bare = |host: &HostOutcome| HostOutcome { course: Vec::new(), ..host.clone() };
        FleetTest {
            hosts: self.hosts.iter().map(bare).collect(),
            windows: self.windows.iter().filter(|window| window.phase == phase).cloned().collect(),
            apart: self.apart.iter().copied().filter(|known| *known == phase).collect(),
            cell_ns: 0,
        }
    }

    /// I/Os and bytes per second of an operation over the common windows; 0 without one.
    pub(crate) fn rates(&self, op: usize) -> (f64, f64) {
        let seconds = self.window_ns() as f64 / 1e9;
        let rate = |of: fn(&CommonWindow) -> &[f64; 3]| -> f64 {
            let sum: f64 = self.windows.iter().map(|window| of(window)[op]).sum();
            if seconds > 0.0 { sum / seconds } else { 0.0 }
        };
        (rate(|window| &window.ios), rate(|window| &window.bytes))
    }
}

impl HostOutcome {
    /// Length of its measured part, ns.
    pub fn measured_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

impl JobRecord {
    /// What its workers have in sum: those that were added up in it, or itself.
    pub fn sums(&self) -> WorkerSums {
        self.workers.as_deref().cloned().unwrap_or_else(|| WorkerSums::of(self))
    }
}
