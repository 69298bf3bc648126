//! The requests of one worker, in order.
//!
//! A pass covers the ranges once; a loop moves `bytes_per_loop`. The source decides the next request and the end of the
//! work; the driver decides pauses, timing and early stops.

mod chooser;
mod plain;
mod shaped;
mod stream;
mod uniform;

use fathom_model::plan::{AccessPlan, Mix, Pattern};
use fathom_model::{BlockSize, Op, PerOp, Request};

use crate::offset::Extent;
use shaped::Shaped;
use stream::Stream;
use uniform::Uniform;

/// The input of a source; sizes are resolved to bytes.
#[derive(Clone, Debug)]
pub struct SourcePlan {
    /// Operations and order.
    pub pattern: Pattern,
    /// Bytes per request.
    pub block_size: PerOp<BlockSize>,
    /// Range of each file; at least one, each at least as long as the largest block.
    pub extents: Vec<Extent>,
    /// The ranges end where the files end.
    pub to_file_ends: bool,
    /// Visit each block once per pass.
    pub random_map: bool,
    /// Deviations from sequential or uniformly random access.
    pub access: AccessPlan,
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
    /// Every pass has the random numbers of the first, so that offsets drawn without a map are the same in each.
    pub repeats: bool,
}

/// The request stream of one worker.
#[derive(Clone, Debug)]
pub struct Source(Kind);

/// The kind of a stream, chosen once by the plan.
#[derive(Clone, Debug)]
enum Kind {
    /// Files in turn, sequentially or uniformly at random.
    Uniform(Stream<Uniform>),
    /// Distributions, runs, orders of files, zones.
    Shaped(Stream<Shaped>),
}

impl Source {
    /// The stream that `plan` describes.
    pub fn new(plan: &SourcePlan) -> Self {
        Source(match plan.access.is_uniform() {
            true => Kind::Uniform(Stream::uniform(plan)),
            false => Kind::Shaped(Stream::shaped(plan)),
        })
    }

    /// Passes up to `most` further requests to `each`; returns their number, fewer than `most` when the work is done.
    #[inline]
    pub fn next_requests(&mut self, most: u64, each: impl FnMut(Request)) -> u64 {
        match &mut self.0 {
            Kind::Uniform(source) => source.next_requests(most, each),
            Kind::Shaped(source) => source.next_shaped(most, each),
        }
    }

    /// The next request, or `None` when the work is done.
    #[inline]
    pub fn next_request(&mut self) -> Option<Request> {
        match &mut self.0 {
            Kind::Uniform(source) => source.next_request(),
            Kind::Shaped(source) => source.next_request(),
        }
    }

    /// As [`Source::next_request`], but of operation `op` of the job, whatever the mix says; only a sync that is due
    /// comes before it.
    pub fn next_request_of(&mut self, op: Op) -> Option<Request> {
        match &mut self.0 {
            Kind::Uniform(source) => source.next_request_of(op),
            Kind::Shaped(source) => source.next_request_of(op),
        }
    }

    /// True if the next request is a sync that earlier writes made due.
    #[inline]
    pub fn sync_is_due(&self) -> bool {
        match &self.0 {
            Kind::Uniform(source) => source.sync_is_due(),
            Kind::Shaped(source) => source.sync_is_due(),
        }
    }

    /// Passes that have ended, by a wrap or by a loop; those of reads and writes of a sequential mix end apart and count each.
    #[inline]
    pub fn passes(&self) -> u64 {
        match &self.0 {
            Kind::Uniform(source) => source.placement.passes,
            Kind::Shaped(source) => source.placement.passes,
        }
    }

    /// Begins a further loop after the last one.
    pub fn begin_loop(&mut self) {
        match &mut self.0 {
            Kind::Uniform(source) => source.begin_loop(),
            Kind::Shaped(source) => source.begin_loop(),
        }
    }
}

impl SourcePlan {
    /// Whether a loop goes through a range more than once with writes of several sizes, which then overlap those before.
    pub fn tiles_anew(&self) -> bool {
        let range: u64 = self.extents.iter().map(|extent| extent.len).sum();
        self.bytes_per_loop > range && !matches!(self.block_size.write, BlockSize::Fixed(_))
    }
}

/// Which of read, write and trim draw their own offsets (a write after a trim repeats the trim's).
fn used_ops(mix: Mix) -> [bool; 3] {
    match mix {
        Mix::Read => [true, false, false],
        Mix::Write => [false, true, false],
        Mix::Trim | Mix::TrimWrite => [false, false, true],
        Mix::ReadWrite { .. } => [true, true, false],
        Mix::ReadWriteTrim => [true; 3],
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
