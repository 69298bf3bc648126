//! Recordings of requests in the formats of other programs: fio's iolog and the binary events of blktrace.
//!
//! The parsers open nothing: they are given lines or bytes.

mod blktrace;
mod iolog;

use fathom_model::plan::RecordedRequest;

pub use blktrace::{
    BlktraceError, BlktraceEvents, BlockAction, BlockEvent, device_name, is_blktrace, read_blktrace,
};
pub use iolog::{Iolog, IologAction, IologLine, IologVersion, parse_line};

/// Longest request, bytes.
const MAX_BYTES: u64 = (u32::MAX / 2) as u64;

/// Requests as they were recorded, by their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The files that requests index: paths, or the numbers of devices as `MAJOR:MINOR`.
    pub files: Vec<String>,
    /// The requests.
    pub requests: Vec<RecordedRequest>,
}

impl Recording {
    /// Orders the requests by their times: several threads, files or CPUs may have recorded them.
    fn sorted(mut self) -> Self {
        self.requests.sort_by_key(|recorded| recorded.at_ns);
        self
    }
}
