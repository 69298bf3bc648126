//! A single worker: the loop of the instruction counts does the same work as any other.

use fathom_model::plan::{Mix, SizeSpec};
use fathom_model::{JobPlan, Nanos, RunPlan};
use fathom_runner::run_alone;

use crate::plans::{job, timed};

const TARGET_BYTES: u64 = 1 << 30;

fn on_null(mut job: JobPlan) -> RunPlan {
    job.engine.name = "null".to_owned();
    RunPlan { jobs: vec![job], ..RunPlan::default() }
}

#[test]
fn a_single_worker_executes_its_plan_repeatably() {
    for (mix, depth) in [(Mix::Read, 1), (Mix::Write, 64), (Mix::ReadWrite { read_percent: 75 }, 8)] {
        let mut job = job("alone", mix, true, depth);
        job.io.io_size = Some(SizeSpec::Bytes(1000 * 4096));
        let plan = on_null(job);
        let outcome = run_alone(&plan, TARGET_BYTES).expect("the plan fits the target");
        let measured = &outcome.measured;
        assert_eq!(outcome.failure, None);
        assert_eq!(measured.ops().into_iter().map(|op| op.ios).sum::<u64>(), 1000, "{mix:?} at {depth}");
        assert_eq!(measured.ops().into_iter().map(|op| op.lat.moments.count).sum::<u64>(), 1000);
        assert!(measured.end_ns > measured.start_ns);
        assert_eq!(outcome, run_alone(&plan, TARGET_BYTES).expect("as before"));
    }
}

#[test]
fn the_clock_skips_pauses_and_ends_the_runtime() {
    let mut job = timed(job("alone", Mix::Read, true, 1), 10);
    job.time.think_time.pause = Nanos::from_secs(1);
    let outcome = run_alone(&on_null(job), TARGET_BYTES).expect("the plan fits the target");
    assert_eq!(outcome.measured.read.ios, 10, "one a second");
}

#[test]
fn unsuitable_plans_are_refused_with_a_remedy() {
    let check = |plan: &RunPlan, expected: &str| {
        let error = run_alone(plan, TARGET_BYTES).expect_err(expected);
        assert!(error.to_string().contains(expected), "'{error}' does not say '{expected}'");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "'{error}' has no remedy");
    };
    let mut needs_files = on_null(job("alone", Mix::Read, true, 1));
    needs_files.jobs[0].engine.name = "psync".to_owned();
    check(&needs_files, "engine psync needs files");
    let mut two = on_null(job("alone", Mix::Read, true, 1));
    two.jobs.push(two.jobs[0].clone());
    check(&two, "a single worker");
    check(&RunPlan::default(), "a single worker");
}
