//! Reports of `advise`: the answer for a load, the candidates, and the course on the answer.

mod course;
mod data;
pub mod json;
mod present;
mod view;

pub use view::view;
