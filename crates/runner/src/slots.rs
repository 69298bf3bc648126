//! The places in the depth: what each holds and when it began.

use fathom_model::{Op, Request};

/// One place in the depth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// What is still to be done of the request.
    pub request: Request,
    /// When the request was made, session ns.
    pub start: u64,
    /// When the engine had handed it over, session ns.
    pub issued: u64,
    /// Bytes already moved by earlier parts of a request that the device cut short.
    pub moved: u32,
}

/// All places of one worker, and which are free.
#[derive(Debug)]
pub(crate) struct Slots {
    pub all: Vec<Slot>,
    pub free: Vec<u32>,
}

impl Slots {
    pub fn new(depth: u32) -> Self {
        let request = Request { op: Op::Read, file: 0, len: 0, offset: 0 };
        let empty = Slot { request, start: 0, issued: 0, moved: 0 };
        Slots { all: vec![empty; depth as usize], free: (0..depth).rev().collect() }
    }
}
