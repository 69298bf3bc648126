//! What a rate that fell for good tells: whether I/Os or bytes were exhausted, and whose credit it was.

use super::drain::LOW_IOS;
use super::ledger::{Account, EmptiedBucket};
use super::level::{Care, ProbeLoad};
use super::probe::{IoDirection, ProbeSlice};
use super::script::{Halt, Script};
use super::stretches::{LONG_SPAN, stretches, unevenness};
use crate::identified::{BucketUnit, IoScope};

/// Within this time of a fall, slices hold something of both rates.
pub(crate) const SETTLED_NS: u64 = 1_000_000_000;
/// What is left once credit is used up is at most this share of the rate before, and this even. Less than
/// that is no fall that a user need know of, and what varies more is held by no limit.
pub(crate) const FALLEN: f64 = 0.9;
const EVEN: f64 = 0.08;
/// A rate this near to what a dry bucket leaves is that.
const KNOWN: f64 = 0.15;
/// Rest and time of the look for a bucket that was empty before anything was seen of it.
const LOOK_SECONDS: f64 = 20.0;

/// A rate that fell for good: the load, the rates before and after, the span of the latter, and its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateFall {
    pub(crate) load: ProbeLoad,
    pub(crate) high: f64,
    pub(crate) low: f64,
    pub(crate) dry: (u64, u64),
    pub(crate) ios: u64,
}

impl Script<'_> {
    /// The rate in a span, but for its beginning, in which the fall lies.
    pub(crate) fn low(&self, first: usize, stream: IoScope, (from, to): (u64, u64)) -> Option<f64> {
        let slices = self.series(first, stream);
        let inside: Vec<&ProbeSlice> =
            slices.iter().filter(|slice| slice.start_ns > from + SETTLED_NS && slice.end_ns <= to).collect();
        let seconds: f64 = inside.iter().map(|slice| slice.seconds()).sum();
        let ios: u64 = inside.iter().map(|slice| slice.ios).sum();
        let is_even = unevenness(inside.iter().copied(), LONG_SPAN) <= EVEN;
        (ios >= LOW_IOS / 2 && seconds > 2.0 && is_even).then(|| ios as f64 / seconds)
    }

    /// The requests of one stream since the probe `first`.
    pub(crate) fn series(&self, first: usize, ways: IoScope) -> Vec<ProbeSlice> {
        let mut slices = Vec::new();
        for (_, began, seen) in self.answers().skip(first) {
            let way = if ways.counts(false) { IoDirection::Read } else { IoDirection::Write };
            slices.extend(seen.done(way).slices.iter().map(|slice| ProbeSlice {
                start_ns: began + slice.start_ns,
                end_ns: began + slice.end_ns,
                ios: slice.ios,
            }));
        }
        slices
    }

    /// What kinds were exhausted under `load`: another block size at once tells, as the same number of requests or the same bytes
    /// come through. All of what fell is asked again at once, lest it rests meanwhile.
    pub(crate) fn tell(&mut self, load: ProbeLoad, fallen: &[RateFall]) -> Result<Vec<BucketUnit>, Halt> {
        let least = self.spec.unit_bytes;
        let half = load.block / 2 / least * least;
        let block = if half >= least { half } else { load.block * 2 };
        let slowest = fallen.iter().map(|fall| fall.low).fold(f64::INFINITY, f64::min);
        let other = ProbeLoad { aim: "I/Os or bytes", block, guess: Some(slowest), ..load };
        let others = self.level(other, Care::Coarse)?;
        let mut kinds = Vec::new();
        for fall in fallen {
            let way = fall.load.way();
            let is_ios = (others[way as usize].rate / fall.low - 1.0).abs() < 0.04;
            let kind = if is_ios { BucketUnit::Ios } else { BucketUnit::Bytes };
            if self.is_known((way, fall.load.block), fall.low) {
                continue;
            }
            self.keep(kind, *fall);
            kinds.push(kind);
        }
        Ok(kinds)
    }

    /// Takes down what was exhausted.
    pub(crate) fn keep(&mut self, kind: BucketUnit, fall: RateFall) {
        let way = fall.load.way();
        let is_shared = self.found.is_shared() == Some(true);
        let scope = if is_shared { IoScope::Both } else { fall.load.ways };
        let unpriced = Account { kind, scope, base: 0.0 };
        let cost = unpriced.cost(&self.found, way, fall.load.block);
        let account = Account { base: fall.low * cost, ..unpriced };
        let error = 0.0005 + 1.0 / fall.ios.max(1) as f64;
        let (high, dry, load) = (fall.high * cost, fall.dry, fall.load);
        self.found.buckets.push(EmptiedBucket {
            account,
            error,
            high,
            dry,
            load,
            recovery: None,
            is_early: false,
            full: None,
        });
    }

    /// The rate of requests of `block` bytes is what a bucket leaves that is known to be dry.
    pub(crate) fn is_known(&self, (way, block): (IoDirection, u64), rate: f64) -> bool {
        let known = self.found.buckets.iter().filter(|bucket| bucket.account.counts(way));
        known.into_iter().any(|bucket| {
            let left = bucket.account.base / bucket.account.cost(&self.found, way, block);
            (left - rate).abs() < KNOWN * left.max(rate)
        })
    }

    /// A bucket so small that it was empty before the first rate was known: idle time refills a little of it.
    pub(crate) fn look_for_empty(&mut self, load: ProbeLoad, first: usize) -> Result<Vec<BucketUnit>, Halt> {
        let series = self.series(first, load.ways);
        let all = stretches(&series);
        let Some(last) = all.last() else { return Ok(Vec::new()) };
        let low = last.rate();
        let mut probe = self.plain(ProbeLoad { aim: "after idling", ..load });
        probe.rest_ns = (LOOK_SECONDS * 1e9) as u64;
        (probe.runtime_ns, probe.counts) = ((LOOK_SECONDS / 2.0 * 1e9) as u64, true);
        let way = load.way();
        let dry = (last.start_ns, last.end_ns);
        let seen = self.ask(probe)?;
        let done = seen.done(way);
        let over = done.ios as f64 - low * (done.seconds() - done.lat.2 / 1e9) - f64::from(load.depth);
        if over > 0.15 * low {
            let first = done.slices.first().map_or(low, ProbeSlice::rate);
            let fall = RateFall { load, high: first.max(low * 1.1), low, dry, ios: last.ios };
            return self.tell(load, &[fall]);
        }
        Ok(Vec::new())
    }
}
