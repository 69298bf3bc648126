//! The requests of one worker, in order.
//!
//! A pass goes once over the used ranges; a loop moves `bytes_per_loop`. The source says what comes next and when the
//! work is done; pausing, timing and stopping early are the driver's.

use std::ops::RangeInclusive;

use fathom_model::plan::{Mix, Pattern};
use fathom_model::{Op, PerOp, Request};

use crate::mix::ReadShare;
use crate::offset::{Extent, Offsets};
use crate::rng::Rng;

/// What a source is made from; sizes are resolved to bytes.
#[derive(Clone, Debug)]
pub struct SourcePlan {
    /// Operations and order.
    pub pattern: Pattern,
    /// Bytes per request.
    pub block_size: PerOp<u64>,
    /// Used range of each file; at least one, each at least one block long.
    pub extents: Vec<Extent>,
    /// Visit each block once per pass.
    pub random_map: bool,
    /// Bytes to move per loop; without meaning where there is no last loop.
    pub bytes_per_loop: u64,
    /// How many loops; `None` = until the driver stops.
    pub loops: Option<u32>,
    /// fsync after this many writes; 0 = never.
    pub fsync_every: u32,
    /// fdatasync after this many writes; 0 = never.
    pub fdatasync_every: u32,
    /// Sole source of randomness.
    pub seed: u64,
}

/// The offsets of each operation in one file.
#[derive(Clone, Debug)]
struct FileOffsets {
    base: u64,
    /// Where operations of one block size share a random map, reads use the writes' entry.
    offsets: [Option<Offsets>; 3],
}

/// Counts writes down to the next sync.
#[derive(Clone, Debug)]
struct SyncCountdown {
    op: Op,
    every: u64,
    left: u64,
}

impl SyncCountdown {
    fn new(op: Op, every: u32) -> Self {
        let every = if every == 0 { u64::MAX } else { u64::from(every) };
        SyncCountdown { op, every, left: every }
    }

    /// Counts a write; true where a sync is due after it.
    #[inline(always)]
    fn count(&mut self) -> bool {
        self.left -= 1;
        let due = self.left == 0;
        if due {
            self.left = self.every;
        }
        due
    }
}

/// The request stream of one worker.
#[derive(Clone, Debug)]
pub struct Source {
    mix: Mix,
    share: ReadShare,
    block_size: [u64; 3],
    /// Index of the offsets that each operation draws from.
    shared: [usize; 3],
    files: Vec<FileOffsets>,
    next_file: usize,
    wraps: bool,
    bytes_per_loop: u64,
    bytes_left: u64,
    loops_left: Option<u32>,
    /// A request that is due before any new one: the write after a trim, or a sync.
    due: Option<Request>,
    syncs: [SyncCountdown; 2],
    op_rng: Rng,
    offset_rng: Rng,
    /// All requests draw from one entry of one file, and nothing comes between them.
    plain: bool,
}

impl Source {
    /// The stream that `plan` describes.
    pub fn new(plan: &SourcePlan) -> Self {
        let sizes = [plan.block_size.read, plan.block_size.write, plan.block_size.trim];
        let mut offset_rng = Rng::stream(plan.seed, 1);
        let range: u64 = plan.extents.iter().map(|extent| extent.len).sum();
        let used = used_ops(plan.pattern.mix);
        let shared = share_maps(plan.pattern, sizes);
        let files = plan.extents.iter().map(|extent| {
            let offsets = std::array::from_fn(|op| {
                (used[op] && shared[op] == op).then(|| {
                    let blocks = (extent.len / sizes[op]).max(1);
                    Offsets::new(plan.pattern.random, plan.random_map, blocks, &mut offset_rng)
                })
            });
            FileOffsets { base: extent.offset, offsets }
        });
        // Work without an end has no loops: each operation wraps where it has been everywhere, as fio's does.
        let bytes_per_loop = if plan.loops.is_none() { u64::MAX } else { plan.bytes_per_loop };
        Source {
            mix: plan.pattern.mix,
            share: ReadShare::new(match plan.pattern.mix {
                Mix::ReadWrite { read_percent } => read_percent,
                _ => 0,
            }),
            block_size: sizes,
            shared,
            files: files.collect(),
            next_file: 0,
            wraps: bytes_per_loop > range,
            bytes_per_loop,
            bytes_left: bytes_per_loop,
            loops_left: plan.loops,
            due: None,
            syncs: [
                SyncCountdown::new(Op::Sync, plan.fsync_every),
                SyncCountdown::new(Op::Datasync, plan.fdatasync_every),
            ],
            op_rng: Rng::stream(plan.seed, 2),
            offset_rng,
            plain: is_plain(plan, shared),
        }
    }

