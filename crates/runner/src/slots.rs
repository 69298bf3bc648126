//! The slots of the queue depth: the request of each, its times, and its state in the engine.

use fathom_engine::Completion;
use fathom_model::{Op, Request};

/// The times of the request in a slot, and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Start of the request, session ns; [`Stamp::UNSET`] until it is offered.
    pub start: u64,
    /// When the engine had submitted it, session ns.
    pub issued: u64,
    /// Bytes moved by earlier parts of a short request.
    pub moved: u32,
}

impl Stamp {
    /// A start that is not known yet.
    pub const UNSET: u64 = u64::MAX;
    /// The stamp of a new request.
    pub const FRESH: Stamp = Stamp { start: Stamp::UNSET, issued: 0, moved: 0 };
}

/// Capacity to allocate for `depth` elements: small allocations of several workers could share a cache line.
const fn room(depth: u32) -> usize {
    const LEAST: u32 = 64;
    (if depth < LEAST { LEAST } else { depth }) as usize
}

/// All slots of one worker. A slot is free, then in the batch, then accepted, then in flight alone, then done, then free.
#[derive(Debug)]
pub(crate) struct Slots {
    /// The outstanding part of each slot's request.
    pub requests: Box<[Request]>,
    pub stamps: Box<[Stamp]>,
    pub free: Vec<u32>,
    /// Slots that are not used now, because the queue is to be shorter.
    parked: Vec<u32>,
    /// Slots with a request that the engine has not accepted yet.
    pub batch: Vec<u32>,
    /// Slots accepted by the engine and not submitted yet, in order.
    pub accepted: Vec<u32>,
    /// Completions of the engine that are not processed yet.
    pub done: Vec<Completion>,
    /// Requests accepted and not completed.
    pub in_flight: u32,
    /// Short requests whose remainders have not been submitted.
    pub rests: u32,
}

/// Slots that wait for their requests, in order.
pub(crate) struct Claimed<'a> {
    slots: std::slice::Iter<'a, u32>,
    requests: &'a mut [Request],
    stamps: &'a mut [Stamp],
}

impl Claimed<'_> {
    /// Puts a new request into the next slot; there must be one. Returns the slot, and its previous operation.
    #[inline(always)]
    pub fn put(&mut self, request: Request) -> (u32, Op) {
        let slot = *self.slots.next().expect("no more requests are drawn than slots were claimed");
        let before = std::mem::replace(&mut self.requests[slot as usize], request);
        self.stamps[slot as usize] = Stamp::FRESH;
        (slot, before.op)
    }

    /// Number of slots without a request.
    #[inline(always)]
    pub fn left(self) -> usize {
        self.slots.len()
    }
}

impl Slots {
    pub fn new(depth: u32) -> Self {
        let empty = Request { op: Op::Read, file: 0, len: 0, offset: 0 };
        let mut free = Vec::with_capacity(room(depth));
        free.extend((0..depth).rev());
        Slots {
            requests: vec![empty; room(depth)].into_boxed_slice(),
            stamps: vec![Stamp::FRESH; room(depth)].into_boxed_slice(),
            free,
            parked: Vec::with_capacity(room(depth)),
            batch: Vec::with_capacity(room(depth)),
            accepted: Vec::with_capacity(room(depth)),
            done: Vec::with_capacity(room(depth)),
            in_flight: 0,
            rests: 0,
        }
    }

