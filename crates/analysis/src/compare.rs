//! Comparisons of volumes, like for like: pure functions of the records of each.

pub mod contradictions;
pub mod differences;
pub mod figure;
pub mod gate;
pub mod pairs;
pub mod ranking;
pub mod ratio;
pub mod rows;
pub mod source;
pub mod volumes;
pub mod work;
