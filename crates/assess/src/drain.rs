//! Bounds the time that the requests of a test need to complete after its end: on a device that takes seconds for each, a deep
//! queue would make a test last many times as long as announced.
//!
//! No request can be taken back once it is issued, so the depth is known to be too great before the test. What earlier tests of
//! the run reached, or a few requests of the test itself, tell what the device does in that time.

use fathom_model::plan::{JobPlan, Mix};
use fathom_model::units::{self, bytes};
use fathom_model::{Nanos, RunPlan};
use fathom_record::{JobRecord, OpSummary, TestRecord, TestSummary};
use fathom_runner::Session;

use crate::measure::{NamedJob, measure_together};
use crate::planned::{PlannedTest, pair, size_word, time_word};
use crate::site::JobWords;

/// Time for the requests in flight at the end of a test that is shorter.
pub(crate) const MIN_DRAIN_NS: u64 = 2_000_000_000;
/// Rounds of requests that a test completes at least, so that its rate is known to some 10 %.
const MIN_ROUNDS: u64 = 8;
/// No block becomes smaller than this, bytes: every device takes it.
const MIN_BLOCK: u64 = 4096;
/// Times that a deeper queue is tried before the depth is settled.
const TRIES: u32 = 4;

/// The requests that a job keeps in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// Per worker.
    pub(crate) depth: u64,
    pub(crate) workers: u64,
    pub(crate) block_bytes: u64,
}

impl InFlight {
    fn of(job: &JobPlan) -> Option<InFlight> {
        let sizes = job.io.block_size.as_ref().map(|size| size.largest());
        let block_bytes = match job.io.pattern.mix {
            Mix::Read => sizes.read,
            Mix::Write => sizes.write,
            Mix::ReadWrite { .. } | Mix::ReadWriteTrim => sizes.read.max(sizes.write),
            Mix::Trim | Mix::TrimWrite => return None,
        };
        let (depth, workers) = (u64::from(job.depth.iodepth), job.clones.len() as u64);
        Some(InFlight { depth, workers, block_bytes })
    }

    fn requests(&self) -> u64 {
        self.depth * self.workers
    }

    /// How long the device of an earlier test needs for these requests at most, s, by the requests and by the bytes that it
    /// completed.
    fn drain_seconds(&self, test: &TestRecord) -> Option<f64> {
        let total: OpSummary = TestSummary::new(test).total?;
        let by_requests = self.requests() as f64 / total.iops;
        let by_bytes = (self.requests() * self.block_bytes) as f64 / total.bytes_per_second;
        Some(by_requests.max(by_bytes)).filter(|seconds| seconds.is_finite())
    }
}

/// A job of a test, the tests that ran alone on its target before, and its options with another target's left out.
pub(crate) struct BoundedJob<'a> {
    pub(crate) in_flight: InFlight,
    pub(crate) earlier: Vec<&'a TestRecord>,
    pub(crate) words: JobWords,
}

impl BoundedJob<'_> {
    /// How long its requests take at most, as far as earlier tests tell, s.
    fn known_seconds(&self) -> Option<f64> {
        self.earlier.iter().filter_map(|test| self.in_flight.drain_seconds(test)).reduce(f64::min)
    }

    /// The words of a job with `depth` requests in flight that ends when as many have completed.
    fn probe_words(&self, depth: u64, limit: Nanos) -> JobWords {
        let changed = ["iodepth", "numjobs", "runtime", "time_based", "ramp_time", "startdelay", "io_size"];
        let mut words = self.words.clone();
        words.retain(|(name, _)| !changed.contains(&name.as_str()));
        words.extend([
            pair("iodepth", depth.to_string()),
            pair("io_size", size_word(depth * self.in_flight.block_bytes)),
            pair("runtime", time_word(limit)),
        ]);
        words
    }
}

/// The depth that a target completes in time, which is less than was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DepthBound {
    pub(crate) depth: u64,
    /// Requests per second of the slowest target, and what is asked for there.
    iops: f64,
    in_flight: InFlight,
}

