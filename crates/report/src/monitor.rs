//! Reports of `monitor`.

pub mod job;
pub mod json;
pub mod lines;
mod view;

pub use view::view;
