//! Reports of `catalog`.

pub mod fit;
pub mod instances;
pub mod json;
pub mod list;
pub mod published;
pub mod show;
pub mod upkeep;
