//! Engines that change the allocation or size of files and move no data: `falloc` and `ftruncate`.

use fathom_model::{Op, Request};
use fathom_sys::io::{FallocateMode, fallocate};
use fathom_sys::transfer;

use crate::immediate::{Immediate, ImmediateEngine};
use crate::targets::{EINVAL, EngineTarget};
use crate::{EngineEntry, EngineTraits};

const TRAITS: EngineTraits = EngineTraits { moves_data: false, ..EngineTraits::SYNCHRONOUS };

/// The entry of `falloc`.
pub const FALLOC: EngineEntry = EngineEntry {
    name: "falloc",
    aliases: &[],
    doc: "fallocate(2): writes reserve blocks and extend the file, reads reserve them within it, trims punch holes.",
    traits: TRAITS,
    options: &[],
    open: |setup| ImmediateEngine::open(FALLOC.name, &setup, Falloc),
};

/// The entry of `ftruncate`.
pub const FTRUNCATE: EngineEntry = EngineEntry {
    name: "ftruncate",
    aliases: &[],
    doc: "ftruncate(2): a write sets the size of the file to its offset; there are no reads.",
    traits: EngineTraits { lacks: &[Op::Read, Op::Trim], ..TRAITS },
    options: &[],
    open: |setup| ImmediateEngine::open(FTRUNCATE.name, &setup, Ftruncate),
};

struct Falloc;

struct Ftruncate;

/// The result of a call that moves no data, as if it had moved all of the request.
fn whole(result: std::io::Result<()>, request: &Request) -> i64 {
    match result {
        Ok(()) => i64::from(request.len),
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(5)),
    }
}

impl Immediate for Falloc {
    fn act(&mut self, target: &EngineTarget, request: &Request, _bytes: &mut [u8]) -> i64 {
        let mode = match request.op {
            Op::Read => FallocateMode::KeepSize,
            Op::Write => FallocateMode::Extend,
            Op::Trim => FallocateMode::PunchHole,
            Op::Sync | Op::Datasync => return target.execute(request),
        };
        whole(fallocate(&target.file, mode, request.offset, request.len.into()), request)
    }
}

impl Immediate for Ftruncate {
    fn act(&mut self, target: &EngineTarget, request: &Request, _bytes: &mut [u8]) -> i64 {
        match request.op {
            Op::Write => whole(target.file.set_len(request.offset), request),
            Op::Read | Op::Trim => EINVAL,
            Op::Sync => transfer::sync(&target.file, false),
            Op::Datasync => transfer::sync(&target.file, true),
        }
    }
}
