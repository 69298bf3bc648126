//! Access to the files in turn, sequentially or uniformly at random.

use std::ops::RangeInclusive;

use fathom_model::{BlockSize, Op, Request};

use super::plain::is_plain;
use super::stream::{Placement, Stream};
use super::{SourcePlan, share_maps, used_ops};
use crate::mixed::MixedOffsets;
use crate::offset::{Extent, Offsets};
use crate::rng::Rng;

/// The offsets of each operation in one file.
#[derive(Clone, Debug)]
pub(super) struct FileOffsets {
    pub(super) base: u64,
    /// If operations of one block size share a random map, reads use the entry of writes.
    pub(super) offsets: [Option<Offsets>; 3],
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
            sizes @ (BlockSize::Split(_) | BlockSize::Range(_)) => {
                mixed[entry] = Some(MixedOffsets::new(random, random_map, extent.len, sizes, rng));
            }
        }
    }
    (FileOffsets { base: extent.offset, offsets }, mixed)
}

/// Offsets of the files in turn.
#[derive(Clone, Debug)]
pub(super) struct Uniform {
    /// Bytes per request; 0 for mixed sizes.
    pub(super) block_size: [u64; 3],
    /// Index of the offsets that each operation draws from.
    pub(super) shared: [usize; 3],
    pub(super) files: Vec<FileOffsets>,
    /// One entry per file.
    mixed: Vec<MixedFile>,
    next_file: usize,
    pub(super) offset_rng: Rng,
    /// All requests draw from one entry of one file, without syncs or other operations between them.
    plain: bool,
    /// The state at the beginning of the first pass, where each has the same requests.
    first: Option<Box<FirstPass>>,
    /// Offsets are drawn independently, so that no pass of the range ends.
    independent: bool,
    /// Passes that have ended.
    pub(super) passes: u64,
}

/// What a pass begins with.
#[derive(Clone, Debug)]
struct FirstPass {
    files: Vec<FileOffsets>,
    mixed: Vec<MixedFile>,
    rng: Rng,
}

impl Stream<Uniform> {
    /// The stream of uniform access that `plan` describes.
    pub(super) fn uniform(plan: &SourcePlan) -> Self {
        let mut offset_rng = Rng::stream(plan.seed, 1);
        let shared = share_maps(plan.pattern, &plan.block_size);
        let files = plan.extents.iter().map(|extent| offsets_of(plan, shared, *extent, &mut offset_rng));
        let (files, mixed): (Vec<FileOffsets>, Vec<MixedFile>) = files.unzip();
        let block_size = Op::DATA.map(|op| match plan.block_size[op] {
            BlockSize::Fixed(size) => size,
            BlockSize::Split(_) | BlockSize::Range(_) => 0,
        });
        let plain = is_plain(plan, shared);
        let first = || FirstPass { files: files.clone(), mixed: mixed.clone(), rng: offset_rng.clone() };
        let first = plan.repeats.then(|| Box::new(first()));
        let placement = Uniform {
            block_size,
            shared,
            files,
            mixed,
            next_file: 0,
            offset_rng,
            plain,
            first,
            independent: plan.pattern.random && !plan.random_map,
            passes: 0,
        };
        Stream::new(plan, placement)
    }

    /// Passes up to `most` further requests to `each`; returns their number, fewer than `most` when the work is done.
    #[inline]
    pub(super) fn next_requests(&mut self, most: u64, mut each: impl FnMut(Request)) -> u64 {
        let mut made = 0;
        while made < most {
            if self.placement.plain {
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
}

impl Placement for Uniform {
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

    /// Mixed sizes have no plain offsets and take this path, so that they cost requests of one size nothing.
    #[cold]
    fn place_otherwise(&mut self, op: Op, wraps: bool) -> Option<Request> {
        let is_mixed = self.block_size[op as usize] == 0;
        if is_mixed && let Some(request) = self.place_mixed(op) {
            return Some(request);
        }
        let entry = self.shared[op as usize];
        wraps.then(|| self.wrap(entry))?;
        if is_mixed { self.place_mixed(op) } else { self.place(op) }
    }

    fn end_pass(&mut self) {
        self.passes += 1;
    }

    /// Begins a new pass with these entries of every file's offsets.
    fn restart(&mut self, entries: RangeInclusive<usize>) {
        if let Some(first) = &self.first {
            self.offset_rng = first.rng.clone();
            self.next_file = 0;
            for (file, first) in self.files.iter_mut().zip(&first.files) {
                file.offsets[entries.clone()].clone_from_slice(&first.offsets[entries.clone()]);
            }
            for (file, first) in self.mixed.iter_mut().zip(&first.mixed) {
                file[entries.clone()].clone_from_slice(&first[entries.clone()]);
            }
            return;
        }
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

impl Uniform {
    /// Begins a new pass with this entry of every file's offsets, in the middle of a loop.
    pub(super) fn wrap(&mut self, entry: usize) {
        self.passes += u64::from(!self.independent);
        self.restart(entry..=entry);
    }

    /// As [`Placement::place`], for mixed sizes.
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
}
