//! A closed loop: each request is made when the one that it followed in the recording is complete, after the same pause.
//!
//! Which one it followed is a completion immediately before it, or else one that no other request followed: a client's pause.
//! Requests are read some way ahead, since on another volume they may complete in another order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use fathom_observed::ObservedRequest;
use fathom_stats::Moments;

use super::{Copies, ReplayRun};
use crate::load_profile::PlaceHasher;
use crate::pace::{FOLLOWS_NS, is_serial};

/// Clients do not pause for longer, ns.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;
/// Requests that are read ahead.
const AHEAD: usize = 4_096;
/// Completions that are remembered: a power of two.
const REMEMBERED: usize = 1 << 17;
/// The end of a list of requests.
const NONE: u32 = u32::MAX;

/// A request that was read and not made yet, in its place of [`ClosedLoop::read_ahead`].
#[derive(Clone, Copy, Debug)]
struct UnmadeRequest {
    request: ObservedRequest,
    id: u64,
    /// Its client's pause before it, ns.
    pause_ns: u64,
    /// The place of another one that follows the same request, or that is free too.
    next: u32,
}

/// The state of a closed loop.
pub(super) struct ClosedLoop {
    copies: Copies,
    /// Completions of the recording that lie ahead of what was read: end and request.
    recorded: BinaryHeap<Reverse<(u64, u64)>>,
    /// Completions that no request followed yet, the latest last.
    unclaimed: VecDeque<(u64, u64)>,
    latest: Option<(u64, u64)>,
    /// Requests immediately after a completion.
    immediate: u64,
    /// The same completions, and the pauses after them, ns, if clients go on in the order in which they paused.
    in_order: VecDeque<u64>,
    pauses: Moments,
    /// How many paused at each request, in all.
    pausing: u64,
    /// Requests of the recording that were made while another was outstanding.
    meetings: u64,
    /// Request and its completion here, by the low bits of the request.
    ends: Vec<(u64, u64)>,
    /// What was read and not made, in places that are used again.
    read_ahead: Vec<UnmadeRequest>,
    /// The first free place.
    free: u32,
    /// The first of the requests that follow one which has not been made.
    children: HashMap<u64, u32, BuildHasherDefault<PlaceHasher>>,
    /// Time, request and its place.
    ready: BinaryHeap<Reverse<(u64, u64, u32)>>,
    next_id: u64,
    unmade: usize,
    now: u64,
    /// All that is left waits for what never completes.
    is_stuck: bool,
}

impl ClosedLoop {
    pub(super) fn new(growth_milli: u64) -> ClosedLoop {
        ClosedLoop {
            copies: Copies::new(growth_milli),
            recorded: BinaryHeap::new(),
            unclaimed: VecDeque::new(),
            latest: None,
            immediate: 0,
            in_order: VecDeque::new(),
            pauses: Moments::default(),
            pausing: 0,
            meetings: 0,
            ends: vec![(u64::MAX, 0); REMEMBERED],
            read_ahead: Vec::new(),
            free: NONE,
            children: HashMap::default(),
            ready: BinaryHeap::new(),
            next_id: 0,
            unmade: 0,
            now: 0,
            is_stuck: false,
        }
    }

    /// Reads the next requests, and makes those that are far enough behind.
    pub(super) fn take(&mut self, requests: &[ObservedRequest], run: &mut ReplayRun) {
        for request in requests {
            if self.is_stuck {
                return;
            }
            self.read(request);
            while self.unmade >= AHEAD && !self.is_stuck {
                self.is_stuck = !self.make_next(run);
            }
        }
    }

    /// Makes the rest.
    pub(super) fn finish(&mut self, run: &mut ReplayRun) {
        while !self.is_stuck && self.make_next(run) {}
    }

    /// Makes the request that is ready first; false where none is.
    fn make_next(&mut self, run: &mut ReplayRun) -> bool {
        let Some(Reverse((at, id, place))) = self.ready.pop() else { return false };
        self.unmade -= 1;
        self.now = self.now.max(at);
        let end = run.make(self.now, &self.read_ahead[place as usize].request);
        self.release(place);
        self.ends[id as usize % REMEMBERED] = (id, end);
        let mut child = self.children.remove(&id).unwrap_or(NONE);
        while child != NONE {
            let UnmadeRequest { id, pause_ns, next, .. } = self.read_ahead[child as usize];
            match end {
                // What never completes, nothing follows.
                u64::MAX => {
                    self.unmade -= 1;
                    self.release(child);
                }
                end => self.ready.push(Reverse((end.saturating_add(pause_ns), id, child))),
            }
            child = next;
        }
        true
    }

