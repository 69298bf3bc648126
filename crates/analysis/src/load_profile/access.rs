//! What requests say beyond their rate: sizes, order and the part of the device that they use.

use std::collections::HashMap;

use fathom_model::Op;
use fathom_observed::{ObservedRequest, RequestTrace};
use serde::Serialize;

/// Sequential streams that are followed at once, for each operation.
pub const STREAMS: usize = 16;
/// Sizes that are listed.
const MOST_SIZES: usize = 12;
/// Bytes of a region whose accesses are counted together.
const REGION: u64 = 1 << 20;
/// Shares of the accesses for which the smallest part of the device is sought.
const HOT_SHARES: [f64; 3] = [0.5, 0.9, 0.99];

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

/// The part of the device that requests use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkingSet {
    /// Bytes that a request covers, each counted once.
    pub touched_bytes: u64,
    /// From the first to the last of them, of several files together.
    pub span_bytes: u64,
    /// The busiest regions.
    pub hot: Vec<HotRegions>,
}

/// The fewest regions of 1 MiB in which a share of the requests begins.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotRegions {
    /// The share.
    pub share: f64,
    /// Bytes of these regions.
    pub bytes: u64,
}

/// Requests that move data between memory and the device.
fn data_requests(trace: &RequestTrace) -> impl Iterator<Item = &ObservedRequest> {
    trace.requests.iter().filter(|request| matches!(request.op, Op::Read | Op::Write))
}

/// Sizes, the most frequent first.
pub(super) fn sizes(trace: &RequestTrace) -> Vec<SizeShare> {
    let mut counts: HashMap<(Op, u32), u64> = HashMap::new();
    let mut total = 0_u64;
    for request in trace.requests.iter().filter(|request| !request.op.is_sync()) {
        *counts.entry((request.op, request.bytes)).or_default() += 1;
        total += 1;
    }
    let mut sizes: Vec<((Op, u32), u64)> = counts.into_iter().collect();
    sizes.sort_unstable_by_key(|&(size, ops)| (std::cmp::Reverse(ops), size));
    sizes.truncate(MOST_SIZES);
    let of = |((op, bytes), ops): ((Op, u32), u64)| SizeShare {
        operation: op.name(),
        bytes: u64::from(bytes),
        ops,
        share: ops as f64 / total as f64,
    };
    sizes.into_iter().map(of).collect()
}

/// The ends of the latest requests of one operation, the oldest replaced first.
#[derive(Clone, Copy, Debug)]
struct LatestEnds {
    ends: [(u16, u64); STREAMS],
    oldest: usize,
    requests: u64,
    sequential: u64,
}

impl LatestEnds {
    const NONE: LatestEnds =
        LatestEnds { ends: [(0, u64::MAX); STREAMS], oldest: 0, requests: 0, sequential: 0 };

    fn take(&mut self, request: &ObservedRequest) {
        self.requests += 1;
        let end = (request.file, request.offset + u64::from(request.bytes));
        match self.ends.iter().position(|known| *known == (request.file, request.offset)) {
            Some(stream) => {
                self.sequential += 1;
                self.ends[stream] = end;
            }
            None => {
                self.ends[self.oldest] = end;
                self.oldest = (self.oldest + 1) % STREAMS;
            }
        }
    }

    fn share(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.sequential as f64 / self.requests as f64)
    }
}

/// How much is sequential; `None` without reads and writes.
pub(super) fn order(trace: &RequestTrace) -> Option<AccessOrder> {
    let (mut reads, mut writes) = (LatestEnds::NONE, LatestEnds::NONE);
    for request in data_requests(trace) {
        match request.op {
            Op::Read => reads.take(request),
            _ => writes.take(request),
        }
    }
    let requests = reads.requests + writes.requests;
    (requests > 0).then(|| AccessOrder {
        sequential_reads: reads.share(),
        sequential_writes: writes.share(),
        sequential: (reads.sequential + writes.sequential) as f64 / requests as f64,
    })
}

/// The part of the device in use; `None` without reads and writes.
pub(super) fn working_set(trace: &RequestTrace) -> Option<WorkingSet> {
    let mut ranges: Vec<(u16, u64, u32)> =
        data_requests(trace).map(|request| (request.file, request.offset, request.bytes)).collect();
    if ranges.is_empty() {
        return None;
    }
    ranges.sort_unstable();
    let (mut touched_bytes, mut span_bytes, mut regions) = (0_u64, 0_u64, Vec::new());
    for of_file in ranges.chunk_by(|one, next| one.0 == next.0) {
        let (mut reached, first) = (of_file[0].1, of_file[0].1);
        for &(_, offset, bytes) in of_file {
            let end = offset + u64::from(bytes);
            touched_bytes = touched_bytes.saturating_add(end.saturating_sub(reached.max(offset)));
            reached = reached.max(end);
        }
        span_bytes = span_bytes.saturating_add(reached - first);
        let by_region = of_file.chunk_by(|one, next| one.1 / REGION == next.1 / REGION);
        regions.extend(by_region.map(|of_region| of_region.len() as u64));
    }
    regions.sort_unstable_by(|one, other| other.cmp(one));
    let hot =
        HOT_SHARES.map(|share| HotRegions { share, bytes: fewest(&regions, share, ranges.len()) * REGION });
    Some(WorkingSet { touched_bytes, span_bytes, hot: hot.to_vec() })
}

/// The fewest regions, of those by descending accesses, that have this share of all accesses.
fn fewest(regions: &[u64], share: f64, accesses: usize) -> u64 {
    let wanted = (share * accesses as f64).ceil() as u64;
    let mut reached = 0;
    let enough = regions.iter().position(|count| {
        reached += count;
        reached >= wanted
    });
    enough.map_or(regions.len(), |last| last + 1) as u64
}

#[cfg(test)]
mod tests {
    use super::super::tests::{request, trace};
    use super::*;

    #[test]
    fn sizes_are_listed_by_their_frequency() {
        let mut requests: Vec<_> = (0..9).map(|at| request(at, Op::Read, 0, 4096, 0)).collect();
        requests.push(request(9, Op::Write, 0, 65_536, 0));
        requests.push(request(9, Op::Sync, 0, 0, 0));
        let sizes = sizes(&trace(requests));
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
        let order = order(&trace(requests)).unwrap();
        assert_eq!((order.sequential_reads, order.sequential_writes), (Some(0.99), Some(0.0)));
        assert_eq!(order.sequential, 0.66);
    }

    #[test]
    fn bytes_are_touched_once_and_regions_counted() {
        let mut requests: Vec<_> = (0..98).map(|at| request(at, Op::Read, 0, 8192, 0)).collect();
        requests.push(request(98, Op::Read, 4096, 8192, 0));
        requests.push(request(99, Op::Write, 10 << 20, 4096, 0));
        let set = working_set(&trace(requests)).unwrap();
        assert_eq!((set.touched_bytes, set.span_bytes), (16_384, (10 << 20) + 4096));
        let hot: Vec<u64> = set.hot.iter().map(|hot| hot.bytes >> 20).collect();
        assert_eq!(hot, [1, 1, 1]);
        let all = fewest(&[98, 1, 1], 0.99, 100);
        assert_eq!(all, 2);
        assert!(working_set(&trace(vec![request(0, Op::Sync, 0, 0, 0)])).is_none());
    }
}
