//! What was measured without credit and what holds with it, put together.

use super::curve::{Curve, ObservedUnit};
use super::early::{AHEAD_NS, NEAR, fall_in};
use super::fall::FALLEN;
use super::ledger::{Account, EmptiedBucket};
use super::level::{Care, ProbeLoad, RateLevel};
use super::probe::IoDirection;
use super::script::{Halt, Script};
use super::sharing::DirectionSharing;
use crate::identified::{BucketUnit, IoScope};

/// Pieces in which credit is used up: how many at the most, and how long one of them is, ns.
const MOST_PIECES: usize = 12;
const PIECE_NS: u64 = 3_000_000_000;
/// Credit that a rest brings, over what is needed.
const AMPLE: f64 = 1.5;
/// How long a rate is measured after a rest, s, at the most.
const AFTER_REST_SECONDS: f64 = 3.0;
/// Part of its credit that a rate is measured on after a rest, at the most.
const PART: f64 = 0.7;
/// A rate is the highest of its kind from this share of that on.
const ENDED: f64 = 0.985;

impl Script<'_> {
    /// What was measured without credit, and what holds with it, as one.
    pub(crate) fn join(&mut self) -> Result<(), Halt> {
        let (shares, is_shared) = (self.shares(), self.found.is_shared() == Some(true));
        for bucket in self.found.buckets.iter_mut().filter(|bucket| bucket.is_early) {
            let share = shares[usize::from(bucket.account.kind == BucketUnit::Bytes)];
            if share == DirectionSharing::Shared || (share == DirectionSharing::Unknown && is_shared) {
                bucket.account.scope = IoScope::Both;
            }
        }
        // What each direction was seen to use up is then one and the same.
        let mut kinds = Vec::new();
        self.found.buckets.retain(|bucket| {
            let Account { kind, scope, .. } = bucket.account;
            let is_again = bucket.is_early && scope == IoScope::Both && kinds.contains(&kind);
            kinds.push(kind);
            !is_again
        });
        let mut ended = Ok(());
        for way in [IoDirection::Read, IoDirection::Write] {
            let Some(curve) = self.found.curves[way as usize].clone() else { continue };
            let Some(bucket) = self.early(way).cloned() else { continue };
            if bucket.account.kind == BucketUnit::Bytes {
                self.found.curves[way as usize] = Some(self.with_full_bulk(curve, &bucket));
                continue;
            }
            self.base_at_least(&bucket, curve.top.rate);
            match self.with_full_top(way, curve, &bucket) {
                Ok(curve) => self.found.curves[way as usize] = Some(curve),
                Err(halt) => {
                    self.found.is_doubtful[way as usize] = true;
                    ended = ended.and(Err(halt));
                    continue;
                }
            }
            ended = ended.and(self.with_full_bytes(way, &bucket));
        }
        ended
    }

    /// A baseline that was seen to be a little more: whatever else was going on made it less, if anything.
    fn base_at_least(&mut self, bucket: &EmptiedBucket, seen: f64) {
        let found = self.found.buckets.iter_mut().find(|one| *one == bucket);
        let found = found.filter(|one| seen > one.account.base && seen * FALLEN < one.account.base);
        if let Some(found) = found {
            found.account.base = seen;
        }
    }

    fn with_full_top(&mut self, way: IoDirection, dry: Curve, bucket: &EmptiedBucket) -> Result<Curve, Halt> {
        let is_full = |top: &RateLevel| top.rate * FALLEN > dry.top.rate;
        let top = match self.found.full[way as usize].filter(is_full) {
            // Where credits were exhausted at its very end, another measurement has more information.
            Some(top) if top.rate < ENDED * self.found.most_rate[way as usize] => {
                RateLevel { rate: self.found.most_rate[way as usize], ..top }
            }
            Some(top) => top,
            None => self.after_rest(way, bucket, self.spec.unit_bytes)?,
        };
        let small_limit = self.small_limit(way, &top);
        Ok(self.whole(Curve { top, small_limit, ..dry }))
    }

    /// Looks for a limit on bytes where without credit so few came that bytes did not limit.
    fn with_full_bytes(&mut self, way: IoDirection, bucket: &EmptiedBucket) -> Result<(), Halt> {
        let Some(curve) = self.found.curves[way as usize].clone().filter(|curve| curve.bulk.is_none()) else {
            return Ok(());
        };
        let block = self.spec.most_block_bytes;
        let bulk = match self.after_rest(way, bucket, block) {
            Err(Halt::Useless) => return Ok(()),
            bulk => bulk?,
        };
        let cost = bucket.account.cost(&self.found, way, block);
        let is_held = bulk.rate * cost < FALLEN * curve.top.rate && bulk.bytes() > curve.most_bytes / FALLEN;
        if is_held {
            self.found.curves[way as usize] = Some(self.whole(Curve { bulk: Some(bulk), ..curve }));
        }
        Ok(())
    }

    /// What was measured when bytes had run dry, with the bytes before.
    fn with_full_bulk(&self, dry: Curve, bucket: &EmptiedBucket) -> Curve {
        match dry.bulk {
            Some(bulk) if bulk.bytes() < bucket.high * FALLEN => {
                let bulk = RateLevel { rate: bucket.high / bulk.block as f64, ..bulk };
                self.whole(Curve { bulk: Some(bulk), ..dry })
            }
            _ => dry,
        }
    }

    /// `curve` with what follows from its two rates.
    pub(crate) fn whole(&self, curve: Curve) -> Curve {
        let Some(bulk) = curve.bulk else { return curve };
        let least = self.spec.unit_bytes;
        let meets = (bulk.bytes() / curve.top.rate * 0.98 / least as f64) as u64 * least;
        // A larger request counts as several.
        let most = if let ObservedUnit::Exactly(unit) = curve.unit { unit } else { u64::MAX };
        let (flat_to, both) = ((meets >= least).then_some(meets.min(most)), meets.max(least).min(most));
        Curve { flat_to, both, ..curve.with_bytes_of(&bulk) }
    }

    /// The rate with credit, once there is some again: as if there were none when the rest begins.
    pub(crate) fn after_rest(
        &mut self,
        way: IoDirection,
        bucket: &EmptiedBucket,
        block: u64,
    ) -> Result<RateLevel, Halt> {
        let Some((full, _)) = self.capacity(bucket) else { return Err(Halt::Useless) };
        // Of I/Os, the rate of small requests: large ones come no faster.
        let cost = match bucket.account.kind {
            BucketUnit::Ios => 1.0,
            BucketUnit::Bytes => block as f64,
        };
        let (high, base, full) = (bucket.high / cost, bucket.account.base / cost, full / cost);
        let beyond = (high - base).max(0.05 * base);
        let longest = (PART * full / beyond).min(AFTER_REST_SECONDS);
        let is_small = block == self.spec.unit_bytes;
        let load = ProbeLoad {
            guess: Some(high),
            ..ProbeLoad::of("after idling", way, block, self.depth_for(way, high, block))
        };
        let mut probe = self.probe(load, high, Care::Coarse, longest);
        let seconds = (probe.ramp_ns + probe.runtime_ns) as f64 / 1e9;
        probe.rest_ns = (AMPLE * beyond * seconds / base * 1e3) as u64 * 1_000_000;
        let seen = self.ask(probe)?;
        let done = seen.done(way);
        let level = self.level_of(&probe, way, seen);
        if fall_in(done, done.start_ns + AHEAD_NS).is_some() {
            return Err(Halt::Useless);
        }
        if is_small && level.rate < FALLEN * high { Err(Halt::Useless) } else { Ok(level) }
    }

    /// Uses up what came back of one kind of credit meanwhile, so that requests of `block` bytes are without it in both
    /// directions.
    pub(crate) fn use_up(&mut self, kind: BucketUnit, block: u64) -> Result<(), Halt> {
        let base = |way: IoDirection| {
            let bucket = self.early(way).filter(|bucket| bucket.account.kind == kind)?;
            Some(bucket.account.base / bucket.account.cost(&self.found, way, block))
        };
        let bases = [base(IoDirection::Read), base(IoDirection::Write)];
        if bases == [None, None] {
            return Ok(());
        }
        let rate =
            |way: IoDirection| bases[way as usize].unwrap_or_else(|| self.expected(way.scope(), block));
        let (one, other) = (rate(IoDirection::Read), rate(IoDirection::Write));
        let depth = self.depth_for(IoDirection::Read, one.max(other), block);
        for _ in 0..MOST_PIECES {
            let mut probe = self.plain(ProbeLoad::both("remaining burst credits", block, depth));
            (probe.runtime_ns, probe.counts) = (PIECE_NS, true);
            let seen = self.ask(probe)?;
            let both = seen.read.rate() + seen.write.rate();
            // Both together come to no more than one of them, or each comes to its own.
            let is_together = both < one.max(other) * (1.0 + NEAR);
            if is_together || (both / (one + other) - 1.0).abs() < NEAR {
                break;
            }
        }
        Ok(())
    }
}
