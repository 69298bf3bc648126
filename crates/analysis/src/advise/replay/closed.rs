//! A closed loop: each request is made when the one that it followed in the recording is complete, after the same pause.
//!
//! Which one it followed is a completion immediately before it, or else the oldest one that no other request followed: a client's
//! pause. Requests are read some way ahead, since on another volume they may complete in another order.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, VecDeque};

use fathom_observed::ObservedRequest;

use super::{Copies, ReplayRun};
use crate::advise::pace::FOLLOWS_NS;

/// Clients do not pause for longer, ns.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;
/// Requests that are read ahead.
const AHEAD: usize = 4_096;
/// Completions that are remembered: a power of two.
const REMEMBERED: usize = 1 << 17;

/// A request that is ready at a time.
#[derive(Clone, Copy, Debug)]
struct ReadyRequest {
    at: u64,
    id: u64,
    request: ObservedRequest,
}

impl PartialEq for ReadyRequest {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.id) == (other.at, other.id)
    }
}

impl Eq for ReadyRequest {}

impl PartialOrd for ReadyRequest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ReadyRequest {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.id).cmp(&(other.at, other.id))
    }
}

/// The state of a closed loop.
pub(super) struct ClosedLoop {
    copies: Copies,
    /// Completions of the recording that lie ahead of what was read: end and request.
    recorded: BinaryHeap<Reverse<(u64, u64)>>,
    /// Completions that no request followed yet, the latest last.
    unclaimed: VecDeque<(u64, u64)>,
    latest: Option<(u64, u64)>,
    /// Request and its completion here, by the low bits of the request.
    ends: Vec<(u64, u64)>,
    /// Requests that follow one which has not been made, with their pause.
    children: HashMap<u64, Vec<(u64, u64, ObservedRequest)>>,
    ready: BinaryHeap<Reverse<ReadyRequest>>,
    next_id: u64,
    unmade: usize,
    now: u64,
}

impl ClosedLoop {
    pub(super) fn new(growth_milli: u64) -> ClosedLoop {
        ClosedLoop {
            copies: Copies::new(growth_milli),
            recorded: BinaryHeap::new(),
            unclaimed: VecDeque::new(),
            latest: None,
            ends: vec![(u64::MAX, 0); REMEMBERED],
            children: HashMap::new(),
            ready: BinaryHeap::new(),
            next_id: 0,
            unmade: 0,
            now: 0,
        }
    }

    /// Makes all requests.
    pub(super) fn run(mut self, mut requests: impl Iterator<Item = ObservedRequest>, run: &mut ReplayRun) {
        let mut is_over = false;
        loop {
            while !is_over && self.unmade < AHEAD {
                match requests.next() {
                    Some(request) => self.read(&request),
                    None => is_over = true,
                }
            }
            let Some(Reverse(next)) = self.ready.pop() else { return };
            self.unmade -= 1;
            self.now = self.now.max(next.at);
            let end = run.make(self.now, &next.request);
            self.ends[next.id as usize % REMEMBERED] = (next.id, end);
            // What never completes, nothing follows.
            for (id, pause, request) in self.children.remove(&next.id).unwrap_or_default() {
                match end {
                    u64::MAX => self.unmade -= 1,
                    end => {
                        self.ready.push(Reverse(ReadyRequest { at: end.saturating_add(pause), id, request }))
                    }
                }
            }
        }
    }

    /// The completion that a request at `at` of the recording followed: one immediately before it, else that after which a client
    /// paused for longest.
    fn claim(&mut self, at: u64) -> Option<(u64, u64)> {
        if self.unclaimed.back().is_some_and(|last| at - last.0 <= FOLLOWS_NS) {
            return self.unclaimed.pop_back();
        }
        // Nobody followed those, such as the last of a client that ended.
        let is_stale = |first: &(u64, u64)| at - first.0 > LONGEST_PAUSE_NS;
        while self.unclaimed.len() > 1 && self.unclaimed.front().is_some_and(is_stale) {
            self.unclaimed.pop_front();
        }
        while self.unclaimed.len() > REMEMBERED / 2 {
            self.unclaimed.pop_front();
        }
        self.unclaimed.pop_front()
    }

    /// Reads the next request of the recording: it is ready, or waits for the one that it followed.
    fn read(&mut self, request: &ObservedRequest) {
        let at = request.at_ns;
        while let Some(&Reverse(ended)) = self.recorded.peek().filter(|ended| ended.0.0 <= at) {
            self.recorded.pop();
            self.unclaimed.push_back(ended);
            self.latest = Some(ended);
        }
        let followed = self.claim(at).or(self.latest);
        for _ in 0..self.copies.next_count() {
            let id = self.next_id;
            self.next_id += 1;
            self.unmade += 1;
            let took = request.latency_ns.map_or(1, std::num::NonZeroU64::get);
            self.recorded.push(Reverse((at.saturating_add(took), id)));
            let Some((recorded_end, parent)) = followed else {
                self.ready.push(Reverse(ReadyRequest { at, id, request: *request }));
                continue;
            };
            let pause = at - recorded_end;
            let (known, end) = self.ends[parent as usize % REMEMBERED];
            match known == parent {
                true if end == u64::MAX => self.unmade -= 1,
                true => {
                    let at = end.saturating_add(pause);
                    self.ready.push(Reverse(ReadyRequest { at, id, request: *request }));
                }
                // Forgotten, so long ago: it follows what is made now.
                false if id - parent > (REMEMBERED / 2) as u64 => {
                    self.ready.push(Reverse(ReadyRequest { at: self.now, id, request: *request }));
                }
                false => self.children.entry(parent).or_default().push((id, pause, *request)),
            }
        }
    }
}
