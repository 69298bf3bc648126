//! What an observed load would get of a volume: replayed request by request on the model of the volume, or, where only sums over
//! intervals are known, folded over its limits. A prediction from sums is one for each way in which the I/Os may have arrived within
//! the intervals, so that the answer carries the range that the source leaves.
//!
//! Pure: no clock, no files; a [`Replay`] takes requests one by one and keeps those in flight alone.

mod advice;
mod chunks;
mod demand;
mod objective;
mod pace;
mod prediction;
mod replay;
mod serial;
mod sums;
mod tally;

pub use advice::{
    Advice, AdvisedCandidate, AdvisedLoad, AdvisedParameters, GrowthBreak, UnsuitableCandidate,
};
pub use chunks::{GapCloser, RequestChunks};
pub use demand::{DemandNote, DemandStep, DemandTally, LoadDemand};
pub use objective::{AdviseObjective, AdviseVerdict, LatencyLimit, ObjectiveSource, Requirement, value_text};
pub use pace::{LoadPace, PaceCounter};
pub use prediction::{
    LowestCredits, MOST_SLICES, PredictedSlice, Prediction, PredictionRange, PredictionSet, ThrottleCause,
};
pub use replay::{Replay, ReplayPace, ReplaySettings};
pub use sums::{Arrivals, SumsSettings, predict_sums};
