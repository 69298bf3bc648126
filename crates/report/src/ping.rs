//! Reports of `ping`.

pub mod json;
pub mod text;
