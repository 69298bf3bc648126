use fathom_model::plan::{Distribution, FileOrder, Mix, Pattern};
use fathom_model::{BlockSize, PerOp};

use super::*;
use crate::Source;

const BLOCK: u64 = 4096;

/// One file of 256 blocks.
fn plan(mix: Mix, random: bool, access: AccessPlan) -> SourcePlan {
    SourcePlan {
        pattern: Pattern { mix, random },
        block_size: PerOp::splat(BLOCK.into()),
        extents: vec![Extent { offset: 0, len: 256 * BLOCK }],
        random_map: true,
        access,
        bytes_per_loop: 256 * BLOCK,
        loops: Some(1),
        fsync_every: 0,
        fdatasync_every: 0,
        seed: 7,
        repeats: false,
        to_file_ends: true,
    }
}

fn requests(plan: &SourcePlan) -> Vec<Request> {
    let mut source = Source::new(plan);
    std::iter::from_fn(|| source.next_request()).take(100_000).collect()
}

fn blocks(plan: &SourcePlan) -> Vec<u64> {
    requests(plan).iter().map(|request| request.offset / BLOCK).collect()
}

fn access() -> AccessPlan {
    AccessPlan::default()
}

#[test]
fn a_run_follows_its_random_offset_or_repeats_it() {
    let follows = blocks(&plan(Mix::Read, true, AccessPlan { run: 4, ..access() }));
    assert_eq!(follows.len(), 256);
    let runs = follows.chunks(4).filter(|run| run.windows(2).all(|two| two[1] == two[0] + 1)).count();
    // A run at the end of the range continues elsewhere.
    assert!(runs >= 61, "{runs}");
    let starts: std::collections::BTreeSet<u64> = follows.iter().step_by(4).copied().collect();
    assert_eq!(starts.len(), 64, "each run starts at another block");
    let repeats = blocks(&plan(Mix::Read, true, AccessPlan { run: 4, run_repeats: true, ..access() }));
    assert!(repeats.len() == 256 && repeats.chunks(4).all(|run| run.iter().all(|block| *block == run[0])));
}

