use std::collections::BTreeSet;

use proptest::{prop_assert, prop_assert_eq, prop_assume, proptest};

use super::*;

fn plan(mix: Mix, random: bool) -> SourcePlan {
    SourcePlan {
        pattern: Pattern { mix, random },
        block_size: PerOp::splat(4096.into()),
        extents: vec![Extent { offset: 8192, len: 100 * 4096 }],
        random_map: true,
        access: AccessPlan::default(),
        bytes_per_loop: 100 * 4096,
        loops: Some(1),
        fsync_every: 0,
        fdatasync_every: 0,
        seed: 1,
        repeats: false,
        to_file_ends: true,
    }
}

fn requests(plan: &SourcePlan, limit: usize) -> Vec<Request> {
    let mut source = Source::new(plan);
    std::iter::from_fn(|| source.next_request()).take(limit).collect()
}

fn blocks_visited(requests: &[Request]) -> Vec<u64> {
    let mut blocks: Vec<u64> = requests.iter().map(|r| (r.offset - 8192) / 4096).collect();
    blocks.sort_unstable();
    blocks
}

/// The requests, drawn `most` at a time.
fn in_batches(plan: &SourcePlan, most: u64, limit: usize) -> Vec<Request> {
    let (mut source, mut all) = (Source::new(plan), Vec::new());
    while all.len() < limit && source.next_requests(most, |request| all.push(request)) == most {}
    all.truncate(limit);
    all
}

#[test]
fn batches_contain_the_same_requests_as_single_draws() {
    let mixes = [Mix::Read, Mix::Write, Mix::Trim, Mix::TrimWrite, Mix::ReadWrite { read_percent: 75 }];
    for (mix, random, map) in mixes
        .into_iter()
        .flat_map(|mix| [(false, true), (true, true), (true, false)].map(|(random, map)| (mix, random, map)))
    {
        for (loops, bytes, files) in
            [(Some(1), 409_600, 1), (Some(3), 10_000, 1), (None, 409_600, 1), (Some(2), 1_000_000, 2)]
        {
            let mut plan = plan(mix, random);
            (plan.random_map, plan.loops, plan.bytes_per_loop) = (map, loops, bytes);
            plan.extents = vec![plan.extents[0]; files];
            let one_by_one = requests(&plan, 1000);
            for most in [1, 7, 64, 1000] {
                assert_eq!(in_batches(&plan, most, 1000), one_by_one, "{plan:?} in batches of {most}");
            }
        }
    }
}

#[test]
fn sequential_offsets_are_in_order_and_end() {
    let all = requests(&plan(Mix::Write, false), 1000);
    let offsets: Vec<u64> = all.iter().map(|r| r.offset).collect();
    assert_eq!(offsets, (0..100).map(|i| 8192 + i * 4096).collect::<Vec<_>>());
}

#[test]
fn random_visits_every_block_once_per_pass_in_a_new_order() {
    let mut two = plan(Mix::Read, true);
    two.loops = Some(2);
    let all = requests(&two, 1000);
    assert_eq!(all.len(), 200);
    assert_eq!(blocks_visited(&all[..100]), (0..100).collect::<Vec<_>>());
    assert_eq!(blocks_visited(&all[100..]), (0..100).collect::<Vec<_>>());
    assert_ne!(all[..100], all[100..]);
}

#[test]
fn random_reads_and_writes_share_one_map() {
    let all = requests(&plan(Mix::ReadWrite { read_percent: 75 }, true), 1000);
    assert_eq!(blocks_visited(&all), (0..100).collect::<Vec<_>>());
    assert_eq!(all.iter().filter(|r| r.op == Op::Read).count(), 75);
}

#[test]
fn mixed_sequential_has_a_position_per_operation() {
    let all = requests(&plan(Mix::ReadWrite { read_percent: 50 }, false), 1000);
    for op in [Op::Read, Op::Write] {
        let offsets: Vec<u64> = all.iter().filter(|r| r.op == op).map(|r| r.offset).collect();
        assert_eq!(offsets, (0..50).map(|i| 8192 + i * 4096).collect::<Vec<_>>());
    }
}

