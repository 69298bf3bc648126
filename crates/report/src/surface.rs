//! Reports of `surface`.

mod data;
pub mod json;
mod plots;
mod view;

pub use view::view;
