//! The requests of a job: operations, offsets, sizes and payload.
//!
//! Pure and seeded: no I/O, no clock. The same seed gives the same requests in every version and on every machine.
#![forbid(unsafe_code)]

mod block_deck;
mod mix;
mod mixed;
mod offset;
pub mod payload;
mod random_map;
pub mod replay;
mod rng;
pub mod shaped;
mod skew;
mod source;
mod sync_countdown;
pub mod verify;

pub use offset::{Extent, Offsets};
pub use random_map::Permutation;
pub use rng::Rng;
pub use source::{Source, SourcePlan};
