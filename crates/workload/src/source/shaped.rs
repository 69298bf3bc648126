//! Access by distributions, runs, skips, orders of files and zones.
//!
//! Each operation has a [`Walk`] through the range of each file. Unlike uniform access, which draws batches of offsets,
//! each request is placed by itself.

mod walk;

use std::ops::RangeInclusive;

use fathom_model::plan::{AccessPlan, StridedZones};
use fathom_model::{Op, Request};

use super::chooser::FileChooser;
use super::stream::{Placement, Stream};
use super::{SourcePlan, share_maps, used_ops};
use crate::offset::Extent;
use crate::rng::Rng;
use walk::{Move, Walk};

/// A file, and the zone that it is in.
#[derive(Clone, Debug)]
struct File {
    extent: Extent,
    /// Start of the zone within the extent, and bytes moved in it.
    zone: u64,
    moved: u64,
    walks: [Option<Walk>; 3],
}

/// Offsets by distributions, runs, skips, orders of files and zones.
#[derive(Clone, Debug)]
pub(super) struct Shaped {
    files: Vec<File>,
    chooser: FileChooser,
    /// Index of the walk of each operation.
    shared: [usize; 3],
    random: bool,
    percent: [u8; 3],
    /// Requests per random offset, and those left in this run.
    run: u32,
    run_left: u32,
    run_repeats: bool,
    zones: Option<StridedZones>,
    /// Requests per loop, and those left in this one.
    number: u64,
    number_left: u64,
    rng: Rng,
    /// The state at the beginning of the first pass, where each has the same requests.
    first: Option<Box<Shaped>>,
    /// Offsets are drawn independently, so that no pass of the range ends.
    independent: bool,
    /// Passes that have ended.
    pub(super) passes: u64,
}

impl Stream<Shaped> {
    /// The stream that `plan` describes.
    pub(super) fn shaped(plan: &SourcePlan) -> Self {
        let access = &plan.access;
        let mut rng = Rng::stream(plan.seed, 1);
        let shared = shared_walks(plan);
        let mut files: Vec<File> = Vec::with_capacity(plan.extents.len());
        for &extent in &plan.extents {
            let walks = walks_of(plan, shared, extent, files.last().map(|file| &file.walks), &mut rng);
            files.push(File { extent, zone: 0, moved: 0, walks });
        }
        let count = files.len() as u32;
        let chooser = FileChooser::new(&access.files, access.file_run, access.open_files, count, &mut rng);
        let number = if access.number_ios == 0 { u64::MAX } else { access.number_ios };
        let mut walks = files.iter().flat_map(|file| &file.walks).flatten();
        let independent = walks.any(Walk::is_independent);
        let shaped = Shaped {
            files,
            chooser,
            shared,
            random: plan.pattern.random,
            percent: [
                access.percentage_random.read,
                access.percentage_random.write,
                access.percentage_random.trim,
            ],
            run: access.run.max(1),
            run_left: 0,
            run_repeats: access.run_repeats,
            zones: access.zones,
            number,
            number_left: number,
            first: None,
            independent,
            passes: 0,
            rng,
        };
        let first = plan.repeats.then(|| Box::new(shaped.clone()));
        let mut stream = Stream::new(plan, Shaped { first, ..shaped });
        // These move the bytes of a pass in more than one, or in part of one.
        stream.wraps |= access.skip < 0 || access.zones.is_some();
        stream
    }

    /// Passes up to `most` further requests to `each`; returns their number, fewer than `most` when the work is done.
    #[inline(never)]
    pub(super) fn next_shaped(&mut self, most: u64, mut each: impl FnMut(Request)) -> u64 {
        for made in 0..most {
            let Some(request) = self.next_request() else { return made };
            each(request);
        }
        most
    }
}

impl Shaped {
    /// How the next request of `op` relates to the one before it. As in fio, a run counts the requests of all
    /// operations, and some requests of a random job are not random.
    fn next_move(&mut self, op: Op) -> Move {
        if !self.random {
            return Move::Follow;
        }
        if self.run_left > 0 {
            return if self.run_repeats { Move::Repeat } else { Move::Follow };
        }
        let percent = u64::from(self.percent[op as usize]);
        if percent == 100 || self.rng.below(100) < percent { Move::Draw } else { Move::Follow }
    }

