//! What is counted while a run goes on, and the outcome it adds up to.
//!
//! Two halves: `live` is written by one worker each with relaxed single-writer cells and read by the observer at any
//! time; everything else is plain data that merges by addition. Nothing here reads a clock or does I/O.

#![forbid(unsafe_code)]

mod depth;
pub mod histogram;
mod host_load;
mod latency;
pub mod live;
mod moments;
mod open_loop;
mod outcome;
mod series;
mod stall;

pub use depth::{BatchCounts, DepthCounts};
pub use histogram::Histogram;
pub use host_load::{HostCounters, HostInterval, halve as halve_host};
pub use latency::Latency;
pub use moments::Moments;
pub use open_loop::{LiveOpenLoop, Offered, OpenLoop};
pub use outcome::{
    CpuUsage, DiskCounters, DiskOutcome, ErrorCount, KernelThreads, OpOutcome, PhaseOutcome, RunOutcome,
    SlowRequest, Snapshot, WorkerFailure, WorkerOutcome,
};
pub use series::{Interval, IntervalOp, Series};
pub use stall::Stall;

/// Index of read, write and trim in arrays of three.
pub const DATA_OPS: usize = 3;
