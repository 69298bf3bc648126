//! Reports of `surface`.

pub mod json;
pub mod table;
