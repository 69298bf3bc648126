//! The history on real files: with several writers, with killed ones, and with files that are not what they should be.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "what the tests share is not marked as a test")]

mod bad_files;
mod damaged_rows;
mod fixture;
mod import;
mod mounts;
mod processes;
mod runs;
mod shared_places;
mod store;
