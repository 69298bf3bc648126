//! Synchronous engines whose requests are executed by threads of their own, so that several are in flight and the worker is
//! free to issue the next ones when they are due.

use crate::pvsync2;
use crate::threaded::{ThreadedEngine, Threads};
use crate::{EngineEntry, EngineTraits};

/// The synchronous engines that do this. They differ in their system calls and not in what they do: the threads use that of
/// `pvsync2`, without its flags for the others.
pub(crate) const ENGINES: [&str; 5] = ["psync", "sync", "vsync", "pvsync", "pvsync2"];

/// The entry in place of that of a synchronous engine.
pub(crate) const ENTRY: EngineEntry = EngineEntry {
    name: "offload",
    aliases: &[],
    doc: "A synchronous engine with a thread for each request in flight.",
    traits: EngineTraits::ASYNCHRONOUS,
    options: &[],
    open: |setup| ThreadedEngine::open(ENTRY.name, &setup, Threads::OfSlots, pvsync2::flags(&setup)),
};
