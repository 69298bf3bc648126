//! Counters of a running test, and the outcome that they add up to.
//!
//! The cells in `live` have one writer each, a worker, and are read by the observer at any time; everything else is
//! plain data that merges by addition. The crate reads no clock and does no I/O.

#![forbid(unsafe_code)]

mod conditions;
mod depth;
mod disk;
pub mod histogram;
mod host_load;
mod latency;
pub mod live;
mod logged_io;
mod moments;
mod open_loop;
mod outcome;
mod phase;
mod priority_latency;
pub mod sample;
pub mod series;
mod silence;
mod stall;
mod summary;
mod wire;

pub use conditions::{LatencyOutcome, SteadyOutcome, mean};
pub use depth::{BatchCounts, DepthCounts};
pub use disk::{DiskCounters, DiskInterval, DiskOutcome};
pub use histogram::Histogram;
pub use host_load::{HostCounters, HostInterval, halve as halve_host};
pub use latency::Latency;
pub use logged_io::LoggedIo;
pub use moments::Moments;
pub use open_loop::{LiveOpenLoop, Offered, OpenLoop};
pub use outcome::{
    BadBlock, DeviceTick, ErrorCount, FailedRequest, FailureCause, RunOutcome, SlowRequest, Snapshot,
    VerifyOutcome, WorkerFailure, WorkerOutcome,
};
pub use phase::{CpuUsage, KernelThreads, OpOutcome, PhaseOutcome};
pub use priority_latency::PriorityLatency;
pub use series::{Interval, IntervalOp};
pub use silence::{MIN_SILENCE_NS, Silence, Silences};
pub use stall::Stall;
pub use summary::{LatencyClasses, LatencySummary, ThinPercentiles};

/// Index of read, write and trim in arrays of three.
pub const DATA_OPS: usize = 3;
