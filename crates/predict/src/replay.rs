//! Requests one by one on the model of a volume: each at its own time, or each when the request that it followed is complete.
//!
//! Memory holds the requests in flight, and for a closed loop a window of those to come, however long the recording is.

mod beside;
mod closed;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_model::Op;
use fathom_observed::ObservedRequest;
use fathom_volume::{
    Limit, LimitState, ModelError, RequestOutcome, Volume, VolumeCompletion, VolumeModel, VolumeRequest,
};

use crate::clients::ThreadSet;
use crate::prediction::Requirement;
use crate::prediction::{ExhaustionRange, LowestCredits, Prediction};
use crate::tally::Tally;
use beside::ClientsBeside;
use closed::ClosedLoop;

/// Times at which credits are looked at.
const LOOKS: u64 = 50_000;
/// Shortest and longest time between two of them, ns.
const MIN_LOOK_NS: u64 = 1_000_000;
const MAX_LOOK_NS: u64 = 10_000_000_000;
/// More requests are not counted as outstanding.
pub(super) const MAX_IN_FLIGHT: usize = 1 << 22;
/// Credits below this share of a bucket are exhausted: single requests may cost so much.
const EXHAUSTED_PER_MILLE: u64 = 1;
/// Of a million requests that no limit delays, so many are no slower than those at the end of a load are taken for.
const SLOW_PER_MILLION: u32 = 999_000;
/// By how much the rate of a closed loop may differ from the predicted one: what its client and host add to each request is
/// taken over from the recorded volume.
const CLOSED_RATE_ERROR: f64 = 0.03;
/// Offsets of direct requests are multiples of this.
const SECTOR: u64 = 512;

/// What requests wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayPace {
    /// Their own time.
    Open,
    /// The completion that they followed.
    Closed,
    /// Those of these threads for completions of their own, the others for their own time.
    Beside(ThreadSet),
}

/// How requests are replayed.
#[derive(Clone, Copy, Debug)]
pub struct ReplaySettings<'a> {
    /// What decides everything that the volume draws at random.
    pub seed: u64,
    /// The pace.
    pub pace: ReplayPace,
    /// Requests for each thousand of the recording: further ones are made together with those.
    pub growth_milli: u64,
    /// The length of the recording, ns.
    pub length_ns: u64,
    /// Latencies that slices are compared with.
    pub limits: &'a [Requirement],
}

/// What requests get of a volume, which it takes one after the other by their times.
pub struct Replay {
    run: ReplayRun,
    order: ReplayOrder,
}

/// When requests are made.
enum ReplayOrder {
    Open(Copies),
    Closed(Box<ClosedLoop>),
    Beside(Box<ClientsBeside>),
}

impl Replay {
    /// On a volume of this model.
    ///
    /// # Errors
    /// The model is not valid.
    pub fn new(model: &VolumeModel, settings: &ReplaySettings<'_>) -> Result<Replay, ModelError> {
        let order = match settings.pace {
            ReplayPace::Open => ReplayOrder::Open(Copies::new(settings.growth_milli)),
            ReplayPace::Closed => ReplayOrder::Closed(Box::new(ClosedLoop::new(settings.growth_milli))),
            ReplayPace::Beside(clients) => {
                ReplayOrder::Beside(Box::new(ClientsBeside::new(clients, settings.growth_milli)))
            }
        };
        Ok(Replay { run: ReplayRun::new(model, settings)?, order })
    }

    /// Takes the next requests.
    pub fn take(&mut self, requests: &[ObservedRequest]) {
        match &mut self.order {
            ReplayOrder::Open(copies) => {
                for request in requests {
                    for _ in 0..copies.next_count() {
                        self.run.make(request.at_ns, request);
                    }
                }
            }
            ReplayOrder::Closed(clients) => clients.take(requests, &mut self.run),
            ReplayOrder::Beside(clients) => clients.take(requests, &mut self.run),
        }
    }

    /// What they got, once all are taken.
    pub fn prediction(mut self) -> Prediction {
        match &mut self.order {
            ReplayOrder::Open(_) => {}
            ReplayOrder::Closed(clients) => clients.finish(&mut self.run),
            ReplayOrder::Beside(clients) => clients.finish(&mut self.run),
        }
        self.run.prediction()
    }
}

/// How often the next request is made.
#[derive(Debug)]
pub(super) struct Copies {
    growth_milli: u64,
    owed: u64,
}

impl Copies {
    pub(super) fn new(growth_milli: u64) -> Copies {
        Copies { growth_milli, owed: 0 }
    }

    pub(super) fn next_count(&mut self) -> u64 {
        self.owed += self.growth_milli;
        let count = self.owed / 1000;
        self.owed %= 1000;
        count
    }
}

/// The requests in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    ends: BinaryHeap<Reverse<u64>>,
    /// The most at a time; more than [`MAX_IN_FLIGHT`] are counted as so many.
    pub(crate) highest: usize,
}

