//! What the numbers of a record tell: findings, each a claim with its evidence and a remedy.
//!
//! Pure functions of a record, so that every finding can be made again from the history. Nothing here runs, reads or
//! prints anything. A claim says no more than its evidence carries; thresholds stand with the reason for them.

#![forbid(unsafe_code)]

mod accounting;
mod advice;
pub mod advise;
mod analysis;
mod bend;
pub mod compare;
pub mod conclusions;
pub mod criterion;
pub mod doctor;
mod document;
mod doubt;
pub mod estimate;
pub mod expectation;
mod findings;
#[cfg(test)]
mod fixture;
pub mod fleet;
pub mod fleet_check;
pub mod forecast;
pub mod identified;
pub mod identify;
pub mod monitor;
pub mod pattern;
pub mod ping;
pub mod plateau;
pub mod prepare;
pub mod recommendation;
mod rows;
mod say;
pub mod scaling;
pub mod schedule;
pub mod steady;
pub mod surface;
pub mod sweep;
pub mod together;
pub mod trend;
pub mod twin;
pub mod verdict;

pub use advice::{AdviceDevice, AdviceFacts, advice};
pub use analysis::Analysis;
pub use findings::{REQUESTS_WAIT, SlowWrites, instance_limit_of, slow_writes};
pub use rows::RecordRow;
