//! What a record of several hosts tells: how much they vary, which of them stand out, whether they share a limit, who stalled
//! when, and who is missing.
//!
//! Tests compare logarithms, because rates and latencies vary in proportion, and no difference counts that a comparison of two
//! volumes would call equivalent.

mod blocks;
mod findings;
mod outliers;
mod shared_limit;
mod stragglers;
#[cfg(test)]
mod tests;
mod variation;

use fathom_model::text::listed;
use fathom_record::{
    ClockAgreement, FleetRecord, FleetTest, HostOutcome, LeftOutRecord, RunRecord, TestRecord, TestStatus,
    TestSummary,
};
use serde::Serialize;

pub(crate) use findings::findings;
pub use outliers::{HostMetric, Outlier, OutlierTest, Outliers};
pub use shared_limit::{SharedLimit, SharedLimitVerdict};
pub use stragglers::{Straggler, Stragglers};
pub use variation::Variation;

/// Differences of rates and of latencies that count as none, as in comparisons of two volumes.
const EQUIVALENT_RATE: f64 = 0.03;
const EQUIVALENT_LATENCY: f64 = 0.05;

/// What a record of several hosts tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetAssessment {
    /// Ranks of the job; null where no record tells.
    pub ranks: Option<u32>,
    /// Records that were merged.
    pub merged: usize,
    /// Ranks without a record.
    pub missing: Vec<u32>,
    /// Records that could not be read.
    pub unreadable: Vec<LeftOutRecord>,
    /// From the first start of a host to the last, of the test where it is longest, ns.
    pub start_spread_ns: u64,
    /// How far the clocks of the hosts can be apart.
    pub clock: ClockAgreement,
    /// The hosts, in the order of ranks.
    pub hosts: Vec<FleetHost>,
    /// The tests.
    pub tests: Vec<FleetTestAssessment>,
}

/// One record of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FleetHost {
    /// Its name, unique within the fleet where records have host names or ranks.
    pub host: String,
    /// Its rank.
    pub rank: Option<u32>,
    /// The file or run that it came from.
    pub source: String,
    /// What it measured.
    pub target: String,
    /// The device, by a name that is the same on every host that shares it.
    pub device: String,
    /// Start of its run, ms since the epoch.
    pub started_unix_ms: u64,
    /// How its run ended.
    pub status: TestStatus,
}

/// What one test of several hosts tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetTestAssessment {
    /// The test.
    pub id: String,
    /// From the first start of a host to the last, ns.
    pub start_spread_ns: u64,
    /// Time that all hosts have in common, ns.
    pub window_ns: u64,
    /// Share of the I/Os outside that time.
    pub outside_fraction: f64,
    /// Rate of all hosts over that time; null where a phase has no such time.
    pub iops: Option<f64>,
    /// Bytes per second over that time.
    pub bytes_per_second: Option<f64>,
    /// How much the hosts vary.
    pub variation: HostVariation,
    /// Hosts that stand out.
    pub outliers: Outliers,
    /// Hosts that were slower than the others for a time.
    pub stragglers: Stragglers,
    /// Whether they share a limit.
    pub shared_limit: SharedLimit,
    /// Stalls of the hosts, in order of time.
    pub stalls: Vec<HostStall>,
    /// Each host.
    pub hosts: Vec<HostResult>,
}

/// How much the hosts of a test vary; `None` below two hosts with a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostVariation {
    /// I/Os per second.
    pub iops: Option<Variation>,
    /// Bytes per second.
    pub bytes_per_second: Option<Variation>,
    /// Median latency.
    pub lat_p50_ns: Option<Variation>,
    /// 99th percentile of latency.
    pub lat_p99_ns: Option<Variation>,
}

/// A stall of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostStall {
    /// The host.
    pub host: String,
    /// Its start, ns since the start of the first host.
    pub start_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
}

/// One host of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostResult {
    /// Its name.
    pub host: String,
    /// Its rank.
    pub rank: Option<u32>,
    /// What it did.
    #[serde(flatten)]
    pub outcome: HostOutcome,
}

