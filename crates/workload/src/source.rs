//! The requests of one worker, in order.
//!
//! A pass covers the ranges once; a loop moves `bytes_per_loop`. The source decides the next request and the end of the
//! work; the driver decides pauses, timing and early stops.

mod plain;

use std::ops::RangeInclusive;

use fathom_model::plan::{Mix, Pattern};
use fathom_model::{BlockSize, Op, PerOp, Request};

use crate::mix::ReadShare;
use crate::mixed::MixedOffsets;
use crate::offset::{Extent, Offsets};
use crate::rng::Rng;
use crate::sync_countdown::SyncCountdown;
use plain::is_plain;

/// The input of a source; sizes are resolved to bytes.
#[derive(Clone, Debug)]
pub struct SourcePlan {
    /// Operations and order.
    pub pattern: Pattern,
    /// Bytes per request.
    pub block_size: PerOp<BlockSize>,
    /// Range of each file; at least one, each at least as long as the largest block.
    pub extents: Vec<Extent>,
    /// Visit each block once per pass.
    pub random_map: bool,
    /// Bytes to move per loop; ignored without a last loop.
    pub bytes_per_loop: u64,
    /// Number of loops; `None` = until the driver stops.
    pub loops: Option<u32>,
    /// fsync after this many writes; 0 = never.
    pub fsync_every: u32,
    /// fdatasync after this many writes; 0 = never.
    pub fdatasync_every: u32,
    /// The only source of randomness.
    pub seed: u64,
}

/// The offsets of each operation in one file.
#[derive(Clone, Debug)]
struct FileOffsets {
    base: u64,
    /// If operations of one block size share a random map, reads use the entry of writes.
    offsets: [Option<Offsets>; 3],
}

/// The orders of one file's operations of mixed sizes, indexed like the offsets of those of one size.
type MixedFile = [Option<MixedOffsets>; 3];

/// The offsets of one file, those of operations of one size and those of operations of mixed sizes.
fn offsets_of(
    plan: &SourcePlan,
    shared: [usize; 3],
    extent: Extent,
    rng: &mut Rng,
) -> (FileOffsets, MixedFile) {
    let used = used_ops(plan.pattern.mix);
    let (mut offsets, mut mixed) = ([const { None }; 3], [const { None }; 3]);
    let (random, random_map) = (plan.pattern.random, plan.random_map);
    for op in Op::DATA {
        let entry = op as usize;
        if !used[entry] || shared[entry] != entry {
            continue;
        }
        match &plan.block_size[op] {
            BlockSize::Fixed(size) => {
                let blocks = (extent.len / size).max(1);
                offsets[entry] = Some(Offsets::new(random, random_map, blocks, rng));
            }
            BlockSize::Split(split) => {
                mixed[entry] = Some(MixedOffsets::new(random, random_map, extent.len, split, rng));
            }
        }
    }
    (FileOffsets { base: extent.offset, offsets }, mixed)
}

/// The request stream of one worker.
#[derive(Clone, Debug)]
pub struct Source {
    mix: Mix,
    share: ReadShare,
    /// Bytes per request; 0 for mixed sizes.
    block_size: [u64; 3],
    /// Index of the offsets that each operation draws from.
    shared: [usize; 3],
    files: Vec<FileOffsets>,
    /// One entry per file.
    mixed: Vec<MixedFile>,
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
    /// All requests draw from one entry of one file, without syncs or other operations between them.
    plain: bool,
}

