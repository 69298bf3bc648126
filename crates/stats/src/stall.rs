//! A time in which nothing completed although requests were in flight.

use serde::{Deserialize, Serialize};

use crate::wire::is_default;

/// One stall of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stall {
    /// When the last request before it completed, or the first of it began, ns since the start of the run.
    pub start_ns: u64,
    /// How long nothing completed, ns; as far as it was seen where it was not over when the run ended.
    pub length_ns: u64,
    /// Requests in flight when it was noticed.
    pub depth: u32,
    /// Offsets of requests in flight, bytes: some of them, as far as they are known.
    #[serde(skip_serializing_if = "is_default")]
    pub offsets: Vec<u64>,
    /// Requests completed again, or the run left none in flight.
    pub over: bool,
}
