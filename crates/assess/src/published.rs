//! Published figures beside those that the models give under the same loads, through the whole program in virtual time.

mod cases;
mod figures;
mod reasons;

pub use cases::{CASES, Case};
use fathom_catalog::{ComparedFigure, Published, PublishedRun};

use crate::AssessError;
use cases::Results;

/// Every figure of `runs` beside that of the model.
///
/// # Errors
/// A load cannot be simulated.
pub fn compare(runs: &[&PublishedRun]) -> Result<Vec<ComparedFigure>, AssessError> {
    let mut results = Results::default();
    let figures = runs.iter().flat_map(|run| run.figures.iter().map(move |figure| (*run, figure)));
    figures.map(|(run, figure)| figures::compare(run, figure, &mut results)).collect()
}

/// The runs on volumes of the type `id`, or all.
pub fn runs_of(id: Option<&str>) -> Vec<&'static PublishedRun> {
    let is_of = |run: &&PublishedRun| id.is_none_or(|id| run.types.iter().any(|known| known == id));
    Published::shipped().runs.iter().filter(is_of).collect()
}