impl InFlight {
    /// Takes a request that is made at `at_ns`, not before the one before, and completes at `end_ns`.
    #[inline]
    pub(crate) fn take(&mut self, at_ns: u64, end_ns: u64) {
        while self.ends.peek().is_some_and(|end| end.0 <= at_ns) {
            self.ends.pop();
        }
        if self.ends.len() < MAX_IN_FLIGHT {
            self.ends.push(Reverse(end_ns));
        }
        self.highest = self.highest.max(self.ends.len());
    }
}

/// A volume that requests are made on by their times.
pub(super) struct ReplayedVolume {
    pub(super) volume: Volume,
    /// When the last request completes.
    pub(super) last_end: u64,
    /// Requests that never complete.
    pub(super) never: u64,
    /// Requests beyond the end of the volume, which may be smaller than the recorded one; they are moved into it.
    pub(super) moved: u64,
}

impl ReplayedVolume {
    pub(super) fn new(model: &VolumeModel, seed: u64) -> Result<ReplayedVolume, ModelError> {
        Ok(ReplayedVolume { volume: Volume::new(model, seed)?, last_end: 0, never: 0, moved: 0 })
    }

    /// Makes a request at `at`, not before the one made last; `None` if it never completes.
    #[inline]
    pub(super) fn make(&mut self, at: u64, request: &ObservedRequest) -> Option<VolumeCompletion> {
        let size = self.volume.model().size_bytes;
        let mut offset = request.offset;
        if offset.checked_add(u64::from(request.bytes)).is_none_or(|end| end > size) {
            self.moved += 1;
            let places = size.saturating_sub(u64::from(request.bytes)) + 1;
            offset = offset % places / SECTOR * SECTOR;
        }
        let answer = self.volume.submit(at, &VolumeRequest { op: request.op, offset, bytes: request.bytes });
        if answer.outcome == RequestOutcome::Never {
            self.never += 1;
            return None;
        }
        self.last_end = self.last_end.max(answer.at_ns);
        Some(answer)
    }
}

/// A volume and what requests got of it so far.
pub(super) struct ReplayRun {
    volume: ReplayedVolume,
    tally: Tally,
    pace: ReplayPace,
    length_ns: u64,
    /// The share of the recorded requests that clients had the time to make.
    made_share: f64,
    look_every_ns: u64,
    next_look_ns: u64,
    in_flight: InFlight,
    /// What a request takes by itself, ns: the end of the load is no backlog.
    service_ns: u64,
    busy_until: u64,
    throttled_ns: u64,
    buckets: Vec<Option<Bucket>>,
    lowest: Option<CreditLevel>,
    exhausted: Option<CreditLevel>,
    credits: Option<f64>,
}

/// Burst credits of a limit.
#[derive(Clone, Copy)]
struct Bucket {
    initial: f64,
    /// What is added, per ns.
    refill: f64,
}

/// What was left of burst credits at a time.
#[derive(Clone, Copy)]
struct CreditLevel {
    at_ns: u64,
    /// Of [`FULL`].
    share: u64,
    left: u64,
    /// `None` for a burst of fixed length, and without initial credits.
    bucket: Option<Bucket>,
}

impl CreditLevel {
    /// When the credits are exhausted where the rate of the load differs by up to `error`: close to the refill rate a small
    /// difference decides.
    fn exhaustion(&self, error: f64, elapsed_ns: u64) -> Option<ExhaustionRange> {
        let Some(bucket) = self.bucket else { return Some(ExhaustionRange::at(self.at_ns)) };
        let drain = (bucket.initial - self.left as f64) / self.at_ns.max(1) as f64;
        let error = error * (drain + bucket.refill);
        let lasting =
            |drain: f64| Some((bucket.initial / drain) as u64).filter(|ns| drain > 0.0 && *ns <= elapsed_ns);
        Some(ExhaustionRange { low: lasting(drain + error)?, high: lasting(drain - error) })
    }
}

/// The bucket of each limit that has one, in the order of the volume's states.
fn buckets(model: &VolumeModel) -> Vec<Option<Bucket>> {
    let stages = model.shared.iter().chain(&model.reads).chain(&model.writes);
    let bucket = |limit: Option<Limit>| match limit? {
        Limit::Credit { base, initial, .. } if initial > 0 => {
            Some(Bucket { initial: initial as f64, refill: base.as_f64() / 1e9 })
        }
        Limit::Credit { .. } | Limit::Rate(_) | Limit::Window { .. } | Limit::OnDemand { .. } => None,
    };
    stages.flat_map(|stage| [stage.ios, stage.bytes]).map(bucket).collect()
}

/// Parts of a full bucket.
const FULL: u64 = 1 << 32;

impl ReplayRun {
    fn new(model: &VolumeModel, settings: &ReplaySettings<'_>) -> Result<ReplayRun, ModelError> {
        let length_ns = settings.length_ns.max(1);
        Ok(ReplayRun {
            volume: ReplayedVolume::new(model, settings.seed)?,
            tally: Tally::new(length_ns, 0, settings.limits),
            pace: settings.pace,
            length_ns,
            made_share: 1.0,
            look_every_ns: (length_ns / LOOKS).clamp(MIN_LOOK_NS, MAX_LOOK_NS),
            next_look_ns: 0,
            in_flight: InFlight::default(),
            service_ns: [&model.read_latency, &model.write_latency, &model.sync_latency]
                .map(|latency| latency.quantile_ns(SLOW_PER_MILLION))
                .into_iter()
                .max()
                .unwrap_or(0),
            busy_until: 0,
            throttled_ns: 0,
            buckets: buckets(model),
            lowest: None,
            exhausted: None,
            credits: None,
        })
    }

