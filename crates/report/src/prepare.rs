//! Reports of `prepare`.

pub mod json;
pub mod text;