    /// Hands up to `most` further requests to `each`; answers how many. Fewer than asked for when the work is done.
    #[inline]
    pub fn next_requests(&mut self, most: u64, mut each: impl FnMut(Request)) -> u64 {
        let mut made = 0;
        while made < most {
            made += self.next_plain(most - made, &mut each);
            if made == most {
                break;
            }
            let Some(request) = self.next_request() else { break };
            each(request);
            made += 1;
        }
        made
    }

    /// What can be drawn in a row: requests of a plain source up to the end of its loop, or of a pass that is its last.
    #[inline(always)]
    fn next_plain(&mut self, most: u64, each: &mut impl FnMut(Request)) -> u64 {
        if !self.plain {
            return 0;
        }
        let size = self.block_size[self.plain_op() as usize];
        let whole = size.saturating_mul(most) <= self.bytes_left;
        let most = if whole { most } else { self.bytes_left.div_ceil(size) };
        let mut made = self.draw_plain(most, each);
        if made < most && self.wraps {
            made += self.wrap_plain(most - made, each);
        }
        self.bytes_left = self.bytes_left.saturating_sub(made * size);
        made
    }

    /// Requests of a plain source from the pass that has begun.
    #[inline(always)]
    fn draw_plain(&mut self, most: u64, each: &mut impl FnMut(Request)) -> u64 {
        let op = self.plain_op();
        let size = self.block_size[op as usize];
        let Some(file) = self.files.first_mut() else { return 0 };
        let Some(offsets) = &mut file.offsets[self.shared[op as usize]] else { return 0 };
        let (base, len) = (file.base, size as u32);
        let at = |op, block| Request { op, file: 0, len, offset: base + block * size };
        let rng = &mut self.offset_rng;
        if let Mix::ReadWrite { .. } = self.mix {
            return offsets.next_blocks(most, rng, |block| {
                let op = if self.share.next_is_read(&mut self.op_rng) { Op::Read } else { Op::Write };
                each(at(op, block));
            });
        }
        offsets.next_blocks(most, rng, |block| each(at(op, block)))
    }

    /// Requests of a plain source from new passes.
    #[cold]
    fn wrap_plain(&mut self, most: u64, each: &mut impl FnMut(Request)) -> u64 {
        let entry = self.shared[self.plain_op() as usize];
        let mut made = 0;
        while made < most {
            self.restart(entry..=entry);
            let drawn = self.draw_plain(most - made, each);
            if drawn == 0 {
                break;
            }
            made += drawn;
        }
        made
    }

    /// The operation whose size and offsets the requests of a plain source have.
    #[inline(always)]
    fn plain_op(&self) -> Op {
        match self.mix {
            Mix::Read => Op::Read,
            Mix::Trim => Op::Trim,
            _ => Op::Write,
        }
    }

    /// The next request, or `None` when the work is done.
    #[inline]
    pub fn next_request(&mut self) -> Option<Request> {
        self.next_drawn(None)
    }

    /// As [`Source::next_request`], of `op`, which must be one of the job's, whatever the mix says; only a sync that is
    /// owed comes before it.
    pub fn next_request_of(&mut self, op: Op) -> Option<Request> {
        self.next_drawn(Some(op))
    }

    /// True where the next request is a sync that the writes before it made due.
    #[inline]
    pub fn owes_sync(&self) -> bool {
        self.due.is_some_and(|request| request.op.is_sync())
    }

    #[inline(always)]
    fn next_drawn(&mut self, wanted: Option<Op>) -> Option<Request> {
        if let Some(request) = self.due.take()
            && !(request.op.is_sync() && self.is_spent())
        {
            self.count_write(&request);
            return Some(request);
        }
        loop {
            if self.bytes_left == 0 && !self.next_loop() {
                return None;
            }
            let op = match self.mix {
                Mix::Read => Op::Read,
                Mix::Write => Op::Write,
                Mix::Trim | Mix::TrimWrite => Op::Trim,
                Mix::ReadWrite { .. } if wanted.is_some() => wanted.unwrap_or(Op::Read),
                Mix::ReadWrite { .. } if self.share.next_is_read(&mut self.op_rng) => Op::Read,
                Mix::ReadWrite { .. } => Op::Write,
            };
            // Where its pass is over in every file, it wraps; where it may not, the loop is over.
            if let Some(request) = self.place(op).or_else(|| self.wrap(op)) {
                self.account(&request);
                return Some(request);
            }
            if !self.next_loop() {
                return None;
            }
        }
    }

