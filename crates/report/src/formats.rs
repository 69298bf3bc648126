//! Forms that any [`View`](crate::view::View) is rendered in.

pub mod csv;
pub mod markdown;
pub mod text;
