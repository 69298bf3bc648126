//! What the fuzz targets do with an input: one module each, whose `check` panics where a property does not hold. They go
//! beyond parsing, to what the program does next with what it read: plans, models, reports.
//!
//! Opens nothing that an input names, and reads no clock: targets are made up, or modelled volumes on virtual time.
#![forbid(unsafe_code)]

use std::alloc::System;

pub mod catalogue;
pub mod command_line;
pub mod expectation;
pub mod job_file;
mod jobs;
mod messages;
pub mod mounts;
pub mod record;
mod rendering;
mod serving;
pub mod signature;
pub mod sim_name;
pub mod suite;
pub mod trace;

/// Most bytes that may be allocated at once, the fuzzer's own not counted: one more ends the program, as an allocation
/// that fails does.
pub const HEAP_LIMIT: usize = 512 << 20;

#[global_allocator]
static HEAP: cap::Cap<System> = cap::Cap::new(System, HEAP_LIMIT);
