//! What is known on the way: rates, latencies and curves, falls of a rate, and the buckets that were emptied. Data alone; the
//! method that fills it in is in `script` and the steps beside it.

use super::probe::{Floor, IoDirection, OtherIo};
use crate::identified::{BucketUnit, IoScope};

/// What is left once credit is used up is at most this share of the rate before: less is no fall that a user need know of.
pub(crate) const FALLEN: f64 = 0.9;
/// Share of the load of others from which on a measurement is repeated.
pub(crate) const DISTURBED: f64 = 0.05;

/// What is asked of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProbeLoad {
    pub(crate) aim: &'static str,
    pub(crate) ways: IoScope,
    pub(crate) block: u64,
    pub(crate) depth: u32,
    /// Requests a second that are thought to come.
    pub(crate) guess: Option<f64>,
}

impl ProbeLoad {
    /// The direction, reads where it goes both.
    pub(crate) const fn way(&self) -> IoDirection {
        if self.ways.counts(false) { IoDirection::Read } else { IoDirection::Write }
    }

    pub(crate) fn of(aim: &'static str, way: IoDirection, block: u64, depth: u32) -> ProbeLoad {
        ProbeLoad { aim, ways: way.scope(), block, depth, guess: None }
    }

    pub(crate) fn both(aim: &'static str, block: u64, depth: u32) -> ProbeLoad {
        ProbeLoad { aim, ways: IoScope::Both, block, depth, guess: None }
    }
}

/// A rate under one load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RateLevel {
    pub(crate) block: u64,
    pub(crate) depth: u32,
    /// Requests a second.
    pub(crate) rate: f64,
    /// By what share the rate may be wrong: half of its 95 % interval.
    pub(crate) error: f64,
    /// Repeats differed by more than those of a limit; the rate is the highest.
    pub(crate) varies: bool,
    /// Length of the turns in which a limiter releases requests, s; 0 where it releases them one by one.
    pub(crate) turn_s: f64,
    /// I/O of other processes meanwhile.
    pub(crate) others: OtherIo,
    /// Mean latency, ns.
    pub(crate) lat_ns: f64,
    /// The thread that asked was busy.
    pub(crate) is_busy: bool,
    /// Requests counted.
    pub(crate) ios: u64,
    /// Spread of the rate over slices of time, beyond what counting whole requests makes of an even one.
    pub(crate) uneven: f64,
    /// When it had been measured, ns.
    pub(crate) at_ns: u64,
}

impl RateLevel {
    pub(crate) fn bytes(&self) -> f64 {
        self.rate * self.block as f64
    }

    /// Bytes a second that are no more than were served: the low end of the interval.
    pub(crate) fn least_bytes(&self) -> f64 {
        self.bytes() * (1.0 - self.error)
    }

    /// Requests a second that the limit may be higher than the rate, as turns release whole requests only.
    pub(crate) fn unreleased(&self) -> f64 {
        if self.turn_s > 0.0 { 1.0 / self.turn_s } else { 0.0 }
    }

    /// Little's law says that requests waited, for longer than they were served.
    pub(crate) fn is_queued(&self, floor_ns: f64, times: f64) -> bool {
        self.lat_ns > times * floor_ns
    }
}

/// How well a rate is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// To tell a limit from twice as much.
    Coarse,
    /// To tell it within a percent.
    Fine,
}

/// What first accesses were seen to cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Touch {
    /// Latency of first and of second accesses, ns.
    pub(crate) first: Floor,
    pub(crate) again: Floor,
    /// Rate of first accesses over that of second ones.
    pub(crate) share: f64,
    /// The rate changed while both were compared.
    pub(crate) has_changed: bool,
}

/// What the shape tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) way: IoDirection,
    /// The rate of the smallest requests.
    pub(crate) top: RateLevel,
    /// What limits that rate.
    pub(crate) small_limit: SmallIoLimit,
    /// The rate of large requests, where bytes limit.
    pub(crate) bulk: Option<RateLevel>,
    /// The most bytes a second seen.
    pub(crate) most_bytes: f64,
    /// The low end of their interval.
    pub(crate) least_bytes: f64,
    /// The largest block with the rate of the smallest; `None` where bytes limit even those.
    pub(crate) flat_to: Option<u64>,
    pub(crate) unit: ObservedUnit,
    /// The block that uses up I/Os and bytes at their fastest.
    pub(crate) both: u64,
}

