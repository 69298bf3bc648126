//! Whether requests came by themselves or waited for others: the pace of a load, inferred from its times and latencies.
//!
//! A client that waits for its requests makes the next one when one completes, or after a while of its own. Two things follow. Requests
//! that come immediately after a completion are more than chance gives: of independent ones, as many as fit into the time after
//! completions. And the more requests are outstanding, the fewer clients are left to make the next one: the rate falls with their
//! number and is zero at the most that were ever outstanding: see [`Dependence`]. What comes by itself does neither.
//!
//! Where each request finds as many outstanding as all others do, the times from request to request of each client decide: see
//! [`ChainCounter`]. Requests at equal distances may follow a clock of their own, or a device that completes at equal distances: see
//! [`PhaseCounter`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fathom_observed::ObservedRequest;
use fathom_stats::Moments;
use fathom_stats::sample::median;
use serde::Serialize;

/// A request that is made so long after a completion, at most, followed it, ns.
pub(super) const FOLLOWS_NS: u64 = 20_000;
/// From this share on requests wait for completions, and up to the other they do not.
const CLOSED_FROM: f64 = 0.7;
const OPEN_TO: f64 = 0.3;
/// Above this probability of a match by chance nothing can be said.
const MAX_CHANCE: f64 = 0.5;
/// Outstanding requests that are kept in mind.
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
    /// Those of some threads do, and those of others do not, or it is not known.
    Split,
    /// The source does not say.
    #[default]
    Unknown,
}

/// Infers the pace from requests by their times.
#[derive(Debug, Default)]
pub(crate) struct PaceCounter {
    /// Completions that lie ahead, with the times of their requests.
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    /// Completions that no request followed yet, where each follows the latest.
    unclaimed: Vec<u64>,
    requests: u64,
    follows: u64,
    /// Requests without a latency, such as those in flight at the end.
    lacking: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    outstanding: OutstandingCounter,
    chains: ChainCounter,
    made: PhaseCounter,
    completed: PhaseCounter,
}

impl PaceCounter {
    /// Requests with a latency so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// The most requests that are outstanding at a time.
    pub(crate) fn most_outstanding(&self) -> f64 {
        self.outstanding.bound()
    }

    /// Looks at the next request.
    #[inline]
    pub(crate) fn push(&mut self, request: &ObservedRequest) {
        let Some(latency) = request.latency_ns else {
            self.lacking += 1;
            return;
        };
        let at = request.at_ns;
        while let Some(&Reverse(end)) = self.ends.peek().filter(|end| end.0.0 <= at) {
            self.ends.pop();
            self.unclaimed.push(end.0);
            self.chains.pausing.push_back(end);
            self.outstanding.complete(end.0);
            self.completed.push(end.0);
        }
        self.first_ns = self.first_ns.or(Some(at));
        self.last_ns = at;
        self.requests += 1;
        self.made.push(at);
        let latest = self.unclaimed.pop();
        self.follows += u64::from(latest.is_some_and(|end| at - end <= FOLLOWS_NS));
        self.chains.push(at, self.ends.len());
        if self.ends.len() < MAX_KEPT {
            self.ends.push(Reverse((at.saturating_add(latency.get()), at)));
        }
        self.outstanding.make(at, self.ends.len());
    }

    /// The pace of the requests so far.
    pub(crate) fn pace(&self) -> LoadPace {
        let lacks_latencies = self.lacking.saturating_mul(MAX_LACKING) > self.requests;
        if lacks_latencies || self.requests < MIN_REQUESTS {
            return LoadPace::Unknown;
        }
        let count = self.requests as f64;
        let length = (self.last_ns - self.first_ns.unwrap_or(0)).max(1) as f64;
        let chance = 1.0 - (-count * FOLLOWS_NS as f64 / length).exp();
        let found = self.follows as f64 / count;
        let is_chance = chance > MAX_CHANCE && found < 1.0 - (1.0 - chance) / 4.0;
        let by_outstanding = (!self.chains.is_serial()).then(|| self.outstanding.pace()).flatten();
        let hardly_follows = found < OPEN_TO * self.chains.chance();
        let follows = !is_chance && (found - chance) / (1.0 - chance).max(1e-9) >= CLOSED_FROM;
        if !follows
            && self.chains.pace() != Some(LoadPace::Closed)
            && self.made.is_clock_before(&self.completed)
        {
            return LoadPace::Open;
        }
        match by_outstanding {
            None if !follows => match self.chains.pace() {
                // Requests at random would meet, or a client that is free make the next one immediately.
                Some(LoadPace::Mixed) if hardly_follows && self.chains.is_renewed() => LoadPace::Closed,
                pace => pace.unwrap_or(LoadPace::Mixed),
            },
            Some(LoadPace::Mixed) if follows || !self.chains.are_in_step() => LoadPace::Mixed,
            Some(LoadPace::Open) if !follows => LoadPace::Open,
            _ => LoadPace::Closed,
        }
    }
}

