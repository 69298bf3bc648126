//! The registered engines, in the order of lists for users.

use crate::{EngineEntry, libaio, metadata, mmap, null, posixaio, psync, pvsync2, sim, sync, uring};

/// Every engine that runs in real time.
pub const ENGINES: &[EngineEntry] = &[
    uring::ENTRY,
    libaio::ENTRY,
    psync::ENTRY,
    sync::ENTRY,
    pvsync2::VSYNC,
    pvsync2::PVSYNC,
    pvsync2::PVSYNC2,
    mmap::ENTRY,
    posixaio::ENTRY,
    metadata::FALLOC,
    metadata::FTRUNCATE,
    null::ENTRY,
];

/// Every engine that a job can name; `sim` is the last.
pub fn all() -> impl Iterator<Item = &'static EngineEntry> {
    ENGINES.iter().chain([&sim::ENTRY])
}

/// The engine called `name`, by its name or an alias.
pub fn find(name: &str) -> Option<&'static EngineEntry> {
    all().find(|entry| entry.name == name || entry.aliases.contains(&name))
}
