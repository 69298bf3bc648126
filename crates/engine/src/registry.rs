//! The registered engines, in the order of lists for users.

use crate::{
    EngineEntry, libaio, metadata, mmap, names, null, offload, posixaio, psync, pvsync2, sim, splice, sync,
    uring,
};

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
    splice::ENTRY,
    metadata::FALLOC,
    metadata::FTRUNCATE,
    names::FILE_CREATE,
    names::FILE_STAT,
    names::FILE_DELETE,
    names::DIR_CREATE,
    names::DIR_STAT,
    names::DIR_DELETE,
    null::ENTRY,
];

/// Every engine that a job can name; `sim` is the last.
pub fn all() -> impl Iterator<Item = &'static EngineEntry> {
    ENGINES.iter().chain([&sim::ENTRY])
}

/// The entry for offloaded submission: one that executes the requests of a synchronous engine on threads of their own, or that of
/// an engine whose requests are in flight by themselves or take no time. `None` for engines that cannot, and io_uring, which fio refuses.
pub fn offloaded(entry: &'static EngineEntry) -> Option<&'static EngineEntry> {
    match entry.name {
        name if offload::ENGINES.contains(&name) => Some(&offload::ENTRY),
        "libaio" | "posixaio" | "null" => Some(entry),
        _ => None,
    }
}

/// The engine called `name`, by its name or an alias.
pub fn find(name: &str) -> Option<&'static EngineEntry> {
    all().find(|entry| entry.name == name || entry.aliases.contains(&name))
}