/// Times from a request to the next one that are compared with each other.
const COMPARED: usize = 512;
/// Fewer say too little.
const MIN_COMPARED: usize = 32;
/// Comparisons after which only every other one is made, and so on: each costs as much as some hundred requests.
const COMPARED_OFTEN: u32 = 64;
/// A sum of variances below which single requests may have made it.
const MIN_VARYING: f64 = 10.0;
/// A stretch is compared with itself, and neighbours resemble each other: the score of independent requests is so many times its variance
/// over the number that is compared.
const BIAS: f64 = 1.7;
/// Others are beside clients if more are outstanding than so many times the clients, and one.
const BESIDE: f64 = 1.1;
/// Standard errors of the range in which a dependence may lie.
const ERRORS: f64 = 2.5;
/// Of a thousand requests, so many may have more outstanding than clients make: those of others, such as at the start.
const OTHERS_PER_MILLE: u64 = 1;

/// The time from a request to the next one.
#[derive(Clone, Copy, Debug)]
struct Distance {
    length_ns: u64,
    /// Requests outstanding at its beginning and at its end.
    outstanding: [usize; 2],
    /// Its completions, the first among those of the comparison.
    first_end: usize,
    ends: usize,
}

/// Looks at how many requests are outstanding when the next one is made.
#[derive(Debug, Default)]
struct OutstandingCounter {
    latest: Option<(u64, usize)>,
    distances: Vec<Distance>,
    /// Ages of the latest request at completions, ns.
    ends: Vec<u64>,
    skip: u32,
    comparisons: u32,
    /// The first stretch is over, in which clients start together.
    has_begun: bool,
    /// By the time since the latest request, as regular ones have it, and by all times, as bursts have it.
    given_age: Dependence,
    overall: Dependence,
    /// Requests, by how many are outstanding with them.
    depths: Vec<u64>,
}

impl OutstandingCounter {
    fn complete(&mut self, at_ns: u64) {
        if let Some((latest_ns, _)) = self.latest {
            self.ends.push(at_ns - latest_ns);
        }
    }

    /// The next request, with which `outstanding` are.
    fn make(&mut self, at_ns: u64, outstanding: usize) {
        if self.depths.len() <= outstanding {
            self.depths.resize(outstanding + 1, 0);
        }
        self.depths[outstanding] += 1;
        if let Some((latest_ns, before)) = self.latest.replace((at_ns, outstanding)) {
            let first_end = self.distances.last().map_or(0, |latest| latest.first_end + latest.ends);
            let ends = self.ends.len() - first_end;
            let length_ns = at_ns - latest_ns;
            let outstanding = [before, before.saturating_sub(ends)];
            self.distances.push(Distance { length_ns, outstanding, first_end, ends });
        }
        if self.distances.len() < COMPARED {
            return;
        }
        match self.skip.checked_sub(1) {
            _ if !self.has_begun => self.has_begun = true,
            Some(skip) => self.skip = skip,
            None => {
                let [given_age, overall] = self.compared();
                self.given_age.add(given_age);
                self.overall.add(overall);
                self.comparisons += 1;
                self.skip = (1_u32 << (self.comparisons / COMPARED_OFTEN).min(20)) - 1;
            }
        }
        self.distances.clear();
        self.ends.clear();
    }

