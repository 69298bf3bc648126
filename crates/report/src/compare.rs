//! Reports of `compare`.

mod explain;
pub mod json;
mod matrix;
mod view;

pub use matrix::Layout;
pub use view::view;
