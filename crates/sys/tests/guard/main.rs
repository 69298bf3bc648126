//! The guard, the stack and the counters on real loop devices, and the signatures that real tools write.
//!
//! Needs root and Debian's util-linux, mount, e2fsprogs, xfsprogs and lvm2. Without root the tests say that they were
//! skipped; under CI a skip is a failure.

// Clippy allows these in test functions only, and half of this program is what they share.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod loop_device;
mod obstacles;
mod signatures;
mod stacks;