    /// Compares the requests of a stretch: each with those that had not been made at the same time after their latest one, and all with
    /// all times.
    fn compared(&self) -> [Comparison; 2] {
        let mut given_age = Comparison::default();
        let (mut at_requests, mut over_time) = (Moment::default(), Moment::default());
        for distance in &self.distances {
            let [mut outstanding, left] = distance.outstanding.map(|count| count as f64);
            at_requests.add(left, 1.0);
            let mut since_ns = 0;
            for &end in self.ends_of(distance) {
                over_time.add(outstanding, (end - since_ns) as f64);
                (since_ns, outstanding) = (end, outstanding - 1.0);
            }
            over_time.add(left, (distance.length_ns - since_ns) as f64);
            let mut at_risk = Moment::default();
            for other in self.distances.iter().filter(|other| other.length_ns >= distance.length_ns) {
                let completed = self.ends_of(other).partition_point(|end| *end <= distance.length_ns);
                at_risk.add(other.outstanding[0].saturating_sub(completed) as f64, 1.0);
            }
            given_age.add(&at_risk, left, 1.0);
        }
        let mut overall = Comparison::default();
        overall.add(&over_time, at_requests.mean(), at_requests.weight);
        [given_age, overall]
    }

    fn ends_of(&self, distance: &Distance) -> &[u64] {
        &self.ends[distance.first_end..distance.first_end + distance.ends]
    }

    /// The requests that may be outstanding together.
    fn bound(&self) -> f64 {
        let requests: u64 = self.depths.iter().sum();
        let mut others = requests * OTHERS_PER_MILLE / 1000;
        let within = |count: &u64| {
            let is_of_others = *count <= others;
            others = others.saturating_sub(*count);
            !is_of_others
        };
        self.depths.iter().rposition(within).unwrap_or(0) as f64
    }

    /// Closed where the rate falls with the outstanding requests as it does for clients, both ways; open where one way says that it
    /// does not. In between both readings remain. `None` where each request finds as many outstanding as all others.
    fn pace(&self) -> Option<LoadPace> {
        let (mut given_age, mut overall) = (self.given_age, self.overall);
        if self.distances.len() >= MIN_COMPARED {
            let [by_age, by_time] = self.compared();
            given_age.add(by_age);
            overall.add(by_time);
        }
        let bound = self.bound();
        match [given_age.pace(bound), overall.pace(bound)] {
            [Some(LoadPace::Open), _] | [_, Some(LoadPace::Open)] => Some(LoadPace::Open),
            [Some(LoadPace::Closed), Some(LoadPace::Closed)] => Some(LoadPace::Closed),
            [None, _] | [_, None] => None,
            _ => Some(LoadPace::Mixed),
        }
    }
}

/// A weighted mean and variance.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    weight: f64,
    sum: f64,
    squares: f64,
}

impl Moment {
    fn add(&mut self, value: f64, weight: f64) {
        self.weight += weight;
        self.sum += value * weight;
        self.squares += value * value * weight;
    }

    fn mean(&self) -> f64 {
        self.sum / self.weight.max(f64::MIN_POSITIVE)
    }

    fn variance(&self) -> f64 {
        (self.squares / self.weight.max(f64::MIN_POSITIVE) - self.mean() * self.mean()).max(0.0)
    }
}

/// By how much fewer requests are outstanding when one is made than at the times it is compared with, and their variance then: the score
/// and the information of Cox's partial likelihood (JRSS B 34, 1972) for a rate that depends on the outstanding requests.
#[derive(Clone, Copy, Debug, Default)]
struct Comparison {
    fewer: f64,
    variance: f64,
    /// The mean of the outstanding requests, by the variance.
    outstanding: f64,
}

impl Comparison {
    fn add(&mut self, times: &Moment, at_request: f64, requests: f64) {
        let variance = times.variance() * requests;
        self.fewer += (times.mean() - at_request) * requests;
        self.variance += variance;
        self.outstanding += times.mean() * variance;
    }
}

/// How the rate of requests depends on the number that is outstanding. Of N clients, those that are left make the next one: the rate
/// is proportional to N less that number, and N is the bound.
#[derive(Clone, Copy, Debug, Default)]
struct Dependence {
    sum: Comparison,
    squares: f64,
    count: f64,
}

