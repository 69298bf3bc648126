//! Reports of `catalog`.

pub mod fit;
pub mod fit_json;
pub mod json;
pub mod list;
pub mod show;
