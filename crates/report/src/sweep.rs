//! Reports of `sweep`.

mod goals;
mod grid;
pub mod json;
mod view;

pub use view::view;
