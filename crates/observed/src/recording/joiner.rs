//! Events of requests as they happen, joined to requests in the order of their issue, in bounded memory.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;

use fathom_model::Op;

use crate::load::ObservedRequest;

/// A request that takes longer is passed on without its latency, ns.
const OVERDUE_NS: u64 = 60_000_000_000;
/// The same where its completion may have been lost.
const DOUBTFUL_NS: u64 = 1_000_000_000;
/// Requests behind one in flight beyond which that is passed on without its latency.
const MAX_WAITING: usize = 1 << 21;

/// A completion whose issue has not come is kept for this time, ns: a CPU that was taken away writes its events late.
const EARLY_NS: u64 = 1_000_000_000;
/// Most such completions.
const MAX_EARLY: usize = 4096;

/// The kernel's count of requests in flight includes those that were issued this long before it, ns.
const COUNTED_NS: u64 = 100_000_000;

/// Joins issues and completions to requests. Events are given in the order of their times, but for those of a CPU that was taken
/// away; a completion belongs to the oldest request in flight of its operation and offset, or to the latest one where the kernel
/// counts fewer in flight than are waited for.
#[derive(Debug, Default)]
pub struct RequestJoiner {
    /// Requests in flight, and those behind them.
    waiting: VecDeque<WaitingRequest>,
    /// The number of the first of them, from 0.
    first: u64,
    /// The latest request in flight of each operation and offset, by its number.
    latest: HashMap<(Op, u64), u64>,
    /// Completions of requests whose issue has not come.
    early: VecDeque<EarlyCompletion>,
    /// Events were lost at this time.
    lost_at_ns: Option<u64>,
    /// Requests that are waited for beyond those that the kernel counts, where there were such at the last count.
    surplus: Option<Surplus>,
}

#[derive(Clone, Copy, Debug)]
struct Surplus {
    /// The first and the last count that found it.
    since_ns: u64,
    until_ns: u64,
    /// As many at the least, at each count.
    least: usize,
}

#[derive(Clone, Copy, Debug)]
struct EarlyCompletion {
    op: Op,
    offset: u64,
    at_ns: u64,
}

/// What [`RequestJoiner::ready`] and [`RequestJoiner::finish`] passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinedRequests {
    /// Requests.
    pub ios: u64,
    /// Of these, requests that were in flight and have no latency.
    pub without_latency: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestState {
    InFlight,
    Complete,
    /// It went back to the queue, and is issued again.
    Requeued,
    /// It is complete, but the kernel did not say when.
    CompletionLost,
}

#[derive(Clone, Copy, Debug)]
struct WaitingRequest {
    request: ObservedRequest,
    state: RequestState,
    /// The number of the previous request in flight of the same operation and offset; one that is no more waiting counts as none.
    older: Option<u64>,
}

impl WaitingRequest {
    /// The kernel's count of requests in flight at `at_ns` includes it if it was in flight, and it was issued `age_ns` before.
    fn is_counted(&self, age_ns: u64, at_ns: u64) -> bool {
        // Flushes are not counted.
        let is_waited_for = self.state == RequestState::InFlight && !self.request.op.is_sync();
        is_waited_for && self.request.at_ns.saturating_add(age_ns) <= at_ns
    }
}

impl RequestJoiner {
    /// A request is issued to the driver; it has no latency yet.
    pub fn issued(&mut self, mut request: ObservedRequest) {
        if let Some(at_ns) = self.take_early(&request) {
            request.latency_ns = NonZeroU64::new((at_ns - request.at_ns).max(1));
            self.waiting.push_back(WaitingRequest { request, state: RequestState::Complete, older: None });
            return;
        }
        let number = self.first + self.waiting.len() as u64;
        let older = self.latest.insert((request.op, request.offset), number);
        self.waiting.push_back(WaitingRequest { request, state: RequestState::InFlight, older });
    }

    /// A request was seen whose completion will not be.
    pub fn entered(&mut self, request: ObservedRequest) {
        self.waiting.push_back(WaitingRequest { request, state: RequestState::Complete, older: None });
    }

    /// The latest request of this operation and offset went back to the queue.
    pub fn requeued(&mut self, op: Op, offset: u64) {
        let Some(number) = self.latest.get(&(op, offset)).copied() else { return };
        self.leave(number, RequestState::Requeued);
    }