    /// Goes to the next zone if the current one has had its bytes.
    fn leave_zone(&mut self, index: usize, len: u64) {
        let Some(zones) = self.zones else { return };
        let file = &mut self.files[index];
        file.moved += len;
        if file.moved < zones.size {
            return;
        }
        file.moved = 0;
        let next = file.zone.saturating_add(zones.range).saturating_add(zones.skip);
        let fits = next.checked_add(zones.range).is_some_and(|end| end <= file.extent.len);
        file.zone = if fits { next } else { 0 };
        file.walks.iter_mut().flatten().for_each(|walk| walk.restart(&mut self.rng));
    }

    /// A request of `op` in file `index`, if its pass has one left.
    fn place_in(&mut self, index: usize, op: Op, how: Move) -> Option<Request> {
        let file = &mut self.files[index];
        let walk = file.walks[self.shared[op as usize]].as_mut()?;
        let (offset, len) = walk.next(op, how, &mut self.rng)?;
        let offset = file.extent.offset + file.zone + offset;
        self.leave_zone(index, len);
        Some(Request { op, file: index as u32, len: len as u32, offset })
    }
}

impl Placement for Shaped {
    fn place(&mut self, op: Op) -> Option<Request> {
        if self.number_left == 0 {
            return None;
        }
        let how = self.next_move(op);
        loop {
            let index = self.chooser.current()?;
            let mut placed = self.place_in(index, op, how);
            if placed.is_none() && (self.chooser.keeps_ended() || self.zones.is_some()) {
                let entry = self.shared[op as usize];
                if let Some(walk) = self.files[index].walks[entry].as_mut() {
                    walk.restart(&mut self.rng);
                }
                placed = self.place_in(index, op, how);
            }
            if placed.is_some() {
                self.chooser.used(&mut self.rng);
                self.run_left = if self.run_left == 0 { self.run - 1 } else { self.run_left - 1 };
                self.number_left -= 1;
                return placed;
            }
            self.chooser.ended(&mut self.rng);
        }
    }

    #[cold]
    fn place_otherwise(&mut self, op: Op, wraps: bool) -> Option<Request> {
        if !wraps || self.number_left == 0 {
            return None;
        }
        let (entry, number) = (self.shared[op as usize], self.number_left);
        self.passes += u64::from(!self.independent);
        self.restart(entry..=entry);
        self.number_left = number;
        self.place(op)
    }

    fn is_over(&self) -> bool {
        self.number_left == 0
    }

    fn end_pass(&mut self) {
        self.passes += 1;
    }

    fn restart(&mut self, entries: RangeInclusive<usize>) {
        self.number_left = self.number;
        if let Some(first) = &self.first {
            for (file, first) in self.files.iter_mut().zip(&first.files) {
                (file.zone, file.moved) = (first.zone, first.moved);
                file.walks[entries.clone()].clone_from_slice(&first.walks[entries.clone()]);
            }
            (self.rng, self.chooser) = (first.rng.clone(), first.chooser.clone());
            self.run_left = 0;
            return;
        }
        for walk in self.files.iter_mut().flat_map(|file| file.walks[entries.clone()].iter_mut()).flatten() {
            walk.restart(&mut self.rng);
        }
        self.chooser.restart(&mut self.rng);
    }
}

/// Index of the walk of each operation: reads share that of writes where they share a map.
fn shared_walks(plan: &SourcePlan) -> [usize; 3] {
    let AccessPlan { distribution, align, percentage_random, .. } = &plan.access;
    let is_alike = distribution.read == distribution.write
        && align.read == align.write
        && percentage_random.read == percentage_random.write;
    if is_alike { share_maps(plan.pattern, &plan.block_size) } else { [0, 1, 2] }
}

fn walks_of(
    plan: &SourcePlan,
    shared: [usize; 3],
    extent: Extent,
    like: Option<&[Option<Walk>; 3]>,
    rng: &mut Rng,
) -> [Option<Walk>; 3] {
    let used = used_ops(plan.pattern.mix);
    let len = plan.access.zones.map_or(extent.len, |zones| zones.range.min(extent.len));
    let mut walks = [const { None }; 3];
    for op in Op::DATA {
        let entry = op as usize;
        if used[entry] && shared[entry] == entry {
            let like = like.and_then(|walks| walks[entry].as_ref());
            walks[entry] = Some(Walk::new(plan, op, len, like, rng));
        }
    }
    walks
}

#[cfg(test)]
#[path = "shaped_tests.rs"]
mod tests;
