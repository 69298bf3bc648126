//! Reports of `bench`.

mod expectations;
pub mod json;
mod notes;
pub(crate) mod rounds;
pub mod table;
mod together;
mod view;

pub use view::view;
