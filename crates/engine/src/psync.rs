//! pread(2) and pwrite(2): one system call per request.

use fathom_model::{Op, Request};
use fathom_sys::transfer;

use crate::immediate::{Immediate, ImmediateEngine};
use crate::targets::EngineTarget;
use crate::{EngineEntry, EngineTraits};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "psync",
    aliases: &[],
    doc: "pread(2) and pwrite(2), one request at a time.",
    traits: EngineTraits::SYNCHRONOUS,
    options: &[],
    open: |setup| ImmediateEngine::open(ENTRY.name, &setup, Psync),
};

struct Psync;

impl Immediate for Psync {
    #[inline]
    fn act(&mut self, target: &EngineTarget, request: &Request, bytes: &mut [u8]) -> i64 {
        match request.op {
            Op::Read => transfer::read_at(&target.file, bytes, request.offset),
            Op::Write => transfer::write_at(&target.file, bytes, request.offset),
            Op::Trim | Op::Sync | Op::Datasync => target.execute(request),
        }
    }
}