    /// A request of this operation and offset is complete.
    pub fn completed(&mut self, op: Op, offset: u64, at_ns: u64) {
        let Some(mut number) = self.latest.get(&(op, offset)).copied() else {
            if self.early.len() == MAX_EARLY {
                self.early.pop_front();
            }
            self.early.push_back(EarlyCompletion { op, offset, at_ns });
            return;
        };
        let mut newer = None;
        // One that has waited for longer may be complete without an event: then this completion belongs to the latest request.
        while self.surplus.is_none()
            && let Some(older) = self.at(number).and_then(|waiting| waiting.older)
            && older >= self.first
        {
            newer = Some(number);
            number = older;
        }
        let older = self.at(number).and_then(|waiting| waiting.older.take());
        match newer {
            Some(newer) => {
                if let Some(newer) = self.at(newer) {
                    newer.older = None;
                }
            }
            None => self.replace_latest((op, offset), older),
        }
        if let Some(waiting) = self.at(number) {
            let latency_ns = at_ns.saturating_sub(waiting.request.at_ns).max(1);
            waiting.request.latency_ns = NonZeroU64::new(latency_ns);
            waiting.state = RequestState::Complete;
        }
    }

    /// The kernel counted `in_flight` requests at `at_ns`, and the events up to then were given. Where more are waited for, the kernel
    /// did not report completions: of all where none was in flight, else most likely of the oldest ones, where the same is found for
    /// as long as events may come late.
    pub fn counted(&mut self, in_flight: u64, at_ns: u64) {
        if in_flight == 0 {
            self.surplus = None;
            return self.give_up_oldest(usize::MAX, COUNTED_NS, at_ns);
        }
        let waited_for = self.waiting.iter().filter(|waiting| waiting.is_counted(0, at_ns)).count() as u64;
        let found = waited_for.saturating_sub(in_flight) as usize;
        if found == 0 {
            self.surplus = None;
            return;
        }
        let before = self.surplus.filter(|before| at_ns.saturating_sub(before.until_ns) <= DOUBTFUL_NS);
        let surplus = Surplus {
            since_ns: before.map_or(at_ns, |before| before.since_ns),
            until_ns: at_ns,
            least: before.map_or(found, |before| before.least.min(found)),
        };
        let is_certain = at_ns.saturating_sub(surplus.since_ns) >= DOUBTFUL_NS;
        self.surplus = (!is_certain).then_some(surplus);
        if is_certain {
            self.give_up_oldest(surplus.least, DOUBTFUL_NS, at_ns);
        }
    }

    /// The completions of the `most` oldest requests were lost, as far as they are older than `age_ns`.
    fn give_up_oldest(&mut self, most: usize, age_ns: u64, at_ns: u64) {
        let counted =
            self.waiting.iter().enumerate().filter(|(_, waiting)| waiting.is_counted(age_ns, at_ns));
        let places: Vec<usize> = counted.map(|(place, _)| place).take(most).collect();
        for place in places {
            self.leave(self.first + place as u64, RequestState::CompletionLost);
        }
    }

    /// A request is not in flight any more.
    fn leave(&mut self, number: u64, state: RequestState) {
        let Some(left) = self.at(number) else { return };
        left.state = state;
        let (key, older) = ((left.request.op, left.request.offset), left.older.take());
        let Some(mut newer) = self.latest.get(&key).copied() else { return };
        if newer == number {
            return self.replace_latest(key, older);
        }
        while let Some(waiting) = self.at(newer) {
            match waiting.older {
                Some(next) if next == number => return waiting.older = older,
                Some(next) => newer = next,
                None => return,
            }
        }
    }

    /// The time of the completion that came before this request's issue did.
    fn take_early(&mut self, request: &ObservedRequest) -> Option<u64> {
        let is_its = |early: &EarlyCompletion| {
            (early.op, early.offset) == (request.op, request.offset) && early.at_ns >= request.at_ns
        };
        let place = self.early.iter().position(is_its)?;
        self.early.remove(place).map(|early| early.at_ns)
    }

    /// Events were lost at `at_ns`: requests that are in flight may be complete.
    pub fn lost(&mut self, at_ns: u64) {
        self.lost_at_ns = Some(at_ns);
    }

    /// Passes the requests on before which none is in flight; `now_ns` is the time up to which events were given.
    pub fn ready(&mut self, now_ns: u64, mut take: impl FnMut(&ObservedRequest)) -> JoinedRequests {
        let mut joined = JoinedRequests::default();
        while self.early.front().is_some_and(|early| now_ns.saturating_sub(early.at_ns) > EARLY_NS) {
            self.early.pop_front();
        }
        while let Some(front) = self.waiting.front() {
            let age_ns = now_ns.saturating_sub(front.request.at_ns);
            let patience_ns =
                match self.lost_at_ns.is_some_and(|lost_at_ns| front.request.at_ns <= lost_at_ns) {
                    true => DOUBTFUL_NS,
                    false => OVERDUE_NS,
                };
            let is_given_up = age_ns > patience_ns || self.waiting.len() > MAX_WAITING;
            if front.state == RequestState::InFlight && !is_given_up {
                break;
            }
            self.pass_on(&mut joined, &mut take);
        }
        joined
    }

