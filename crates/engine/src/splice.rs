//! splice(2) and vmsplice(2): data passes through a pipe between the file and the buffer.

use fathom_model::{Op, Request};
use fathom_sys::splice::SplicePipe;

use crate::immediate::{Immediate, ImmediateEngine};
use crate::targets::EngineTarget;
use crate::{Engine, EngineEntry, EngineError, EngineSetup, EngineTraits};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "splice",
    aliases: &[],
    doc: "splice(2) between the file and a pipe, with vmsplice(2) for writes, one request at a time.",
    traits: EngineTraits::SYNCHRONOUS,
    options: &[],
    open,
};

fn open(setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    let pipe = SplicePipe::new(setup.max_block).map_err(|source| EngineError {
        engine: ENTRY.name,
        attempted: "make a pipe".to_owned(),
        source,
        hint: Some("raise `ulimit -n`".to_owned()),
    })?;
    ImmediateEngine::open(ENTRY.name, &setup, Spliced(pipe))
}

struct Spliced(SplicePipe);

impl Immediate for Spliced {
    fn act(&mut self, target: &EngineTarget, request: &Request, bytes: &mut [u8]) -> i64 {
        match request.op {
            Op::Read => self.0.read_at(&target.file, bytes, request.offset),
            Op::Write => self.0.write_at(&target.file, bytes, request.offset),
            Op::Trim | Op::Sync | Op::Datasync => target.execute(request),
        }
    }
}
