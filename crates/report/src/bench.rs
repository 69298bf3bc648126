//! Reports of `bench`.

mod durations;
mod expectations;
pub mod json;
mod notes;
pub(crate) mod rounds;
mod stream;
mod together;
mod view;

pub use stream::BenchRows;
pub use view::{view, view_below_rows};
