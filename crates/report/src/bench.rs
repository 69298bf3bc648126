//! Reports of `bench`.

mod durations;
pub(crate) mod expectations;
pub mod json;
mod notes;
mod precision;
pub(crate) mod rounds;
mod together;
mod view;

pub use view::{ROWS, view};