    /// Moves `count` free slots into the batch, to be given requests; there must be as many.
    #[inline]
    pub fn claim(&mut self, count: usize) -> Claimed<'_> {
        let (begin, rest) = (self.batch.len(), self.free.len() - count);
        self.batch.extend(self.free[rest..].iter().rev());
        self.free.truncate(rest);
        Claimed { slots: self.batch[begin..].iter(), requests: &mut self.requests, stamps: &mut self.stamps }
    }

    /// Frees the last `count` slots of the batch, which were claimed and given no request.
    #[inline]
    pub fn unclaim(&mut self, count: usize) {
        let rest = self.batch.len() - count;
        self.free.extend(self.batch[rest..].iter().rev());
        self.batch.truncate(rest);
    }

    /// Limits the requests in flight to `depth`, which takes effect as requests complete; true when it has. To be
    /// repeated until then.
    pub fn limit(&mut self, depth: u32) -> bool {
        let all = self.free.len() + self.parked.len() + self.batch.len() + self.in_flight as usize;
        let parked = all.saturating_sub(depth as usize);
        while self.parked.len() > parked {
            self.free.extend(self.parked.pop());
        }
        while self.parked.len() < parked
            && let Some(slot) = self.free.pop()
        {
            self.parked.push(slot);
        }
        self.parked.len() == parked
    }

    /// The slots that have no request.
    pub fn unused(&self) -> impl Iterator<Item = u32> + '_ {
        self.free.iter().chain(&self.parked).copied()
    }

    /// Puts the remainder of a request that has moved `moved` bytes into the batch.
    pub fn put_remainder(&mut self, slot: u32, moved: u32) {
        let rest = &mut self.requests[slot as usize];
        rest.offset += u64::from(moved);
        rest.len -= moved;
        self.stamps[slot as usize].moved += moved;
        self.rests += 1;
        self.in_flight -= 1;
        self.batch.push(slot);
    }

    /// Offsets of the requests that are accepted and not completed.
    pub fn offsets_in_flight(&self) -> impl Iterator<Item = u64> + '_ {
        let waiting = self.unused().chain(self.batch.iter().copied());
        let all = self.free.len() + self.parked.len() + self.batch.len() + self.in_flight as usize;
        let mut is_in_flight = vec![false; self.requests.len()];
        is_in_flight[..all.min(self.requests.len())].fill(true);
        waiting.for_each(|slot| is_in_flight[slot as usize] = false);
        let slots = is_in_flight.into_iter().zip(&self.requests);
        slots.filter(|(is_in_flight, _)| *is_in_flight).map(|(_, request)| request.offset)
    }

    /// Stamps the first `count` accepted requests as submitted at `now`.
    #[inline]
    pub fn hand_over(&mut self, count: u32, now: u64) {
        if self.rests > 0 {
            return self.hand_over_with_rests(count, now);
        }
        for slot in self.accepted.drain(..count as usize) {
            self.stamps[slot as usize].issued = now;
        }
    }

    /// As [`Slots::hand_over`], but the remainders of short requests keep the time of their first part.
    #[cold]
    fn hand_over_with_rests(&mut self, count: u32, now: u64) {
        for slot in self.accepted.drain(..count as usize) {
            let stamp = &mut self.stamps[slot as usize];
            if stamp.moved == 0 {
                stamp.issued = now;
            } else {
                self.rests -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `depth` slots, of which `count` have requests: that of slot n reads at n. The last `batched` are not accepted.
    fn slots(depth: u32, count: usize, batched: usize) -> Slots {
        let mut slots = Slots::new(depth);
        let mut claimed = slots.claim(count);
        for index in 0..count as u64 {
            claimed.put(Request { op: Op::Read, file: 0, len: 1, offset: index });
        }
        slots.batch.drain(..count - batched);
        slots.in_flight = (count - batched) as u32;
        slots
    }

    #[test]
    fn offsets_in_flight_are_those_of_accepted_requests() {
        let mut slots = slots(8, 6, 2);
        assert_eq!(slots.offsets_in_flight().collect::<Vec<u64>>(), [0, 1, 2, 3]);
        // Slots 6 and 7 are parked; slot 1 is free again.
        assert!(!slots.limit(3) && slots.free.is_empty());
        slots.free.push(1);
        slots.in_flight -= 1;
        assert_eq!(slots.offsets_in_flight().collect::<Vec<u64>>(), [0, 2, 3]);
    }

    /// With a search of all free slots for each slot this would take minutes: the load stands still meanwhile.
    #[test]
    fn offsets_of_the_deepest_queues_are_found_at_once() {
        assert_eq!(slots(1 << 21, 3, 0).offsets_in_flight().collect::<Vec<u64>>(), [0, 1, 2]);
    }
}
