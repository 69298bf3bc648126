//! The headline numbers of a test, under the names that our JSON, `compare` and `history` address them by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use fathom_model::Op;

use crate::merge::merge_jobs;
use crate::stability::{Stability, quiet_before_ns, stability};
use crate::{
    DiskCounters, DiskOutcome, ErrorCount, FleetTest, Interval, JobRecord, LatencySummary, OpOutcome,
    OpenLoop, PhaseOutcome, TestRecord,
};

/// One direction of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpSummary {
    /// Requests completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Requests per second; 0 where the source of an imported test does not say.
    pub iops: f64,
    /// Bytes per second; 0 where the source of an imported test does not say.
    pub bytes_per_second: f64,
    /// Start to issued.
    pub slat_ns: LatencySummary,
    /// Issued to completed.
    pub clat_ns: LatencySummary,
    /// Start to completed.
    pub lat_ns: LatencySummary,
    /// Due to completed, where requests were due by a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<LatencySummary>,
    /// How the schedule was kept, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleSummary>,
}

impl OpSummary {
    /// Total latency; completion latency where the total was not recorded.
    pub fn latency(&self) -> &LatencySummary {
        if self.lat_ns.samples > 0 { &self.lat_ns } else { &self.clat_ns }
    }
}

/// How a schedule of requests was kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleSummary {
    /// Requests per second that were due.
    pub offered_iops: f64,
    /// Requests that were due and had found no room when issuing ended.
    pub backlog: u64,
    /// Longest time from due to start, ns.
    pub latest_ns: u64,
    /// Due, or since when there was room for it, to start: what the driver itself was late.
    pub late_ns: LatencySummary,
    /// The target kept up; where it did not, the percentiles of the response time say too little.
    pub sustained: bool,
}

impl ScheduleSummary {
    /// Share of the requests that may be left over at the end of a rate that is sustained.
    const BACKLOG_SHARE: f64 = 0.01;
    /// Share of the rate that must be reached.
    pub const MIN_SHARE: f64 = 0.98;

    /// How the schedule of `op` was kept in `phase`; `None` where there was none.
    pub fn new(phase: &PhaseOutcome, op: &OpOutcome) -> Option<ScheduleSummary> {
        let OpenLoop { response, late, latest_ns, backlog } = &op.open_loop;
        if response.samples() == 0 && *backlog == 0 {
            return None;
        }
        let elapsed = phase.elapsed_ns().max(1) as f64;
        let due_in = match phase.schedule_end_ns {
            0 => elapsed,
            end => end.saturating_sub(phase.start_ns).max(1) as f64,
        };
        let offered = (op.issued + backlog) as f64;
        // One request more or less is chance at the edges.
        let reached = (op.ios + op.failed + 1) as f64 / elapsed >= Self::MIN_SHARE * offered / due_in;
        Some(ScheduleSummary {
            offered_iops: offered * 1e9 / due_in,
            backlog: *backlog,
            latest_ns: *latest_ns,
            late_ns: late.summary(),
            sustained: reached && *backlog as f64 <= (Self::BACKLOG_SHARE * offered).max(1.0),
        })
    }
}

/// The fsync and fdatasync calls of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncSummary {
    /// Calls completed.
    pub ios: u64,
    /// Calls per second.
    pub iops: f64,
    /// Latency of the call alone.
    pub lat_ns: LatencySummary,
}

/// What the kernel counted for the target's own device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceSummary {
    /// Kernel name; several are separated by commas.
    pub name: String,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads merged into others before they reached the device.
    pub read_merges: u64,
    /// Writes merged into others before they reached the device.
    pub write_merges: u64,
    /// Discards completed.
    pub discards: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Reads, writes and discards per second.
    pub iops: f64,
    /// Mean latency of its reads and writes by the kernel's own clock, from entering the device's queue to completion, ns;
    /// `None` where it had none.
    pub lat_mean_ns: Option<f64>,
    /// Share of the time with any request in flight, 0 to 1.
    pub utilization: f64,
    /// Length of the part that was counted, ns.
    pub elapsed_ns: u64,
}

/// CPU time that a test cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuSummary {
    /// User time of the workers, ns.
    pub user_ns: u64,
    /// System time of the workers, ns.
    pub system_ns: u64,
    /// Most threads of the kernel seen that carried out requests on the workers' behalf.
    pub kernel_workers: u32,
    /// CPU time of those, ns; none of it is in the workers' own.
    pub kernel_workers_ns: u64,
    /// CPU time of threads of the kernel that submitted in the workers' place, ns.
    pub kernel_submitters_ns: u64,
    /// All of it per completed request, ns; `None` where nothing completed.
    pub per_request_ns: Option<f64>,
}

