//! Instructions per request of the whole loop, on the null engine and on simulated volumes.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // A separate program, not part of the crate.

#[path = "../../../benches/case.rs"]
mod case;
#[path = "../tests/suite/plans.rs"]
mod plans;
mod volumes;

use std::process::ExitCode;

use case::Case;
use fathom_model::RunPlan;
use fathom_model::plan::{DepthPlan, Mix, SizeSpec};
use fathom_runner::run_alone;

const BLOCK: u64 = 4096;
const TARGET_BYTES: u64 = 1 << 30;
/// A multiple of a deck and of a batch, and less than half a pass over the target.
const REQUESTS: u64 = 102_400;
const MIXED: Mix = Mix::ReadWrite { read_percent: 75 };

const CASES: &[Case] = &[
    Case { name: "randread-depth-1", operations: REQUESTS, run: |n| turn(Mix::Read, 1, n) },
    Case { name: "randread-depth-64", operations: REQUESTS, run: |n| turn(Mix::Read, 64, n) },
    Case { name: "randwrite-depth-1", operations: REQUESTS, run: |n| turn(Mix::Write, 1, n) },
    Case { name: "randwrite-depth-64", operations: REQUESTS, run: |n| turn(Mix::Write, 64, n) },
    Case { name: "randrw-depth-1", operations: REQUESTS, run: |n| turn(MIXED, 1, n) },
    Case { name: "randrw-depth-64", operations: REQUESTS, run: |n| turn(MIXED, 64, n) },
    Case { name: "simulated-cap-depth-32", operations: REQUESTS, run: |n| simulate(&volumes::cap(), 1, n) },
    Case { name: "simulated-cap-jobs-3", operations: 3 * REQUESTS, run: |n| simulate(&volumes::cap(), 3, n) },
    Case { name: "simulated-gp2-depth-32", operations: REQUESTS, run: |n| simulate(&volumes::gp2(), 1, n) },
];

fn main() -> ExitCode {
    case::main(CASES)
}

/// Runs a job with default options except for pattern and depth.
fn turn(mix: Mix, iodepth: u32, requests: u64) {
    let mut job = plans::job("instructions", mix, true, iodepth);
    job.engine.name = "null".to_owned();
    job.depth = DepthPlan::batched(iodepth, true, BLOCK);
    job.io.io_size = Some(SizeSpec::Bytes(requests * BLOCK));
    let plan = RunPlan { jobs: vec![job], ..RunPlan::default() };
    let outcome = run_alone(&plan, TARGET_BYTES).expect("the plan fits the target");
    let done: u64 = outcome.measured.ops().into_iter().map(|op| op.ios).sum();
    assert_eq!((outcome.failure, done), (None, requests));
}

/// Runs a session of jobs on a simulated volume.
fn simulate(model: &fathom_volume::VolumeModel, jobs: u64, requests: u64) {
    let done = volumes::run(model, &volumes::job(32, requests / jobs), jobs as usize);
    assert_eq!(done, requests);
}
