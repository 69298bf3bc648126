//! What is wrong with a block that was read back.

use super::Digest;

/// A difference between what was read and what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The block does not begin with the mark of a header.
    Magic {
        /// In its place.
        found: u16,
    },
    /// The header is one of a later version of fio, of another form.
    Version {
        /// As stored.
        found: u8,
    },
    /// The header is of a block of another length.
    Length {
        /// As stored.
        found: u32,
        /// Bytes of this block.
        wanted: u32,
    },
    /// The header is of a block at another offset.
    Offset {
        /// As stored.
        found: u64,
        /// Of this block.
        wanted: u64,
    },
    /// The header is of another write to this block.
    Seed {
        /// As stored.
        found: u64,
        /// Of the last write.
        wanted: u64,
    },
    /// The header itself is damaged.
    HeaderChecksum {
        /// As stored.
        found: u32,
        /// Of the header.
        calculated: u32,
    },
    /// The data does not have the checksum in the header.
    Checksum(Box<WrongChecksum>),
    /// The data differs from the pattern.
    Pattern {
        /// First position, from the start of the data.
        at: u32,
        /// There.
        found: u8,
        /// Of the pattern.
        wanted: u8,
    },
    /// The data is not what the header's seed generates, and the checksum does not cover it.
    Data,
}

/// The checksum in a header and that of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongChecksum {
    /// As stored.
    pub expected: Digest,
    /// Of the data.
    pub received: Digest,
    /// fio's number of the method in the header, if it is not that of the job.
    pub other_method: Option<u16>,
}

/// A mismatch and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Start of the interval, from the start of the block.
    pub at: u32,
    /// Bytes of the interval.
    pub len: u32,
    /// What is wrong.
    pub mismatch: Mismatch,
}
