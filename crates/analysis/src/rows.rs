//! A record as the rules look at it: one row per set of jobs that ran together, with the figures every rule needs.
//!
//! Nothing here judges.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

use fathom_model::plan::{IoPlan, OpenSync, TimePlan};
use fathom_model::{Nanos, PerOp};
use fathom_record::stability::{Second, seconds};
use fathom_record::{JobRecord, OpOutcome, RunRecord, TestRecord, TestSummary};

use crate::findings::Words;
use crate::plateau::SettledRate;
use crate::steady::rate_duration::{RateDuration, rate_duration};
use crate::steady::run_fall::{self, RowCourse};

/// Fewest full seconds that show whether a rate varies.
pub(crate) const MIN_SECONDS: usize = 3;

/// A rate between these shares of one that exhausted credits leave may be that one: two limits together leave less.
const MIN_LEFT: f64 = 0.8;
const MAX_LEFT: f64 = 1.05;
/// A burst is faster than what remains by this share.
const APART: f64 = 0.10;

/// What a row did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowKind {
    Read,
    Write,
    Mixed,
}

impl RowKind {
    /// The plural for sentences.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            RowKind::Read => "reads",
            RowKind::Write => "writes",
            RowKind::Mixed => "reads and writes",
        }
    }
}

/// A test, or one phase of a test that has several, with its figures.
#[derive(Clone)]
pub struct RecordRow<'a> {
    pub test: Cow<'a, TestRecord>,
    pub summary: Rc<TestSummary>,
    pub(crate) seconds: Rc<[Second]>,
    duration: Rc<OnceCell<RateDuration>>,
    /// Where it stands in the course of its run.
    pub(crate) course: RowCourse,
    /// Counters of the devices belong to this row alone.
    pub(crate) has_device: bool,
    /// The options that remedies name.
    pub(crate) words: Words,
}

/// The tests of a record, in the order they ran.
pub(crate) fn tests(record: &RunRecord) -> Vec<RecordRow<'_>> {
    let words = Words::of(record);
    marked(record.tests.iter().map(|test| RecordRow::new(Cow::Borrowed(test), words)).collect())
}

/// What ran together, in order: the tests of a record, or their phases where a test has several.
pub(crate) fn rows(record: &RunRecord) -> Vec<RecordRow<'_>> {
    let words = Words::of(record);
    let of_test = |test| phases(test).into_iter().map(move |test| RecordRow::new(test, words));
    marked(record.tests.iter().flat_map(of_test).collect())
}

fn marked(mut rows: Vec<RecordRow<'_>>) -> Vec<RecordRow<'_>> {
    run_fall::mark(&mut rows);
    rows
}

fn phases(test: &TestRecord) -> Vec<Cow<'_, TestRecord>> {
    let phases: Vec<&[JobRecord]> = test.jobs.chunk_by(|one, next| one.phase == next.phase).collect();
    if phases.len() <= 1 {
        return vec![Cow::Borrowed(test)];
    }
    let alone = |jobs: &[JobRecord]| TestRecord {
        id: test.id.clone(),
        title: test.title.clone(),
        status: test.status,
        fleet: test.fleet.as_ref().zip(jobs.first()).map(|(fleet, job)| fleet.of_phase(job.phase)),
        jobs: jobs.to_vec(),
        ..TestRecord::default()
    };
    phases.into_iter().map(|jobs| Cow::Owned(alone(jobs))).collect()
}

impl<'a> RecordRow<'a> {
    /// The row of a test that has one, of one of fathom's own commands.
    pub fn of(test: &'a TestRecord) -> RecordRow<'a> {
        RecordRow::new(Cow::Borrowed(test), Words::Own)
    }

    /// The same without what was measured.
    pub fn without_figures(&self) -> RecordRow<'a> {
        RecordRow { summary: Rc::default(), ..self.clone() }
    }

    /// Its rate is that of a burst after which the run fell.
    pub(crate) fn is_burst(&self) -> bool {
        matches!(self.course, RowCourse::Burst(..))
    }

    /// How long its rate lasts.
    pub fn duration(&self) -> &RateDuration {
        self.duration.get_or_init(|| rate_duration(self))
    }

