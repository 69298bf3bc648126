//! The registered engines, in the order they are listed to users.

use crate::{EngineEntry, libaio, mmap, null, psync, pvsync2, sync, uring};

/// Every engine a job can name.
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

/// The engine called `name`, by its name or an alias.
pub fn find(name: &str) -> Option<&'static EngineEntry> {
    ENGINES.iter().find(|entry| entry.name == name || entry.aliases.contains(&name))
}
