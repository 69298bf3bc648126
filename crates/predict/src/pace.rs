//! Whether requests came by themselves or waited for others: the pace of a load, inferred from its times and latencies.
//!
//! A client that waits for its requests makes the next one when one completes. So each request is matched with the latest completion
//! that no other one followed. Chance is subtracted: of independent requests, so many follow a completion as fit into the time after
//! completions.
//!
//! A client that sleeps until its request completes wakes late, on a virtual machine by a tenth of a millisecond. So wider windows
//! after completions count as well, less the requests that have a completion in the window before: as many as by chance, whatever the
//! rate is then. Requests at equal distances may keep the same distance from completions, too: pauses have to vary less than
//! distances do.
//!
//! A client that thinks for longer shows where it is alone: see [`SerialCounter`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fathom_observed::ObservedRequest;
use fathom_stats::Moments;
use serde::Serialize;

/// A request that is made so long after a completion, at most, followed it, ns.
pub(super) const FOLLOWS_NS: u64 = 20_000;
/// Clients that sleep make the next request in one of these times, ns.
const WAKES_NS: [u64; 3] = [50_000, 100_000, 200_000];
/// From this share on requests wait for completions, and up to the other they do not.
pub(super) const CLOSED_FROM: f64 = 0.7;
pub(super) const OPEN_TO: f64 = 0.3;
/// Above this probability of a match by chance nothing can be said.
const MAX_CHANCE: f64 = 0.5;
/// Below this variance over the mean of the outstanding requests, clients limit them, if requests come at random. Requests that come
/// by themselves have the squared variation of their distances (standard deviation over mean) for it where latencies are long (the
/// asymptotic variance of a renewal process: Cox, Renewal Theory, 1962), so that regular ones need less.
const LIMITED_BELOW: f64 = 0.5;
/// A smaller variance may as well be none: whole numbers are outstanding.
const MIN_VARIANCE: f64 = 0.5;
/// Longer distances, as multiples of the latency, tell no more of what is outstanding, and count as this: nothing is, after them.
const LONGEST_DISTANCE: u64 = 2;
/// Completions that are kept in mind.
const MAX_KEPT: usize = 1 << 16;
/// Of so many requests with a latency, at most one without: others say nothing of what followed them.
const MAX_LACKING: u64 = 20;
/// Requests below which nothing is inferred.
const MIN_REQUESTS: u64 = 100;

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

