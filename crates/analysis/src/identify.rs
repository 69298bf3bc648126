//! The method that identifies a volume: what to measure next, and what the measurements so far say.
//!
//! `script` is the method, `state` what it knows on the way; `level`, `curve`, `drain` and `credit` are its steps, and `causes` and
//! `conclude` make the result. Steps call each other through the [`Script`](script::Script), and import its data alone.

mod causes;
pub mod conclude;
mod credit;
mod curve;
mod drain;
mod level;
#[cfg(test)]
mod played;
pub mod probe;
pub mod script;
pub(crate) mod series;
mod state;
