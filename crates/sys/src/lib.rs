//! The only crate with `unsafe` code: rings and their buffers, clocks, affinity, and what the kernel tells of devices.
//!
//! Everything is offered through safe types that own what they point to. Imports none of our other crates.

pub mod affinity;
pub mod aio;
pub mod buffer;
pub mod clock;
pub mod device;
mod error;
pub mod files;
pub mod io;
pub mod kernel_workers;
pub mod mmap;
pub mod open_files;
pub mod residency;
pub mod signals;
mod sqe;
pub mod thread;
pub mod tracepoint;
pub mod transfer;
pub mod uring;

pub use error::{SetupError, SetupStep};