    /// True where no new request will come: a sync is then left out, as fio only makes one before a further request.
    fn is_spent(&self) -> bool {
        self.bytes_left == 0 && self.loops_left.is_some_and(|left| left <= 1)
    }

    /// The first request of a new pass of `op`, where it may have one.
    #[cold]
    fn wrap(&mut self, op: Op) -> Option<Request> {
        let entry = self.shared[op as usize];
        self.wraps.then(|| self.restart(entry..=entry)).and_then(|()| self.place(op))
    }

    /// A request for `op` in the next file that still has a block for it.
    #[inline(always)]
    fn place(&mut self, op: Op) -> Option<Request> {
        let entry = self.shared[op as usize];
        let size = self.block_size[op as usize];
        for _ in 0..self.files.len() {
            let index = self.next_file;
            self.next_file = if index + 1 == self.files.len() { 0 } else { index + 1 };
            let file = &mut self.files[index];
            if let Some(block) = file.offsets[entry].as_mut().and_then(|o| o.next_block(&mut self.offset_rng))
            {
                return Some(Request {
                    op,
                    file: index as u32,
                    len: size as u32,
                    offset: file.base + block * size,
                });
            }
        }
        None
    }

    #[inline]
    fn account(&mut self, request: &Request) {
        if self.mix == Mix::TrimWrite {
            self.due = Some(Request { op: Op::Write, ..*request });
        }
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(request.len));
        self.count_write(request);
    }

    /// Makes a sync due after the write that completes its count. Where both kinds are due, fsync does for both.
    #[inline]
    fn count_write(&mut self, request: &Request) {
        if request.op == Op::Write {
            for sync in self.syncs.iter_mut().rev() {
                if sync.count() {
                    self.due = Some(Request { op: sync.op, file: request.file, len: 0, offset: 0 });
                }
            }
        }
    }

    /// Begins the next loop; false where there is none.
    fn next_loop(&mut self) -> bool {
        match &mut self.loops_left {
            Some(left) if *left <= 1 => {
                self.loops_left = Some(0);
                self.bytes_left = 0;
                return false;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        self.bytes_left = self.bytes_per_loop;
        self.restart(0..=2);
        true
    }

    /// Begins a new pass with these entries of every file's offsets.
    fn restart(&mut self, entries: RangeInclusive<usize>) {
        for file in &mut self.files {
            for offsets in file.offsets[entries.clone()].iter_mut().flatten() {
                offsets.restart(&mut self.offset_rng);
            }
        }
    }
}

/// True where every request draws from the same entry of the only file, and none makes another one due.
fn is_plain(plan: &SourcePlan, shared: [usize; 3]) -> bool {
    let one_entry = match plan.pattern.mix {
        Mix::Read | Mix::Write | Mix::Trim => true,
        Mix::ReadWrite { .. } => shared[0] == shared[1],
        Mix::TrimWrite => false,
    };
    one_entry && plan.extents.len() == 1 && plan.fsync_every == 0 && plan.fdatasync_every == 0
}

/// Which of read, write and trim draw offsets of their own (the write after a trim repeats the trim's).
fn used_ops(mix: Mix) -> [bool; 3] {
    match mix {
        Mix::Read => [true, false, false],
        Mix::Write => [false, true, false],
        Mix::Trim | Mix::TrimWrite => [false, false, true],
        Mix::ReadWrite { .. } => [true, true, false],
    }
}

/// Random reads and writes of one block size share one map, so that a pass visits each block once in either way.
fn share_maps(pattern: Pattern, sizes: [u64; 3]) -> [usize; 3] {
    let shares = pattern.random && matches!(pattern.mix, Mix::ReadWrite { .. }) && sizes[0] == sizes[1];
    [if shares { 1 } else { 0 }, 1, 2]
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, prop_assume, proptest};

    use super::*;

    fn plan(mix: Mix, random: bool) -> SourcePlan {
        SourcePlan {
            pattern: Pattern { mix, random },
            block_size: PerOp::splat(4096),
            extents: vec![Extent { offset: 8192, len: 100 * 4096 }],
            random_map: true,
            bytes_per_loop: 100 * 4096,
            loops: Some(1),
            fsync_every: 0,
            fdatasync_every: 0,
            seed: 1,
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

    /// What comes out in rows of `most` at a time.
    fn in_rows(plan: &SourcePlan, most: u64, limit: usize) -> Vec<Request> {
        let (mut source, mut all) = (Source::new(plan), Vec::new());
        while all.len() < limit && source.next_requests(most, |request| all.push(request)) == most {}
        all.truncate(limit);
        all
    }

    #[test]
    fn rows_of_requests_are_the_requests_one_by_one() {
        let mixes = [Mix::Read, Mix::Write, Mix::Trim, Mix::TrimWrite, Mix::ReadWrite { read_percent: 75 }];
        for (mix, random, map) in mixes.into_iter().flat_map(|mix| {
            [(false, true), (true, true), (true, false)].map(|(random, map)| (mix, random, map))
        }) {
            for (loops, bytes, files) in
                [(Some(1), 409_600, 1), (Some(3), 10_000, 1), (None, 409_600, 1), (Some(2), 1_000_000, 2)]
            {
                let mut plan = plan(mix, random);
                (plan.random_map, plan.loops, plan.bytes_per_loop) = (map, loops, bytes);
                plan.extents = vec![plan.extents[0]; files];
                let one_by_one = requests(&plan, 1000);
                for most in [1, 7, 64, 1000] {
                    assert_eq!(in_rows(&plan, most, 1000), one_by_one, "{plan:?} in rows of {most}");
                }
            }
        }
    }

    #[test]
    fn sequential_goes_through_in_order_and_stops() {
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
    fn mixed_random_shares_one_map() {
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
    fn several_files_take_turns() {
        let mut two = plan(Mix::Read, false);
        two.extents = vec![Extent { offset: 0, len: 2 * 4096 }, Extent { offset: 0, len: 4 * 4096 }];
        two.bytes_per_loop = 6 * 4096;
        let files: Vec<u32> = requests(&two, 100).iter().map(|r| r.file).collect();
        assert_eq!(files, [0, 1, 0, 1, 1, 1]);
    }

    #[test]
    fn without_an_end_it_never_stops() {
        let mut endless = plan(Mix::Read, true);
        endless.loops = None;
        assert_eq!(requests(&endless, 12_345).len(), 12_345);
    }

    #[test]
    fn without_an_end_the_whole_range_is_used_whatever_io_size_says() {
        let mut endless = plan(Mix::Read, false);
        (endless.loops, endless.bytes_per_loop) = (None, 4096);
        assert_eq!(blocks_visited(&requests(&endless, 100)), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn without_an_end_each_direction_goes_through_the_whole_range() {
        let mut endless = plan(Mix::ReadWrite { read_percent: 75 }, false);
        endless.loops = None;
        let all = requests(&endless, 400);
        for (op, count) in [(Op::Read, 300u64), (Op::Write, 100)] {
            let blocks: Vec<u64> =
                all.iter().filter(|r| r.op == op).map(|r| (r.offset - 8192) / 4096).collect();
            assert_eq!(blocks, (0..count).map(|i| i % 100).collect::<Vec<_>>(), "{op}");
        }
    }

    #[test]
    fn draws_may_repeat_but_stay_inside() {
        let mut free = plan(Mix::Write, true);
        free.random_map = false;
        let blocks = blocks_visited(&requests(&free, 1000));
        assert_eq!(blocks.len(), 100);
        assert!(blocks.windows(2).any(|pair| pair[0] == pair[1]));
        assert!(blocks.iter().all(|&block| block < 100));
    }

    proptest! {
        #[test]
        fn every_request_lies_inside_its_extent(
            len in 1u64..1_000_000, bs in 1u64..70_000, percent in 0u8..=100, random: bool, map: bool, seed: u64,
        ) {
            prop_assume!(len >= bs);
            let plan = SourcePlan {
                pattern: Pattern { mix: Mix::ReadWrite { read_percent: percent }, random },
                block_size: PerOp { read: bs, write: bs.div_ceil(2), trim: bs },
                extents: vec![Extent { offset: 512, len }],
                random_map: map,
                bytes_per_loop: len * 2,
                loops: Some(1),
                fsync_every: 7,
                fdatasync_every: 5,
                seed,
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
}
