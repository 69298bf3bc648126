//! The jobs of a test with the workers of all hosts added up.

use super::alignment::{SharedSeries, TimeLine};
use crate::{JobRecord, PhaseOutcome, Stall, merge_jobs};

/// Stalls that a merged job keeps: the longest. The hosts have theirs besides.
const MAX_STALLS: usize = 64;
/// Bad blocks that a merged job keeps.
const MAX_BAD_BLOCKS: usize = 64;

/// One job of all hosts.
#[derive(Clone, Debug)]
pub(super) struct MergedJob {
    record: JobRecord,
    ramp: SharedSeries,
    measured: SharedSeries,
}

impl MergedJob {
    /// The job with its first worker, whose times are shifted by so much.
    pub(super) fn new(mut job: JobRecord, shift_ns: u64) -> MergedJob {
        let mut merged = MergedJob {
            record: JobRecord::default(),
            ramp: SharedSeries::default(),
            measured: SharedSeries::default(),
        };
        merged.take_series(&mut job, Some(shift_ns));
        shift(&mut job, shift_ns);
        job.workers = Some(Box::new(job.sums()));
        (job.host, job.clone) = (0, 0);
        merged.record = job;
        merged
    }

    /// True where `job` is the same job.
    pub(super) fn is_of(&self, job: &JobRecord) -> bool {
        (self.record.job, self.record.phase, &self.record.name) == (job.job, job.phase, &job.name)
    }

    /// Adds another worker; one without a shift, whose clock lies too far away, adds to the counters and not to the times.
    pub(super) fn add(&mut self, mut job: JobRecord, shift_ns: Option<u64>) {
        self.take_series(&mut job, shift_ns);
        match shift_ns {
            Some(shift_ns) => shift(&mut job, shift_ns),
            None => self.lend_times(&mut job),
        }
        let (clone, thread_id) = (self.record.clone, self.record.thread_id);
        self.record = merge_jobs(&[&self.record, &job]);
        (self.record.clone, self.record.thread_id) = (clone, thread_id);
        self.record.stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length_ns));
        self.record.stalls.truncate(MAX_STALLS);
        if let Some(verified) = &mut self.record.verified {
            verified.first_bad.truncate(MAX_BAD_BLOCKS);
        }
    }

    /// Length of the intervals, ns; 0 without any.
    pub(super) fn step_ns(&self) -> u64 {
        self.measured.step_ns()
    }

    /// The whole job on the time line of the test.
    pub(super) fn finish(self, line: &TimeLine) -> JobRecord {
        let MergedJob { mut record, ramp, measured } = self;
        for phase in record.ramp.iter_mut().chain([&mut record.measured]) {
            phase.start_ns = line.rebased(phase.start_ns);
            phase.end_ns = line.rebased(phase.end_ns);
            if phase.schedule_end_ns > 0 {
                phase.schedule_end_ns = line.rebased(phase.schedule_end_ns);
            }
        }
        record.slowest.iter_mut().for_each(|slow| slow.start_ns = line.rebased(slow.start_ns));
        record.silences = Default::default();
        record.stalls.iter_mut().for_each(|stall| stall.start_ns = line.rebased(stall.start_ns));
        record.stalls.sort_by_key(|stall| stall.start_ns);
        record.measured.series = measured.finish(line);
        if let Some(phase) = &mut record.ramp {
            phase.series = ramp.finish(line);
        }
        record
    }

    /// Moves the intervals of a worker to those of all.
    fn take_series(&mut self, job: &mut JobRecord, shift_ns: Option<u64>) {
        let measured = std::mem::take(&mut job.measured.series);
        let ramp = job.ramp.as_mut().map(|ramp| std::mem::take(&mut ramp.series)).unwrap_or_default();
        if let Some(shift_ns) = shift_ns {
            self.measured.add(measured, shift_ns);
            self.ramp.add(ramp, shift_ns);
        }
    }

    /// Gives a worker the times of those before, so that its own do not count.
    fn lend_times(&self, job: &mut JobRecord) {
        let lend = |own: &mut PhaseOutcome, known: &PhaseOutcome| {
            (own.start_ns, own.end_ns, own.schedule_end_ns) =
                (known.start_ns, known.end_ns, known.schedule_end_ns);
        };
        // What several workers have in sum is counted before its times are gone.
        job.workers = Some(Box::new(job.sums()));
        lend(&mut job.measured, &self.record.measured);
        if let Some(ramp) = &mut job.ramp {
            lend(ramp, self.record.ramp.as_ref().unwrap_or(&self.record.measured));
        }
        job.slowest.clear();
        job.silences = Default::default();
        job.stalls.clear();
    }
}

/// Shifts every time of a worker.
fn shift(job: &mut JobRecord, by_ns: u64) {
    let shifted = |at: &mut u64| *at = at.saturating_add(by_ns);
    for phase in job.ramp.iter_mut().chain([&mut job.measured]) {
        shifted(&mut phase.start_ns);
        shifted(&mut phase.end_ns);
        if phase.schedule_end_ns > 0 {
            shifted(&mut phase.schedule_end_ns);
        }
    }
    job.slowest.iter_mut().for_each(|slow| shifted(&mut slow.start_ns));
    job.stalls.iter_mut().for_each(|stall: &mut Stall| shifted(&mut stall.start_ns));
}
