//! Reports of `identify`.

pub mod json;
pub mod text;
pub(crate) mod words;
