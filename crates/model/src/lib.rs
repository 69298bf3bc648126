//! The types that every other crate uses: units, operations, job plans and the row of an option table.
//!
//! Plain data. Nothing here does I/O or reads a clock. The parts of a job's plan can be serialised, because
//! `fathom-record` stores them as they are; all other wire formats live in `fathom-record` and `fathom-report`.

#![forbid(unsafe_code)]

mod block_size;
mod cost;
mod limit_unit;
mod op;
mod option_row;
mod per_op;
pub mod plan;
mod rate;
pub mod text;
pub mod units;

pub use block_size::{BlockRange, BlockSize, BlockSplit};
pub use cost::{CostPart, IopsPrice, MonthlyCost, Price, PriceConfidence, STALE, TierPrice, ended_before};
pub use limit_unit::LimitUnit;
pub use op::{Op, Request};
pub use option_row::{EngineOption, OptionValueKind};
pub use per_op::PerOp;
pub use plan::{JobPlan, RunPlan};
pub use rate::{Rate, RatePlan, RateProcess};
pub use units::Nanos;

/// For `skip_serializing_if`: true if the value is the default, which a missing field means.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
