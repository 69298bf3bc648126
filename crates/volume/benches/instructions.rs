//! Instructions per simulated request.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // A separate program, not part of the crate.

#[path = "../../../benches/case.rs"]
mod case;

use std::collections::VecDeque;
use std::hint::black_box;
use std::process::ExitCode;

use case::Case;
use fathom_model::Op;
use fathom_volume::{
    Accounting, Limit, LimitStage, TokenRate, Volume, VolumeLatency, VolumeModel, VolumeRequest,
};

const REQUESTS: u64 = 100_000;
const DEPTH: usize = 32;
const SIZE: u64 = 50 << 30;

const CASES: &[Case] = &[
    Case { name: "cap", operations: REQUESTS, run: |n| run(&cap(), n) },
    Case { name: "gp2-with-latency", operations: REQUESTS, run: |n| run(&gp2(), n) },
    Case { name: "parallelism-16", operations: REQUESTS, run: |n| run(&parallel(), n) },
];

fn main() -> ExitCode {
    case::main(CASES)
}

fn rate(tokens: u64) -> TokenRate {
    TokenRate::per_second(tokens).expect("a rate above 0")
}

fn cap() -> VolumeModel {
    let stage = LimitStage { ios: Some(Limit::Rate(rate(5000))), ..LimitStage::default() };
    VolumeModel { shared: vec![stage], ..VolumeModel::unlimited(SIZE) }
}

/// 50 GiB of gp2: a burst bucket on I/Os, a bandwidth limit, and sequential I/Os that merge.
fn gp2() -> VolumeModel {
    let (burst, capacity) = (Some(rate(3000)), 5_400_000);
    let stage = LimitStage {
        accounting: Accounting { unit_bytes: Some(256 << 10), merges_sequential: true, whole_units: false },
        ios: Some(Limit::Credit { base: rate(150), burst, capacity, initial: capacity }),
        bytes: Some(Limit::Rate(rate(128 << 20))),
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

fn parallel() -> VolumeModel {
    let latency = VolumeLatency::around(500_000);
    let parallelism = Some(16);
    VolumeModel { parallelism, read_latency: latency.clone(), write_latency: latency, ..cap() }
}

/// A closed loop at queue depth [`DEPTH`] that takes completions in the order of their requests.
#[inline(never)]
fn run(model: &VolumeModel, requests: u64) {
    let mut volume = Volume::new(model, 1).expect("a valid model");
    let mut ends: VecDeque<u64> = VecDeque::from(vec![0; DEPTH]);
    let mut offset = 0u64;
    for _ in 0..requests {
        let now = ends.pop_front().unwrap_or_default();
        // An odd multiple of the block size visits all blocks in a scattered order.
        offset = (offset + 1_234_577 * 4096) % SIZE;
        let completion = volume.submit(now, black_box(&VolumeRequest { op: Op::Read, offset, bytes: 4096 }));
        ends.push_back(completion.at_ns);
    }
    black_box(volume.counters());
}
