//! Cost of the next offset of a random order, for sizes that favour a permutation and sizes that do not.
//!
//! Prints a line of JSON per size: blocks, bytes per block, and ns per request of `Source`. `--rounds=N` takes the
//! median of N measurements, each shorter than a scheduler's time slice.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout)] // The result goes to standard output.

use std::hint::black_box;
use std::time::Instant;

use fathom_model::PerOp;
use fathom_model::plan::{Mix, Pattern};
use fathom_workload::{Extent, Source, SourcePlan};

/// Requests between two readings of the clock.
const STRETCH: u64 = 100_000;
/// Requests per draw, as at queue depth 64.
const BATCH: usize = 8;

fn main() {
    let rounds = std::env::args().find_map(|argument| argument.strip_prefix("--rounds=")?.parse().ok());
    for (blocks, block_size) in sizes() {
        let ns = ns_per_request(blocks, block_size, rounds.unwrap_or(30).max(1));
        println!("{{\"blocks\":{blocks},\"block_size\":{block_size},\"ns\":{ns:.3}}}");
    }
}

/// Powers of two, powers of two plus one, irregular numbers, and 16 TiB in sectors.
fn sizes() -> Vec<(u64, u64)> {
    let powers = (1..=36).flat_map(|power| [1 << power, (1 << power) + 1]);
    let odd = [7, 11, 1_000, 12_345, 999_983, 26_214_401, 3_000_000_019, 40_000_000_003];
    let mut sizes: Vec<(u64, u64)> = powers.chain(odd).map(|blocks| (blocks, 4096)).collect();
    sizes.push(((16 << 40) / 512, 512));
    sizes
}

/// The median of `rounds` stretches, after a warm-up.
fn ns_per_request(blocks: u64, block_size: u64, rounds: usize) -> f64 {
    let mut source = Source::new(&SourcePlan {
        pattern: Pattern { mix: Mix::Read, random: true },
        block_size: PerOp::splat(block_size.into()),
        extents: vec![Extent { offset: 0, len: blocks * block_size }],
        random_map: true,
        access: Default::default(),
        bytes_per_loop: blocks * block_size,
        loops: None,
        fsync_every: 0,
        fdatasync_every: 0,
        seed: 1,
        repeats: false,
        to_file_ends: true,
    });
    stretch_ns(&mut source);
    let mut stretches: Vec<f64> = (0..rounds).map(|_| stretch_ns(&mut source)).collect();
    stretches.sort_by(f64::total_cmp);
    stretches[rounds / 2]
}

#[allow(clippy::disallowed_methods)] // Read once per many thousand requests; in no record.
fn stretch_ns(source: &mut Source) -> f64 {
    let started = Instant::now();
    let mut batch = [0; BATCH];
    let mut drawn = 0;
    while drawn < STRETCH {
        let mut place = 0;
        drawn += source.next_requests(BATCH as u64, |request| {
            batch[place] = request.offset;
            place += 1;
        });
        black_box(&batch);
    }
    started.elapsed().as_nanos() as f64 / drawn as f64
}
