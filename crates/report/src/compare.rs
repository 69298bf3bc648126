//! Reports of `compare`.

pub mod json;
mod matrix;
mod view;

pub use matrix::Layout;
pub use view::view;
