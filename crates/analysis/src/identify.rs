//! The method that finds out what a volume is made of: what to measure next, and what the measurements so far tell.

mod causes;
mod conclude;
mod curve;
mod drain;
mod early;
mod fall;
mod findings;
mod floor;
mod join;
mod ledger;
mod level;
mod method;
pub mod probe;
mod refill;
pub mod script;
mod sharing;
mod stretches;
mod width;
