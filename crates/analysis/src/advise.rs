//! Advice for an observed load: which volumes serve it, by what `fathom-predict` says that it would get of each.

mod advice;
mod objective;

pub use advice::{
    Advice, AdvisedCandidate, AdvisedLoad, AdvisedParameters, GrowthBreak, UnsuitableCandidate,
};
pub use objective::{AdviseObjective, AdviseVerdict, ObjectiveSource};
