//! The method that finds out what a volume is made of: what to measure next, and what the measurements so far tell.

mod causes;
mod conclude;
mod curve;
mod drain;
mod early;
mod fall;
mod figures;
mod findings;
mod floor;
pub mod instance;
mod join;
mod ledger;
mod level;
mod method;
#[cfg(test)]
mod played;
pub mod probe;
mod refill;
mod repeats;
pub mod script;
mod sharing;
mod stretches;
mod trend;
pub(crate) mod turns;
mod width;