impl Dependence {
    fn add(&mut self, one: Comparison) {
        self.sum.fewer += one.fewer;
        self.sum.variance += one.variance;
        self.sum.outstanding += one.outstanding;
        self.squares += one.fewer * one.fewer;
        self.count += 1.0;
    }

    /// The pace, where at most `bound` are outstanding; `None` where their number hardly varies.
    fn pace(&self, bound: f64) -> Option<LoadPace> {
        let Comparison { fewer, variance, outstanding } = self.sum;
        if variance < MIN_VARYING {
            return None;
        }
        let mean = outstanding / variance;
        // Neighbours resemble each other, so that stretches vary more than single requests say.
        let spread = (self.squares - fewer * fewer / self.count).max(variance).sqrt();
        let fewer = fewer - variance * BIAS / COMPARED as f64;
        let (share, error) = (fewer / variance * (bound - mean), ERRORS * spread / variance * (bound - mean));
        let clients = mean + variance / (fewer - ERRORS * spread).max(f64::MIN_POSITIVE);
        Some(match share {
            _ if clients * BESIDE + 1.0 < bound => LoadPace::Mixed,
            share if share >= CLOSED_FROM && share - error >= OPEN_TO => LoadPace::Closed,
            share if share <= error && share + error <= CLOSED_FROM => LoadPace::Open,
            _ => LoadPace::Mixed,
        })
    }
}

/// Requests over which the phase of a clock is compared, and more over which it has to be the same.
const NEAR: u64 = 16;
const FAR: u64 = 256;
/// Distances over the latter that are enough.
const MIN_FAR: usize = 16;
/// Over sixteen times as many, distances vary as much where a clock sets them, and four times as much where each begins anew: the limit
/// lies between.
const DIFFUSES: f64 = 2.0;
/// Distances that are kept: the first ones.
const MAX_PHASES: usize = 4096;
/// A clock's distances vary by less than this share of them.
const REGULAR: f64 = 0.25;
/// By how much the phase of what follows varies more.
const FOLLOWS_BY: f64 = 1.05;

/// Looks at the times of events at equal distances: over many of them those of a clock vary no more than over a few, since each is late
/// by itself; where each waits for the one before, delays add up. Of two that are in step, requests and completions, that which varies
/// less leads.
#[derive(Debug, Default)]
struct PhaseCounter {
    latest_ns: Option<u64>,
    count: u64,
    near_ns: Option<u64>,
    far_ns: Option<u64>,
    each: Moments,
    near: Vec<u64>,
    far: Vec<u64>,
}

impl PhaseCounter {
    #[inline]
    fn push(&mut self, at_ns: u64) {
        let distance = self.latest_ns.replace(at_ns).map(|latest_ns| at_ns - latest_ns);
        if distance.is_none_or(|distance| distance > LONGEST_PAUSE_NS) {
            (self.count, self.near_ns, self.far_ns) = (0, None, None);
        } else if let Some(distance) = distance {
            self.each.record(distance);
        }
        if self.count.is_multiple_of(NEAR)
            && let Some(since_ns) = self.near_ns.replace(at_ns)
        {
            keep(&mut self.near, at_ns - since_ns);
        }
        if self.count.is_multiple_of(FAR)
            && let Some(since_ns) = self.far_ns.replace(at_ns)
        {
            keep(&mut self.far, at_ns - since_ns);
        }
        self.count += 1;
    }

    /// These events follow a clock, and `others`, which are in step with them, follow these.
    fn is_clock_before(&self, others: &PhaseCounter) -> bool {
        let (near, far) = (spread(&self.near), spread(&self.far));
        let is_regular = self.each.stdev() < self.each.mean() * REGULAR && near > 0.0;
        let leads = near * FOLLOWS_BY < spread(&others.near) && far < spread(&others.far) * DIFFUSES;
        self.far.len() >= MIN_FAR && is_regular && far < near * DIFFUSES && leads
    }
}

fn keep(distances: &mut Vec<u64>, distance: u64) {
    if distances.len() < MAX_PHASES {
        distances.push(distance);
    }
}

