//! Reports of `bench`.

pub(crate) mod below;
pub mod json;
pub(crate) mod rounds;
pub mod table;
pub(crate) mod together;
