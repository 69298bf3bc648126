//! Moves nothing: every request succeeds immediately. Measures the overhead of fathom itself.
//!
//! At queue depth 1 a request completes when it is queued; above, it takes the path of an asynchronous one.

use fathom_model::{Nanos, Request};

use crate::{Completion, Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, Queued, Reaped};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "null",
    aliases: &[],
    doc: "Completes every request immediately and moves nothing: measures fathom's own overhead.",
    traits: EngineTraits {
        needs_files: false,
        moves_data: false,
        synchronous_alone: true,
        ..EngineTraits::ASYNCHRONOUS
    },
    options: &[],
    open,
};

struct Null {
    depth: u32,
    queued: Vec<Completion>,
    /// Number of submitted requests, from the start of `queued`.
    submitted: usize,
}

fn open(setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    let depth = setup.depth.max(1);
    Ok(Box::new(Null { depth, queued: Vec::with_capacity(depth as usize), submitted: 0 }))
}

impl Engine for Null {
    #[inline]
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let whole = |slot: u32| i64::from(requests[slot as usize].len);
        if let (1, Some(&slot)) = (self.depth, slots.first()) {
            return Queued::Done(whole(slot));
        }
        let room = self.depth as usize - self.queued.len();
        let accepted = &slots[..slots.len().min(room)];
        self.queued.extend(accepted.iter().map(|&slot| Completion { slot, result: whole(slot) }));
        Queued::Accepted(accepted.len() as u32)
    }

    #[inline]
    fn submit(&mut self) -> Result<u32, EngineError> {
        let gone = self.queued.len() - self.submitted;
        self.submitted = self.queued.len();
        Ok(gone as u32)
    }

    #[inline]
    fn reap(
        &mut self,
        _min: u32,
        max: u32,
        _wait: Option<Nanos>,
        done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        let count = self.submitted.min(max as usize);
        done.extend(self.queued.drain(..count));
        self.submitted -= count;
        Ok(Reaped::Some(count as u32))
    }

    fn payload(&mut self, _slot: u32) -> &mut [u8] {
        &mut []
    }
}
