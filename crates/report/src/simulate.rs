//! Reports of `simulate`.

pub mod json;
pub mod text;