impl DepthBound {
    /// `at 97.6 KiB/s the 32.0 MiB in flight would take 5 min 35 s to complete`
    pub(crate) fn reason(&self) -> String {
        let InFlight { block_bytes, .. } = self.in_flight;
        let seconds = self.in_flight.requests() as f64 / self.iops;
        format!(
            "at {}/s the {} in flight would take {} to complete",
            bytes((self.iops * block_bytes as f64) as u64),
            bytes(self.in_flight.requests() * block_bytes),
            units::duration(Nanos((seconds * 1e9) as u64)),
        )
    }
}

/// Where the requests of `jobs`, which run at once with the same depth, would need longer than `limit` to complete: the depth that
/// does not. Sends a few requests where earlier tests do not tell.
pub(crate) fn depth_bound(jobs: &[BoundedJob<'_>], limit: Nanos, session: &Session) -> Option<DepthBound> {
    if !session.bounds_time() || jobs.iter().all(|job| job.in_flight.depth <= 1) {
        return None;
    }
    // Targets may lie on one device.
    let known: Option<f64> = jobs.iter().map(BoundedJob::known_seconds).sum();
    if known.is_some_and(|seconds| seconds <= limit.as_secs_f64()) {
        return None;
    }
    let in_flight: Vec<InFlight> = jobs.iter().map(|job| job.in_flight).collect();
    bound_by(&in_flight, limit, |depth| {
        let name = "drain";
        let words: Vec<NamedJob<'_>> = jobs.iter().map(|job| (name, job.probe_words(depth, limit))).collect();
        let probed = measure_together(name.to_owned(), name.to_owned(), &words, session, &mut ());
        probed.jobs.iter().map(job_iops).collect()
    })
}

/// Requests per second of a job until its last one completed; `None` where none did.
fn job_iops(job: &JobRecord) -> Option<f64> {
    let ios = job.measured.read.ios + job.measured.write.ios;
    Some(ios as f64 * 1e9 / job.measured.elapsed_ns() as f64).filter(|iops| iops.is_finite() && *iops > 0.0)
}

/// The same by the rates that `probe` finds of each job at a depth.
fn bound_by(
    jobs: &[InFlight],
    limit: Nanos,
    mut probe: impl FnMut(u64) -> Option<Vec<f64>>,
) -> Option<DepthBound> {
    let asked = jobs.first()?.depth;
    let mut depth = 1;
    for _ in 0..TRIES {
        let rates = probe(depth)?;
        let bounds = jobs.iter().zip(rates).map(|(&in_flight, iops)| {
            let depth = ((iops * limit.as_secs_f64()) as u64 / in_flight.workers).max(1);
            DepthBound { depth, iops, in_flight }
        });
        let slowest = bounds.min_by_key(|bound| bound.depth)?;
        if slowest.depth >= asked {
            return None;
        }
        // Deeper queues no longer gain anything.
        if slowest.depth <= depth + depth / 4 {
            return Some(slowest);
        }
        depth = slowest.depth;
    }
    None
}

/// A block size, and the depth up to which its requests complete in time one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SmallerBlock {
    bytes: u64,
    depth: u64,
}

/// The largest block, a fourth of the suite's or a fourth of that, whose requests at depth 1 complete within `limit`; `None` where
/// the suite's own do. Sends requests of smaller blocks first, as a deep test of small blocks may have been held by their number.
pub(crate) fn block_bound(job: &BoundedJob<'_>, limit: Nanos, session: &Session) -> Option<SmallerBlock> {
    let known = |in_flight: InFlight| {
        job.earlier.iter().filter_map(|test| in_flight.drain_seconds(test)).reduce(f64::min)
    };
    largest_block(job.in_flight, limit, known, |block| {
        let mut words = job.probe_words(1, limit);
        words.retain(|(name, _)| !["bs", "blocksize", "io_size"].contains(&name.as_str()));
        words.extend([pair("bs", block.to_string()), pair("io_size", size_word(block))]);
        let probed =
            measure_together("block".to_owned(), "block".to_owned(), &[("block", words)], session, &mut ());
        probed.jobs.first().and_then(job_iops).map(|iops| 1.0 / iops)
    })
}

