//! Credit that is exhausted while the limits are measured, as that of half a minute does on a device where each rate takes
//! seconds.
//!
//! The fall is looked at at once, and then the limits are measured without credit: limits on I/Os and bytes have the same
//! shape there, only lower, and no rest is needed. What held before is put together with that in the end.

use super::drain::DrainStream;
use super::probe::{IoDirection, ProbeCounts, ProbeSlice, Seen};
use super::script::{Halt, Script};
use super::series::stretches;
use super::state::{
    Account, Care, Curve, DirectionSharing, EmptiedBucket, FALLEN, Fell, ObservedUnit, ProbeLoad, RateFall,
    RateLevel, SmallIoLimit,
};
use crate::identified::{BucketUnit, IoScope};

/// A fall is looked at for this share of the budget, and for no longer than so many s.
const LOOK: (f64, f64) = (0.12, 16.0);
/// How long it has to hold, s.
const LOOK_SECONDS: f64 = 8.0;
/// What is let through ahead of a rate comes in this time, ns.
pub(crate) const AHEAD_NS: u64 = 500_000_000;
/// Shorter slices tell no rate, s.
const MIN_SLICE: f64 = 0.3;
/// Looks at the falls of one direction.
const LOOKS: usize = 4;
/// What bytes and requests limit at once differs by this share at the most.
const BOTH: f64 = 0.015;
/// Rates that are this near to each other are one.
pub(crate) const NEAR: f64 = 0.04;

