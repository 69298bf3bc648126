//! fio's output formats.

pub mod banner;
pub(crate) mod conditions;
mod direction;
pub(crate) mod disk;
pub(crate) mod entry;
pub mod idleness;
pub mod iolog;
pub mod json;
pub(crate) mod json_value;
pub(crate) mod latency;
pub mod log;
pub mod normal;
pub(crate) mod number;
mod priority;
pub(crate) mod report;
pub(crate) mod response;
pub mod terse;

pub use entry::error_place;
pub use report::shown_errno;
