//! The replay of recorded requests.

use std::path::PathBuf;
use std::sync::Arc;

use crate::Request;

/// Which recordings a job replays, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayPlan {
    /// The recordings; clones use them in turn.
    pub logs: Vec<PathBuf>,
    /// Issue requests as soon as slots are free instead of at their recorded times.
    pub no_stall: bool,
    /// The target of all requests, instead of those that were recorded.
    pub redirect: Option<PathBuf>,
    /// Offsets are rounded down to multiples of this power of two.
    pub align: u64,
    /// Offsets are divided by this.
    pub scale: u64,
    /// Speed in percent: 200 halves the recorded times.
    pub time_scale: u64,
    /// Operations that are left out: read, write, trim, sync.
    pub skip: [bool; 4],
    /// The contents of `logs` as they are replayed; empty until they have been read.
    pub recorded: Vec<Arc<RecordedLoad>>,
}

impl Default for ReplayPlan {
    fn default() -> Self {
        ReplayPlan {
            logs: Vec::new(),
            no_stall: false,
            redirect: None,
            align: 1,
            scale: 1,
            time_scale: 100,
            skip: [false; 4],
            recorded: Vec::new(),
        }
    }
}

impl ReplayPlan {
    /// The requests of clone number `clone`, if the recordings have been read.
    pub fn of_clone(&self, clone: usize) -> Option<&Arc<RecordedLoad>> {
        self.recorded.get(clone.checked_rem(self.recorded.len())?)
    }
}

/// The requests of a recording, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedLoad {
    /// The files that requests index.
    pub files: Vec<RecordedFile>,
    /// The requests, by their times.
    pub requests: Vec<RecordedRequest>,
}

/// A file of a recording, and the bytes of it that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedFile {
    /// The path.
    pub path: PathBuf,
    /// End of the last byte that is read.
    pub read_end: u64,
    /// End of the last byte that is used.
    pub end: u64,
}

/// A request and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// Time since the start of the job, ns.
    pub at_ns: u64,
    /// The request.
    pub request: Request,
}