    fn new(test: Cow<'a, TestRecord>, words: Words) -> RecordRow<'a> {
        let jobs: Vec<&JobRecord> = test.jobs.iter().collect();
        let has_device = matches!(test, Cow::Borrowed(_)) && !test.disks.is_empty();
        RecordRow {
            summary: Rc::new(TestSummary::new(&test)),
            seconds: seconds(&jobs).into(),
            duration: Rc::default(),
            course: RowCourse::default(),
            has_device,
            words,
            test,
        }
    }

    /// Of one of fathom's own commands, whose reports name the tests of a finding.
    pub(crate) fn is_own(&self) -> bool {
        self.words != Words::Fio
    }

    /// True where what was seen of the machine belongs to this row.
    pub(crate) fn has_host_load(&self) -> bool {
        !self.test.host_load.is_empty()
    }

    pub(crate) fn jobs(&self) -> &[JobRecord] {
        &self.test.jobs
    }

    /// What the row is called in a sentence that names several.
    pub(crate) fn name(&self) -> &str {
        match (self.is_own(), self.jobs().first()) {
            (false, Some(job)) => &job.name,
            _ if self.test.title.is_empty() => &self.test.id,
            _ => &self.test.title,
        }
    }

    pub(crate) fn kind(&self) -> Option<RowKind> {
        match (&self.summary.read, &self.summary.write) {
            (Some(_), Some(_)) => Some(RowKind::Mixed),
            (Some(_), None) => Some(RowKind::Read),
            (None, Some(_)) => Some(RowKind::Write),
            (None, None) => None,
        }
    }

    /// True where all jobs have the same settings, so that one depth and one block size describe the row.
    pub(crate) fn is_uniform(&self) -> bool {
        fn reported(job: &JobRecord) -> (&str, [PerOp<u64>; 2], u32, &str) {
            (job.rw(), [job.largest_blocks(), job.smallest_blocks()], job.iodepth(), job.engine())
        }
        self.jobs().windows(2).all(|pair| reported(&pair[0]) == reported(&pair[1]))
    }

    /// Bytes of every request; `None` where they differ.
    pub(crate) fn block_bytes(&self) -> Option<u64> {
        let job = self.jobs().first()?;
        let (least, most) = (job.smallest_blocks(), job.largest_blocks());
        let (least, most) = match self.kind()? {
            RowKind::Read => (least.read, most.read),
            RowKind::Write => (least.write, most.write),
            RowKind::Mixed => (least.read.min(least.write), most.read.max(most.write)),
        };
        (self.is_uniform() && least == most && most > 0).then_some(most)
    }

    /// Requests that were in flight on average, from rate and latency (Little); 0 where latencies were not recorded.
    pub(crate) fn mean_queue_depth(&self) -> f64 {
        self.iops() * self.lat_ns() / 1e9
    }

    pub(crate) fn iops(&self) -> f64 {
        self.summary.total.as_ref().map_or(0.0, |total| total.iops)
    }

    pub(crate) fn bytes_per_second(&self) -> f64 {
        self.summary.total.as_ref().map_or(0.0, |total| total.bytes_per_second)
    }

    /// The seconds that tell how even the rate is. A limiter lets through at the start what it had not used before, so the
    /// first second is left out where there was no ramp and three more remain.
    pub(crate) fn settled(&self) -> &[Second] {
        let begins_cold = self.jobs().iter().any(|job| job.ramp.is_none());
        if begins_cold && self.seconds.len() > MIN_SECONDS { &self.seconds[1..] } else { &self.seconds }
    }

    /// Requests per second once settled; over the whole run where that is too short to tell.
    pub(crate) fn settled_iops(&self) -> f64 {
        self.settled_rate().map_or_else(|| self.iops(), |settled| settled.iops())
    }

    /// Bytes per second once settled; over the whole run where that is too short to tell.
    pub(crate) fn settled_bytes_per_second(&self) -> f64 {
        self.settled_rate().map_or_else(|| self.bytes_per_second(), |settled| settled.bytes_per_second())
    }

    fn settled_rate(&self) -> Option<SettledRate> {
        SettledRate::of(&self.jobs().iter().collect::<Vec<_>>())
    }

    /// Share of the rate that chance may make: one more or one less round of requests, and no more than of arrivals at random.
    pub(crate) fn resolution(&self) -> f64 {
        let ios = self.summary.total.as_ref().map_or(0, |total| total.ios).max(1) as f64;
        (self.mean_queue_depth() / ios).min(1.0 / ios.sqrt())
    }

    /// Mean latency, ns; 0 where none was recorded.
    pub(crate) fn lat_ns(&self) -> f64 {
        let total = self.summary.total.as_ref();
        total.and_then(|total| total.lat_ns.mean.or(total.clat_ns.mean)).unwrap_or(0.0)
    }

    /// The least latency, ns, also in the ramp, when the queue is still empty; `None` where none was recorded.
    pub(crate) fn least_lat_ns(&self) -> Option<u64> {
        let phases = self.jobs().iter().flat_map(|job| job.ramp.iter().chain([&job.measured]));
        let latencies = phases.flat_map(|phase| phase.ops()).map(|op| &op.lat.moments);
        latencies.filter(|moments| moments.count > 0).map(|moments| moments.min).min()
    }

    /// Credits were exhausted while it was measured: a second has a rate that its volume's own rule leaves then. The burst rate by
    /// that rule, IOPS.
    pub(crate) fn exhausted(&self) -> Option<f64> {
        let own = self.test.published.as_ref()?.own.as_ref()?;
        let burst = own.burst?.iops;
        let is_less = |left: &&f64| **left < burst * (1.0 - APART);
        let left = || own.exhausted_iops.iter().chain(&own.sustained_iops).filter(is_less);
        // A second holds whole I/Os.
        let is_left = |second: &Second| {
            let (iops, one) = (second.iops(), 1e9 / second.elapsed_ns.max(1) as f64);
            left().any(|left| (MIN_LEFT * left - one..=MAX_LEFT * left + one).contains(&iops))
        };
        self.seconds.iter().any(is_left).then_some(burst)
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.jobs().iter().all(|job| job.plan.io.direct)
    }

    /// True where writes were made durable one by one or in groups.
    pub(crate) fn is_synced(&self) -> bool {
        let syncs =
            |io: &IoPlan| io.fsync_every > 0 || io.fdatasync_every > 0 || io.open_sync != OpenSync::None;
        self.jobs().iter().any(|job| syncs(&job.plan.io))
    }

    /// True where the jobs held themselves back: a rate, or pauses.
    pub(crate) fn is_paced(&self) -> bool {
        let paced = |time: &TimePlan| time.rate.is_limited() || time.think_time.pause > Nanos::ZERO;
        self.jobs().iter().any(|job| paced(&job.plan.time))
    }

    pub(crate) fn is_random(&self) -> bool {
        self.jobs().iter().all(|job| job.rw().starts_with("rand"))
    }

    /// The planned `size` in bytes, the largest of all jobs; 0 where none was given in bytes.
    pub(crate) fn planned_size(&self) -> u64 {
        self.jobs().iter().filter_map(|job| job.plan.io.size?.bytes()).max().unwrap_or(0)
    }

    /// Sum over the measured part of all jobs.
    pub(crate) fn sum(&self, field: fn(&OpOutcome) -> u64, of: fn(&JobRecord) -> &OpOutcome) -> u64 {
        self.jobs().iter().map(|job| field(of(job))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};

    #[test]
    fn a_row_is_what_ran_together() {
        let mut run = record(&[TestLoad { depth: 16, iops: 1000.0, ..TestLoad::default() }]);
        let mut second = run.tests[0].jobs[0].clone();
        second.phase = 1;
        run.tests[0].jobs.push(second);
        let rows = rows(&run);
        assert_eq!(rows.len(), 2);
        assert!(!rows[0].has_device);
        for row in &rows {
            assert_eq!((row.kind(), row.block_bytes()), (Some(RowKind::Read), Some(4096)));
            assert!((row.iops() - 1000.0).abs() < 1e-6 && (row.mean_queue_depth() - 16.0).abs() < 0.01);
            assert!(row.is_direct() && row.is_random() && !row.is_synced() && !row.is_paced());
        }
    }

    #[test]
    fn what_jobs_differ_in_is_not_said_of_all() {
        let mut run = record(&[TestLoad { jobs: 2, ..TestLoad::default() }]);
        assert!(rows(&run)[0].is_uniform());
        run.tests[0].jobs[1].plan.io.block_size.read = 8192.into();
        run.tests[0].jobs[1].plan.time.think_time.pause = Nanos(5);
        let rows = rows(&run);
        assert_eq!((rows[0].is_uniform(), rows[0].block_bytes(), rows[0].is_paced()), (false, None, true));
    }
}
