//! Requirements on every registered engine, on real files. An engine that this machine refuses is skipped, with the
//! reason printed.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "everything here is a test")]

mod devices;
mod fixture;
mod options;
mod queues;
mod threads_and_priorities;
mod transfers;
