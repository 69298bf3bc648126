//! Runs of every command on simulated volumes whose limits are known, and the conclusions drawn from them.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod benches;
mod catalogued;
mod causes;
mod comparisons;
mod contradictions;
mod drawn;
mod expectations;
mod falls;
mod identified;
mod one_answer;
mod pauses;
mod published;
mod random;
mod scaling;
mod suitability;
mod twins;
mod uses;
mod verdicts;
