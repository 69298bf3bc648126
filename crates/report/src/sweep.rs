//! Reports of `sweep`.

mod goals;
mod grid;
pub mod json;
mod rows;
mod view;

pub use view::{ROWS, view};
