//! POSIX AIO as glibc has it: a thread per file executes the requests to it, one after the other.
//!
//! So requests to one file never overlap at the device, whatever the queue depth; several files make them do.

use crate::pvsync2::RequestFlags;
use crate::threaded::{ThreadedEngine, Threads};
use crate::{EngineEntry, EngineTraits};

/// The engine's entry.
pub const ENTRY: EngineEntry = EngineEntry {
    name: "posixaio",
    aliases: &[],
    doc: "POSIX AIO as glibc has it: a thread per file, which executes one request after the other.",
    traits: EngineTraits::ASYNCHRONOUS,
    options: &[],
    open: |setup| ThreadedEngine::open(ENTRY.name, &setup, Threads::OfFiles, RequestFlags::default()),
};