/// Infers the pace from requests by their times.
#[derive(Debug, Default)]
pub struct PaceCounter {
    ends: BinaryHeap<Reverse<u64>>,
    unclaimed: Vec<u64>,
    requests: u64,
    follows: u64,
    /// Completions of the longest two windows, the latest last.
    recent: VecDeque<u64>,
    /// Requests with a completion in each window, and with one in the window before it.
    wakes: [(u64, u64); WAKES_NS.len()],
    /// Pauses after completions, as far as they are in the longest window, and distances of requests, ns.
    pauses: Moments,
    distances: Moments,
    /// Requests without a latency, such as those in flight at the end.
    lacking: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    /// Outstanding requests as seen by the next one: sum and sum of squares.
    depth: (u64, u64),
    serial: SerialCounter,
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
            self.recent.push_back(end);
        }
        if self.unclaimed.len() > MAX_KEPT {
            self.unclaimed.drain(..MAX_KEPT / 2);
        }
        if self.first_ns.is_some() {
            let most = latency.get().saturating_mul(LONGEST_DISTANCE);
            self.distances.record((at - self.last_ns).min(most));
        }
        self.first_ns = self.first_ns.or(Some(at));
        self.last_ns = at;
        self.requests += 1;
        if let Some(end) = self.unclaimed.pop() {
            self.follow(at, at - end);
        }
        self.serial.push(at, latency.get(), self.ends.len());
        let depth = self.ends.len() as u64;
        self.depth = (self.depth.0 + depth, self.depth.1 + depth * depth);
        if self.ends.len() < MAX_KEPT {
            self.ends.push(Reverse(at.saturating_add(latency.get())));
        }
    }

    /// A request at `at` is made `pause` after the completion that it is matched with.
    fn follow(&mut self, at: u64, pause: u64) {
        self.follows += u64::from(pause <= FOLLOWS_NS);
        let [.., longest] = WAKES_NS;
        while self.recent.front().is_some_and(|end| at - end > 2 * longest) {
            self.recent.pop_front();
        }
        if pause <= longest {
            self.pauses.record(pause);
        }
        for (window, (follows, by_chance)) in WAKES_NS.into_iter().zip(&mut self.wakes) {
            *follows += u64::from(pause <= window);
            let before = self.recent.partition_point(|end| at - end > window);
            let is_by_chance = before > 0 && at - self.recent[before - 1] <= 2 * window;
            *by_chance += u64::from(is_by_chance);
        }
    }

    /// The share of requests that clients make after they wake, less those that follow a completion by chance.
    fn woken_share(&self) -> f64 {
        if self.pauses.stdev() >= self.distances.stdev() {
            return 0.0;
        }
        let count = self.requests as f64;
        let share = |&(follows, by_chance): &(u64, u64)| {
            let (found, chance) = (follows as f64 / count, by_chance as f64 / count);
            if chance > MAX_CHANCE { 0.0 } else { (found - chance) / (1.0 - chance) }
        };
        self.wakes.iter().map(share).fold(0.0, f64::max)
    }

    /// 0 of requests at equal distances, 1 of those at random or in bursts.
    fn irregularity(&self) -> f64 {
        let variation = self.distances.stdev() / self.distances.mean().max(1.0);
        (variation * variation).min(1.0)
    }

    /// The pace of the requests so far.
    pub fn pace(&self) -> LoadPace {
        let lacks_latencies = self.lacking.saturating_mul(MAX_LACKING) > self.requests;
        if lacks_latencies || self.requests < MIN_REQUESTS {
            return LoadPace::Unknown;
        }
        let count = self.requests as f64;
        let length = (self.last_ns - self.first_ns.unwrap_or(0)).max(1) as f64;
        let chance = 1.0 - (-count * FOLLOWS_NS as f64 / length).exp();
        let found = self.follows as f64 / count;
        if chance > MAX_CHANCE && found < 1.0 - (1.0 - chance) / 4.0 {
            return LoadPace::Unknown;
        }
        let share = ((found - chance) / (1.0 - chance).max(1e-9)).max(self.woken_share());
        let mean = self.depth.0 as f64 / count;
        let variance = self.depth.1 as f64 / count - mean * mean;
        let by_themselves = mean * self.irregularity();
        let is_limited =
            mean >= 1.0 && by_themselves >= MIN_VARIANCE && variance < LIMITED_BELOW * by_themselves;
        let serial = self.serial.pace();
        match share {
            share if share >= CLOSED_FROM => LoadPace::Closed,
            _ if serial.is_some() => serial.unwrap_or_default(),
            share if share <= OPEN_TO && !is_limited => LoadPace::Open,
            _ => LoadPace::Mixed,
        }
    }
}

/// Of so many requests, at most one may meet another.
const FEW: u64 = 1_000;
/// So many would meet another by chance, at least.
const MIN_BY_CHANCE: f64 = 20.0;
/// Longer pauses are those of no client that is busy, ns.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;
/// The standard error of a slope that decides.
const PRECISE: f64 = 0.1;

/// Looks at requests by their times.
#[derive(Debug, Default)]
pub(super) struct SerialCounter {
    /// When the latest request was made, and its latency, ns.
    latest: Option<(u64, u64)>,
    requests: u64,
    /// Requests that were made while another was outstanding.
    meetings: u64,
    latencies: Moments,
    /// From a request to the next one, and the part of it after the latency, ns.
    distances: Moments,
    pauses: Moments,
}

impl SerialCounter {
    /// Looks at the next request, made while `outstanding` others are.
    #[inline]
    pub(super) fn push(&mut self, at_ns: u64, latency_ns: u64, outstanding: usize) {
        self.requests += 1;
        self.meetings += u64::from(outstanding > 0);
        if !self.is_serial() {
            return;
        }
        if let Some((latest_ns, took_ns)) = self.latest.replace((at_ns, latency_ns)) {
            let distance = at_ns - latest_ns;
            if let Some(pause) = distance.checked_sub(took_ns).filter(|pause| *pause <= LONGEST_PAUSE_NS) {
                self.latencies.record(took_ns);
                self.distances.record(distance);
                self.pauses.record(pause);
            }
        }
    }

    fn is_serial(&self) -> bool {
        self.meetings <= 1 + self.requests / FEW
    }

