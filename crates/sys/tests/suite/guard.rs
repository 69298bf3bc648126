//! The guard, the stack and the counters on real loop devices, and the signatures that real tools write.
//!
//! Needs root, and Debian's packages listed in `xtask/packages.txt`. Without them the tests say what they skip; under CI
//! a skip is a failure.

#![allow(clippy::print_stderr, reason = "a skipped test prints its reason")]

mod loop_device;
mod obstacles;
mod signatures;
mod stacks;
