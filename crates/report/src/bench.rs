//! Reports of `bench`.

pub(crate) mod endings;
pub(crate) mod expectations;
pub mod json;
mod notes;
pub(crate) mod view;

pub use view::{ROWS, view};
