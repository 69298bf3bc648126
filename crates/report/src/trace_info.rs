//! Reports of `trace info`: what an observed load holds.

pub mod json;
mod view;

use fathom_observed::ObservedLoad;
use fathom_predict::load_profile::LoadProfile;

pub use view::view;

/// An observed load with its profile.
#[derive(Clone, Copy, Debug)]
pub struct TraceInfo<'a> {
    /// The name of its file.
    pub file: &'a str,
    /// The load.
    pub load: &'a ObservedLoad,
    /// What it holds.
    pub profile: &'a LoadProfile,
}