/// The same by the most seconds that earlier tests leave for requests, and those that `probe` measures for one block.
fn largest_block(
    asked: InFlight,
    limit: Nanos,
    known: impl Fn(InFlight) -> Option<f64>,
    mut probe: impl FnMut(u64) -> Option<f64>,
) -> Option<SmallerBlock> {
    const STEP: u64 = 4;
    let limit = limit.as_secs_f64();
    let is_known_to_fit = |block_bytes: &u64| {
        let in_flight = InFlight { depth: 1, block_bytes: *block_bytes, ..asked };
        known(in_flight).is_some_and(|seconds| seconds <= limit)
    };
    let smaller = std::iter::successors(Some(asked.block_bytes), |block| {
        Some(block / STEP).filter(|smaller| *smaller >= MIN_BLOCK && smaller.is_multiple_of(MIN_BLOCK))
    });
    let sizes: Vec<u64> = smaller.collect();
    let mut place = sizes.iter().position(is_known_to_fit).unwrap_or(sizes.len() - 1);
    while place > 0 {
        let seconds = probe(sizes[place])? * asked.workers as f64;
        if seconds * STEP as f64 > limit {
            let depth = ((limit / seconds) as u64).clamp(1, asked.depth);
            return Some(SmallerBlock { bytes: sizes[place], depth });
        }
        place -= 1;
    }
    None
}

/// `test` with blocks that complete in about its length, and a note if they are smaller than the suite's; see [`bounded`].
pub(crate) fn with_smaller_blocks(
    test: &PlannedTest,
    plan: &RunPlan,
    earlier: Vec<&TestRecord>,
    words: JobWords,
    session: &Session,
) -> Option<(PlannedTest, String)> {
    let in_flight = InFlight::of(plan.jobs.first()?)?;
    let job = BoundedJob { in_flight, earlier, words };
    let block = block_bound(&job, Nanos(drain_limit(test).0 / MIN_ROUNDS), session)?;
    let note = format!(
        "block size {} and queue depth {} instead of {} and {}, of which too few complete in time; use a longer --runtime.",
        bytes(block.bytes),
        block.depth,
        bytes(in_flight.block_bytes),
        in_flight.depth
    );
    Some((test.with_block(block.bytes).with_depth(block.depth), note))
}

/// Time for the requests in flight at the end of `test`.
pub(crate) fn drain_limit(test: &PlannedTest) -> Nanos {
    let shortest = test.precision.map(|goal| Nanos(goal.least_ns)).or(test.runtime);
    Nanos(shortest.map_or(0, |runtime| runtime.0).max(MIN_DRAIN_NS))
}

