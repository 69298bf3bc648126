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
        Slots {
            requests: vec![empty; depth as usize].into_boxed_slice(),
            stamps: vec![Stamp::FRESH; depth as usize].into_boxed_slice(),
            free: (0..depth).rev().collect(),
        }
    }

    /// Puts a new request into a free place.
    #[inline(always)]
    pub fn put(&mut self, slot: u32, request: Request) {
        self.requests[slot as usize] = request;
        self.stamps[slot as usize] = Stamp::FRESH;
    }
}
