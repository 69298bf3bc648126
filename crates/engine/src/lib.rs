//! The seam to the kernel, or to a model: engines move bytes and nothing else.
//!
//! An engine never reads a clock, never counts and never decides when to stop; the driver in `fathom-runner` does.
//! Adding one is a file here and a line in `registry::ENGINES`.

mod engine;
pub mod registry;
pub mod sim;

pub use engine::{
    Completion, Engine, EngineEntry, EngineError, EngineSetup, EngineTraits, OpenFile, Queued, RawEngineOptions, Reaped,
};