    /// Makes a request at `at`, not before the one made last. Returns when it completes.
    #[inline]
    pub(super) fn make(&mut self, at: u64, request: &ObservedRequest) -> u64 {
        let credits = self.credits;
        self.tally.reach(at, || credits);
        let Some(answer) = self.volume.make(at, request) else { return u64::MAX };
        if answer.outcome == RequestOutcome::Done {
            let bytes = if request.op == Op::Trim { 0 } else { u64::from(request.bytes) };
            self.tally.record(request.op, bytes, answer.at_ns - at);
        }
        let busy = self.volume.volume.limits_busy_until_ns();
        if busy > at {
            self.throttled_ns += busy.saturating_sub(at.max(self.busy_until));
            self.busy_until = busy.max(self.busy_until);
        }
        self.in_flight.take(at, answer.at_ns);
        // A request that waits takes its credits when it leaves the limits.
        let taken = busy.max(at);
        if taken >= self.next_look_ns {
            self.look(taken);
            self.next_look_ns = (taken / self.look_every_ns + 1) * self.look_every_ns;
        }
        answer.at_ns
    }

    /// Looks at credits when the last request takes its own. Between requests they only rise.
    fn look(&mut self, at: u64) {
        let mut lowest: Option<CreditLevel> = None;
        let states = self.volume.volume.stage_states(at).flat_map(|state| [state.ios, state.bytes]);
        for (state, &bucket) in states.zip(&self.buckets) {
            match state {
                Some(LimitState::Credit { left, capacity }) => {
                    let share = (u128::from(left) * u128::from(FULL) / u128::from(capacity.max(1))) as u64;
                    let level = CreditLevel { at_ns: at, share, left, bucket };
                    if lowest.is_none_or(|lowest| share < lowest.share) {
                        lowest = Some(level);
                    }
                    if share < FULL / 1000 * EXHAUSTED_PER_MILLE {
                        self.exhausted.get_or_insert(level);
                    }
                }
                Some(LimitState::Rest { .. }) => {
                    self.exhausted.get_or_insert(CreditLevel { at_ns: at, share: 0, left: 0, bucket: None });
                }
                Some(LimitState::Steady | LimitState::Burst { .. } | LimitState::Ready) | None => {}
            }
        }
        self.credits = lowest.map(|level| level.share as f64 / FULL as f64);
        if let Some(level) =
            lowest.filter(|level| self.lowest.is_none_or(|lowest| level.share < lowest.share))
        {
            self.lowest = Some(level);
        }
    }

    /// When credits are exhausted. The times of an open load are recorded; the rate of clients that wait follows.
    fn exhaustion(&self, elapsed_ns: u64) -> Option<ExhaustionRange> {
        match (self.pace, self.exhausted) {
            (ReplayPace::Open, exhausted) => exhausted.map(|level| ExhaustionRange::at(level.at_ns)),
            (_, Some(level)) => level.exhaustion(CLOSED_RATE_ERROR, elapsed_ns),
            (_, None) => {
                let lowest = self.lowest.filter(|level| level.bucket.is_some())?;
                lowest.exhaustion(CLOSED_RATE_ERROR, elapsed_ns)
            }
        }
    }

    fn prediction(self) -> Prediction {
        let last_end = self.volume.last_end;
        // Clients that wait are done earlier on a faster volume.
        let elapsed = match self.pace {
            ReplayPace::Open | ReplayPace::Beside(_) => self.length_ns.max(last_end),
            ReplayPace::Closed => last_end.max(1),
        };
        let exhaustion = self.exhaustion(elapsed);
        let (summary, above_objective_ns, slices) = self.tally.finish(elapsed, self.credits);
        let share = |ns: u64| ns as f64 / elapsed as f64;
        let served_ns = last_end.saturating_sub(self.service_ns).max(1);
        let served_share = match self.volume.never {
            0 => (self.length_ns as f64 / served_ns as f64).min(self.made_share),
            _ => 0.0,
        };
        Prediction {
            summary,
            served_share,
            is_closed: self.pace != ReplayPace::Open,
            throttled_share: share(self.throttled_ns).min(1.0),
            lowest_credits: self
                .lowest
                .map(|level| LowestCredits { share: level.share as f64 / FULL as f64, at_ns: level.at_ns }),
            exhausted_ns: self.exhausted.map(|level| level.at_ns),
            exhaustion,
            longest_queue: self.in_flight.highest as u64,
            backlog_ns: last_end.saturating_sub(self.length_ns),
            above_objective_ns,
            billed_transactions: self.volume.volume.billed_transactions(),
            slices,
            ..Prediction::default()
        }
    }
}

#[cfg(test)]
mod sums_tests;
#[cfg(test)]
mod tests;