/// The median distance from the median, ns: a pause of the host changes two of many.
fn spread(distances: &[u64]) -> f64 {
    let all: Vec<f64> = distances.iter().map(|distance| *distance as f64).collect();
    let middle = median(&all).unwrap_or(0.0);
    let apart: Vec<f64> = all.iter().map(|distance| (distance - middle).abs()).collect();
    median(&apart).unwrap_or(0.0)
}

/// Of so many requests, at most one may meet another where a single client makes them.
const FEW: u64 = 1_000;

/// Whether requests are made one after the other, by how many were made while another was outstanding.
pub(super) fn is_serial(meetings: u64, requests: u64) -> bool {
    meetings <= 1 + requests / FEW
}

/// So many would meet another by chance, at least.
const MIN_BY_CHANCE: f64 = 20.0;
/// Longer pauses are those of no client that is busy, ns.
const LONGEST_PAUSE_NS: u64 = 1_000_000_000;
/// The standard error of a slope that decides.
const PRECISE: f64 = 0.1;
/// Share of turning points of independent times, half the way from it to that of a clock, and how many times make either certain.
const INDEPENDENT: f64 = 2.0 / 3.0;
const NEAR_INDEPENDENT: f64 = 0.025;
const MIN_TURNS: u64 = 2_000;

/// Looks at the time from each request of a client to its next one: it varies as its latency does if the client waits for that, and does
/// not if the requests have their times. Clients are taken to go on in the order in which their requests completed, which they do if
/// they think equally long, or one is alone.
#[derive(Debug, Default)]
struct ChainCounter {
    /// Completions after which a client pauses, with the times of their requests.
    pausing: VecDeque<(u64, u64)>,
    /// How many pause at each request, in all.
    paused: u64,
    requests: u64,
    /// Requests that were made while another was outstanding.
    meetings: u64,
    latencies: Moments,
    /// From a request to the next one, and the part of it after the latency, ns.
    distances: Moments,
    pauses: Moments,
    /// The last two distances, and how many in the middle of three were the longest or the shortest of them.
    last: [u64; 2],
    turns: u64,
}

impl ChainCounter {
    /// Looks at the next request, made while `outstanding` others are.
    #[inline]
    fn push(&mut self, at_ns: u64, outstanding: usize) {
        self.paused += self.pausing.len() as u64;
        let followed = self.pausing.pop_front();
        self.requests += 1;
        self.meetings += u64::from(outstanding > 0);
        if let Some((end_ns, made_ns)) = followed.filter(|(end_ns, _)| at_ns - end_ns <= LONGEST_PAUSE_NS) {
            self.latencies.record(end_ns - made_ns);
            let distance = at_ns - made_ns;
            self.distances.record(distance);
            self.pauses.record(at_ns - end_ns);
            let [first, middle] = self.last;
            self.last = [middle, distance];
            self.turns += u64::from((first < middle) == (middle > distance));
        }
    }

    fn is_serial(&self) -> bool {
        is_serial(self.meetings, self.requests)
    }

    /// Pauses vary with nothing: clients think equally long. If others made the next request, the pause of the first of so many would
    /// vary by the root of their number.
    fn are_in_step(&self) -> bool {
        let count = self.paused as f64 / self.requests.max(1) as f64;
        let is_regular = self.pauses.stdev() * count.max(1.0).sqrt() < self.pauses.mean() / 4.0;
        is_regular && self.pace() == Some(LoadPace::Closed)
    }

    /// Share of requests that would meet another if they came at random.
    fn chance(&self) -> f64 {
        1.0 - (-self.latencies.mean() / self.distances.mean().max(1.0)).exp()
    }

