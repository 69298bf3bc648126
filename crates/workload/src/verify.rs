//! Blocks that can be checked when they are read back: data that a seed generates, and a header with a checksum.
//!
//! The form is that of fio 3.33, found by experiment, so that either program checks what the other has written.

mod block;
mod crc;
mod digest;
mod header;
mod mismatch;
mod pattern;
mod seeded;
mod state;
mod xxhash;

pub use block::{BlockCheck, BlockWriter, Generation};
pub use digest::Digest;
pub use header::{Header, HeaderError};
pub use mismatch::{Finding, Mismatch, WrongChecksum};
pub use pattern::{PatternFiller, pattern_differs};
pub use seeded::fill_seeded;
pub use state::SavedState;
