//! Reports of `monitor`.

pub mod job;
pub mod json;
pub mod table;