impl Curve {
    /// That of which only the smallest requests are known.
    pub(crate) fn of_top(way: IoDirection, top: RateLevel, small_limit: SmallIoLimit) -> Curve {
        Curve {
            way,
            top,
            small_limit,
            bulk: None,
            most_bytes: top.bytes(),
            least_bytes: top.least_bytes(),
            flat_to: Some(top.block),
            unit: ObservedUnit::Above(top.block),
            both: top.block,
        }
    }

    /// The curve, where `level` may be the one with the most bytes a second.
    pub(crate) fn with_bytes_of(self, level: &RateLevel) -> Curve {
        let most_bytes = self.most_bytes.max(level.bytes());
        Curve { most_bytes, least_bytes: self.least_bytes.max(level.least_bytes()), ..self }
    }
}

/// What limits small requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SmallIoLimit {
    /// The number of requests per second.
    Count,
    /// The bytes per second.
    Bytes,
    /// Only the queue depth of the test.
    Depth,
    /// The client.
    Client,
    /// The number of requests that are served in parallel.
    Width(u64),
}

/// What was seen of the largest request that counts as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ObservedUnit {
    Exactly(u64),
    /// Not up to here.
    Above(u64),
    /// It could not show.
    Hidden,
}

/// The result of both at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DirectionSharing {
    /// Nothing was held by a limit in both directions, or nothing was looked at.
    #[default]
    Unknown,
    Shared,
    Apart,
    /// Each has limits of its own, and there is one on both together.
    ApartUnderOne,
}

/// A rate that fell: under which load, what it was before, and the highest of that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fell {
    pub(crate) load: ProbeLoad,
    pub(crate) high: f64,
    pub(crate) peak: f64,
}

/// A rate that fell for good: the load, the rates before and after, the span of the latter, and its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateFall {
    pub(crate) load: ProbeLoad,
    pub(crate) high: f64,
    pub(crate) low: f64,
    pub(crate) dry: (u64, u64),
    pub(crate) ios: u64,
}

/// A bucket that was exhausted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EmptiedBucket {
    pub(crate) account: Account,
    /// By what share its baseline may be wrong.
    pub(crate) error: f64,
    /// The rate before it fell, in what it counts.
    pub(crate) high: f64,
    /// A span in which it was empty, ns.
    pub(crate) dry: (u64, u64),
    /// The load that emptied it.
    pub(crate) load: ProbeLoad,
    /// What an idle period gave back; `None` where none was measured.
    pub(crate) recovery: Option<Recovery>,
    /// It was exhausted while the limits were measured.
    pub(crate) is_early: bool,
    /// What it holds, once that was worked out.
    pub(crate) full: Option<f64>,
}

/// What an idle period that begins with an empty bucket gave back, in what the bucket counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Recovery {
    /// Length of the idle period, s.
    pub(crate) rest_s: f64,
    /// What a bucket gains in it.
    pub(crate) gained: f64,
    /// What completed after it beyond the baseline.
    pub(crate) regained: f64,
    /// How long the rate before the fall was restored, s.
    pub(crate) restored_s: f64,
    /// The rate was the baseline before the idle period, and fell to it again.
    pub(crate) is_used_up: bool,
    /// Under load the rate rose, or did not fall in the time in which a bucket uses up what it gained.
    pub(crate) has_risen: bool,
    /// The idle period may have filled the bucket, and then tells no refill rate.
    pub(crate) may_be_full: bool,
}

/// An idle period gives back what a bucket gains in it, or else it is no bucket: from this part of that, to so many times it and
/// what a limiter releases ahead of its rate in so many s.
const MIN_REGAINED: f64 = 0.3;
const MAX_REGAINED: f64 = 1.25;
const AHEAD_S: f64 = 0.25;

impl EmptiedBucket {
    /// It counts all of these directions.
    pub(crate) fn draws_on(&self, ways: IoScope) -> bool {
        self.account.scope == IoScope::Both || self.account.scope == ways
    }

    /// The measured recovery whose idle period was long enough to restore the rate before the fall for twice `least` s.
    pub(crate) fn measured_recovery(&self, least: f64) -> Option<Recovery> {
        let beyond = self.high - self.account.base;
        self.recovery.filter(|recovery| recovery.gained > 2.0 * least * beyond)
    }

    /// An idle period restored the rate for longer than `least` s, and by what the bucket gains, as far as that was used up.
    pub(crate) fn comes_back(&self, least: f64) -> bool {
        self.measured_recovery(least).is_some_and(|recovery| {
            let is_gained = recovery.regained > MIN_REGAINED * recovery.gained;
            recovery.restored_s > least && (is_gained || !recovery.is_used_up)
        })
    }

