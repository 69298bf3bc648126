//! Comparisons of volumes, like for like: pure functions of the records of each.

pub mod ratio;
