//! Reports of `surface`.

mod data;
pub mod json;
pub(crate) mod plots;
mod rows;
mod view;

pub use view::{ROWS, view};
