//! What requests say beyond their rate: sizes and order.

use std::collections::HashMap;

use fathom_model::Op;
use fathom_observed::ObservedRequest;
use serde::Serialize;

/// Sequential streams that are followed at once, for each operation.
pub const STREAMS: usize = 16;
/// Sizes that are listed.
const MAX_SIZES: usize = 12;
/// Sizes that are counted by themselves; further ones count in the total alone.
const MAX_COUNTED: usize = 1 << 16;
/// Sizes that are looked for one after the other.
const FREQUENT: usize = 16;

/// A size of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeShare {
    /// `read`, `write` or `trim`.
    pub operation: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// Requests.
    pub ops: u64,
    /// Their share in all that move data.
    pub share: f64,
}

/// Shares of sequential requests: those that begin where one of the latest requests of the same operation ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccessOrder {
    /// Of reads.
    pub sequential_reads: Option<f64>,
    /// Of writes.
    pub sequential_writes: Option<f64>,
    /// Of both.
    pub sequential: f64,
}

/// Counts requests by operation and size.
#[derive(Debug, Default)]
pub(super) struct SizeTally {
    /// The sizes that came first, which are most of what most loads have.
    frequent: Vec<((Op, u32), u64)>,
    others: HashMap<(Op, u32), u64>,
    total: u64,
}

impl SizeTally {
    /// Counts a request that is no sync.
    pub fn take(&mut self, request: &ObservedRequest) {
        let size = (request.op, request.bytes);
        self.total += 1;
        if let Some((_, ops)) = self.frequent.iter_mut().find(|(known, _)| *known == size) {
            *ops += 1;
        } else if self.frequent.len() < FREQUENT {
            self.frequent.push((size, 1));
        } else if self.others.len() < MAX_COUNTED || self.others.contains_key(&size) {
            *self.others.entry(size).or_default() += 1;
        }
    }

    /// Sizes, the most frequent first.
    pub fn sizes(self) -> Vec<SizeShare> {
        let mut sizes = self.frequent;
        sizes.extend(self.others);
        sizes.sort_unstable_by_key(|&(size, ops)| (std::cmp::Reverse(ops), size));
        sizes.truncate(MAX_SIZES);
        let of = |((op, bytes), ops): ((Op, u32), u64)| SizeShare {
            operation: op.name(),
            bytes: u64::from(bytes),
            ops,
            share: ops as f64 / self.total as f64,
        };
        sizes.into_iter().map(of).collect()
    }
}

/// The ends of the latest requests of one operation, the oldest replaced first.
#[derive(Clone, Copy, Debug)]
struct LatestEnds {
    ends: [u64; STREAMS],
    files: [u16; STREAMS],
    oldest: usize,
    requests: u64,
    sequential: u64,
}

impl LatestEnds {
    const NONE: LatestEnds =
        LatestEnds { ends: [u64::MAX; STREAMS], files: [0; STREAMS], oldest: 0, requests: 0, sequential: 0 };

    #[inline]
    fn take(&mut self, request: &ObservedRequest) {
        self.requests += 1;
        // Without branches, since most requests match none.
        let known = self.ends.iter().zip(&self.files).enumerate();
        let matches = known.fold(0_u32, |matches, (stream, (end, file))| {
            matches | u32::from((end ^ request.offset) | u64::from(file ^ request.file) == 0) << stream
        });
        let stream = match matches {
            0 => {
                let oldest = self.oldest;
                self.oldest = (oldest + 1) % STREAMS;
                oldest
            }
            _ => {
                self.sequential += 1;
                matches.trailing_zeros() as usize
            }
        };
        self.ends[stream] = request.offset + u64::from(request.bytes);
        self.files[stream] = request.file;
    }

    fn share(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.sequential as f64 / self.requests as f64)
    }
}

/// Follows the streams of reads and of writes.
#[derive(Debug)]
pub(super) struct OrderTally {
    reads: LatestEnds,
    writes: LatestEnds,
}

impl Default for OrderTally {
    fn default() -> OrderTally {
        OrderTally { reads: LatestEnds::NONE, writes: LatestEnds::NONE }
    }
}

impl OrderTally {
    /// Takes a read or write.
    #[inline]
    pub fn take(&mut self, request: &ObservedRequest) {
        match request.op {
            Op::Read => self.reads.take(request),
            _ => self.writes.take(request),
        }
    }

    /// How much is sequential; `None` without reads and writes.
    pub fn order(&self) -> Option<AccessOrder> {
        let OrderTally { reads, writes } = self;
        let requests = reads.requests + writes.requests;
        (requests > 0).then(|| AccessOrder {
            sequential_reads: reads.share(),
            sequential_writes: writes.share(),
            sequential: (reads.sequential + writes.sequential) as f64 / requests as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[test]
    fn sizes_are_listed_by_their_frequency() {
        let mut requests: Vec<_> = (0..9).map(|at| request(at, Op::Read, 0, 4096, 0)).collect();
        requests.push(request(9, Op::Write, 0, 65_536, 0));
        let mut tally = SizeTally::default();
        requests.iter().for_each(|request| tally.take(request));
        let sizes = tally.sizes();
        let found: Vec<_> = sizes.iter().map(|size| (size.operation, size.bytes, size.share)).collect();
        assert_eq!(found, [("read", 4096, 0.9), ("write", 65_536, 0.1)]);
    }

    #[test]
    fn interleaved_streams_are_sequential_and_jumps_are_not() {
        let mut requests = Vec::new();
        for at in 0..100_u64 {
            requests.push(request(at, Op::Read, at * 4096, 4096, 0));
            requests.push(request(at, Op::Read, (1 << 30) + at * 4096, 4096, 0));
            requests.push(request(at, Op::Write, at * 40_960 % 7_777_777, 4096, 0));
        }
        let mut tally = OrderTally::default();
        requests.iter().for_each(|request| tally.take(request));
        let order = tally.order().unwrap();
        assert_eq!((order.sequential_reads, order.sequential_writes), (Some(0.99), Some(0.0)));
        assert_eq!(order.sequential, 0.66);
    }

    #[test]
    fn many_sizes_are_counted_in_bounded_memory() {
        let mut tally = SizeTally::default();
        for bytes in 1..100_000 {
            tally.take(&request(0, Op::Write, 0, bytes, 0));
        }
        assert_eq!((tally.frequent.len(), tally.others.len()), (FREQUENT, MAX_COUNTED));
        tally.take(&request(0, Op::Write, 0, 500, 0));
        let sizes = tally.sizes();
        assert_eq!((sizes.len(), sizes[0].bytes, sizes[0].ops), (MAX_SIZES, 500, 2));
    }
}
