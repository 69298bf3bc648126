//! Records for the tests of the rules: what a well-behaved device gives, to be spoilt in one respect.
//!
//! Figures follow from each other (Little, counters of the device), as those of a real run do.

use fathom_model::PerOp;
use fathom_model::plan::{DepthPlan, EnginePlan, IoPlan, Pattern, TimePlan};
use fathom_record::{
    CpuUsage, DeviceRecord, DiskCounters, DiskOutcome, Finding, HostRecord, Interval, IntervalOp, JobRecord,
    Latency, OpOutcome, PhaseOutcome, PlanRecord, RunRecord, TestRecord, TestStatus,
};
use fathom_stats::histogram;

use crate::compare::source::{ComparedSource, SourceRun};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// One test: every job does the same.
#[derive(Clone, Debug)]
pub(crate) struct TestLoad {
    pub(crate) id: &'static str,
    pub(crate) rw: &'static str,
    pub(crate) bs: u64,
    pub(crate) depth: u32,
    pub(crate) jobs: u32,
    /// Of all jobs together.
    pub(crate) iops: f64,
    /// Rate of each second as a share of `iops`, repeated as needed.
    pub(crate) seconds: Vec<f64>,
}

impl Default for TestLoad {
    fn default() -> Self {
        let seconds = vec![1.0; 12];
        TestLoad { id: "t", rw: "randread", bs: 4096, depth: 1, jobs: 1, iops: 2000.0, seconds }
    }
}

impl TestLoad {
    fn ios(&self) -> u64 {
        self.seconds.iter().map(|share| self.ios_of(*share)).sum()
    }

    fn ios_of(&self, share: f64) -> u64 {
        (self.iops / f64::from(self.jobs) * share).round() as u64
    }

    fn writes(&self) -> bool {
        self.rw.ends_with("write")
    }
}

impl ComparedSource {
    /// A source with these runs.
    pub(crate) fn of_records(records: impl IntoIterator<Item = RunRecord>) -> ComparedSource {
        let run = |record| SourceRun { origin: "a run".to_owned(), record };
        ComparedSource { runs: records.into_iter().map(run).collect(), ..ComparedSource::default() }
    }

    /// A source whose runs have one test at these IOPS.
    pub(crate) fn at_rates(rates: &[f64], load: &TestLoad) -> ComparedSource {
        let run = |iops: &f64| record(&[TestLoad { iops: *iops, ..load.clone() }]);
        ComparedSource::of_records(rates.iter().map(run))
    }
}

/// A run of `bench` on a device of its own, test by test.
pub(crate) fn record(loads: &[TestLoad]) -> RunRecord {
    let mut record = RunRecord { status: TestStatus::Complete, ..RunRecord::default() };
    record.header.size_bytes = 100 << 30;
    record.header.hosts = vec![HostRecord { cpus_allowed: 2, ..HostRecord::default() }];
    record.header.conditions.target.kind = "block_device".to_owned();
    record.header.conditions.target.devices = vec![DeviceRecord {
        name: "sdx".to_owned(),
        kind: "disk".to_owned(),
        size_bytes: 100 << 30,
        logical_block_size: 512,
        physical_block_size: 4096,
        write_cache: "write back".to_owned(),
        ..DeviceRecord::default()
    }];
    record.tests = loads.iter().map(test).collect();
    record
}

fn test(load: &TestLoad) -> TestRecord {
    let end_ns = load.seconds.len() as u64 * SECOND_NS;
    let ios = load.ios() * u64::from(load.jobs);
    let sectors = ios * load.bs / 512;
    let mut counters = DiskCounters { busy_ms: end_ns / 1_000_000, ..Default::default() };
    match load.writes() {
        true => (counters.write_ios, counters.write_sectors) = (ios, sectors),
        false => (counters.read_ios, counters.read_sectors) = (ios, sectors),
    }
    TestRecord {
        id: load.id.to_owned(),
        title: load.id.to_owned(),
        status: TestStatus::Complete,
        elapsed_ns: end_ns,
        jobs: (0..load.jobs).map(|clone| job(load, clone)).collect(),
        disks: vec![DiskOutcome {
            name: "sdx".to_owned(),
            counters,
            elapsed_ns: end_ns,
            ..DiskOutcome::default()
        }],
        ..TestRecord::default()
    }
}

/// A latency of `count` samples, all of `ns`.
pub(crate) fn latency(count: u64, ns: u64) -> Latency {
    Latency::repeated(count, ns)
}

/// The same in the form of an interval.
pub(crate) fn clat_bins(count: u64, ns: u64) -> Vec<(u16, u64)> {
    vec![(histogram::bin(ns) as u16, count)]
}

fn job(load: &TestLoad, clone: u32) -> JobRecord {
    let ios = load.ios();
    let lat_ns = (f64::from(load.depth * load.jobs) * 1e9 / load.iops) as u64;
    let op = OpOutcome {
        issued: ios,
        ios,
        bytes: ios * load.bs,
        clat: latency(ios, lat_ns),
        lat: latency(ios, lat_ns),
        ..OpOutcome::default()
    };
    let interval = |(second, share): (usize, &f64)| {
        let ios = load.ios_of(*share);
        let op = IntervalOp {
            ios,
            bytes: ios * load.bs,
            clat_sum_ns: ios * lat_ns,
            clat_bins: clat_bins(ios, lat_ns),
        };
        let start_ns = second as u64 * SECOND_NS;
        let (read, write) = if load.writes() { (Default::default(), op) } else { (op, Default::default()) };
        Interval {
            tick: second as u32,
            start_ns,
            end_ns: start_ns + SECOND_NS,
            read,
            write,
            ..Default::default()
        }
    };
    let end_ns = load.seconds.len() as u64 * SECOND_NS;
    let (read, write) = if load.writes() { (OpOutcome::default(), op) } else { (op, OpOutcome::default()) };
    let measured = PhaseOutcome {
        end_ns,
        read,
        write,
        cpu: CpuUsage { user_ns: end_ns / 50, system_ns: end_ns / 20, ..CpuUsage::default() },
        series: load.seconds.iter().enumerate().map(interval).collect(),
        ..PhaseOutcome::default()
    };
    let engine = EnginePlan { name: "io_uring".to_owned(), ..EnginePlan::default() };
    let io = IoPlan {
        pattern: Pattern::named(load.rw).unwrap(),
        block_size: PerOp::splat(load.bs.into()),
        direct: true,
        ..IoPlan::default()
    };
    let depth = DepthPlan::new(load.depth);
    let time = TimePlan { time_based: true, ..TimePlan::default() };
    JobRecord {
        name: load.id.to_owned(),
        clone,
        plan: PlanRecord { engine, io, depth, time, ..PlanRecord::default() },
        measured,
        ..JobRecord::default()
    }
}

/// Changes the plan of every job.
pub(crate) fn plan(record: &mut RunRecord, change: impl Fn(&mut PlanRecord)) {
    for job in record.tests.iter_mut().flat_map(|test| &mut test.jobs) {
        change(&mut job.plan);
    }
}

/// The names of findings, in order.
pub(crate) fn ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id.name()).collect()
}