impl Script<'_> {
    /// Explores one direction, with credit or, once that has run dry, without.
    pub(crate) fn explore(&mut self, way: IoDirection) -> Result<Curve, Halt> {
        for look in 0..=LOOKS {
            let is_calm = look == LOOKS || self.found.is_resting;
            self.found.is_watching = self.found.is_long && !is_calm;
            let curve = match self.curve_to_its_end(way) {
                Err(Halt::Fell) => match self.look_at_fall(way)? {
                    Some(curve) => curve,
                    None => continue,
                },
                curve => curve?,
            };
            self.found.is_watching = false;
            self.found.curves[way as usize] = Some(curve.clone());
            self.found.is_doubtful[way as usize] = false;
            return Ok(curve);
        }
        Err(Halt::Useless)
    }

    fn curve_to_its_end(&mut self, way: IoDirection) -> Result<Curve, Halt> {
        let curve = self.curve(way)?;
        self.is_as_before(way, &curve.top)?;
        self.confirmed(curve)
    }

    /// Small requests once more: they come as fast as before, or credits were exhausted meanwhile.
    pub(crate) fn is_as_before(&mut self, way: IoDirection, top: &RateLevel) -> Result<(), Halt> {
        if !self.found.is_watching || self.is_early(way) {
            return Ok(());
        }
        let again = self.at("small I/Os again", way, top.block, top.rate, Care::Coarse)?;
        if again.rate < FALLEN * top.rate {
            return self.fell_to(way, &again, top.rate);
        }
        Ok(())
    }

    /// Whether the rate fell in the course of a measurement of one direction.
    pub(crate) fn notice(&mut self, load: ProbeLoad, seen: &Seen) -> Result<(), Halt> {
        if !self.found.is_watching || seen.is_stalled {
            return Ok(());
        }
        let way = load.way();
        let done = seen.done(way);
        // What is let through ahead at first is no rate.
        match fall_in(done, done.start_ns + AHEAD_NS) {
            Some((high, peak, low)) if !self.is_known((way, load.block), low) => {
                self.found.fell = Some(Fell { load, high, peak });
                Err(Halt::Fell)
            }
            _ => Ok(()),
        }
    }

    /// The rate of small requests is no less than it was before, or credits were exhausted meanwhile.
    pub(crate) fn is_highest_top(&mut self, way: IoDirection, top: &RateLevel) -> Result<(), Halt> {
        let high = self.found.max_rate[way as usize];
        if !self.found.is_watching || self.is_early(way) || top.rate >= FALLEN * high {
            return Ok(());
        }
        self.fell_to(way, top, high)
    }

    /// Larger requests carry no fewer bytes than smaller ones, or the bytes were exhausted meanwhile.
    pub(crate) fn is_no_less(
        &mut self,
        way: IoDirection,
        before: f64,
        point: &RateLevel,
    ) -> Result<(), Halt> {
        let high = before / point.block as f64;
        if !self.found.is_watching
            || point.rate >= FALLEN * high
            || self.is_known((way, point.block), point.rate)
        {
            return Ok(());
        }
        self.fell_to(way, point, high)
    }

    /// The rate of one direction fell from `high` to `low`.
    pub(crate) fn fell_to<T>(&mut self, way: IoDirection, low: &RateLevel, high: f64) -> Result<T, Halt> {
        let load = ProbeLoad { guess: Some(low.rate), ..ProbeLoad::of("", way, low.block, low.depth) };
        self.found.fell = Some(Fell { load, high, peak: high });
        Err(Halt::Fell)
    }

    /// Goes on with what made the rate fall, and tells what was exhausted, if something did. Where that were bytes, everything else
    /// is known by then; else the curve is measured without credit.
    fn look_at_fall(&mut self, way: IoDirection) -> Result<Option<Curve>, Halt> {
        let Some(Fell { load, high, peak }) = self.found.fell.take() else { return Err(Halt::Useless) };
        self.found.is_watching = false;
        let (share, most) = LOOK;
        let seconds = (self.spec.budget_ns as f64 / 1e9 * share).min(most);
        let until = self.spent.time_ns + (seconds * 1e9) as u64;
        let load = ProbeLoad { aim: "a rate that fell", ..load };
        // What was seen of the rate before may have been seen in the middle of the fall: it was what small requests and the
        // most bytes make of it.
        let by_bytes = self.found.max_bytes[way as usize] / load.block as f64;
        let full = self.found.full[way as usize].map_or(0.0, |full| full.rate.min(by_bytes));
        let high = if full > 0.0 { full.max(high) } else { high };
        let watched = self.watch(load, &[high.max(peak)], until, LOOK_SECONDS)?;
        let Some(&(stream, course)) = watched.courses.first() else { return Ok(None) };
        let (since_ns, ios) = match course {
            DrainStream::Fallen { since_ns, ios, .. } => (since_ns, ios),
            // As many bytes come as smaller requests brought; those tell more.
            DrainStream::Flat if load.block > self.spec.unit_bytes && full > 0.0 => (watched.began, 0),
            _ => return Ok(None),
        };
        let dry = (since_ns, self.spent.time_ns);
        let Some(low) = self.low(watched.first, stream, dry) else { return Ok(None) };
        if load.block == self.spec.unit_bytes && low > FALLEN * high {
            return Ok(None);
        }
        let before = self.found.buckets.len();
        let kinds = self.tell_early(way, RateFall { load, high, low, dry, ios }, low <= FALLEN * peak)?;
        for index in before..self.found.buckets.len() {
            self.found.buckets[index].is_early = true;
            self.refill(index)?;
        }
        let (Some(top), [BucketUnit::Bytes]) = (self.found.full[way as usize], &kinds[..]) else {
            return Ok(None);
        };
        let bytes = self.bytes_with_credit(way, high * load.block as f64, load.block)?;
        Ok(Some(self.of_two(way, top, bytes)))
    }

    /// The bytes a second before they were exhausted, `seen` at the least: measured again after a rest, where that can be afforded.
    fn bytes_with_credit(&mut self, way: IoDirection, seen: f64, block: u64) -> Result<f64, Halt> {
        let most = self.found.max_bytes[way as usize].max(seen);
        let Some(bucket) = self.found.buckets.last().cloned() else { return Ok(most) };
        match self.after_rest(way, &bucket, block) {
            Ok(level) if level.bytes() > FALLEN * seen => Ok(level.bytes()),
            Ok(_) | Err(Halt::Useless | Halt::OutOfBudget) => Ok(most),
            Err(halt) => Err(halt),
        }
    }

    /// What was exhausted. Large requests may count as several, so small ones decide: their rate stays where bytes were exhausted.
    fn tell_early(
        &mut self,
        way: IoDirection,
        fall: RateFall,
        is_seen: bool,
    ) -> Result<Vec<BucketUnit>, Halt> {
        let (block, least) = (fall.load.block, self.spec.unit_bytes);
        let Some(full) = self.found.full[way as usize].filter(|_| block > least) else {
            return self.tell(fall.load, &[fall]);
        };
        if self.is_known((way, block), fall.low) {
            return Ok(Vec::new());
        }
        let small = self.at("I/Os or bytes", way, least, full.rate, Care::Coarse)?;
        let by_bytes = fall.low * (block / least) as f64;
        let is_bytes = small.rate > FALLEN * full.rate || (small.rate / by_bytes - 1.0).abs() < NEAR;
        if is_bytes && !is_seen {
            return Ok(Vec::new());
        }
        if is_bytes {
            self.keep(BucketUnit::Bytes, fall);
            return Ok(vec![BucketUnit::Bytes]);
        }
        let load = ProbeLoad { block: least, ..fall.load };
        let dry = (fall.dry.0, self.spent.time_ns);
        self.keep(BucketUnit::Ios, RateFall { load, high: full.rate, low: small.rate, dry, ios: small.ios });
        Ok(vec![BucketUnit::Ios])
    }

    /// What the rates of small requests and of bytes make together.
    fn of_two(&self, way: IoDirection, top: RateLevel, bytes: f64) -> Curve {
        let block = ((4.0 * bytes / top.rate) as u64).clamp(top.block, self.spec.most_block_bytes);
        let bulk = RateLevel { block, rate: bytes / block as f64, ..top };
        let small_limit = match self.small_limit(way, &top) {
            SmallIoLimit::Count if top.bytes() > bytes * (1.0 - BOTH) => SmallIoLimit::Bytes,
            small_limit => small_limit,
        };
        let curve = Curve {
            way,
            top,
            small_limit,
            bulk: Some(bulk),
            most_bytes: bytes,
            least_bytes: bulk.least_bytes(),
            flat_to: Some(top.block),
            unit: ObservedUnit::Hidden,
            both: top.block,
        };
        self.whole(curve)
    }

    /// True where a bucket that was exhausted while the limits were measured counts this direction.
    pub(crate) fn is_early(&self, way: IoDirection) -> bool {
        self.early(way).is_some()
    }

    /// True where one was, of either direction: before it is known whether they share it, the other may find it dry as well.
    pub(crate) fn is_any_early(&self) -> bool {
        self.found.buckets.iter().any(|bucket| bucket.is_early)
    }

    pub(crate) fn early(&self, way: IoDirection) -> Option<&EmptiedBucket> {
        self.found.buckets.iter().find(|bucket| bucket.is_early && bucket.account.counts(way))
    }
}