/// `test` with a depth whose requests its targets complete in about the length of the test, and a note where that is less than
/// the suite's. `plan` is what the test means, with a job for each target; `earlier` are the tests that ran alone on a target, and
/// `words` the options of the job there.
pub(crate) fn bounded<'a>(
    test: &PlannedTest,
    plan: &RunPlan,
    earlier: impl Fn(usize) -> Vec<&'a TestRecord>,
    words: impl Fn(usize) -> JobWords,
    session: &Session,
) -> (PlannedTest, Option<String>) {
    let job = |(job, &target): (&JobPlan, &usize)| {
        let in_flight = InFlight::of(job)?;
        Some(BoundedJob { in_flight, earlier: earlier(target), words: words(target) })
    };
    let jobs: Option<Vec<BoundedJob<'_>>> = plan.jobs.iter().zip(&test.targets).map(job).collect();
    match depth_bound(&jobs.unwrap_or_default(), drain_limit(test), session) {
        None => (test.clone(), None),
        Some(bound) => {
            let note = format!(
                "queue depth {} instead of {}: {}; use a longer --runtime.",
                bound.depth,
                bound.in_flight.depth,
                bound.reason()
            );
            (test.with_depth(bound.depth), Some(note))
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::{JobRecord, OpOutcome, PhaseOutcome};

    use super::*;

    /// A test in which so many requests of so many bytes completed in a second.
    fn done(ios: u64, size: u64) -> TestRecord {
        let read = OpOutcome { ios, bytes: ios * size, ..OpOutcome::default() };
        let measured = PhaseOutcome { end_ns: 1_000_000_000, read, ..PhaseOutcome::default() };
        TestRecord { jobs: vec![JobRecord { measured, ..JobRecord::default() }], ..TestRecord::default() }
    }

    #[test]
    fn earlier_tests_bound_the_time_by_requests_and_by_bytes() {
        let deep = InFlight { depth: 32, workers: 1, block_bytes: 1 << 20 };
        let time = |test: &TestRecord| deep.drain_seconds(test).map(|seconds| seconds.round());
        assert_eq!(time(&done(25, 4096)), Some(328.0));
        assert_eq!(time(&done(10_000, 4096)), Some(1.0));
        assert_eq!(time(&done(100, 1 << 20)), Some(0.0));
        assert_eq!(time(&TestRecord::default()), None);
        let many = InFlight { depth: 64, workers: 8, block_bytes: 4096 };
        assert_eq!(many.drain_seconds(&done(64, 4096)), Some(8.0));
    }

    #[test]
    fn the_slowest_target_bounds_the_depth_of_all() {
        let job = InFlight { depth: 64, workers: 1, block_bytes: 4096 };
        let bound = |rates: &[f64]| {
            let jobs = vec![job; rates.len()];
            bound_by(&jobs, Nanos::from_secs(2), |_| Some(rates.to_vec())).map(|bound| bound.depth)
        };
        assert_eq!(bound(&[1000.0]), None);
        assert_eq!(bound(&[5.0]), Some(10));
        assert_eq!(bound(&[1000.0, 5.0]), Some(10));
        assert_eq!(bound(&[1000.0, 1000.0]), None);
        assert_eq!(bound(&[0.1]), Some(1));
        assert_eq!(bound_by(&[job], Nanos::from_secs(2), |_| None), None);
        // A device that serves four at once.
        let parallel = |depth: u64| Some(vec![depth.min(4) as f64]);
        assert_eq!(bound_by(&[job], Nanos::from_secs(2), parallel).map(|bound| bound.depth), Some(8));
    }

    #[test]
    fn blocks_shrink_to_what_completes_in_time() {
        let job = |workers| InFlight { depth: 32, workers, block_bytes: 1 << 20 };
        let check = |workers: u64, iops: f64, bytes: f64| {
            // 4k blocks were measured before.
            let small = done((iops.min(bytes / 4096.0)).ceil() as u64, 4096);
            let mut longest: f64 = 0.0;
            let block = largest_block(
                job(workers),
                Nanos::from_millis(3500),
                |in_flight| in_flight.drain_seconds(&small),
                |block| {
                    let seconds = (block as f64 / bytes).max(1.0 / iops);
                    longest = longest.max(seconds);
                    Some(seconds)
                },
            );
            assert!(longest <= 3.5, "{longest} s");
            block.map(|block| block.bytes)
        };
        assert_eq!(check(1, 1e6, 100e3), Some(256 << 10));
        assert_eq!(check(8, 1e6, 100e3), Some(16 << 10));
        assert_eq!(check(1, 1e6, 10e3), Some(16 << 10));
        // Few requests, but of any size.
        assert_eq!(check(1, 20.0, 1e9), None);
        assert_eq!(check(1, 1e6, 1e9), None);
    }

    #[test]
    fn the_reason_has_the_rate_and_the_time() {
        let in_flight = InFlight { depth: 32, workers: 1, block_bytes: 1 << 20 };
        let bound = DepthBound { depth: 1, iops: 0.1, in_flight };
        assert_eq!(bound.reason(), "at 102 KiB/s the 32.0 MiB in flight would take 5 min 20 s to complete");
    }
}