    /// More came after an idle period than the bucket can have gained in it, or not right after it: the rate rose for another
    /// reason.
    pub(crate) fn has_regained_more(&self) -> bool {
        self.recovery.is_some_and(|recovery| {
            recovery.has_risen || recovery.regained > MAX_REGAINED * recovery.gained + AHEAD_S * self.high
        })
    }

    /// The least that the rate before the fall can have been by itself: it may stand for a single second, and right after an idle
    /// period, when a limiter lets requests through that it has saved up.
    pub(crate) fn least_high(&self) -> f64 {
        (self.high - AHEAD_S * self.account.base).max(self.account.base)
    }

    /// What an idle period gave back, and its length, s, where that tells the refill rate.
    pub(crate) fn refilled(&self) -> Option<(f64, f64)> {
        let counted = self.recovery.filter(|recovery| recovery.is_used_up && !recovery.may_be_full);
        counted.map(|recovery| (recovery.regained, recovery.rest_s))
    }
}

/// A request up to this size counts as one, where nothing is known of it, bytes.
const TAKEN_FOR_ONE: u64 = 4096;

/// Whose requests count, and as what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Account {
    pub(crate) kind: BucketUnit,
    pub(crate) scope: IoScope,
    /// What it gains a second.
    pub(crate) base: f64,
}

impl Account {
    pub(crate) fn counts(&self, way: IoDirection) -> bool {
        way.is_in(self.scope)
    }

    /// The direction that it counts, reads where it counts both.
    pub(crate) fn way(&self) -> IoDirection {
        if self.counts(IoDirection::Read) { IoDirection::Read } else { IoDirection::Write }
    }

    /// What a request of `block` bytes costs at the most: where the unit could not show, it may be as small as the largest
    /// request that is known to count as one.
    pub(crate) fn cost_at_most(&self, found: &Findings, way: IoDirection, block: u64) -> f64 {
        let as_one = match found.unit(way) {
            Some(ObservedUnit::Above(bytes)) => Some(bytes),
            None => Some(TAKEN_FOR_ONE),
            Some(ObservedUnit::Hidden) => found.curves[way as usize].as_ref().and_then(|curve| curve.flat_to),
            _ => None,
        };
        match (self.kind, as_one) {
            (BucketUnit::Ios, Some(as_one)) => block.div_ceil(as_one.max(1)) as f64,
            _ => self.cost(found, way, block),
        }
    }

    /// What a request of `block` bytes costs; at the least, where its unit is not known.
    pub(crate) fn cost(&self, found: &Findings, way: IoDirection, block: u64) -> f64 {
        match self.kind {
            BucketUnit::Bytes => block as f64,
            BucketUnit::Ios => match found.unit(way) {
                Some(ObservedUnit::Exactly(unit)) => block.div_ceil(unit) as f64,
                _ => 1.0,
            },
        }
    }
}

/// A rate that went down and up again by itself, requests of `block` bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RestlessRate {
    pub(crate) ways: IoScope,
    pub(crate) block: u64,
    pub(crate) high: f64,
    pub(crate) low: f64,
}

/// A rate that fell, but by little, or to one that is not even.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnclearFall {
    pub(crate) ways: IoScope,
    pub(crate) high: f64,
    /// The rate after it, where that is even.
    pub(crate) low: Option<f64>,
    /// It was seen to fall, and not only lower than it had been.
    pub(crate) is_seen: bool,
}

