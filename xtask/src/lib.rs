//! The build's own commands: the gate, its checks of the source, generated documents, instruction counts, and what users install.
//! The campaigns of `lab` use its programs and packages.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // A program that talks to developers.

mod device_tests;
pub mod dist;
pub mod docs;
pub mod gate;
pub mod instructions;
pub mod packages;
pub mod process;
mod readers;
mod test_programs;
pub mod tidy;
