//! What is known on the way.

use super::curve::{Curve, ObservedUnit};
use super::early::Fell;
use super::floor::{Floor, Touch};
use super::ledger::EmptiedBucket;
use super::level::RateLevel;
use super::probe::IoDirection;
use super::sharing::DirectionSharing;
use crate::identified::IoScope;

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

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    /// Latency at rest, of reads and of writes.
    pub(crate) floors: [Option<Floor>; 2],
    pub(crate) curves: [Option<Curve>; 2],
    /// The rate of the smallest requests of each direction while there was credit.
    pub(crate) full: [Option<RateLevel>; 2],
    /// The highest rate of the smallest requests seen of each direction.
    pub(crate) most_rate: [f64; 2],
    /// The most bytes a second seen of each direction.
    pub(crate) most_bytes: [f64; 2],
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
