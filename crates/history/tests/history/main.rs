//! The history on real files: several writers, killed writers, and invalid files.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "what the tests share is not marked as a test")]

mod bad_files;
mod damaged_rows;
mod fixture;
mod import;
mod migrations;
mod mounts;
mod names;
mod processes;
mod runs;
mod servers;
mod shared_places;
mod store;
