//! The entries of the catalogue: published figures, measured volumes, needs, data sheets and names of targets.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "an error fails the test")]

mod fit;
mod measured;
mod published;
mod rates;
mod sheet;
mod targets;
