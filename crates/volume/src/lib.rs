//! The behaviour of a cloud volume: limits with burst credits, over a latency and a bounded parallelism.
//!
//! Pure and deterministic: no I/O, no clock, no threads, integers throughout. [`VolumeModel`] describes a volume;
//! [`Volume`] returns the completion time of each request. Models are made elsewhere, in `fathom-catalog`.
#![forbid(unsafe_code)]

mod billing;
mod bucket;
mod cache;
mod client;
mod fault;
mod first_touch;
mod fluid;
mod latency;
mod limit;
mod measured;
mod model;
mod rate;
mod rng;
mod servers;
mod stage;
mod unit;
mod volume;
mod window;

pub use billing::Billing;
pub use cache::Cache;
pub use client::{Client, CpuCredit};
pub use fault::{Fault, FaultKind};
pub use first_touch::FirstTouch;
pub use fluid::{FluidLane, FluidReport, FluidServed, FluidStep, FluidSum, FluidUnit, FluidVolume};
pub use latency::{Distribution, Quantile, VolumeLatency};
pub use limit::{Limit, LimitState};
pub use measured::{LatencyTable, MeasuredLane, MeasuredLatency};
pub use model::{ModelError, VolumeModel};
pub use rate::TokenRate;
pub use stage::LimitStage;
pub use unit::Accounting;
pub use volume::{Counters, RequestOutcome, StageState, Volume, VolumeCompletion, VolumeRequest};
