//! preadv2(2) and pwritev2(2) with one buffer, and their flags; `pvsync` is the same without flags.

use fathom_model::{Op, OptionRow, OptionValueKind, Request};
use fathom_sys::transfer::{self, TransferFlags};

use crate::immediate::{Immediate, ImmediateEngine};
use crate::private::{ATOMIC, bool_row, flag_row};
use crate::targets::EngineTarget;
use crate::{Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, RawEngineOptions};

const TRAITS: EngineTraits = EngineTraits {
    synchronous: true,
    needs_files: true,
    moves_data: true,
    lacks: &[],
    synchronous_alone: false,
    names: None,
};

/// The entry of `vsync`. fio's coalesces adjacent requests above queue depth 1.
pub const VSYNC: EngineEntry = EngineEntry {
    name: "vsync",
    aliases: &[],
    doc: "readv(2) and writev(2), by preadv(2) and pwritev(2); one request at a time, without coalescing.",
    traits: TRAITS,
    options: &[],
    open: |setup| ImmediateEngine::open(VSYNC.name, &setup, Vectored(TransferFlags::default())),
};

/// The entry of `pvsync`.
pub const PVSYNC: EngineEntry = EngineEntry {
    name: "pvsync",
    aliases: &[],
    doc: "preadv(2) and pwritev(2), one request at a time.",
    traits: TRAITS,
    options: &[],
    open: |setup| ImmediateEngine::open(PVSYNC.name, &setup, Vectored(TransferFlags::default())),
};

/// The entry of `pvsync2`.
pub const PVSYNC2: EngineEntry = EngineEntry {
    name: "pvsync2",
    aliases: &[],
    doc: "preadv2(2) and pwritev2(2) with their per-request flags, one request at a time.",
    traits: TRAITS,
    options: OPTIONS,
    open: open_with_flags,
};

const OPTIONS: &[OptionRow<RawEngineOptions>] = &[
    flag_row!("hipri", "0", "Poll for completions (RWF_HIPRI); needs direct=1 and a driver that can."),
    bool_row!("nowait", "0", "Fail with EAGAIN if a request would block (RWF_NOWAIT)."),
    bool_row!("uncached", "0", "Buffered requests that leave nothing in the page cache (RWF_DONTCACHE)."),
];

struct Vectored(TransferFlags);

fn open_with_flags(setup: EngineSetup) -> Result<Box<dyn Engine>, EngineError> {
    ImmediateEngine::open(PVSYNC2.name, &setup, Vectored(flags(&setup)))
}

/// The flags of all requests.
pub(crate) fn flags(setup: &EngineSetup) -> TransferFlags {
    TransferFlags {
        poll: setup.options.flag("hipri", false),
        no_wait: setup.options.flag("nowait", false),
        uncached: setup.options.flag("uncached", false),
        atomic: setup.options.flag(ATOMIC, false),
    }
}

impl Immediate for Vectored {
    #[inline]
    fn act(&mut self, target: &EngineTarget, request: &Request, bytes: &mut [u8]) -> i64 {
        match request.op {
            Op::Read => transfer::read_vectored_at(&target.file, bytes, request.offset, self.0.of_reads()),
            Op::Write => transfer::write_vectored_at(&target.file, bytes, request.offset, self.0),
            Op::Trim | Op::Sync | Op::Datasync => target.execute(request),
        }
    }
}
