//! The registered engines, in the order they are listed to users.

use crate::{EngineEntry, libaio, mmap, null, psync, pvsync2, sim, sync, uring};

/// Every engine that runs on real time.
pub const ENGINES: &[EngineEntry] = &[
    uring::ENTRY,
    libaio::ENTRY,
    psync::ENTRY,
    sync::ENTRY,
    pvsync2::PVSYNC,
    pvsync2::PVSYNC2,
    mmap::ENTRY,
    null::ENTRY,
];

/// Every engine a job can name, the one of modelled volumes last.
pub fn all() -> impl Iterator<Item = &'static EngineEntry> {
    ENGINES.iter().chain([&sim::ENTRY])
}

/// The engine called `name`, by its name or an alias.
pub fn find(name: &str) -> Option<&'static EngineEntry> {
    all().find(|entry| entry.name == name || entry.aliases.contains(&name))
}
