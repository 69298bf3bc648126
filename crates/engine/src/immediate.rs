//! The common part of engines that execute requests inside `queue`.

use fathom_model::{Nanos, Request};
use fathom_sys::buffer::BufferPool;

use crate::targets::{self, EngineTarget, Targets};
use crate::{Completion, Engine, EngineError, EngineSetup, Queued, Reaped};

/// Executes one request.
pub(crate) trait Immediate {
    /// Reads or writes `bytes`, which has the request's length, or executes the sync or trim; returns bytes moved or a
    /// negative errno.
    fn act(&mut self, target: &EngineTarget, request: &Request, bytes: &mut [u8]) -> i64;
}

/// An engine that executes each request when it is queued.
pub(crate) struct ImmediateEngine<A> {
    act: A,
    targets: Targets,
    buffers: BufferPool,
}

impl<A: Immediate + 'static> ImmediateEngine<A> {
    /// Opens the engine called `name` on the files of `setup`.
    pub fn open(name: &'static str, setup: &EngineSetup, act: A) -> Result<Box<dyn Engine>, EngineError> {
        let targets = Targets::new(name, setup)?;
        let buffers = targets::buffers(name, setup)?;
        Ok(Box::new(ImmediateEngine { act, targets, buffers }))
    }
}

impl<A: Immediate> Engine for ImmediateEngine<A> {
    #[inline]
    fn queue(&mut self, slots: &[u32], requests: &[Request]) -> Queued {
        let Some(&slot) = slots.first() else { return Queued::Accepted(0) };
        let request = &requests[slot as usize];
        let target = match self.targets.check(request) {
            Ok(target) => target,
            Err(errno) => return Queued::Done(errno),
        };
        let bytes = &mut self.buffers.bytes(slot)[..request.len as usize];
        Queued::Done(self.act.act(target, request, bytes))
    }

    fn submit(&mut self) -> Result<u32, EngineError> {
        Ok(0)
    }

    fn reap(
        &mut self,
        _min: u32,
        _max: u32,
        _wait: Option<Nanos>,
        _done: &mut Vec<Completion>,
    ) -> Result<Reaped, EngineError> {
        Ok(Reaped::Some(0))
    }

    fn payload(&mut self, slot: u32) -> &mut [u8] {
        self.buffers.bytes(slot)
    }
}
