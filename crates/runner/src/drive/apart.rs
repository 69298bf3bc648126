//! Requests that overlap one in flight wait for it (`serialize_overlap`).

use fathom_engine::Engine;
use fathom_model::{Op, Request};

use super::{Worker, place};
use crate::clock::Clock;
use crate::feed::Next;

/// The request that waits, and a list of the slots in use.
pub(super) struct Apart {
    held: Option<Request>,
    in_use: Box<[bool]>,
}

impl Apart {
    pub fn new(depth: u32) -> Apart {
        Apart { held: None, in_use: vec![false; depth as usize].into() }
    }
}

impl<C: Clock, E: Engine + ?Sized> Worker<C, E> {
    /// As `collect_closed`, but stops at a request that overlaps one in flight or in the batch, until one completes.
    #[inline(never)]
    pub(super) fn collect_apart(&mut self, room: u64) -> bool {
        for _ in 0..room {
            let request = match self.apart.held.take() {
                Some(request) => request,
                None => match self.feed.next(self.now) {
                    Next::Issue(request) => request,
                    Next::Done => return false,
                    Next::Pause | Next::NotBefore(_) => break,
                },
            };
            if self.overlaps(&request) {
                self.apart.held = Some(request);
                self.batching.full();
                break;
            }
            let Worker { filler, slots, engine, .. } = self;
            place(&mut slots.claim(1), request, filler, engine.as_mut());
        }
        true
    }

    /// Whether `request` shares bytes with one in flight or in the batch, of which one writes or trims.
    fn overlaps(&mut self, request: &Request) -> bool {
        let Worker { apart, slots, .. } = self;
        apart.in_use.fill(true);
        slots.unused().for_each(|slot| apart.in_use[slot as usize] = false);
        let used = apart.in_use.iter().zip(&slots.requests).filter(|(in_use, _)| **in_use);
        used.map(|(_, other)| other).any(|other| {
            let end = |request: &Request| request.offset + u64::from(request.len);
            other.file == request.file
                && !request.op.is_sync()
                && (modifies(other) || modifies(request))
                && other.offset < end(request)
                && request.offset < end(other)
        })
    }
}

fn modifies(request: &Request) -> bool {
    matches!(request.op, Op::Write | Op::Trim)
}