    /// Passes on what is left.
    pub fn finish(&mut self, mut take: impl FnMut(&ObservedRequest)) -> JoinedRequests {
        let mut joined = JoinedRequests::default();
        while !self.waiting.is_empty() {
            self.pass_on(&mut joined, &mut take);
        }
        joined
    }

    /// The time of the first request that is still to be passed on, or `now_ns`.
    pub fn next_ns(&self, now_ns: u64) -> u64 {
        self.waiting.front().map_or(now_ns, |front| front.request.at_ns)
    }

    fn pass_on(&mut self, joined: &mut JoinedRequests, take: &mut impl FnMut(&ObservedRequest)) {
        let Some(front) = self.waiting.pop_front() else { return };
        let (number, key) = (self.first, (front.request.op, front.request.offset));
        self.first += 1;
        match front.state {
            RequestState::Requeued => return,
            RequestState::Complete => {}
            RequestState::CompletionLost => joined.without_latency += 1,
            RequestState::InFlight => {
                joined.without_latency += 1;
                if self.latest.get(&key) == Some(&number) {
                    self.latest.remove(&key);
                }
            }
        }
        joined.ios += 1;
        take(&front.request);
    }

    fn at(&mut self, number: u64) -> Option<&mut WaitingRequest> {
        self.waiting.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn replace_latest(&mut self, key: (Op, u64), older: Option<u64>) {
        match older.filter(|older| *older >= self.first) {
            Some(older) => self.latest.insert(key, older),
            None => self.latest.remove(&key),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_ns: u64, offset: u64) -> ObservedRequest {
        ObservedRequest { at_ns, offset, latency_ns: None, bytes: 4096, file: 0, thread: 0, op: Op::Read }
    }

    fn ready(joiner: &mut RequestJoiner, now_ns: u64) -> Vec<(u64, Option<u64>)> {
        let mut found = Vec::new();
        joiner.ready(now_ns, |one| found.push((one.at_ns, one.latency_ns.map(NonZeroU64::get))));
        found
    }

    #[test]
    fn requests_are_passed_on_in_the_order_of_their_issue() {
        let mut joiner = RequestJoiner::default();
        joiner.issued(request(10, 0));
        joiner.issued(request(20, 4096));
        joiner.completed(Op::Read, 4096, 50);
        joiner.completed(Op::Read, 8192, 55);
        assert_eq!((ready(&mut joiner, 60), joiner.next_ns(60)), (vec![], 10));
        joiner.completed(Op::Read, 0, 70);
        assert_eq!(ready(&mut joiner, 80), [(10, Some(60)), (20, Some(30))]);
        assert_eq!((joiner.next_ns(80), joiner.latest.len()), (80, 0));
    }

    #[test]
    fn requests_at_one_offset_complete_one_after_the_other() {
        let mut joiner = RequestJoiner::default();
        [10, 20, 30].into_iter().for_each(|at_ns| joiner.issued(request(at_ns, 0)));
        // The last one found no room in the driver, and is issued again.
        joiner.requeued(Op::Read, 0);
        joiner.issued(request(35, 0));
        (100..104).for_each(|at_ns| joiner.completed(Op::Read, 0, at_ns));
        assert_eq!(ready(&mut joiner, 200), [(10, Some(90)), (20, Some(81)), (35, Some(67))]);
        assert!(joiner.latest.is_empty() && joiner.waiting.is_empty());
    }

    #[test]
    fn an_issue_may_come_after_its_completion() {
        let mut joiner = RequestJoiner::default();
        joiner.completed(Op::Read, 0, 40);
        joiner.completed(Op::Read, 4096, 50);
        // Another request at the place of a completion that was before it.
        joiner.issued(request(45, 0));
        joiner.issued(request(30, 4096));
        joiner.completed(Op::Read, 0, 60);
        assert_eq!(ready(&mut joiner, 100), [(45, Some(15)), (30, Some(20))]);
        assert!(joiner.latest.is_empty() && joiner.early.len() == 1);
        assert_eq!(ready(&mut joiner, 41 + EARLY_NS), []);
        assert!(joiner.early.is_empty());
    }

    #[test]
    fn unreported_completions_are_found_by_the_kernels_count() {
        const MS: u64 = 1_000_000;
        let mut joiner = RequestJoiner::default();
        // Three at one offset, and a flush, which is not counted.
        for at_ns in [0, 1, 2] {
            joiner.issued(request(at_ns, 0));
        }
        joiner.issued(ObservedRequest { op: Op::Sync, ..request(3, 0) });
        joiner.issued(request(50 * MS, 4096));
        joiner.counted(4, 120 * MS);
        joiner.counted(0, 99 * MS);
        assert_eq!(
            ready(&mut joiner, 120 * MS),
            [],
            "as many are in flight, or they may not have been counted"
        );
        joiner.counted(2, 200 * MS);
        joiner.counted(3, 1100 * MS);
        assert_eq!(ready(&mut joiner, 1100 * MS), [], "events may be late: they are waited for");
        joiner.counted(3, 1200 * MS);
        assert_eq!(ready(&mut joiner, 1200 * MS), [(0, None)], "the oldest");
        joiner.completed(Op::Read, 0, 1202 * MS);
        assert_eq!(ready(&mut joiner, 1202 * MS), [(1, Some(1202 * MS - 1))]);
        joiner.counted(0, 1203 * MS);
        joiner.completed(Op::Sync, 0, 1204 * MS);
        let joined = joiner.ready(1204 * MS, |_| {});
        assert_eq!(joined, JoinedRequests { ios: 3, without_latency: 2 });
        assert!(joiner.latest.is_empty() && joiner.waiting.is_empty());
        // The one in the middle left.
        [0, 1, 2].into_iter().for_each(|at_ns| joiner.issued(request(at_ns, 0)));
        joiner.leave(joiner.first + 1, RequestState::CompletionLost);
        joiner.completed(Op::Read, 0, 10);
        joiner.completed(Op::Read, 0, 20);
        assert_eq!(ready(&mut joiner, 30), [(0, Some(10)), (1, None), (2, Some(18))]);
        assert!(joiner.latest.is_empty());
    }

    #[test]
    fn an_unreported_completion_is_found_beside_requests_in_flight() {
        const MS: u64 = 1_000_000;
        // A request is in flight at every count; the first one's completion is not reported, or it is slow.
        let given_up = |is_slow: bool| {
            let mut joiner = RequestJoiner::default();
            joiner.issued(request(0, 0));
            (1..30).any(|tenth: u64| {
                let at_ns = tenth * 100 * MS;
                joiner.issued(request(at_ns - MS, 4096));
                // Now and then the kernel counts a completion whose event comes later.
                let late = u64::from(tenth.is_multiple_of(5));
                joiner.counted(1 + u64::from(is_slow) - late, at_ns);
                joiner.completed(Op::Read, 4096, at_ns + MS);
                ready(&mut joiner, at_ns + 2 * MS).contains(&(0, None))
            })
        };
        assert_eq!((given_up(false), given_up(true)), (true, false));
    }

    #[test]
    fn an_unreported_completion_takes_none_of_another_request() {
        const MS: u64 = 1_000_000;
        let mut joiner = RequestJoiner::default();
        joiner.issued(request(0, 0));
        joiner.issued(request(99 * MS, 4096));
        // One is in flight, not two.
        joiner.counted(1, 100 * MS);
        joiner.completed(Op::Read, 4096, 101 * MS);
        joiner.issued(request(700 * MS, 0));
        joiner.completed(Op::Read, 0, 702 * MS);
        joiner.counted(0, 800 * MS);
        assert_eq!(
            ready(&mut joiner, 800 * MS),
            [(0, None), (99 * MS, Some(2 * MS)), (700 * MS, Some(2 * MS))]
        );
        assert!(joiner.latest.is_empty());
    }

    #[test]
    fn requests_that_never_complete_hold_nothing_up() {
        let mut joiner = RequestJoiner::default();
        joiner.issued(request(0, 0));
        joiner.issued(request(5, 0));
        joiner.completed(Op::Read, 0, 6);
        joiner.issued(request(7, 4096));
        assert_eq!(ready(&mut joiner, 8), [(0, Some(6))]);
        assert_eq!(ready(&mut joiner, OVERDUE_NS), []);
        assert_eq!(ready(&mut joiner, 6 + OVERDUE_NS), [(5, None)]);
        joiner.lost(OVERDUE_NS);
        assert_eq!(
            ready(&mut joiner, 6 + OVERDUE_NS),
            [(7, None)],
            "a second is enough where events were lost"
        );
        joiner.completed(Op::Read, 4096, 7 + OVERDUE_NS);
        joiner.issued(request(8 + OVERDUE_NS, 0));
        let joined = joiner.finish(|_| {});
        assert_eq!(joined, JoinedRequests { ios: 1, without_latency: 1 });
        assert!(joiner.waiting.is_empty());
    }
}