/// The headline numbers of one test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestSummary {
    /// Reads, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<OpSummary>,
    /// Writes, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<OpSummary>,
    /// Trims, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<OpSummary>,
    /// All of them together; `None` where nothing completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<OpSummary>,
    /// fsync and fdatasync, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncSummary>,
    /// How even the rate was; `None` where too little ran to tell.
    pub stability: Option<Stability>,
    /// The kernel's view; `None` where there is no device.
    pub device: Option<DeviceSummary>,
    /// CPU time; `None` in virtual time, which costs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSummary>,
    /// From the start gate to the end of the last worker, ns; includes a ramp.
    pub elapsed_ns: u64,
    /// The measured part, ns: what the rates are counted over.
    pub measured_ns: u64,
    /// Failed requests by operation and errno.
    pub errors: Vec<ErrorCount>,
}

impl TestSummary {
    /// The headline numbers of `test`. Rates are counted over the measured time of the longest worker, of each phase where jobs
    /// waited for those before them; those of several hosts over the time that they have in common, and 0 without one. Several hosts
    /// have no total where a phase lacks such a time, and no schedule, whose rate is one over the time of a single host.
    pub fn new(test: &TestRecord) -> TestSummary {
        if let Some(observed) = test.observed_summary() {
            return observed;
        }
        let workers: Vec<&JobRecord> = test.jobs.iter().collect();
        let merged = merge_jobs(&workers);
        let fleet = test.fleet.as_ref();
        let measured_ns = fleet.map_or_else(|| measured_ns(&workers), FleetTest::window_ns);
        let counted_ns = if fleet.is_some() { measured_ns } else { measured_ns + quiet_before_ns(&workers) };
        let rate = |count: u64| if measured_ns == 0 { 0.0 } else { count as f64 * 1e9 / counted_ns as f64 };
        let rates = |op: &OpOutcome, of: &[usize]| match fleet {
            // Of a phase without common time the total lacks the I/Os.
            Some(fleet) if of.len() > 1 && !fleet.has_total() => (0.0, 0.0),
            Some(fleet) => of.iter().map(|&op| fleet.rates(op)).fold((0.0, 0.0), add),
            None => (rate(op.ios), rate(op.bytes)),
        };
        let summary = |op: &OpOutcome, (iops, bytes_per_second): (f64, f64)| OpSummary {
            ios: op.ios,
            bytes: op.bytes,
            iops,
            bytes_per_second,
            slat_ns: op.slat.summary(),
            clat_ns: op.clat.summary(),
            lat_ns: op.lat.summary(),
            response_ns: Some(op.open_loop.response.summary()).filter(|response| response.samples > 0),
            schedule: ScheduleSummary::new(&merged.measured, op).filter(|_| fleet.is_none()),
        };
        let direction = |op: Op| {
            let counted = merged.measured.op(op);
            (counted.ios > 0).then(|| summary(counted, rates(counted, &[op as usize])))
        };
        let mut total = OpOutcome::default();
        for op in Op::DATA {
            total.merge(merged.measured.op(op));
        }
        let measured = &merged.measured;
        TestSummary {
            read: direction(Op::Read),
            write: direction(Op::Write),
            trim: direction(Op::Trim),
            total: (total.ios > 0).then(|| summary(&total, rates(&total, &[0, 1, 2]))),
            sync: (measured.syncs > 0).then(|| SyncSummary {
                ios: measured.syncs,
                // Syncs have no course, so of several hosts their part in the common time is unknown.
                iops: if fleet.is_some() { 0.0 } else { rate(measured.syncs) },
                lat_ns: measured.sync_lat.summary(),
            }),
            stability: match fleet {
                Some(fleet) if fleet.has_total() => common_stability(&workers, fleet, test.looks()),
                Some(_) => None,
                None => stability(&workers, test.looks()),
            },
            // Hosts that share a device counted the same I/Os, those that do not have one each.
            device: if fleet.is_some() { None } else { device_summary(&test.disks) },
            cpu: cpu_summary(measured, total.ios),
            elapsed_ns: test.elapsed_ns,
            measured_ns,
            errors: merged.errors,
        }
    }
}

fn add(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    (one.0 + other.0, one.1 + other.1)
}

/// How even the rate of all hosts was over the time that they have in common; each phase has a window.
fn common_stability(workers: &[&JobRecord], fleet: &FleetTest, looks: u32) -> Option<Stability> {
    let within = |job: &&JobRecord| {
        let window = fleet.windows.iter().find(|window| window.phase == job.phase)?;
        let is_within =
            |interval: &&Interval| interval.start_ns >= window.start_ns && interval.end_ns <= window.end_ns;
        let series = job.measured.series.iter().filter(is_within).cloned().collect();
        let measured = PhaseOutcome { series, ..PhaseOutcome::default() };
        Some(JobRecord { phase: job.phase, measured, ..JobRecord::default() })
    };
    let common: Vec<JobRecord> = workers.iter().filter_map(within).collect();
    stability(&common.iter().collect::<Vec<_>>(), looks)
}