#[test]
fn syncs_follow_their_writes() {
    let mut synced = plan(Mix::Write, false);
    synced.fdatasync_every = 3;
    let ops: Vec<Op> = requests(&synced, 8).iter().map(|r| r.op).collect();
    use Op::{Datasync, Write};
    assert_eq!(ops, [Write, Write, Write, Datasync, Write, Write, Write, Datasync]);
}

#[test]
fn both_kinds_of_sync_count_every_write() {
    let mut synced = plan(Mix::Write, false);
    (synced.fsync_every, synced.fdatasync_every) = (2, 3);
    let letters: String = requests(&synced, 15)
        .iter()
        .map(|r| match r.op {
            Op::Sync => 'S',
            Op::Datasync => 'D',
            _ => 'w',
        })
        .collect();
    assert_eq!(letters, "wwSwDwSwwSwwSwD", "as fio does: after 2, 3, 4, 6, 8 and 9 writes");
}

#[test]
fn no_sync_follows_the_last_write() {
    let mut synced = plan(Mix::Write, false);
    synced.fsync_every = 1;
    let all = requests(&synced, 1000);
    assert_eq!(all.iter().filter(|r| r.op == Op::Sync).count(), 99);
    assert_eq!(all.last().map(|r| r.op), Some(Op::Write));
}

#[test]
fn trim_write_trims_each_block_before_writing_it() {
    let all = requests(&plan(Mix::TrimWrite, true), 1000);
    assert_eq!(all.len(), 200);
    for pair in all.chunks(2) {
        assert_eq!((pair[0].op, pair[1].op, pair[0].offset), (Op::Trim, Op::Write, pair[1].offset));
    }
}

#[test]
fn writes_after_trims_are_synced_too() {
    let mut synced = plan(Mix::TrimWrite, false);
    synced.fsync_every = 2;
    let ops: Vec<Op> = requests(&synced, 6).iter().map(|r| r.op).collect();
    assert_eq!(ops, [Op::Trim, Op::Write, Op::Trim, Op::Write, Op::Sync, Op::Trim]);
}

#[test]
fn io_size_below_and_above_size() {
    let mut part = plan(Mix::Read, false);
    part.bytes_per_loop = 10_000;
    assert_eq!(requests(&part, 1000).len(), 3);
    part.bytes_per_loop = 250 * 4096;
    let all = requests(&part, 1000);
    assert_eq!(all.len(), 250);
    assert_eq!(all[100].offset, 8192);
}

#[test]
fn files_are_used_round_robin() {
    let mut two = plan(Mix::Read, false);
    two.extents = vec![Extent { offset: 0, len: 2 * 4096 }, Extent { offset: 0, len: 4 * 4096 }];
    two.bytes_per_loop = 6 * 4096;
    let files: Vec<u32> = requests(&two, 100).iter().map(|r| r.file).collect();
    assert_eq!(files, [0, 1, 0, 1, 1, 1]);
}

#[test]
fn endless_work_never_stops() {
    let mut endless = plan(Mix::Read, true);
    endless.loops = None;
    assert_eq!(requests(&endless, 12_345).len(), 12_345);
}

#[test]
fn endless_work_uses_the_whole_range_and_ignores_io_size() {
    let mut endless = plan(Mix::Read, false);
    (endless.loops, endless.bytes_per_loop) = (None, 4096);
    assert_eq!(blocks_visited(&requests(&endless, 100)), (0..100).collect::<Vec<_>>());
}

#[test]
fn in_endless_work_each_direction_covers_the_whole_range() {
    let mut endless = plan(Mix::ReadWrite { read_percent: 75 }, false);
    endless.loops = None;
    let all = requests(&endless, 400);
    for (op, count) in [(Op::Read, 300u64), (Op::Write, 100)] {
        let blocks: Vec<u64> = all.iter().filter(|r| r.op == op).map(|r| (r.offset - 8192) / 4096).collect();
        assert_eq!(blocks, (0..count).map(|i| i % 100).collect::<Vec<_>>(), "{op}");
    }
}

