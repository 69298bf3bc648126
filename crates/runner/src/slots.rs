//! The places in the depth: what each holds and when it began.

use fathom_model::{Op, Request};

/// When the request of one place began, and how far it has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// When the request was made, session ns; [`Stamp::UNSET`] until it is offered.
    pub start: u64,
    /// When the engine had handed it over, session ns.
    pub issued: u64,
    /// Bytes already moved by earlier parts of a request that the device cut short.
    pub moved: u32,
}

impl Stamp {
    /// A start that is not known yet.
    pub const UNSET: u64 = u64::MAX;
    /// Of a request that has just been made.
    pub const FRESH: Stamp = Stamp { start: Stamp::UNSET, issued: 0, moved: 0 };
}

/// Elements to make room for where `depth` are used: small allocations of several workers may lie side by side, and then
/// write to one cache line.
pub(crate) const fn room(depth: u32) -> usize {
    const LEAST: u32 = 64;
    (if depth < LEAST { LEAST } else { depth }) as usize
}

/// All places of one worker, and which are free.
#[derive(Debug)]
pub(crate) struct Slots {
    /// What is still to be done of each place's request.
    pub requests: Box<[Request]>,
    pub stamps: Box<[Stamp]>,
    pub free: Vec<u32>,
}

impl Slots {
    pub fn new(depth: u32) -> Self {
        let empty = Request { op: Op::Read, file: 0, len: 0, offset: 0 };
        let mut free = Vec::with_capacity(room(depth));
        free.extend((0..depth).rev());
        Slots {
            requests: vec![empty; room(depth)].into_boxed_slice(),
            stamps: vec![Stamp::FRESH; room(depth)].into_boxed_slice(),
            free,
        }
    }

    /// Puts a new request into a free place.
    #[inline(always)]
    pub fn put(&mut self, slot: u32, request: Request) {
        self.requests[slot as usize] = request;
        self.stamps[slot as usize] = Stamp::FRESH;
    }
}