/// The time of the longest worker of each phase.
fn measured_ns(workers: &[&JobRecord]) -> u64 {
    let mut phases: BTreeMap<u32, u64> = BTreeMap::new();
    for job in workers {
        let longest = phases.entry(job.phase).or_default();
        *longest = job.measured.elapsed_ns().max(*longest);
    }
    phases.values().sum()
}

fn cpu_summary(measured: &PhaseOutcome, ios: u64) -> Option<CpuSummary> {
    let PhaseOutcome { cpu, kernel_threads, .. } = measured;
    let all = cpu.user_ns + cpu.system_ns + kernel_threads.workers_ns + kernel_threads.submitter_ns;
    (all > 0).then(|| CpuSummary {
        user_ns: cpu.user_ns,
        system_ns: cpu.system_ns,
        kernel_workers: kernel_threads.workers,
        kernel_workers_ns: kernel_threads.workers_ns,
        kernel_submitters_ns: kernel_threads.submitter_ns,
        per_request_ns: (ios > 0).then(|| all as f64 / ios as f64),
    })
}

/// The target's own devices (those that lie under no other) added up.
fn device_summary(disks: &[DiskOutcome]) -> Option<DeviceSummary> {
    let own: Vec<&DiskOutcome> = disks.iter().filter(|disk| disk.under.is_none()).collect();
    let elapsed_ns = own.iter().map(|disk| disk.elapsed_ns).max()?;
    let names: Vec<&str> = own.iter().map(|disk| disk.name.as_str()).collect();
    let sum = |field: fn(&DiskCounters) -> u64| own.iter().map(|disk| field(&disk.counters)).sum::<u64>();
    let moved = sum(|c| c.read_ios) + sum(|c| c.write_ios) + sum(|c| c.discard_ios);
    let transfers = sum(|c| c.read_ios) + sum(|c| c.write_ios);
    let in_io_ns = (sum(|c| c.read_ticks_ms) + sum(|c| c.write_ticks_ms)) as f64 * 1e6;
    let busy_ns = own.iter().map(|disk| disk.counters.busy_ms).max().unwrap_or(0) as f64 * 1e6;
    let over = |value: f64| if elapsed_ns == 0 { 0.0 } else { value / elapsed_ns as f64 };
    Some(DeviceSummary {
        name: names.join(","),
        reads: sum(|c| c.read_ios),
        writes: sum(|c| c.write_ios),
        read_bytes: sum(|c| c.read_sectors).saturating_mul(SECTOR_BYTES),
        write_bytes: sum(|c| c.write_sectors).saturating_mul(SECTOR_BYTES),
        read_merges: sum(|c| c.read_merges),
        write_merges: sum(|c| c.write_merges),
        discards: sum(|c| c.discard_ios),
        flushes: sum(|c| c.flush_ios),
        iops: over(moved as f64 * 1e9),
        lat_mean_ns: (transfers > 0 && in_io_ns > 0.0).then(|| in_io_ns / transfers as f64),
        utilization: over(busy_ns).min(1.0),
        elapsed_ns,
    })
}

/// The unit of the kernel's sector counters, whatever the device's own.
const SECTOR_BYTES: u64 = 512;

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;
    use fathom_stats::{Interval, IntervalOp};

    use super::*;

    #[test]
    fn rates_are_counted_from_the_last_completion_of_the_ramp() {
        const MS: u64 = 1_000_000;
        // A group of 60 every 100 ms; the ramp ends 40 ms after one of them.
        let mut job = JobRecord::default();
        let read = OpOutcome { ios: 600, bytes: 600 * 4096, ..OpOutcome::default() };
        job.measured =
            PhaseOutcome { start_ns: 540 * MS, end_ns: 1500 * MS, read, ..PhaseOutcome::default() };
        let rate = |job: &JobRecord| {
            let test = TestRecord { jobs: vec![job.clone()], ..TestRecord::default() };
            TestSummary::new(&test).total.map(|total| total.iops)
        };
        assert_eq!(rate(&job), Some(625.0));
        let last = Interval {
            start_ns: 0,
            end_ns: 540 * MS,
            quiet_ns: 40 * MS,
            read: IntervalOp { ios: 300, ..IntervalOp::default() },
            ..Interval::default()
        };
        job.ramp = Some(PhaseOutcome { series: vec![last], ..PhaseOutcome::default() });
        assert_eq!(rate(&job), Some(600.0));
        // A job that pauses by itself completes nothing meanwhile.
        job.plan.time.think_time.pause = Nanos(1);
        assert_eq!(rate(&job), Some(625.0));
    }
}