impl HostResult {
    /// The value of a metric; `None` where too few samples have it.
    pub fn value(&self, metric: HostMetric) -> Option<f64> {
        let latency = &self.outcome.lat_ns;
        match metric {
            HostMetric::Iops => Some(self.outcome.iops).filter(|iops| *iops > 0.0),
            HostMetric::P99 => latency.p99.map(|ns| ns as f64),
        }
    }

    fn is_complete(&self) -> bool {
        self.outcome.status == TestStatus::Complete
    }
}

/// Ranks as ranges, of which the first `most` are named: `3, 17-19, 40 and 2 more`.
pub fn rank_ranges(ranks: &[u32], most: usize) -> String {
    let text = |run: &[u32]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    let ranges: Vec<String> =
        ranks.chunk_by(|one, next| one.checked_add(1) == Some(*next)).map(text).collect();
    listed(&ranges, most)
}

/// What `record` tells of its hosts; `None` where it is of a single one.
pub fn assess(record: &RunRecord) -> Option<FleetAssessment> {
    let fleet = record.header.fleet.as_ref()?;
    let names = fleet.host_names(&record.header.hosts);
    let tests: Vec<FleetTestAssessment> =
        record.tests.iter().filter_map(|test| of_test(fleet, &names, test)).collect();
    let member = |(member, name): (&fathom_record::FleetMember, &String)| FleetHost {
        host: name.clone(),
        rank: member.rank,
        source: member.source.clone(),
        target: member.target.clone(),
        device: member.device.clone(),
        started_unix_ms: member.started_unix_ms,
        status: member.status,
    };
    Some(FleetAssessment {
        ranks: fleet.ranks,
        merged: fleet.members.len(),
        missing: fleet.missing.clone(),
        unreadable: fleet.unreadable.clone(),
        start_spread_ns: tests.iter().map(|test| test.start_spread_ns).max().unwrap_or(0),
        clock: fleet.clock.clone(),
        hosts: fleet.members.iter().zip(&names).map(member).collect(),
        tests,
    })
}

fn of_test(fleet: &FleetRecord, names: &[String], test: &TestRecord) -> Option<FleetTestAssessment> {
    let shared: &FleetTest = test.fleet.as_ref()?;
    let result = |outcome: &HostOutcome| HostResult {
        host: names.get(outcome.host as usize).cloned().unwrap_or_default(),
        rank: fleet.members.get(outcome.host as usize).and_then(|member| member.rank),
        outcome: outcome.clone(),
    };
    let hosts: Vec<HostResult> = shared.hosts.iter().map(result).collect();
    let complete: Vec<&HostResult> = hosts.iter().filter(|host| host.is_complete()).collect();
    let variation = |of: &dyn Fn(&HostResult) -> Option<f64>| {
        Variation::of(complete.iter().filter_map(|host| of(host)).collect())
    };
    let rate = |value: f64| Some(value).filter(|value| *value > 0.0);
    let has_window = shared.has_total();
    let total = TestSummary::new(test).total;
    let stalls = hosts.iter().flat_map(|host| {
        let stall = |stall: &fathom_record::Stall| HostStall {
            host: host.host.clone(),
            start_ns: stall.start_ns,
            length_ns: stall.length_ns,
        };
        host.outcome.stalls.iter().map(stall)
    });
    let mut stalls: Vec<HostStall> = stalls.collect();
    stalls.sort_by_key(|stall| stall.start_ns);
    Some(FleetTestAssessment {
        id: test.id.clone(),
        start_spread_ns: shared.start_spread_ns(),
        window_ns: shared.window_ns(),
        outside_fraction: shared.outside_fraction(),
        iops: total.as_ref().filter(|_| has_window).map(|total| total.iops),
        bytes_per_second: total.as_ref().filter(|_| has_window).map(|total| total.bytes_per_second),
        variation: HostVariation {
            iops: variation(&|host| rate(host.outcome.iops)),
            bytes_per_second: variation(&|host| rate(host.outcome.bytes_per_second)),
            lat_p50_ns: variation(&|host| host.outcome.lat_ns.p50.map(|ns| ns as f64)),
            lat_p99_ns: variation(&|host| host.outcome.lat_ns.p99.map(|ns| ns as f64)),
        },
        outliers: Outliers::of(&complete),
        stragglers: Stragglers::of(shared, &complete),
        shared_limit: SharedLimit::of(shared, &complete),
        stalls,
        hosts,
    })
}
