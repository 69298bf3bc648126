//! ioping's output formats.

pub mod json;
pub mod text;

pub use text::*;
