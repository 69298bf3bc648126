//! Instructions per recorded latency, and per run of equal latencies that is recorded in one call.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // A separate program, not part of the crate.

#[path = "../../../benches/case.rs"]
mod case;

use std::hint::black_box;
use std::process::ExitCode;

use case::Case;
use fathom_stats::DATA_OPS;
use fathom_stats::live::{LiveLatency, LivePhase, Recorded};

const TIMES: u64 = 102_400;
/// Length of a run of equal latencies: requests submitted and completed together.
const RUN: u32 = 8;

const CASES: &[Case] = &[
    Case { name: "latency", operations: TIMES, run: |n| record(n, 1, |live, ns, _| live.record(ns)) },
    Case { name: "latency-run", operations: TIMES, run: |n| record(n, RUN, LiveLatency::record_many) },
    Case { name: "request-run", operations: TIMES, run: complete },
];

fn main() -> ExitCode {
    case::main(CASES)
}

/// From 0 to 250 ms, over all octaves.
fn latencies(count: u64) -> impl Iterator<Item = u64> {
    (0..count).scan(0, |ns: &mut u64, _| Some(black_box(std::mem::replace(ns, (*ns * 5 + 1) & 0x0fff_ffff))))
}

#[inline(always)]
fn record(times: u64, repeated: u32, one: impl Fn(&LiveLatency, u64, u32)) {
    let live = LiveLatency::default();
    // In memory and opaque to the compiler, as in the loop.
    let (live, unknown) = (black_box(&live), black_box(repeated));
    latencies(times).for_each(|ns| one(live, ns, unknown));
    assert_eq!(live.counts().sum::<u64>(), times * u64::from(repeated));
}

/// As in the loop of an asynchronous engine: three latencies per request, or per run of requests.
fn complete(times: u64) {
    let recorded =
        Recorded { slat: true, clat: true, lat: true, is_synchronous: false, scheduled: false, syncs: true };
    let phase = LivePhase::new(recorded, [true; DATA_OPS]);
    let repeated = black_box(RUN);
    for ns in latencies(times) {
        phase.ops[0].complete(repeated, 4096, ns, ns + 100);
    }
    assert_eq!(phase.ops[0].ios.get(), times * u64::from(RUN));
}
