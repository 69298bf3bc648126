//! The fuzz targets: one module each, whose `check` panics if a property is violated. They include the steps after
//! parsing: plans, models, reports.
//!
//! Opens no files that an input names, and reads no clock: targets are fictitious, or simulated volumes in virtual
//! time.
#![forbid(unsafe_code)]

use std::alloc::System;

pub mod blktrace;
pub mod catalogue;
pub mod command_line;
pub mod expectation;
pub mod import;
pub mod iolog;
pub mod job_file;
mod jobs;
mod messages;
pub mod mounts;
pub mod observed;
pub mod record;
mod rendering;
mod serving;
pub mod signature;
pub mod sim_name;
pub mod suite;
pub mod trace;
pub mod twin;
pub mod verify_block;

/// The check of a target, which panics if a property is violated.
pub type Check = fn(&[u8]);

/// Each target and its check.
pub const TARGETS: &[(&str, Check)] = &[
    ("blktrace", blktrace::check),
    ("catalogue", catalogue::check),
    ("command_line", command_line::check),
    ("expectation", expectation::check),
    ("import", import::check),
    ("iolog", iolog::check),
    ("job_file", job_file::check),
    ("mounts", mounts::check),
    ("observed", observed::check),
    ("record", record::check),
    ("signature", signature::check),
    ("sim_name", sim_name::check),
    ("suite", suite::check),
    ("trace", trace::check),
    ("twin", twin::check),
    ("verify_block", verify_block::check),
];

/// Most allocated bytes, without the fuzzer's own: exceeding it ends the program, as an allocation that fails does.
pub const HEAP_LIMIT: usize = 512 << 20;

#[global_allocator]
static HEAP: cap::Cap<System> = cap::Cap::new(System, HEAP_LIMIT);
