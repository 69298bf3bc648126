//! The interface to the kernel or to a simulated volume: engines move bytes and nothing else.
//!
//! An engine never reads a clock, never counts and never decides when to stop; the driver in `fathom-runner` does. A
//! new engine is a file here and a line in `registry::ENGINES`.

#![forbid(unsafe_code)]

mod draws;
mod engine;
mod file_use;
mod immediate;
mod libaio;
mod metadata;
mod mmap;
mod names;
mod null;
mod offload;
mod posixaio;
mod prioritized;
mod private;
mod psync;
mod pvsync2;
pub mod registry;
pub mod sim;
mod splice;
mod sync;
mod targets;
mod threaded;
mod uring;

pub use engine::{
    Completion, Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, NameUse, OpenFile, Queued,
    RawEngineOptions, Reaped,
};
pub use file_use::use_files;
