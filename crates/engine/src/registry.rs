//! The registered engines, in the order they are listed to users.

use crate::EngineEntry;

/// Every engine a job can name.
pub const ENGINES: &[EngineEntry] = &[];

/// The engine called `name`, by its name or an alias.
pub fn find(name: &str) -> Option<&'static EngineEntry> {
    ENGINES.iter().find(|entry| entry.name == name || entry.aliases.contains(&name))
}
