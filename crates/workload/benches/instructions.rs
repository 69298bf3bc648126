//! Instructions per generated request, and per block of payload.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // A separate program, not part of the crate.

#[path = "../../../benches/case.rs"]
mod case;

use std::hint::black_box;
use std::process::ExitCode;

use case::Case;
use fathom_model::PerOp;
use fathom_model::plan::{AccessPlan, Distribution, Mix, Pattern};
use fathom_workload::payload::{BlockStamp, fill_random};
use fathom_workload::{Extent, Rng, Source, SourcePlan};

const BLOCK: u64 = 4096;
/// A GiB of blocks: a power of two, which a permutation of whole bits fits exactly.
const BLOCKS: u64 = 1 << 18;
/// A multiple of a deck and of a batch, and less than half a pass.
const REQUESTS: u64 = 102_400;

/// Requests per draw, as in the loop.
const BATCH: u64 = 16;

const CASES: &[Case] = &[
    Case { name: "sequential", operations: REQUESTS, run: |n| draw(&plan(Mix::Read, false), BATCH, n) },
    Case { name: "random-map", operations: REQUESTS, run: |n| draw(&plan(Mix::Read, true), BATCH, n) },
    Case { name: "random-map-single", operations: REQUESTS, run: |n| draw(&plan(Mix::Read, true), 1, n) },
    Case { name: "random-map-odd-size", operations: REQUESTS, run: |n| draw(&odd_size(), BATCH, n) },
    Case { name: "random-map-two-files", operations: REQUESTS, run: |n| draw(&two_files(), BATCH, n) },
    Case { name: "random-free", operations: REQUESTS, run: |n| draw(&free(), BATCH, n) },
    Case { name: "random-map-mixed", operations: REQUESTS, run: |n| draw(&mixed(), BATCH, n) },
    Case { name: "random-zipf", operations: REQUESTS, run: |n| draw(&zipf(), BATCH, n) },
    Case { name: "payload-stamp-4k", operations: 4_000, run: stamp },
    Case { name: "payload-refill-4k", operations: 1_000, run: refill },
];

fn main() -> ExitCode {
    case::main(CASES)
}

/// One file of [`BLOCKS`] blocks, repeated without end.
fn plan(mix: Mix, random: bool) -> SourcePlan {
    SourcePlan {
        pattern: Pattern { mix, random },
        block_size: PerOp::splat(BLOCK.into()),
        extents: vec![Extent { offset: 0, len: BLOCKS * BLOCK }],
        random_map: true,
        access: Default::default(),
        bytes_per_loop: BLOCKS * BLOCK,
        loops: None,
        fsync_every: 0,
        fdatasync_every: 0,
        seed: 1,
        repeats: false,
        to_file_ends: true,
    }
}

/// One block more than a power of two, for which a permutation of whole bits would be twice as large as necessary.
fn odd_size() -> SourcePlan {
    let extents = vec![Extent { offset: 0, len: (BLOCKS + 1) * BLOCK }];
    SourcePlan { extents, ..plan(Mix::Read, true) }
}

fn two_files() -> SourcePlan {
    let extents = vec![Extent { offset: 0, len: BLOCKS * BLOCK }; 2];
    SourcePlan { extents, ..plan(Mix::Read, true) }
}

fn free() -> SourcePlan {
    SourcePlan { random_map: false, ..plan(Mix::Read, true) }
}

fn mixed() -> SourcePlan {
    plan(Mix::ReadWrite { read_percent: 75 }, true)
}

fn zipf() -> SourcePlan {
    let distribution = PerOp::splat(Distribution::Zipf { theta: 1.1, center: None });
    let access = AccessPlan { distribution, ..AccessPlan::default() };
    SourcePlan { random_map: false, access, ..plan(Mix::Read, true) }
}

/// Draws `requests` in batches; not inlined, so that the compiler does not specialise it for a case's plan.
#[inline(never)]
fn draw(plan: &SourcePlan, batch: u64, requests: u64) {
    let mut source = Source::new(plan);
    // In memory, as in the loop.
    let source = black_box(&mut source);
    let mut drawn = 0;
    while drawn < requests {
        drawn += source.next_requests(batch, |request| _ = black_box(request));
    }
    assert_eq!(drawn, requests, "whole batches");
}

fn stamp(blocks: u64) {
    let mut buffer = random_block();
    let mut stamp = BlockStamp::new(1);
    for _ in 0..blocks {
        stamp.apply(black_box(&mut buffer));
    }
}

fn refill(blocks: u64) {
    let mut buffer = random_block();
    let mut rng = Rng::new(1);
    for _ in 0..blocks {
        fill_random(black_box(&mut buffer), &mut rng);
    }
}

fn random_block() -> Vec<u8> {
    let mut buffer = vec![0; BLOCK as usize];
    fill_random(&mut buffer, &mut Rng::new(2));
    buffer
}
