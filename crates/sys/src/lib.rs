//! The only crate with `unsafe` code: rings and their buffers, clocks, affinity, and the kernel's facts about devices.
//!
//! All interfaces are safe types that own the memory they point to. Imports no other fathom crate.

pub mod abstract_socket;
pub mod affinity;
pub mod aio;
pub mod buffer;
pub mod child;
pub mod clock;
pub mod control_group;
pub mod device;
mod error;
pub mod file_use;
pub mod files;
pub mod idle;
pub mod io;
pub mod kernel_workers;
pub mod libpq;
pub mod library;
pub mod memory;
pub mod mmap;
pub mod names;
pub mod open_files;
pub mod priority;
pub mod process_manager;
pub mod residency;
pub mod signals;
pub mod splice;
mod sqe;
pub mod thread;
pub mod tracepoint;
pub mod transfer;
pub mod uring;

pub use error::{SetupError, SetupStep};