impl Source {
    /// The stream that `plan` describes.
    pub fn new(plan: &SourcePlan) -> Self {
        let mut offset_rng = Rng::stream(plan.seed, 1);
        let range: u64 = plan.extents.iter().map(|extent| extent.len).sum();
        let shared = share_maps(plan.pattern, &plan.block_size);
        let files = plan.extents.iter().map(|extent| offsets_of(plan, shared, *extent, &mut offset_rng));
        let (files, mixed) = files.unzip();
        // Endless work has no loops: each operation wraps after a pass, as in fio.
        let bytes_per_loop = if plan.loops.is_none() { u64::MAX } else { plan.bytes_per_loop };
        Source {
            mix: plan.pattern.mix,
            share: ReadShare::new(match plan.pattern.mix {
                Mix::ReadWrite { read_percent } => read_percent,
                _ => 0,
            }),
            block_size: Op::DATA.map(|op| match plan.block_size[op] {
                BlockSize::Fixed(size) => size,
                BlockSize::Split(_) => 0,
            }),
            shared,
            files,
            mixed,
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

    /// Passes up to `most` further requests to `each`; returns their number, fewer than `most` when the work is done.
    #[inline]
    pub fn next_requests(&mut self, most: u64, mut each: impl FnMut(Request)) -> u64 {
        let mut made = 0;
        while made < most {
            if self.plain {
                made += self.next_plain(most - made, &mut each);
                if made == most {
                    break;
                }
            }
            let Some(request) = self.next_request() else { break };
            each(request);
            made += 1;
        }
        made
    }

    /// The next request, or `None` when the work is done.
    #[inline]
    pub fn next_request(&mut self) -> Option<Request> {
        self.next_drawn(None)
    }

    /// As [`Source::next_request`], but of operation `op` of the job, whatever the mix says; only a sync that is due
    /// comes before it.
    pub fn next_request_of(&mut self, op: Op) -> Option<Request> {
        self.next_drawn(Some(op))
    }

    /// True if the next request is a sync that earlier writes made due.
    #[inline]
    pub fn sync_is_due(&self) -> bool {
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
            // After its pass has ended in every file, the operation wraps; if it may not, the loop ends. Mixed sizes
            // have no plain offsets and take this path, so that they cost requests of one size nothing.
            if let Some(request) = self.place(op).or_else(|| self.place_otherwise(op)) {
                self.account(&request);
                return Some(request);
            }
            if !self.next_loop() {
                return None;
            }
        }
    }

    /// True if no further request follows: a due sync is then omitted, as fio only issues one before a further request.
    fn is_spent(&self) -> bool {
        self.bytes_left == 0 && self.loops_left.is_some_and(|left| left <= 1)
    }

    /// A request of mixed sizes, or the first of a new pass of `op` if one is allowed.
    #[cold]
    fn place_otherwise(&mut self, op: Op) -> Option<Request> {
        let is_mixed = self.block_size[op as usize] == 0;
        if is_mixed && let Some(request) = self.place_mixed(op) {
            return Some(request);
        }
        let entry = self.shared[op as usize];
        self.wraps.then(|| self.restart(entry..=entry))?;
        if is_mixed { self.place_mixed(op) } else { self.place(op) }
    }

    /// A request for `op` in the next file that has a block left for it.
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

    /// As [`Source::place`], for mixed sizes.
    fn place_mixed(&mut self, op: Op) -> Option<Request> {
        let entry = self.shared[op as usize];
        for _ in 0..self.files.len() {
            let index = self.next_file;
            self.next_file = if index + 1 == self.files.len() { 0 } else { index + 1 };
            let mixed = self.mixed[index][entry].as_mut();
            if let Some((offset, size)) = mixed.and_then(|mixed| mixed.next_range(&mut self.offset_rng)) {
                let offset = self.files[index].base + offset;
                return Some(Request { op, file: index as u32, len: size as u32, offset });
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

    /// Makes a sync due after the write that completes its count. If both kinds are due, one fsync serves both.
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

    /// Begins the next loop; false after the last one.
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
        for mixed in self.mixed.iter_mut().flat_map(|file| file[entries.clone()].iter_mut()).flatten() {
            mixed.restart(&mut self.offset_rng);
        }
    }
}

/// Which of read, write and trim draw their own offsets (a write after a trim repeats the trim's).
fn used_ops(mix: Mix) -> [bool; 3] {
    match mix {
        Mix::Read => [true, false, false],
        Mix::Write => [false, true, false],
        Mix::Trim | Mix::TrimWrite => [false, false, true],
        Mix::ReadWrite { .. } => [true, true, false],
    }
}

/// Random reads and writes of the same sizes share one map, so that a pass visits each block once, by a read or a
/// write.
fn share_maps(pattern: Pattern, sizes: &PerOp<BlockSize>) -> [usize; 3] {
    let shares = pattern.random && matches!(pattern.mix, Mix::ReadWrite { .. }) && sizes.read == sizes.write;
    [if shares { 1 } else { 0 }, 1, 2]
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
