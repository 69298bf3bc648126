//! fathom's own recordings of a device: every request with its latency, or sums of intervals where requests may not be traced.
//!
//! A file is a sequence of blocks, each with its length, its number of entries and a checksum, so that what was written before a
//! crash can be read. The first block is a header, as JSON; blocks of requests or intervals follow, then an end. Within a block
//! numbers have variable length, and a request is the difference from the previous one of its operation: about 10 bytes. Blocks do
//! not depend on each other. Files of one recording, or several recordings of one device, may be joined by `cat`.
//! docs/src/reference/load-recordings.md has the format.

mod block;
mod blocks;
mod header;
mod joiner;
mod number;
mod reader;
mod request_code;
mod sums_code;
mod writer;

pub(crate) use block::is_recording;
pub use header::{RecordingDetail, RecordingEnd, RecordingHeader};
pub use joiner::{JoinedRequests, RequestJoiner};
pub(crate) use reader::RecordedRequests;
pub use reader::read_recording;
pub use writer::{RequestBlock, interval_block};
