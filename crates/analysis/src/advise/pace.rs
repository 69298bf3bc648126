//! Whether requests came by themselves or waited for others: the pace of a load, inferred from its times and latencies.
//!
//! A client that waits for its requests makes the next one when one completes. So each request is matched with the latest completion
//! that no other one followed. Chance is subtracted: of independent requests, so many follow a completion as fit into the time after
//! completions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_observed::ObservedRequest;
use serde::Serialize;

/// A request that is made so long after a completion, at most, followed it, ns.
pub(super) const FOLLOWS_NS: u64 = 20_000;
/// From this share on requests wait for completions, and up to the other they do not.
const CLOSED_FROM: f64 = 0.7;
const OPEN_TO: f64 = 0.3;
/// Above this probability of a match by chance nothing can be said.
const MOST_CHANCE: f64 = 0.5;
/// Below this variance over the mean of the outstanding requests, clients limit them.
const LIMITED_BELOW: f64 = 0.5;
/// Completions that are kept in mind.
const MOST_KEPT: usize = 1 << 16;
/// Of so many requests with a latency, at most one without: others say nothing of what followed them.
const MOST_LACKING: u64 = 20;
/// Requests below which nothing is inferred.
const LEAST_REQUESTS: u64 = 100;

/// What requests wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadPace {
    /// They come by themselves.
    Open,
    /// They wait for the completion of others.
    Closed,
    /// Some do, or clients limit how many are outstanding.
    Mixed,
    /// The source does not say.
    #[default]
    Unknown,
}

impl LoadPace {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            LoadPace::Open => "open",
            LoadPace::Closed => "closed",
            LoadPace::Mixed => "mixed",
            LoadPace::Unknown => "unknown",
        }
    }
}

/// Infers the pace from requests by their times.
#[derive(Debug, Default)]
pub struct PaceCounter {
    ends: BinaryHeap<Reverse<u64>>,
    unclaimed: Vec<u64>,
    requests: u64,
    follows: u64,
    /// Requests without a latency, such as those in flight at the end.
    lacking: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    /// Outstanding requests as seen by the next one: sum and sum of squares.
    depth: (u64, u64),
}

impl PaceCounter {
    /// Looks at the next requests.
    pub fn take_all(&mut self, requests: &[ObservedRequest]) {
        requests.iter().for_each(|request| self.push(request));
    }

    /// Looks at the next request.
    #[inline]
    pub fn push(&mut self, request: &ObservedRequest) {
        let Some(latency) = request.latency_ns else {
            self.lacking += 1;
            return;
        };
        let at = request.at_ns;
        while let Some(&Reverse(end)) = self.ends.peek().filter(|end| end.0 <= at) {
            self.ends.pop();
            self.unclaimed.push(end);
        }
        if self.unclaimed.len() > MOST_KEPT {
            self.unclaimed.drain(..MOST_KEPT / 2);
        }
        self.first_ns = self.first_ns.or(Some(at));
        self.last_ns = at;
        self.requests += 1;
        if self.unclaimed.pop().is_some_and(|end| at - end <= FOLLOWS_NS) {
            self.follows += 1;
        }
        let depth = self.ends.len() as u64;
        self.depth = (self.depth.0 + depth, self.depth.1 + depth * depth);
        if self.ends.len() < MOST_KEPT {
            self.ends.push(Reverse(at.saturating_add(latency.get())));
        }
    }

    /// The pace of the requests so far.
    pub fn pace(&self) -> LoadPace {
        let lacks_latencies = self.lacking.saturating_mul(MOST_LACKING) > self.requests;
        if lacks_latencies || self.requests < LEAST_REQUESTS {
            return LoadPace::Unknown;
        }
        let count = self.requests as f64;
        let length = (self.last_ns - self.first_ns.unwrap_or(0)).max(1) as f64;
        let chance = 1.0 - (-count * FOLLOWS_NS as f64 / length).exp();
        let found = self.follows as f64 / count;
        if chance > MOST_CHANCE && found < 1.0 - (1.0 - chance) / 4.0 {
            return LoadPace::Unknown;
        }
        let share = (found - chance) / (1.0 - chance).max(1e-9);
        let mean = self.depth.0 as f64 / count;
        let variance = self.depth.1 as f64 / count - mean * mean;
        let is_limited = mean >= 1.0 && variance / mean < LIMITED_BELOW;
        match share {
            share if share >= CLOSED_FROM => LoadPace::Closed,
            share if share <= OPEN_TO && !is_limited => LoadPace::Open,
            _ => LoadPace::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use fathom_model::Op;

    use super::*;

    fn pace(requests: impl IntoIterator<Item = (u64, u64)>) -> LoadPace {
        let mut counter = PaceCounter::default();
        for (at_ns, latency) in requests {
            let latency_ns = NonZeroU64::new(latency);
            counter.push(&ObservedRequest {
                at_ns,
                offset: 0,
                latency_ns,
                bytes: 4096,
                file: 0,
                op: Op::Read,
            });
        }
        counter.pace()
    }

    #[test]
    fn what_follows_completions_is_closed() {
        // One client, then four that take different times.
        assert_eq!(pace((0..1000).map(|index| (index * 1_000_000, 1_000_000))), LoadPace::Closed);
        let mut ready = [0_u64; 4];
        let clients = (0..2000).map(|index: u64| {
            let client = (0..4).min_by_key(|client| ready[*client]).unwrap();
            let (at, latency) = (ready[client], 700_000 + index * 7919 % 900_000);
            ready[client] = at + latency;
            (at, latency)
        });
        assert_eq!(pace(clients.collect::<Vec<_>>()), LoadPace::Closed);
    }

    #[test]
    fn a_few_requests_may_lack_their_latency() {
        let client = |lacks: fn(u64) -> bool| {
            let latency = move |index| if lacks(index) { 0 } else { 1_000_000 };
            pace((0..1000).map(move |index| (index * 1_000_000, latency(index))))
        };
        // The one in flight at the end, and some that were lost.
        assert_eq!(client(|index| index == 999), LoadPace::Closed);
        assert_eq!(client(|index| index % 50 == 7), LoadPace::Closed);
        assert_eq!(client(|index| index % 10 == 7), LoadPace::Unknown);
    }

    #[test]
    fn what_comes_by_itself_is_open() {
        let apart = |index: u64| index * 997_000 + index * index * 7919 % 800_000;
        assert_eq!(pace((0..1000).map(|index| (apart(index), 300_000))), LoadPace::Open);
        assert_eq!(pace((0..50).map(|index| (index, 1))), LoadPace::Unknown);
        assert_eq!(pace((0..1000).map(|index| (index * 1000, 0))), LoadPace::Unknown);
    }
}