/// As Debian's fio 3.33 has them.
#[test]
fn sequential_requests_skip_forwards_and_backwards() {
    let small = |skip| SourcePlan {
        extents: vec![Extent { offset: 0, len: 16 * BLOCK }],
        bytes_per_loop: 16 * BLOCK,
        ..plan(Mix::Read, false, AccessPlan { skip, ..access() })
    };
    let forwards = blocks(&small(BLOCK as i64));
    assert_eq!(forwards, [0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 4, 6, 8, 10, 12, 14]);
    let backwards = blocks(&small(-2 * BLOCK as i64));
    assert_eq!(backwards, [0, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    let writes =
        requests(&SourcePlan { pattern: Pattern { mix: Mix::Write, random: false }, ..small(BLOCK as i64) });
    assert!(writes.iter().all(|request| request.op == Op::Write));
}

/// As Debian's fio 3.33 and fio 3.41 have them, in KiB.
#[test]
fn a_pass_with_skips_ends_with_the_range() {
    let offsets = |size: u64, skip: u64, range: u64, loops: u32, bytes: u64| -> Vec<u64> {
        let access = AccessPlan { skip: skip as i64 * 1024, ..access() };
        let plan = SourcePlan {
            extents: vec![Extent { offset: 0, len: range * 1024 }],
            block_size: PerOp::splat((size * 1024).into()),
            bytes_per_loop: bytes * 1024,
            loops: Some(loops),
            ..plan(Mix::Read, false, access)
        };
        requests(&plan).iter().map(|request| request.offset / 1024).collect()
    };
    let once = |size, skip, range| offsets(size, skip, range, 1, range);
    // Ended by a request that the end of the range would cut, or by one that ends there.
    assert_eq!(once(8, 4, 64), [0, 12, 24, 36, 48]);
    assert_eq!(once(8, 12, 64), [0, 20, 40]);
    assert_eq!(once(64, 64, 960), [0, 128, 256, 384, 512, 640, 768, 896]);
    assert_eq!(once(64, 32, 256), [0, 96, 192]);
    // A skip to the end or past it leads to the start.
    assert_eq!(once(8, 4, 60), [0, 12, 24, 36, 48, 0, 12]);
    assert_eq!(once(64, 160, 1024), [[0, 224, 448, 672, 896]; 4].concat()[..16]);
    assert_eq!(once(64, 1280, 256), [0; 4]);
    // Within a larger file it ends the pass.
    let access = AccessPlan { skip: 8192, ..access() };
    let extents = vec![Extent { offset: 65536, len: 8 * 4096 }];
    let inside =
        SourcePlan { extents, to_file_ends: false, bytes_per_loop: 32768, ..plan(Mix::Read, false, access) };
    let blocks: Vec<u64> = requests(&inside).iter().map(|request| request.offset / 4096 - 16).collect();
    assert_eq!(blocks, [0, 3, 6]);
    // Further bytes or loops start another pass.
    assert_eq!(offsets(64, 32, 256, 1, 320), [0, 96, 192, 0, 96]);
    assert_eq!(offsets(64, 32, 256, 2, 256), [0, 96, 192, 0, 96, 192]);
}

#[test]
fn a_share_of_the_requests_is_random() {
    let access = AccessPlan { percentage_random: PerOp::splat(30), ..access() };
    let mut plan = plan(Mix::Read, true, access);
    (plan.extents[0].len, plan.bytes_per_loop) = (20_000 * BLOCK, 20_000 * BLOCK);
    let all = blocks(&plan);
    let following = all.windows(2).filter(|two| two[1] == two[0] + 1).count();
    assert_eq!(all.len(), 20_000);
    assert!((following as f64 / 20_000.0 - 0.7).abs() < 0.015, "{following}");
    // Percentages of a sequential job mean nothing.
    plan.pattern.random = false;
    assert_eq!(blocks(&plan), (0..20_000).collect::<Vec<_>>());
}

#[test]
fn offsets_are_multiples_of_the_alignment() {
    for align in [512, BLOCK, 16384] {
        let access = AccessPlan { align: PerOp::splat(align), ..access() };
        let all = requests(&plan(Mix::Write, true, access));
        assert_eq!(all.len(), 256);
        assert!(all.iter().all(|request| request.offset % align == 0 && request.offset <= 255 * BLOCK));
        let distinct: std::collections::BTreeSet<u64> = all.iter().map(|request| request.offset).collect();
        assert!(distinct.iter().any(|offset| offset % (2 * align) != 0));
    }
}

#[test]
fn the_number_of_requests_is_limited_in_each_loop() {
    let limited = |number_ios, change: fn(&mut SourcePlan)| {
        let mut plan = plan(Mix::Write, true, AccessPlan { number_ios, ..access() });
        change(&mut plan);
        requests(&plan).len()
    };
    assert_eq!(limited(7, |_| {}), 7);
    assert_eq!(limited(700, |_| {}), 256);
    assert_eq!(limited(300, |plan| plan.bytes_per_loop = 512 * BLOCK), 300);
    assert_eq!(limited(7, |plan| plan.loops = Some(2)), 14);
    // A sync is due before the next write, so there is none after the last.
    assert_eq!(limited(5, |plan| plan.fsync_every = 1), 9);
    assert_eq!(limited(5, |plan| plan.fsync_every = 5), 5);
}

#[test]
fn distributions_apply_to_each_operation() {
    let distribution = PerOp {
        read: Distribution::Zoned(vec![(100, 10), (0, 90)]),
        write: Distribution::Random,
        trim: Distribution::Random,
    };
    let mix = Mix::ReadWrite { read_percent: 50 };
    let mut plan = plan(mix, true, AccessPlan { distribution, ..access() });
    plan.bytes_per_loop *= 4;
    let all = requests(&plan);
    let (reads, writes): (Vec<Request>, Vec<Request>) =
        all.into_iter().partition(|request| request.op == Op::Read);
    assert!(reads.len() > 400 && reads.iter().all(|read| read.offset < 25 * BLOCK));
    let mut written: Vec<u64> = writes.iter().map(|write| write.offset).take(256).collect();
    written.sort_unstable();
    assert!(written.windows(2).all(|two| two[0] < two[1]), "writes keep their random map");
}

#[test]
fn mixed_sizes_stay_within_the_range() {
    for sizes in [
        BlockSize::of_range(4096, 16384, false).unwrap(),
        BlockSize::of_range(4096, 16384, true).unwrap(),
        BlockSize::of_shares(&[(4096, 60), (8192, 40)]).unwrap(),
    ] {
        for random in [false, true] {
            for change in [
                AccessPlan { number_ios: 1 << 30, ..access() },
                AccessPlan {
                    distribution: PerOp::splat(Distribution::Zipf { theta: 1.2, center: None }),
                    ..access()
                },
                AccessPlan { run: 3, ..access() },
                AccessPlan { align: PerOp::splat(512), ..access() },
            ] {
                let mut plan = plan(Mix::Read, random, change);
                plan.block_size = PerOp::splat(sizes.clone());
                let all = requests(&plan);
                let moved: u64 = all.iter().map(|request| u64::from(request.len)).sum();
                assert!(moved <= 256 * BLOCK && moved > 250 * BLOCK, "{moved} {plan:?}");
                assert!(all.iter().all(|it| it.offset + u64::from(it.len) <= 256 * BLOCK), "{plan:?}");
            }
        }
    }
}

#[test]
fn files_are_served_in_the_order_asked_for() {
    let mut plan = plan(Mix::Read, false, AccessPlan { files: FileOrder::Sequential, ..access() });
    plan.extents = vec![Extent { offset: 0, len: 8 * BLOCK }; 3];
    plan.bytes_per_loop = 24 * BLOCK;
    let files = |plan: &SourcePlan| requests(plan).iter().map(|request| request.file).collect::<Vec<_>>();
    assert_eq!(files(&plan), [[0; 8], [1; 8], [2; 8]].concat());
    plan.access = AccessPlan { file_run: 3, ..access() };
    assert_eq!(files(&plan), [0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 1, 1, 2, 2]);
    plan.access = AccessPlan { open_files: 2, ..access() };
    assert_eq!(files(&plan)[..17], [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2]);
    let zipf = FileOrder::Drawn(Distribution::Zipf { theta: 1.2, center: None });
    plan.access = AccessPlan { files: zipf, ..access() };
    let served = files(&plan);
    assert_eq!(served.len(), 24);
    assert!(served.iter().filter(|file| **file == 0).count() > 8, "the first file begins again: {served:?}");
}

/// As Debian's fio 3.33 has them.
#[test]
fn strided_zones_are_visited_in_turn() {
    let zones = StridedZones { size: 2 * BLOCK, range: 4 * BLOCK, skip: 4 * BLOCK };
    let mut plan = plan(Mix::Read, false, AccessPlan { zones: Some(zones), ..access() });
    (plan.extents[0].len, plan.bytes_per_loop) = (32 * BLOCK, 32 * BLOCK);
    assert_eq!(blocks(&plan), [0, 1, 8, 9, 16, 17, 24, 25].repeat(4));
    plan.pattern.random = true;
    let random = blocks(&plan);
    assert_eq!(random.len(), 32);
    assert!(random.iter().enumerate().all(|(at, block)| block / 8 == at as u64 / 2 % 4 && block % 8 < 4));
}

#[test]
fn a_time_limit_keeps_every_access_going() {
    for access in [
        AccessPlan { number_ios: 5, ..access() },
        AccessPlan { run: 4, ..access() },
        AccessPlan { skip: 4096, ..access() },
        AccessPlan { files: FileOrder::Drawn(Distribution::Random), ..access() },
        AccessPlan { distribution: PerOp::splat(Distribution::Pareto { h: 0.2, center: None }), ..access() },
    ] {
        for random in [false, true] {
            let plan = SourcePlan { loops: None, ..plan(Mix::Write, random, access.clone()) };
            assert_eq!(requests(&plan).len(), 100_000, "{plan:?}");
        }
    }
}