#[test]
fn independent_draws_may_repeat_and_stay_inside() {
    let mut free = plan(Mix::Write, true);
    free.random_map = false;
    let blocks = blocks_visited(&requests(&free, 1000));
    assert_eq!(blocks.len(), 100);
    assert!(blocks.windows(2).any(|pair| pair[0] == pair[1]));
    assert!(blocks.iter().all(|&block| block < 100));
}

/// What a job without a random map has written, a later one reads back, though it has more passes.
#[test]
fn repeated_passes_draw_the_same_offsets() {
    let split = BlockSize::of_shares(&[(4096, 50), (8192, 50)]).unwrap();
    for (random_map, size) in [(true, &BlockSize::from(4096)), (true, &split), (false, &split)] {
        let plan = |mix, loops| SourcePlan {
            random_map,
            block_size: PerOp::splat(size.clone()),
            loops: Some(loops),
            repeats: true,
            ..plan(mix, true)
        };
        let written = requests(&plan(Mix::Write, 3), 10_000);
        let one = requests(&plan(Mix::Read, 1), 10_000);
        let places = |made: &[Request]| made.iter().map(|made| (made.offset, made.len)).collect::<Vec<_>>();
        assert_eq!(places(&written), places(&one).repeat(3), "{random_map} {size:?}");
    }
    let offsets = |mix, repeats, access: &AccessPlan| {
        let plan =
            SourcePlan { random_map: false, loops: None, repeats, access: access.clone(), ..plan(mix, true) };
        let mut source = Source::new(&plan);
        let mut of_pass = || -> BTreeSet<u64> {
            let requests = (0..100).map(|_| source.next_request().expect("it is endless").offset);
            requests.collect()
        };
        [of_pass(), of_pass(), of_pass()]
    };
    let shaped = AccessPlan { run: 2, ..AccessPlan::default() };
    for access in [&AccessPlan::default(), &shaped] {
        let written = offsets(Mix::Write, true, access);
        assert!(written[0] == written[1] && written[1] == written[2], "{access:?}");
        assert_eq!(written, offsets(Mix::Read, true, access));
        let others = offsets(Mix::Write, false, access);
        assert!(others[0] == written[0] && others[1] != others[2]);
    }
}

#[test]
fn passes_end_where_a_range_is_covered_or_a_loop_ends() {
    let shaped = AccessPlan { run: 2, ..AccessPlan::default() };
    for access in [AccessPlan::default(), shaped] {
        for (random, random_map, endless) in [(true, true, 3), (true, false, 0), (false, true, 3)] {
            let plan = SourcePlan { random_map, access: access.clone(), ..plan(Mix::Write, random) };
            let passes = |loops| {
                let mut source = Source::new(&SourcePlan { loops, ..plan.clone() });
                (0..350).for_each(|_| _ = source.next_request());
                source.passes()
            };
            let covers = !random || random_map;
            let endless = if covers { endless } else { 0 };
            assert_eq!((passes(None), passes(Some(4))), (endless, 3), "{random} {random_map} {access:?}");
        }
    }
}

proptest! {
    #[test]
    fn every_request_lies_inside_its_extent(
        len in 1u64..1_000_000, bs in 1u64..70_000, percent in 0u8..=100, random: bool, map: bool, seed: u64,
    ) {
        prop_assume!(len >= bs);
        let plan = SourcePlan {
            pattern: Pattern { mix: Mix::ReadWrite { read_percent: percent }, random },
            block_size: PerOp { read: bs, write: bs.div_ceil(2), trim: bs }.map(BlockSize::from),
            extents: vec![Extent { offset: 512, len }],
            random_map: map,
            access: AccessPlan::default(),
            bytes_per_loop: len * 2,
            loops: Some(1),
            fsync_every: 7,
            fdatasync_every: 5,
            seed,
            repeats: false,
            to_file_ends: true,
        };
        let mut source = Source::new(&plan);
        for _ in 0..5_000 {
            let Some(request) = source.next_request() else { break };
            if !request.op.is_sync() {
                prop_assert!(request.offset >= 512 && request.offset + u64::from(request.len) <= 512 + len);
            }
        }
        let again: Vec<Request> = requests(&plan, 50);
        prop_assert_eq!(again, requests(&plan, 50));
    }
}
