//! Bounds the time that the requests of a test need to complete after its end: on a device that takes seconds for each, a deep
//! queue would make a test last many times as long as announced.
//!
//! No request can be taken back once it is issued, so the depth is lowered before the test. What earlier tests of the run
//! reached, or a few requests of the test itself, tell what the device does in that time.

use fathom_model::plan::Mix;
use fathom_model::units::{self, bytes};
use fathom_model::{Nanos, RunPlan};
use fathom_record::{OpSummary, TestRecord, TestSummary};
use fathom_runner::Session;

use crate::measure::measure;
use crate::planned::{PlannedTest, pair, size_word, time_word};

/// Time for the requests in flight at the end of a test that is shorter.
const LEAST: Nanos = Nanos::from_secs(2);
/// Times that a deeper queue is tried before the depth is settled.
const TRIES: u32 = 4;

/// The requests that a test keeps in flight.
struct InFlight {
    /// Per worker.
    depth: u64,
    workers: u64,
    block_bytes: u64,
}

impl InFlight {
    fn of(plan: &RunPlan) -> Option<InFlight> {
        let [job] = plan.jobs.as_slice() else { return None };
        let sizes = job.io.block_size.as_ref().map(|size| size.largest());
        let block_bytes = match job.io.pattern.mix {
            Mix::Read => sizes.read,
            Mix::Write => sizes.write,
            Mix::ReadWrite { .. } => sizes.read.max(sizes.write),
            Mix::Trim | Mix::TrimWrite => return None,
        };
        let (depth, workers) = (u64::from(job.depth.iodepth), job.clones.len() as u64);
        Some(InFlight { depth, workers, block_bytes })
    }

    fn requests(&self) -> u64 {
        self.depth * self.workers
    }
}

/// `test` with a depth whose requests the device completes in about the length of the test, and a note where that is less than
/// the suite's. `plan` is what the test means, `earlier` the tests of the run so far.
pub(crate) fn bounded(
    test: &PlannedTest,
    plan: &RunPlan,
    earlier: &[TestRecord],
    words: &dyn Fn(&PlannedTest) -> Vec<(String, String)>,
    session: &Session,
) -> (PlannedTest, Option<String>) {
    let unchanged = || (test.clone(), None);
    let Some(in_flight) = InFlight::of(plan).filter(|_| !session.is_simulated() && test.rounds.is_none())
    else {
        return unchanged();
    };
    let limit = test.runtime.unwrap_or(LEAST).max(LEAST);
    let known = earlier.iter().filter_map(|test| drain_time(&in_flight, test)).reduce(f64::min);
    if in_flight.depth == 1 || known.is_some_and(|seconds| seconds <= limit.as_secs_f64()) {
        return unchanged();
    }
    let probe = |depth: u64| -> Option<f64> {
        let mut options = words(test);
        let changed = ["iodepth", "numjobs", "runtime", "time_based", "ramp_time", "io_size"];
        options.retain(|(name, _)| !changed.contains(&name.as_str()));
        options.extend([
            pair("iodepth", depth.to_string()),
            pair("io_size", size_word(depth * in_flight.block_bytes)),
            pair("runtime", time_word(limit)),
        ]);
        let name = "drain";
        let probed = measure(name.to_owned(), name.to_owned(), options, session, &mut ());
        TestSummary::new(&probed).total.map(|total| total.iops).filter(|rate| *rate > 0.0)
    };
    let mut depth = 1;
    for _ in 0..TRIES {
        let Some(rate) = probe(depth) else { return unchanged() };
        let most = ((rate * limit.as_secs_f64()) as u64 / in_flight.workers).max(1);
        if most >= in_flight.depth {
            return unchanged();
        }
        // Deeper queues no longer gain anything.
        if most <= depth + depth / 4 {
            let text = format!(
                "queue depth {most} instead of {}: at {} the {} of the suite's depth would take {} to complete; use a \
                 longer --runtime.",
                in_flight.depth,
                rate_text(rate, in_flight.block_bytes),
                bytes(in_flight.requests() * in_flight.block_bytes),
                units::duration(Nanos((in_flight.requests() as f64 / rate * 1e9) as u64)),
            );
            return (test.with_depth(most), Some(text));
        }
        depth = most;
    }
    unchanged()
}

fn rate_text(rate: f64, block_bytes: u64) -> String {
    format!("{}/s", bytes((rate * block_bytes as f64) as u64))
}

/// How long the device of an earlier test needs for these requests at most, s, by the requests and by the bytes that it completed.
fn drain_time(in_flight: &InFlight, test: &TestRecord) -> Option<f64> {
    let total: OpSummary = TestSummary::new(test).total?;
    let by_requests = in_flight.requests() as f64 / total.iops;
    let by_bytes = (in_flight.requests() * in_flight.block_bytes) as f64 / total.bytes_per_second;
    Some(by_requests.max(by_bytes)).filter(|seconds| seconds.is_finite())
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
        let time = |test: &TestRecord| drain_time(&deep, test).map(|seconds| seconds.round());
        assert_eq!(time(&done(25, 4096)), Some(328.0));
        assert_eq!(time(&done(10_000, 4096)), Some(1.0));
        assert_eq!(time(&done(100, 1 << 20)), Some(0.0));
        assert_eq!(time(&TestRecord::default()), None);
        let many = InFlight { depth: 64, workers: 8, block_bytes: 4096 };
        assert_eq!(drain_time(&many, &done(64, 4096)), Some(8.0));
    }
}