    /// The pace of the requests; `None` where they would hardly meet if they came at random.
    fn pace(&self) -> Option<LoadPace> {
        let count = self.latencies.count as f64;
        if count * self.chance() < MIN_BY_CHANCE {
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

    /// One client makes one request after the other, and times from each to the next do not depend on each other: a clock corrects in
    /// the next one what was late in the last. Of three independent ones the middle is longest or shortest with 2/3 (the test of turning
    /// points: Bienaymé, 1874); of those between the ticks of a clock with jitter with 0.73.
    fn is_renewed(&self) -> bool {
        let turns = self.turns as f64 / self.distances.count.max(1) as f64;
        self.is_serial()
            && self.distances.count >= MIN_TURNS
            && (INDEPENDENT - turns).abs() < NEAR_INDEPENDENT
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
                thread: 0,
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

    /// Numbers that do not depend on each other (SplitMix64: Steele, Lea and Flood, 2014).
    fn mixed(index: u64) -> u64 {
        let mut bits = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Of requests of so many ns each, the time of the next one.
    fn in_a_row(latency: impl Fn(u64) -> u64, next: impl Fn(u64, u64) -> u64) -> Vec<(u64, u64)> {
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
        // Latencies hardly vary, and pauses much.
        let wakes = |index: u64, latency: u64| latency + 1_000_000 + mixed(index) % 3_000_000;
        assert_eq!(pace(in_a_row(|index| 700_000 + mixed(index + 7) % 9_000, wakes)), LoadPace::Closed);
        // By the clock, late by a while of its own each time.
        let late = |index: u64| 4_000_000 + mixed(index + 1) % 2_000_000 - mixed(index) % 2_000_000;
        let little = |index| 700_000 + mixed(index + 7) % 9_000;
        assert_eq!(pace(in_a_row(little, |index, _| late(index))), LoadPace::Mixed);
        // By the clock.
        assert_eq!(pace(in_a_row(varies, |_, _| 3_500_000)), LoadPace::Open);
        assert_eq!(
            pace(in_a_row(varies, |index, _| 1_500_000 + index * 104_729 % 4_000_000)),
            LoadPace::Open
        );
        // Both look the same.
        assert_eq!(pace(in_a_row(same, |_, latency| latency + 3_000_000)), LoadPace::Mixed);
        // So far apart that they would not meet either if they came at random: both readings remain.
        assert_eq!(pace(in_a_row(|_| 1_000, |_, latency| latency + 3_000_000)), LoadPace::Mixed);
    }

    #[test]
    fn the_clock_of_requests_at_equal_distances_is_found() {
        // Every 1.43 ms, late by up to 80 µs at times together with the completion, which takes 2 ms and up to 60 µs.
        let late = |index: u64| (mixed(index) % 20_000) + if index.is_multiple_of(50) { 80_000 } else { 0 };
        let clock = |index: u64| index * 1_428_571 + late(index);
        let latency = |index: u64| 2_000_000 + mixed(index + 7) % 60_000;
        assert_eq!(pace((0..8000).map(|index| (clock(index), latency(index)))), LoadPace::Open);
        // Four clients that think 2 ms and up to 60 µs, on a volume that completes one each 1.85 ms: it is the clock.
        let mut ready = [0_u64; 4];
        let mut free = 0_u64;
        let limited = (0..8000_u64).map(|index| {
            let client = (0..4).min_by_key(|client| ready[*client]).unwrap();
            let at = ready[client];
            free = (free + 1_852_000).max(at + 1_000_000);
            ready[client] = free + 2_000_000 + mixed(index) % 60_000;
            (at, free - at)
        });
        assert_ne!(pace(limited.collect::<Vec<_>>()), LoadPace::Open);
        // One client without a limit: delays add up.
        let alone = in_a_row(
            |index| 700_000 + mixed(index + 7) % 9_000,
            |index, latency| latency + 800_000 + mixed(index) % 30_000,
        );
        assert_ne!(pace(alone), LoadPace::Open);
    }

    #[test]
    fn clients_that_think_are_closed_by_what_is_outstanding() {
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
        let mut state = 1_u64;
        let mut at = 0.0;
        let independent = (0..2000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            at -= (((state >> 33) as f64 + 0.5) / f64::from(1_u32 << 31)).ln() * 1e6;
            (at as u64, 300_000)
        });
        assert_eq!(pace(independent.collect::<Vec<_>>()), LoadPace::Open);
        // By a clock, but so that they hardly meet, and all take the same time: a client could make them.
        let apart = |index: u64| index * 997_000 + index * index * 7919 % 800_000;
        assert_eq!(pace((0..1000).map(|index| (apart(index), 300_000))), LoadPace::Mixed);
        assert_eq!(pace((0..50).map(|index| (index, 1))), LoadPace::Unknown);
        assert_eq!(pace((0..1000).map(|index| (index * 1000, 0))), LoadPace::Unknown);
    }
}