    /// Keeps a request until it is made.
    fn keep(&mut self, unmade: UnmadeRequest) -> u32 {
        match self.read_ahead.get_mut(self.free as usize) {
            Some(place) => {
                let next = place.next;
                *place = unmade;
                std::mem::replace(&mut self.free, next)
            }
            None => {
                self.read_ahead.push(unmade);
                (self.read_ahead.len() - 1) as u32
            }
        }
    }

    fn release(&mut self, place: u32) {
        self.read_ahead[place as usize].next = std::mem::replace(&mut self.free, place);
    }

    /// The completion that a request at `at` of the recording followed: one immediately before it, else one after which a client
    /// paused.
    fn claim(&mut self, at: u64) -> Option<(u64, u64)> {
        if is_serial(self.meetings, self.next_id) {
            // One client, whose requests follow each other; a foreign request beside it is followed by nobody.
            let latest = self.unclaimed.pop_back();
            self.unclaimed.clear();
            self.in_order.clear();
            return latest;
        }
        self.pausing += self.in_order.len() as u64;
        if let Some(end) = self.in_order.pop_front() {
            self.pauses.record((at - end).min(LONGEST_PAUSE_NS));
        }
        let chance = self.next_id as f64 * FOLLOWS_NS as f64 / at.max(1) as f64;
        if self.unclaimed.back().is_some_and(|last| at - last.0 <= FOLLOWS_NS) {
            self.immediate += 1;
            // Clients that think all follow a completion immediately as often as chance has it.
            if self.immediate as f64 >= 2.0 * chance * self.next_id as f64 {
                return self.unclaimed.pop_back();
            }
        }
        // Nobody followed those, such as the last of a client that ended.
        let is_stale = |first: &(u64, u64)| at - first.0 > LONGEST_PAUSE_NS;
        while self.unclaimed.len() > 1 && self.unclaimed.front().is_some_and(is_stale) {
            self.unclaimed.pop_front();
        }
        while self.unclaimed.len() > REMEMBERED / 2 {
            self.unclaimed.pop_front();
        }
        // Of pauses at random, any may end next; until the first of so many ends they vary by the root of their number. Those that vary
        // less end in the order in which they began.
        let count = self.pausing as f64 / self.pauses.count.max(1) as f64;
        if self.pauses.stdev() * count.max(1.0).sqrt() < self.pauses.mean() / 2.0 {
            return self.unclaimed.pop_front();
        }
        let drawn = self.next_id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.unclaimed.remove(drawn as usize % self.unclaimed.len().max(1))
    }

    /// Reads the next request of the recording: it is ready, or waits for the one that it followed.
    fn read(&mut self, request: &ObservedRequest) {
        let at = request.at_ns;
        while let Some(&Reverse(ended)) = self.recorded.peek().filter(|ended| ended.0.0 <= at) {
            self.recorded.pop();
            self.unclaimed.push_back(ended);
            self.in_order.push_back(ended.0);
            self.latest = Some(ended);
        }
        self.meetings += u64::from(!self.recorded.is_empty());
        let followed = self.claim(at).or(self.latest);
        for _ in 0..self.copies.next_count() {
            let id = self.next_id;
            self.next_id += 1;
            let took = request.latency_ns.map_or(1, std::num::NonZeroU64::get);
            self.recorded.push(Reverse((at.saturating_add(took), id)));
            self.follow(id, request, followed);
        }
    }

    /// Makes a request wait for the one that it followed in the recording, whose completion there is given.
    fn follow(&mut self, id: u64, request: &ObservedRequest, followed: Option<(u64, u64)>) {
        let mut unmade = UnmadeRequest { request: *request, id, pause_ns: 0, next: NONE };
        let ready_at = match followed {
            None => Some(request.at_ns),
            Some((recorded_end, parent)) => {
                unmade.pause_ns = request.at_ns - recorded_end;
                match self.ends[parent as usize % REMEMBERED] {
                    // What never completed, nothing follows.
                    (known, u64::MAX) if known == parent => return,
                    (known, end) if known == parent => Some(end.saturating_add(unmade.pause_ns)),
                    // Forgotten, so long ago: it follows what is made now.
                    _ if id - parent > (REMEMBERED / 2) as u64 => Some(self.now),
                    _ => None,
                }
            }
        };
        self.unmade += 1;
        let place = self.keep(unmade);
        match (ready_at, followed) {
            (None, Some((_, parent))) => {
                let first = self.children.entry(parent).or_insert(NONE);
                self.read_ahead[place as usize].next = std::mem::replace(first, place);
            }
            (at, _) => self.ready.push(Reverse((at.unwrap_or(self.now), id, place))),
        }
    }
}
