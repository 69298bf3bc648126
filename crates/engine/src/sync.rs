//! lseek(2), then read(2) or write(2); the seek is omitted if the file position is already right.

use std::sync::Arc;

use fathom_model::{Op, Request};
use fathom_sys::io::{flags_of, reopen};
use fathom_sys::transfer;

use crate::immediate::{Immediate, ImmediateEngine};
use crate::targets::EngineTarget;
use crate::{Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, OpenFile};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "sync",
    aliases: &[],
    doc: "lseek(2), then read(2) or write(2), one request at a time.",
    traits: EngineTraits::SYNCHRONOUS,
    options: &[],
    open,
};

/// The position of each file, if known.
struct Positions(Vec<Option<u64>>);

fn open(mut setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    // A position belongs to an open file description: workers that share one would move each other's position.
    for (index, open) in setup.files.iter_mut().enumerate() {
        reopen_own(open).map_err(|source| EngineError {
            engine: ENTRY.name,
            attempted: format!("open file {index} a second time"),
            source,
            hint: Some("use ioengine=psync, which needs no position".to_owned()),
        })?;
    }
    let positions = Positions(vec![None; setup.files.len()]);
    ImmediateEngine::open(ENTRY.name, &setup, positions)
}

fn reopen_own(open: &mut OpenFile) -> std::io::Result<()> {
    if let Some(file) = &open.file {
        open.file = Some(Arc::new(reopen(file, flags_of(file)?)?));
    }
    Ok(())
}

impl Immediate for Positions {
    #[inline]
    fn act(&mut self, target: &EngineTarget, request: &Request, bytes: &mut [u8]) -> i64 {
        if request.op.is_sync() || request.op == Op::Trim {
            return target.execute(request);
        }
        let position = &mut self.0[request.file as usize];
        if *position != Some(request.offset) {
            let errno = transfer::seek_to(&target.file, request.offset);
            if errno < 0 {
                return errno;
            }
        }
        let moved = match request.op {
            Op::Write => transfer::write_next(&target.file, bytes),
            _ => transfer::read_next(&target.file, bytes),
        };
        *position = u64::try_from(moved).ok().map(|moved| request.offset + moved);
        moved
    }
}