/// The rate before a fall in the course of a measurement, the highest of it, and the rate after it, to which it keeps.
pub(crate) fn fall_in(done: &ProbeCounts, begins_ns: u64) -> Option<(f64, f64, f64)> {
    let slices: Vec<ProbeSlice> =
        done.slices.iter().filter(|slice| slice.start_ns >= begins_ns).copied().collect();
    let found = stretches(&slices);
    let [first, .., last] = &found[..] else { return None };
    let falls = found.windows(2).all(|pair| pair[1].rate() < pair[0].rate());
    let bound = FALLEN * first.rate();
    let keeps = |slice: &ProbeSlice| slice.seconds() < MIN_SLICE || slice.rate() < bound;
    // It fell in the first of them.
    let after = slices.iter().filter(|slice| slice.start_ns >= last.start_ns).skip(1);
    if !falls || last.rate() >= bound || !after.copied().all(|slice| keeps(&slice)) {
        return None;
    }
    // Where it fell in the middle of a slice, others hold more of what was before.
    let before = slices.iter().take_while(|slice| slice.end_ns <= first.end_ns);
    let peak = before.map(ProbeSlice::rate).fold(first.rate(), f64::max);
    Some((first.rate(), peak, last.rate()))
}

/// Pieces in which credit is used up: how many at the most, and how long one of them is, ns.
const MAX_PIECES: usize = 12;
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
            self.base_at_least(&bucket, &curve.top);
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
    fn base_at_least(&mut self, bucket: &EmptiedBucket, dry: &RateLevel) {
        let seen = dry.rate;
        let found = self.found.buckets.iter_mut().find(|one| *one == bucket);
        let found = found.filter(|one| seen > one.account.base && seen * FALLEN < one.account.base);
        if let Some(found) = found {
            found.account.base = seen;
            found.error = found.error.max(dry.error / 2.0);
        }
    }

    fn with_full_top(&mut self, way: IoDirection, dry: Curve, bucket: &EmptiedBucket) -> Result<Curve, Halt> {
        let is_full = |top: &RateLevel| top.rate * FALLEN > dry.top.rate;
        let top = match self.found.full[way as usize].filter(is_full) {
            // Where credits were exhausted at its very end, another measurement has more information.
            Some(top) if top.rate < ENDED * self.found.max_rate[way as usize] => {
                RateLevel { rate: self.found.max_rate[way as usize], ..top }
            }
            Some(top) => top,
            None => match self.after_rest(way, bucket, self.spec.unit_bytes) {
                // A rate that a limit held before its credits were exhausted stands also where no rest can be afforded.
                Err(halt @ (Halt::OutOfBudget | Halt::Useless)) => {
                    let floor_ns = self.found.floor_ns(way);
                    let is_held = |level: &RateLevel| is_full(level) && level.is_queued(floor_ns, 2.0);
                    self.found.fastest[way as usize].filter(is_held).ok_or(halt)?
                }
                top => top?,
            },
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
        // What was seen just before a fall may hold something of it.
        let most = self.found.max_bytes[dry.way as usize];
        let full = if most * FALLEN < bucket.high { most.max(bucket.high) } else { bucket.high };
        match dry.bulk {
            Some(bulk) if bulk.bytes() < bucket.high * FALLEN => {
                let bulk = RateLevel { rate: full / bulk.block as f64, ..bulk };
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
        for _ in 0..MAX_PIECES {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_differ_from_lumps_and_from_requests_released_ahead() {
        let check = |rates: &[f64], expected: Option<(f64, f64, f64)>| {
            let slice = |(at, rate): (usize, &f64)| ProbeSlice {
                start_ns: at as u64 * 500_000_000,
                end_ns: (at + 1) as u64 * 500_000_000,
                ios: (rate * 0.5) as u64,
            };
            let slices = rates.iter().enumerate().map(slice).collect();
            let found = fall_in(&ProbeCounts { slices, ..ProbeCounts::default() }, AHEAD_NS);
            assert_eq!(
                found.map(|(high, peak, low)| (high.round(), peak, low.round())),
                expected,
                "{rates:?}"
            );
        };
        check(&[1000.0; 12], None);
        check(&[1250.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0], None);
        check(&[900.0, 1200.0, 800.0, 1000.0, 1200.0, 1000.0, 998.0, 572.0, 840.0, 1032.0], None);
        check(&[1000.0, 1000.0, 1000.0, 1000.0, 200.0, 200.0, 200.0], Some((1000.0, 1000.0, 200.0)));
        // It fell in the middle of a slice.
        check(&[1000.0, 1000.0, 1000.0, 1000.0, 600.0, 200.0, 200.0, 200.0], Some((1000.0, 1000.0, 200.0)));
        // Down and up again.
        check(&[1000.0, 1000.0, 1000.0, 200.0, 200.0, 200.0, 1000.0, 1000.0, 1000.0], None);
    }
}
