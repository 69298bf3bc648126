//! Reports of `prepare`.

pub mod json;
mod view;

pub use view::view;
