//! Whole volumes: they reproduce the providers' published figures, and invariants hold for any model.

mod closed_loop;
mod measured;
mod properties;
mod published;
mod series;
