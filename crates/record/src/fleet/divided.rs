//! A merged record divided into its hosts again, as far as its figures go: rates, totals and percentiles of each, without histograms
//! and series, which stay in the hosts' own records.

use fathom_model::PerOp;

use super::{FleetMember, HostOutcome};
use crate::import::{
    BlockRange, Figure, ImportedEntry, ImportedLatency, ImportedLoad, ImportedOp, ImportedPercentile,
    ImportedTest,
};
use crate::{HostRecord, JobRecord, LatencySummary, Observed, RunHeader, RunRecord, TestRecord, TestStatus};

impl RunRecord {
    /// What each host of a merged record did, with its name, in the order of the hosts; `None` of a record of one host.
    pub fn divided_by_host(&self) -> Option<Vec<(String, RunRecord)>> {
        let fleet = self.header.fleet.as_ref()?;
        let names = fleet.host_names(&self.header.hosts);
        let common = RunHeader { hosts: Vec::new(), fleet: None, ..self.header.clone() };
        let divided = fleet.members.iter().enumerate().zip(names).map(|((place, member), name)| {
            let host = self.header.hosts.get(place).cloned().unwrap_or_default();
            (name, self.of_host(place as u32, member, host, &common))
        });
        Some(divided.collect())
    }

    fn of_host(&self, place: u32, member: &FleetMember, host: HostRecord, common: &RunHeader) -> RunRecord {
        let header = RunHeader {
            target: member.target.clone(),
            started_unix_ms: member.started_unix_ms,
            hosts: vec![host],
            ..common.clone()
        };
        let tests = self.tests.iter().filter_map(|test| of_test(test, place, &self.header.tool_version));
        RunRecord { status: member.status, header, tests: tests.collect(), ..RunRecord::default() }
    }
}

/// A test of one host; `None` where it has no part in it.
fn of_test(test: &TestRecord, place: u32, version: &str) -> Option<TestRecord> {
    let outcome = test.fleet.as_ref()?.hosts.iter().find(|host| host.host == place)?;
    let entry = entry(outcome).filter(|_| outcome.status != TestStatus::Skipped);
    let imported = ImportedTest {
        tool: "fathom".to_owned(),
        tool_version: version.to_owned(),
        load: load(&test.jobs),
        entries: entry.into_iter().collect(),
        ..ImportedTest::default()
    };
    Some(TestRecord {
        id: test.id.clone(),
        title: test.title.clone(),
        status: outcome.status,
        reason: outcome.reason.clone(),
        fio: test.fio.clone(),
        started_unix_ms: test.started_unix_ms,
        elapsed_ns: outcome.measured_ns(),
        observed: Some(Observed::Import(Box::new(imported))),
        ..TestRecord::default()
    })
}

/// The load of each host, where all jobs have the same.
fn load(jobs: &[JobRecord]) -> ImportedLoad {
    let Some(first) = jobs.first() else { return ImportedLoad::default() };
    let is_common = |of: &dyn Fn(&JobRecord) -> String| jobs.iter().all(|job| of(job) == of(first));
    let (least, most) = (first.smallest_blocks(), first.largest_blocks());
    let used = first.rw();
    let uses = |direction: &str| used.contains(direction) || used.contains("rw");
    let range = |is_used: bool, min: u64, max: u64| is_used.then_some(BlockRange { min, max });
    ImportedLoad {
        rw: is_common(&|job| job.rw().to_owned()).then(|| used.to_owned()),
        block_size: PerOp {
            read: range(uses("read"), least.read, most.read),
            write: range(uses("write"), least.write, most.write),
            trim: range(used.contains("trim"), least.trim, most.trim),
        },
        queue_depth: is_common(&|job| job.iodepth().to_string()).then(|| first.iodepth()),
        jobs: (jobs.len() == 1).then_some(first.plan.numjobs),
        direct: is_common(&|job| job.plan.io.direct.to_string()).then_some(first.plan.io.direct),
        engine: is_common(&|job| job.engine().to_owned()).then(|| first.engine().to_owned()),
        ..ImportedLoad::default()
    }
}

/// The figures of a host; `None` where it measured nothing.
fn entry(outcome: &HostOutcome) -> Option<ImportedEntry> {
    let measured_ns = outcome.measured_ns();
    if measured_ns == 0 {
        return None;
    }
    let moved = outcome.ios.iter().filter(|ios| **ios > 0).count();
    let op = |place: usize| {
        let (ios, bytes) = (outcome.ios[place], outcome.bytes[place]);
        (ios > 0).then(|| {
            // Latencies are those of all operations together.
            let lat = if moved == 1 { latency(&outcome.lat_ns) } else { ImportedLatency::default() };
            ImportedOp { lat, ..figures(ios, bytes, measured_ns) }
        })
    };
    let total = (moved > 1).then(|| ImportedOp {
        lat: latency(&outcome.lat_ns),
        ..figures(outcome.ios.iter().sum(), outcome.bytes.iter().sum(), measured_ns)
    });
    Some(ImportedEntry {
        failed: (outcome.failed > 0).then(|| whole(outcome.failed)).flatten(),
        read: op(0),
        write: op(1),
        trim: op(2),
        total,
        ..ImportedEntry::default()
    })
}

fn figures(ios: u64, bytes: u64, measured_ns: u64) -> ImportedOp {
    let rate = |count: u64| Figure::derived(count as f64 * 1e9 / measured_ns as f64, 0.0);
    ImportedOp {
        iops: rate(ios),
        bytes_per_second: rate(bytes),
        ios: whole(ios),
        bytes: whole(bytes),
        runtime_ns: whole(measured_ns),
        ..ImportedOp::default()
    }
}

fn whole(value: u64) -> Option<Figure<u64>> {
    Figure::printed(value as f64, 0.0)
}

fn latency(summary: &LatencySummary) -> ImportedLatency {
    let percentile =
        |(percent, ns): (f64, Option<u64>)| Some(ImportedPercentile { percent, ns: whole(ns?)? });
    let percentiles = [
        (50.0, summary.p50),
        (90.0, summary.p90),
        (95.0, summary.p95),
        (99.0, summary.p99),
        (99.9, summary.p999),
        (99.99, summary.p9999),
    ];
    ImportedLatency {
        samples: whole(summary.samples),
        min: summary.min.and_then(whole),
        mean: summary.mean.and_then(|mean| Figure::printed(mean, 0.5)),
        max: summary.max.and_then(whole),
        stddev: summary.stdev.and_then(|stdev| Figure::printed(stdev, 0.5)),
        percentiles: percentiles.into_iter().filter_map(percentile).collect(),
        ..ImportedLatency::default()
    }
}
