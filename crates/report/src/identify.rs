//! Reports of `identify`.

mod data;
mod figure;
pub mod json;
mod view;

use fathom_analysis::identified::Identified;
use fathom_analysis::identified::candidate::Candidate;
use fathom_analysis::identified::prediction::WorkloadPrediction;
use fathom_record::RunRecord;
use serde::Serialize;

pub use view::view;

/// All that is known of a volume.
#[derive(Serialize)]
pub struct IdentifyReport<'a> {
    /// The run.
    #[serde(skip)]
    pub record: &'a RunRecord,
    /// What was found.
    #[serde(flatten)]
    pub found: &'a Identified,
    /// The nearest types, the nearest first.
    pub candidates: &'a [Candidate],
    /// What workloads get.
    pub predictions: &'a [WorkloadPrediction],
}
