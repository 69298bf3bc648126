//! Reports of `ping`.

pub mod json;
pub mod text;
mod view;

pub use view::{closing, view};
