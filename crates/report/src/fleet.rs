//! The report of a run of several hosts: totals over the time they have in common, each host beside the others, and what they
//! tell together.

mod hosts;
pub mod json;
mod view;

pub use view::{beside, view};
