//! Whether counters can be added without overflow, however large a record says they are.

use crate::{JobRecord, OpOutcome, PhaseOutcome};

/// The largest sum of any one counter: a fourth of what 64 bits hold, because reports add a few sums again.
const MOST: u128 = 1 << 62;
/// The largest sum of a 128-bit moment.
const MAX_WIDE: u128 = 1 << 124;

/// An upper bound of every counter of the jobs that were added so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capacity {
    counters: u128,
    moments: u128,
}

impl Capacity {
    /// Takes the jobs of one more record into account; false where their counters could overflow together with those before.
    pub(crate) fn takes<'a>(&mut self, jobs: impl IntoIterator<Item = &'a JobRecord>) -> bool {
        for job in jobs {
            for phase in job.ramp.iter().chain([&job.measured]) {
                let (counters, moments) = bounds(phase);
                self.counters = self.counters.saturating_add(counters);
                self.moments = self.moments.saturating_add(moments);
            }
            let errors: u128 = job.errors.iter().map(|error| u128::from(error.count)).sum();
            let workers = job.workers.as_ref().map_or(0, |sums| sums.job_runtime_ns);
            self.counters = self.counters.saturating_add(errors + u128::from(workers));
        }
        self.counters <= MOST && self.moments <= MAX_WIDE
    }
}

/// No counter of a phase exceeds the first number, and no moment the second.
fn bounds(phase: &PhaseOutcome) -> (u128, u128) {
    let wide = |numbers: &[u64]| numbers.iter().copied().map(u128::from).sum::<u128>();
    let cpu = &phase.cpu;
    let mut counters = wide(&[
        phase.end_ns,
        phase.syncs,
        phase.syncs_failed,
        cpu.user_ns,
        cpu.system_ns,
        cpu.voluntary_switches,
        cpu.involuntary_switches,
        cpu.major_faults,
        cpu.minor_faults,
        cpu.run_queue_wait_ns,
        phase.kernel_threads.workers_ns,
        phase.kernel_threads.submitter_ns,
    ]);
    counters += wide(&phase.depth.0) + wide(&phase.submit.0) + wide(&phase.complete.0);
    let mut moments = phase.sync_lat.moments.sum_squares.max(phase.sync_lat.moments.sum);
    counters += samples(&phase.sync_lat);
    for op in phase.ops() {
        let OpOutcome { issued, ios, bytes, short, failed, slat, clat, lat, open_loop, priorities, .. } = op;
        counters += wide(&[*issued, *ios, *bytes, *short, *failed, open_loop.backlog]);
        let by_priority = priorities.iter().map(|one| &one.latency);
        for latency in [slat, clat, lat, &open_loop.response, &open_loop.late].into_iter().chain(by_priority)
        {
            counters += samples(latency);
            moments = moments.saturating_add(latency.moments.sum_squares.max(latency.moments.sum));
        }
        for windows in [&op.bandwidth_windows, &op.iops_windows] {
            counters += wide(&[windows.count, windows.min, windows.max]);
            moments = moments.saturating_add(windows.sum_squares.max(windows.sum));
        }
    }
    for interval in &phase.series {
        for op in interval.ops() {
            counters += wide(&[op.ios, op.bytes, op.clat_sum_ns]);
            counters += op.clat_bins.iter().map(|&(_, count)| u128::from(count)).sum::<u128>();
        }
    }
    (counters, moments)
}

fn samples(latency: &crate::Latency) -> u128 {
    let binned: u128 = latency.histogram.sparse().map(|(_, count)| u128::from(count)).sum();
    binned + u128::from(latency.moments.count)
}