    /// The pace of the requests; `None` where they meet, or would hardly meet if they came at random.
    pub(super) fn pace(&self) -> Option<LoadPace> {
        let count = self.latencies.count as f64;
        let busy = self.latencies.mean() / self.distances.mean().max(1.0);
        if !self.is_serial() || count * (1.0 - (-busy).exp()) < MIN_BY_CHANCE {
            return None;
        }
        let variance = |moments: &Moments| moments.stdev() * moments.stdev();
        let (latency, distance) = (variance(&self.latencies), variance(&self.distances));
        let common = (latency + distance - variance(&self.pauses)) / 2.0;
        let slope = common / latency;
        let error = ((distance - slope * common).max(0.0) / (count * latency)).sqrt();
        Some(match slope {
            slope if slope >= CLOSED_FROM && error <= PRECISE => LoadPace::Closed,
            slope if slope <= OPEN_TO && error <= PRECISE => LoadPace::Open,
            _ => LoadPace::Mixed,
        })
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
    fn clients_that_wake_late_are_closed() {
        // Eight clients that need 30 to 90 µs to make the next request, on a volume that takes 2 to 6 ms.
        let mut ready = [0_u64; 8];
        let clients = (0..4000).map(|index: u64| {
            let client = (0..8).min_by_key(|client| ready[*client]).unwrap();
            let (at, latency) = (ready[client], 2_000_000 + index * 7919 % 4_000 * 1000);
            ready[client] = at + latency + 30_000 + index * 104_729 % 60_000;
            (at, latency)
        });
        assert_eq!(pace(clients.collect::<Vec<_>>()), LoadPace::Closed);
    }

    #[test]
    fn regular_requests_that_happen_to_follow_completions_are_open() {
        // Every ms, and each takes 0.9 to 1 ms.
        let latency = |index: u64| 900_000 + index * 7919 % 100_000;
        assert_eq!(pace((0..2000).map(|index| (index * 1_000_000, latency(index)))), LoadPace::Open);
        // Every 1.43 ms, and each takes 2 ms: one or two are always outstanding.
        let at = |index: u64| index * 1_428_571 + index * 7919 % 40_000;
        let latency = |index: u64| 1_950_000 + index * 104_729 % 60_000;
        assert_eq!(pace((0..2000).map(|index| (at(index), latency(index)))), LoadPace::Open);
        // The same after a while without any, as between the start of a recording and that of the load.
        let late = |index: u64| at(index) + if index < 3 { 0 } else { 3_500_000_000 };
        assert_eq!(pace((0..2000).map(|index| (late(index), 2 * latency(index)))), LoadPace::Open);
        // A day, by independent requests.
        let mut at = 0.0;
        let mut state = 1_u64;
        let day = (0..20_000).map(|index| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let even = ((state >> 33) as f64 + 0.5) / f64::from(1_u32 << 31);
            let rate = 1_500.0 * (1.0 + 0.8 * (f64::from(index) / 20_000.0 * std::f64::consts::TAU).sin());
            at += -even.ln() * 1e9 / rate;
            (at as u64, 300_000)
        });
        assert_eq!(pace(day.collect::<Vec<_>>()), LoadPace::Open);
    }

    /// Of requests of so many ns each, the time of the next one.
    fn in_a_row(latency: fn(u64) -> u64, next: fn(u64, u64) -> u64) -> Vec<(u64, u64)> {
        let mut at = 0;
        let one = |index| {
            let request = (at, latency(index));
            at += next(index, request.1);
            request
        };
        (0..4000).map(one).collect()
    }

    #[test]
    fn a_client_that_thinks_is_closed_where_latencies_vary() {
        let varies = |index: u64| 300_000 + index * 7919 % 700_000;
        let same = |_| 500_000;
        assert_eq!(pace(in_a_row(varies, |_, latency| latency + 3_000_000)), LoadPace::Closed);
        let thinks = |index: u64, latency: u64| latency + 500_000 + index * 104_729 % 2_000_000;
        assert_eq!(pace(in_a_row(varies, thinks)), LoadPace::Closed);
        // By the clock.
        assert_eq!(pace(in_a_row(varies, |_, _| 3_500_000)), LoadPace::Open);
        assert_eq!(
            pace(in_a_row(varies, |index, _| 1_500_000 + index * 104_729 % 4_000_000)),
            LoadPace::Open
        );
        // Both look the same.
        assert_eq!(pace(in_a_row(same, |_, latency| latency + 3_000_000)), LoadPace::Mixed);
        // So far apart that they would not meet either if they came at random.
        assert_eq!(pace(in_a_row(|_| 1_000, |_, latency| latency + 3_000_000)), LoadPace::Open);
    }

    #[test]
    fn what_clients_limit_is_mixed() {
        // Six clients that think between 0.3 and 3 ms after requests of 1 to 11 ms.
        let mut ready = [0_u64; 6];
        let mut state = 1_u64;
        let mut draw = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let clients = (0..4000).map(|_| {
            let client = (0..6).min_by_key(|client| ready[*client]).unwrap();
            let (at, latency) = (ready[client], 1_000_000 + draw(10_000_000));
            ready[client] = at + latency + 300_000 + draw(2_700_000);
            (at, latency)
        });
        assert_eq!(pace(clients.collect::<Vec<_>>()), LoadPace::Mixed);
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
