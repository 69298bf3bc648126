//! Reports of `surface`.

mod data;
pub mod json;
mod plots;
mod rows;
mod view;

pub use view::{ROWS, view};
