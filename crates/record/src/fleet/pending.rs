//! What a host did in a test, until the time that all hosts have in common is known.

use std::collections::BTreeMap;

use super::alignment::TimeLine;
use super::course::{HostCourse, PhaseSpan, spans};
use super::{CommonWindow, HostOutcome};
use crate::{
    HostCounters, JobRecord, Latency, Observed, Stall, TestRecord, TestStatus, TestSummary, ThinPercentiles,
};

/// Stalls that are kept of each host: the longest.
const MAX_STALLS: usize = 8;

/// A host of which the common time is not known yet.
#[derive(Debug)]
pub(super) struct PendingHost {
    outcome: HostOutcome,
    started_unix_ms: u64,
    course: HostCourse,
    spans: Vec<PhaseSpan>,
}

impl PendingHost {
    /// What a host did in a test; its course is kept in so many slices or fewer.
    pub(super) fn new(test: &TestRecord, host: u32, slices: usize) -> PendingHost {
        let summary = TestSummary::new(test);
        let total = summary.total.unwrap_or_default();
        let measured = |job: &&JobRecord| job.measured.end_ns > job.measured.start_ns;
        let times = || test.jobs.iter().filter(measured).map(|job| &job.measured);
        let mut outcome = HostOutcome {
            host,
            status: test.status,
            reason: test.reason.clone(),
            start_ns: times().map(|phase| phase.start_ns).min().unwrap_or(0),
            end_ns: times().map(|phase| phase.end_ns).max().unwrap_or(0),
            failed: summary.errors.iter().map(|error| error.count).sum(),
            iops: total.iops,
            bytes_per_second: total.bytes_per_second,
            lat_ns: total.latency().clone(),
            stalls: stalls(&test.jobs),
            ..HostOutcome::default()
        };
        let mut completion = Latency::default();
        for op in test.jobs.iter().flat_map(|job| job.measured.ops().into_iter().enumerate()) {
            outcome.ios[op.0] += op.1.ios;
            outcome.bytes[op.0] += op.1.bytes;
            completion.merge(&op.1.clat);
        }
        if outcome.lat_ns.samples == 0 && completion.samples() > 0 {
            outcome.lat_ns = completion.summary();
        }
        // No record keeps percentiles of too few samples.
        outcome.lat_ns.thin = ThinPercentiles::default();
        if let Some(Observed::Ping(ping)) = &test.observed {
            outcome.end_ns = ping.elapsed_ns;
        }
        if test.jobs.is_empty() {
            let known = [&summary.read, &summary.write, &summary.trim];
            for (op, counted) in known.iter().enumerate() {
                (outcome.ios[op], outcome.bytes[op]) =
                    counted.as_ref().map_or((0, 0), |op| (op.ios, op.bytes));
            }
            if known.iter().all(|op| op.is_none()) {
                (outcome.ios[0], outcome.bytes[0]) = (total.ios, total.bytes);
            }
        }
        let load = || test.host_load.iter().map(|interval| &interval.counters);
        let cpu_ns: u64 = load().map(|counters| counters.cpu_ns).fold(0, u64::saturating_add);
        let share = |of: fn(&HostCounters) -> u64| {
            let sum = load().map(of).fold(0, u64::saturating_add);
            (cpu_ns > 0).then(|| (sum as f64 / cpu_ns as f64).min(1.0))
        };
        outcome.cpu_busy_fraction = share(|counters| counters.busy_ns);
        outcome.cpu_steal_fraction = share(|counters| counters.steal_ns).filter(|share| *share > 0.0);
        PendingHost {
            outcome,
            started_unix_ms: test.started_unix_ms,
            course: HostCourse::of(&test.jobs, slices),
            spans: spans(&test.jobs),
        }
    }

    /// End of its measured part on the time line; `None` where it measured nothing.
    pub(super) fn end_ns(&self, line: &TimeLine) -> Option<u64> {
        let end = self.spans.iter().map(|span| span.end_ns).max()?;
        Some(line.placed(self.started_unix_ms, end))
    }

    /// What the host did, on the time line of all, with its course in `count` cells; `places` are those of the hosts.
    pub(super) fn finish(self, line: &TimeLine, cell_ns: u64, count: usize, places: &[u32]) -> HostOutcome {
        let PendingHost { mut outcome, started_unix_ms, course, .. } = self;
        let place = |own: u64| line.placed(started_unix_ms, own);
        outcome.host = places[outcome.host as usize];
        (outcome.start_ns, outcome.end_ns) = (place(outcome.start_ns), place(outcome.end_ns));
        outcome.stalls.iter_mut().for_each(|stall| stall.start_ns = place(stall.start_ns));
        if count > 0 && !course.is_empty() {
            outcome.course = course.cells(place(0), cell_ns, count);
        }
        outcome
    }
}

/// The windows that all complete hosts have in common, of all hosts where none is complete; and the phases with I/Os that have
/// none.
pub(super) fn windows(hosts: &[PendingHost], line: &TimeLine) -> (Vec<CommonWindow>, Vec<u32>) {
    let is_complete = |host: &&PendingHost| host.outcome.status == TestStatus::Complete;
    let mut counted: Vec<&PendingHost> = hosts.iter().filter(is_complete).collect();
    if counted.is_empty() {
        counted = hosts.iter().collect();
    }
    let mut common: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for host in counted.iter().filter(|host| !host.course.is_empty()) {
        for span in &host.spans {
            let [start, end] = [span.start_ns, span.end_ns].map(|own| line.placed(host.started_unix_ms, own));
            let window = common.entry(span.phase).or_insert((start, end));
            *window = (window.0.max(start), window.1.min(end));
        }
    }
    let with_counts = |(phase, (start_ns, end_ns)): (u32, (u64, u64))| {
        let mut window = CommonWindow { phase, start_ns, end_ns, ..CommonWindow::default() };
        for host in hosts {
            // The host's own time at which the window begins.
            let zero = line.placed(host.started_unix_ms, 0);
            let own = |at: u64| at.saturating_sub(zero);
            let (ios, bytes) = host.course.within(phase, own(start_ns), own(end_ns));
            for op in 0..3 {
                window.ios[op] += ios[op];
                window.bytes[op] += bytes[op];
            }
        }
        window
    };
    let has_ios = |phase: u32| {
        let ios = |host: &PendingHost| host.course.within(phase, 0, u64::MAX).0;
        hosts.iter().flat_map(ios).any(|ios| ios > 0.0)
    };
    let (in_common, apart): (BTreeMap<_, _>, BTreeMap<_, _>) =
        common.into_iter().partition(|(_, (start, end))| start < end);
    let apart = apart.into_keys().filter(|phase| has_ios(*phase)).collect();
    (in_common.into_iter().map(with_counts).collect(), apart)
}

/// The longest stalls of all workers, in order of time.
fn stalls(jobs: &[JobRecord]) -> Vec<Stall> {
    let bare = |stall: &Stall| Stall { offsets: Vec::new(), ..stall.clone() };
    let mut stalls: Vec<Stall> = jobs.iter().flat_map(|job| job.stalls.iter().map(bare)).collect();
    stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length_ns));
    stalls.truncate(MAX_STALLS);
    stalls.sort_by_key(|stall| stall.start_ns);
    stalls
}
