//! Reports of `sweep`.

pub(crate) mod goals;
pub mod json;
pub(crate) mod map;
pub mod table;
