//! The requests of a load in chunks, as replays and tallies take them, however many there are.

use fathom_observed::{LoadError, LoadGap, ObservedRequest, Requests};

/// Requests of a chunk at most: 64 KiB of them, which a cache holds.
const CHUNK: usize = 2_048;

/// Leaves the stretches without data out of the times of requests: those after a gap come as much earlier, so that it neither fills
/// credits nor lowers rates.
#[derive(Clone, Debug)]
pub struct GapCloser {
    /// Those that are left, the last one first.
    gaps: Vec<LoadGap>,
    passed_ns: u64,
}

impl GapCloser {
    /// Of these gaps, by their times.
    pub fn new(gaps: &[LoadGap]) -> GapCloser {
        GapCloser { gaps: gaps.iter().rev().copied().collect(), passed_ns: 0 }
    }

    /// The length of a load without its gaps.
    pub fn length_ns(length_ns: u64, gaps: &[LoadGap]) -> u64 {
        length_ns.saturating_sub(gaps.iter().map(|gap| gap.length_ns).fold(0, u64::saturating_add))
    }

    /// The time of a request without the gaps before it. Times do not fall from one call to the next.
    pub fn close(&mut self, at_ns: u64) -> u64 {
        while let Some(gap) = self.gaps.last() {
            if gap.start_ns.saturating_add(gap.length_ns) > at_ns {
                let inside_ns = at_ns.saturating_sub(gap.start_ns);
                return at_ns.saturating_sub(self.passed_ns.saturating_add(inside_ns));
            }
            self.passed_ns = self.passed_ns.saturating_add(gap.length_ns);
            self.gaps.pop();
        }
        at_ns.saturating_sub(self.passed_ns)
    }
}

/// The requests of a load in chunks, without its gaps.
#[derive(Debug)]
pub struct RequestChunks<'a> {
    requests: Requests<'a>,
    gaps: GapCloser,
}

impl<'a> RequestChunks<'a> {
    /// Those of a load whose gaps are known.
    pub fn new(requests: Requests<'a>, gaps: &[LoadGap]) -> RequestChunks<'a> {
        RequestChunks { requests, gaps: GapCloser::new(gaps) }
    }

    /// The next chunk; empty at the end.
    ///
    /// # Errors
    /// The requests cannot be read.
    pub fn next_chunk(&mut self) -> Result<Vec<ObservedRequest>, LoadError> {
        let mut chunk = Vec::with_capacity(CHUNK);
        self.requests.fill(&mut chunk, CHUNK)?;
        for request in &mut chunk {
            request.at_ns = self.gaps.close(request.at_ns);
        }
        Ok(chunk)
    }

    /// The requests that are left, and their load.
    pub fn into_requests(self) -> Requests<'a> {
        self.requests
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;
    use fathom_observed::{GapReason, LoadCourse};

    use super::*;
    use crate::load_profile::tests::{load, request, trace};

    fn gap(start_ns: u64, length_ns: u64) -> LoadGap {
        LoadGap { start_ns, length_ns, reason: GapReason::Missing }
    }

    #[test]
    fn times_skip_the_gaps_before_them() {
        let gaps = [gap(10, 30), gap(60, 20)];
        let mut closer = GapCloser::new(&gaps);
        let closed = [0, 9, 10, 25, 40, 59, 80, 99].map(|at_ns| closer.close(at_ns));
        assert_eq!(closed, [0, 9, 10, 10, 10, 29, 30, 49]);
        assert_eq!((GapCloser::length_ns(100, &gaps), GapCloser::length_ns(40, &gaps)), (50, 0));
    }

    #[test]
    fn chunks_have_every_request_in_its_order() {
        let requests: Vec<_> = (0..5_000).map(|at| request(at, Op::Read, at * 4096, 4096, 1)).collect();
        let whole = load(LoadCourse::Requests(trace(requests.clone())), 5_000_000_000, Vec::new());
        let mut chunks = RequestChunks::new(Requests::of(whole).unwrap(), &[gap(1_000_000_000, 5)]);
        let mut all = Vec::new();
        loop {
            let chunk = chunks.next_chunk().unwrap();
            if chunk.is_empty() {
                break;
            }
            assert!(chunk.len() <= CHUNK);
            all.extend(chunk);
        }
        assert_eq!(all.len(), requests.len());
        assert_eq!(all[..1_000], requests[..1_000]);
        assert_eq!((all[4_000].at_ns, all[4_000].offset), (3_999_999_995, requests[4_000].offset));
    }
}
