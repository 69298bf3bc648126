//! Reports of what other programs measured.

pub mod json;
mod view;

pub use view::view;
