//! pread(2) and pwrite(2): one system call per request, and nothing else.

use fathom_model::{Nanos, Op, Request};
use fathom_sys::buffer::BufferPool;
use fathom_sys::transfer;

use crate::targets::{self, Targets};
use crate::{Completion, Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, Queued, Reaped};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "psync",
    aliases: &[],
    doc: "pread(2) and pwrite(2), one request at a time.",
    traits: EngineTraits { synchronous: true, needs_files: true, trims: true, virtual_time: false },
    options: &[],
    open,
};

struct Psync {
    targets: Targets,
    buffers: BufferPool,
}

fn open(setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    let targets = Targets::new(ENTRY.name, &setup)?;
    let buffers = targets::buffers(ENTRY.name, &setup)?;
    Ok(Box::new(Psync { targets, buffers }))
}

impl Engine for Psync {
    #[inline]
    fn queue(&mut self, slot: u32, request: &Request) -> Queued {
        let target = match self.targets.check(request) {
            Ok(target) => target,
            Err(errno) => return Queued::Done(errno),
        };
        let len = request.len as usize;
        Queued::Done(match request.op {
            Op::Read => transfer::read_at(&target.file, &mut self.buffers.bytes(slot)[..len], request.offset),
            Op::Write => transfer::write_at(&target.file, &self.buffers.bytes(slot)[..len], request.offset),
            Op::Trim | Op::Sync | Op::Datasync => target.now(request),
        })
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
