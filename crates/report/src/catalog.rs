//! Reports of `catalog`.

pub mod fit;
pub mod json;
pub mod list;
pub mod published;
pub mod show;
