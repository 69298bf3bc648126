//! The blocks of a recording that is being written.

use super::block::{BlockKind, framed};
use super::number::put;
use super::request_code::RequestCode;
use super::sums_code;
use crate::load::{ObservedInterval, ObservedRequest};

/// Requests of the next block.
#[derive(Debug, Default)]
pub struct RequestBlock {
    base_ns: u64,
    code: RequestCode,
    encoded: Vec<u8>,
    entries: u32,
}

impl RequestBlock {
    /// Bytes of a block beyond which it is best written.
    pub const ENOUGH_BYTES: usize = 64 << 10;

    /// Adds a request, which is not earlier than the previous one. Offset and length are multiples of 512.
    pub fn push(&mut self, request: &ObservedRequest) {
        if self.entries == 0 {
            self.base_ns = request.at_ns;
            self.code = RequestCode::from(request.at_ns);
        }
        self.code.encode(request, &mut self.encoded);
        self.entries += 1;
    }

    /// Requests in it.
    pub fn len(&self) -> u32 {
        self.entries
    }

    /// True without requests.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Bytes of these requests.
    pub fn bytes(&self) -> usize {
        self.encoded.len()
    }

    /// The block of these requests, which begins the next one: it is known what happened until `until_ns`, but for `lost` events
    /// and the latencies of `overdue` requests.
    pub fn take(&mut self, until_ns: u64, lost: u64, overdue: u64) -> Vec<u8> {
        let base_ns = if self.entries == 0 { until_ns } else { self.base_ns };
        let mut content = Vec::with_capacity(self.encoded.len() + 32);
        for number in [base_ns, until_ns.saturating_sub(base_ns), lost, overdue] {
            put(&mut content, number);
        }
        content.append(&mut self.encoded);
        framed(BlockKind::Requests, std::mem::take(&mut self.entries), &content)
    }
}

/// The block of an interval.
pub fn interval_block(interval: &ObservedInterval) -> Vec<u8> {
    let mut content = Vec::new();
    sums_code::encode(interval, &mut content);
    framed(BlockKind::Sums, 1, &content)
}
