//! What an observed load would get of a volume: replayed request by request on the model of the volume, or, if only sums over
//! intervals are known, folded over its limits. A prediction from sums is one for each way in which the I/Os may have arrived within
//! the intervals, so that the answer carries the range that the source leaves. [`load_profile`] describes the load itself.
//!
//! Pure: no clock, no files; a [`Replay`] takes requests one by one and keeps only those in flight.

#![forbid(unsafe_code)]

mod chunks;
mod clients;
mod closed_form;
mod demand;
pub mod forecast;
pub mod load_profile;
mod pace;
mod prediction;
mod replay;
mod sums;
mod tally;

pub use chunks::{GapCloser, RequestChunks};
pub use clients::{ArrivalCounter, LoadArrivals, ThreadSet};
pub use closed_form::{
    BurstReach, CoursePhase, CreditBucket, LoadLimit, OfferedLoad, ReachedRate, RecurringBurst,
    burst_lasts_ns, exhausted_rates, is_limited, limits_bytes, load_limits, rate_course, reach, serves,
};
pub use demand::{DemandNote, DemandStep, DemandTally, LoadDemand};
pub use pace::LoadPace;
pub use prediction::{
    ExhaustionRange, LowestCredits, MAX_SLICES, PredictedSlice, Prediction, PredictionRange, PredictionSet,
    Requirement, ThrottleCause,
};
pub use replay::{Replay, ReplayPace, ReplaySettings};
pub use sums::{Arrivals, SumsSettings, predict_sums};
