//! Simulated volumes, and jobs that run on them.

use fathom_engine::sim::{BEGIN_NS, Volume};
use fathom_model::plan::{DepthPlan, Mix, SizeSpec};
use fathom_model::{JobPlan, RunPlan};
use fathom_runner::Session;
use fathom_volume::{Accounting, Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel};

use super::plans;

const BLOCK: u64 = 4096;
const SIZE: u64 = 1000 << 30;

/// A job of random reads with default options except for the depth.
pub fn job(depth: u32, requests: u64) -> JobPlan {
    let mut job = plans::job("simulated", Mix::Read, true, depth);
    job.depth = DepthPlan::batched(depth, true, BLOCK);
    job.io.io_size = Some(SizeSpec::Bytes(requests * BLOCK));
    job
}

/// Runs `copies` of a job on one volume and returns the number of completed requests.
pub fn run(model: &VolumeModel, job: &JobPlan, copies: usize) -> u64 {
    let volume = Volume::beginning_at(model, 1, BEGIN_NS).expect("a valid model");
    let plan = RunPlan { jobs: vec![job.clone(); copies], ..RunPlan::default() };
    let session = Session::on_volumes(vec![("target".into(), volume)]);
    let outcome = session.run(&plan, &mut ()).expect("the plan fits the target");
    outcome.workers.iter().flat_map(|worker| worker.measured.ops()).map(|op| op.ios).sum()
}

fn rate(tokens: u64) -> TokenRate {
    TokenRate::per_second(tokens).expect("a rate above 0")
}

/// An IOPS limit only.
pub fn cap() -> VolumeModel {
    let stage = LimitStage { ios: Some(Limit::Rate(rate(100_000))), ..LimitStage::default() };
    VolumeModel { shared: vec![stage], ..VolumeModel::unlimited(SIZE) }
}

/// gp2 with 3,000 sustained IOPS: burst credits, a bandwidth limit, merging units, 0.5 ms latency.
pub fn gp2() -> VolumeModel {
    let (base, burst, capacity) = (rate(3000), Some(rate(3000)), 5_400_000);
    let stage = LimitStage {
        accounting: Accounting { unit_bytes: Some(256 << 10), merges_sequential: true, whole_units: false },
        ios: Some(Limit::Credit { base, burst, capacity, initial: capacity }),
        bytes: Some(Limit::Rate(rate(250 << 20))),
        ..LimitStage::default()
    };
    let latency = VolumeLatency::around(500_000);
    VolumeModel {
        shared: vec![stage],
        read_latency: latency.clone(),
        write_latency: latency,
        ..VolumeModel::unlimited(SIZE)
    }
}
