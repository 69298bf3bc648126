//! The four access patterns that a measurement can have, and the names of block sizes.

use serde::{Deserialize, Serialize};

/// Direction and order of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessPattern {
    /// Reads in random order.
    RandRead,
    /// Reads one after the other.
    Read,
    /// Writes in random order.
    RandWrite,
    /// Writes one after the other.
    Write,
}

impl AccessPattern {
    /// All of them.
    pub const ALL: [AccessPattern; 4] =
        [AccessPattern::RandRead, AccessPattern::Read, AccessPattern::RandWrite, AccessPattern::Write];

    /// The pattern that fio calls so.
    pub fn named(name: &str) -> Option<AccessPattern> {
        AccessPattern::ALL.into_iter().find(|pattern| pattern.name() == name)
    }

    /// fio's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            AccessPattern::RandRead => "randread",
            AccessPattern::Read => "read",
            AccessPattern::RandWrite => "randwrite",
            AccessPattern::Write => "write",
        }
    }

    /// The same for people.
    pub const fn title(self) -> &'static str {
        match self {
            AccessPattern::RandRead => "random read",
            AccessPattern::Read => "sequential read",
            AccessPattern::RandWrite => "random write",
            AccessPattern::Write => "sequential write",
        }
    }

    /// It changes what is on the target.
    pub const fn writes(self) -> bool {
        matches!(self, AccessPattern::RandWrite | AccessPattern::Write)
    }

    /// Blocks follow each other.
    pub const fn is_sequential(self) -> bool {
        matches!(self, AccessPattern::Read | AccessPattern::Write)
    }
}

/// `4k`, `1m`, `512`: as fio takes it.
pub fn block_name(bytes: u64) -> String {
    for (unit, suffix) in [(1u64 << 20, "m"), (1 << 10, "k")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{suffix}", bytes / unit);
        }
    }
    bytes.to_string()
}
