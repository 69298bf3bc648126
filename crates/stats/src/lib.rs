//! What is counted while a run goes on, and the outcome it adds up to.
//!
//! Two halves: `live` is written by one worker each with relaxed single-writer cells and read by the observer at any
//! time; everything else is plain data that merges by addition. Nothing here reads a clock or does I/O.

#![forbid(unsafe_code)]

mod depth;
mod disk;
pub mod histogram;
mod host_load;
mod latency;
pub mod live;
mod moments;
mod open_loop;
mod outcome;
mod phase;
pub mod series;
mod stall;
mod summary;
mod wire;

pub use depth::{BatchCounts, DepthCounts};
pub use disk::{DiskCounters, DiskInterval, DiskOutcome};
pub use histogram::Histogram;
pub use host_load::{HostCounters, HostInterval, halve as halve_host};
pub use latency::Latency;
pub use moments::Moments;
pub use open_loop::{LiveOpenLoop, Offered, OpenLoop};
pub use outcome::{ErrorCount, RunOutcome, SlowRequest, Snapshot, WorkerFailure, WorkerOutcome};
pub use phase::{CpuUsage, KernelThreads, OpOutcome, PhaseOutcome};
pub use series::{Interval, IntervalOp};
pub use stall::Stall;
pub use summary::{LatencyClasses, LatencySummary, ThinPercentiles};

/// Index of read, write and trim in arrays of three.
pub const DATA_OPS: usize = 3;