/// A rate that changed little by little: requests of `block` bytes a second at first and in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateDrift {
    pub(crate) ways: IoScope,
    pub(crate) block: u64,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Latency at rest, of reads and of writes.
    pub(crate) floors: [Option<Floor>; 2],
    pub(crate) curves: [Option<Curve>; 2],
    /// The rate of the smallest requests of each direction while there was credit.
    pub(crate) full: [Option<RateLevel>; 2],
    /// What limits that rate.
    pub(crate) full_limit: [Option<SmallIoLimit>; 2],
    /// The fastest measurement of the smallest requests of each direction.
    pub(crate) fastest: [Option<RateLevel>; 2],
    /// The highest rate of the smallest requests seen of each direction.
    pub(crate) max_rate: [f64; 2],
    /// The most bytes a second seen of each direction.
    pub(crate) max_bytes: [f64; 2],
    /// Measurements take so long that credit may run dry in them.
    pub(crate) is_long: bool,
    /// A fall is looked out for while limits are measured.
    pub(crate) is_watching: bool,
    /// What was noticed last.
    pub(crate) fell: Option<Fell>,
    pub(crate) shares_ios: DirectionSharing,
    pub(crate) shares_bytes: DirectionSharing,
    pub(crate) touch: Option<Touch>,
    /// The range that is kept to, where first accesses cost.
    pub(crate) range: Option<u64>,
    /// In the order in which they were exhausted.
    pub(crate) buckets: Vec<EmptiedBucket>,
    /// A rate that went down and up again by itself.
    pub(crate) restless: Option<RestlessRate>,
    /// A rate that fell, but by little, or to one that is not even.
    pub(crate) unclear: Option<UnclearFall>,
    /// A rate that changed little by little.
    pub(crate) drift: Option<RateDrift>,
    /// A kind of credit that could not be used up as the other was exhausted first: both.
    pub(crate) hidden: Option<(&'static str, &'static str)>,
    /// Both directions at once came to less than one of them alone.
    pub(crate) has_changed: bool,
    /// The longest that a highest rate held, ns.
    pub(crate) held_ns: Option<u64>,
    /// The longest look for a fall, ns.
    pub(crate) watched_ns: u64,
    /// A limit holds the rate of one direction, so that its requests come evenly.
    pub(crate) is_even: [bool; 2],
    /// Length of the turns in which requests of each direction are released, s; 0 where they are not.
    pub(crate) turns_s: [f64; 2],
    /// Measurements that were repeated because of other processes.
    pub(crate) retries: usize,
    /// Time of the repeats, ns.
    pub(crate) repeats_ns: u64,
    /// How long it took to measure the limits, ns.
    pub(crate) limits_ns: u64,
    /// Credit may have run dry while the curve of a direction was measured.
    pub(crate) is_doubtful: [bool; 2],
    /// Probes are preceded by the rest that gives them credit.
    pub(crate) is_resting: bool,
}

impl Findings {
    /// The curves of those directions.
    pub(crate) fn curves(&self, ways: IoScope) -> impl Iterator<Item = &Curve> {
        self.curves.iter().flatten().filter(move |curve| curve.way.is_in(ways))
    }

    /// The buckets that count requests of this direction.
    pub(crate) fn buckets(&self, way: IoDirection) -> impl Iterator<Item = &EmptiedBucket> {
        self.buckets.iter().filter(move |bucket| bucket.account.counts(way))
    }

    pub(crate) fn floor(&self, way: IoDirection) -> Floor {
        self.floors[way as usize].or(self.floors[0]).unwrap_or_default()
    }

    pub(crate) fn floor_ns(&self, way: IoDirection) -> f64 {
        self.floor(way).mean
    }

    /// Curves are not to be gone by: one was measured while credits were exhausted, and that was not looked out for.
    pub(crate) fn is_any_doubtful(&self) -> bool {
        !self.is_long && self.is_doubtful.contains(&true)
    }

    /// The unit by which requests of one direction are counted: where it is hidden there, that of the other.
    pub(crate) fn unit(&self, way: IoDirection) -> Option<ObservedUnit> {
        let of = |way: IoDirection| self.curves[way as usize].as_ref().map(|curve| curve.unit);
        let other = if way == IoDirection::Read { IoDirection::Write } else { IoDirection::Read };
        match (of(way), of(other)) {
            (_, Some(unit @ ObservedUnit::Exactly(_)))
                if !matches!(of(way), Some(ObservedUnit::Exactly(_))) =>
            {
                Some(unit)
            }
            (own, _) => own,
        }
    }

    /// Whether both directions draw on the same limits; `None` where that is unknown, or differs.
    pub(crate) fn is_shared(&self) -> Option<bool> {
        if self.is_any_doubtful() {
            return None;
        }
        let of = |sharing: DirectionSharing| match sharing {
            DirectionSharing::Unknown => None,
            DirectionSharing::Shared => Some(true),
            DirectionSharing::Apart | DirectionSharing::ApartUnderOne => Some(false),
        };
        match (of(self.shares_ios), of(self.shares_bytes)) {
            (Some(ios), Some(bytes)) if ios != bytes => None,
            (ios, bytes) => ios.or(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_right_after_an_idle_period_includes_what_a_limiter_saved_up() {
        let account = Account { kind: BucketUnit::Bytes, scope: IoScope::Reads, base: 7_712_678.0 };
        let load =
            ProbeLoad { aim: "after idling", ways: IoScope::Reads, block: 65_536, depth: 8, guess: None };
        let least = |high: f64| {
            let (dry, recovery, full) = ((0, 1), None, None);
            EmptiedBucket { account, error: 0.0, high, dry, load, recovery, is_early: false, full }
                .least_high()
        };
        // A limiter of 7,712,678 B/s released 8,679,000 bytes in the first second after it.
        assert_eq!(least(8_679_000.0), 7_712_678.0);
        assert_eq!(least(20_000_000.0), 20_000_000.0 - 0.25 * 7_712_678.0);
    }
}
