//! A time in which nothing completed although requests were in flight.

use serde::{Deserialize, Serialize};

use fathom_model::is_default;

/// One stall of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stall {
    /// Last completion before the stall, or start of its first request, ns since the start of the run.
    pub start_ns: u64,
    /// Time without a completion, ns; until the end of the run if the stall had not ended.
    pub length_ns: u64,
    /// Requests in flight when it was detected.
    pub depth: u32,
    /// Known offsets of requests in flight, bytes; not all of them.
    #[serde(skip_serializing_if = "is_default")]
    pub offsets: Vec<u64>,
    /// The stall ended: requests completed again, or the run left none in flight.
    pub over: bool,
}
