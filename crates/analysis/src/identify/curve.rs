//! The rate over the block size in one direction, and which limits its shape tells of;
//! then whether reads and writes draw on the same limits.
//!
//! Under limits on I/Os and bytes it is `min(I / ceil(block / unit), B / block)`: flat as long as I/Os limit, then either
//! falling as 1 / block, or in steps above the multiples of the unit. The unit may also lie between the crossover and twice
//! it, where two I/Os take longer than the bytes.

use super::probe::IoDirection;
use super::script::{Halt, Script};
use super::state::{Care, Curve, DirectionSharing, ObservedUnit, ProbeLoad, RateLevel, SmallIoLimit};
use crate::accounting::{BlockRate, Charge, IoUnit, charge};
use crate::identified::BucketUnit;

/// What rates of the same limit differ by at most. A limit that is exceeded by less holds later than a probe lasts.
const ALIKE: f64 = 0.04;
/// The largest block at which a unit between the crossover and twice it shows, over the crossover.
const UNIT_SHOWS: f64 = 1.8;

/// Blocks are made no larger where fewer requests come a second, or more bytes, than anybody wants to know of.
const SLOWEST: f64 = 6.0;
const MAX_BYTES: f64 = 32e9;
/// Requests a second that are asked for where bytes limit even the smallest, at the most.
const USUAL_IOPS: f64 = 60_000.0;
/// What bytes a second differ by at most where bytes limit.
const BYTES_DIFFER: f64 = 0.008;

impl Script<'_> {
    /// Explores one direction.
    pub(crate) fn curve(&mut self, way: IoDirection) -> Result<Curve, Halt> {
        self.found.is_even[way as usize] = self.is_early(way);
        let top = self.top(way)?;
        self.is_highest_top(way, &top)?;
        let small_limit = self.small_limit(way, &top);
        let small_limit = self.width(way, &top, small_limit)?;
        self.found.is_even[way as usize] = small_limit == SmallIoLimit::Count;
        if !self.is_early(way) {
            self.found.full[way as usize] = Some(top);
            self.found.full_limit[way as usize] = Some(small_limit);
        }
        let mut points = vec![top];
        let smallest = self.spec.unit_bytes;
        let mut block = smallest * 4;
        while block <= self.spec.most_block_bytes && block * 4 <= self.size {
            let guess = points.last().map_or(top.rate, |last| last.rate);
            let point = self.at("rates over block sizes", way, block, guess, Care::Coarse)?;
            let before = points.last().copied().unwrap_or(top);
            if is_flat(&before, &top) && !is_flat(&point, &top) {
                self.is_as_before(way, &top)?;
            }
            self.is_no_less(way, before.bytes(), &point)?;
            points.push(point);
            let has_levelled = (point.bytes() / before.bytes() - 1.0).abs() < 0.03;
            let is_slow = point.rate < SLOWEST || point.bytes() > MAX_BYTES;
            if is_slow || (point.rate < top.rate / 5.0 && has_levelled) {
                break;
            }
            block *= 4;
        }
        let most =
            points.iter().fold(top, |most, point| if point.bytes() > most.bytes() { *point } else { most });
        let most_bytes = most.bytes();
        let largest = points.last().map_or(smallest, |last| last.block);
        let curve = Curve {
            most_bytes,
            least_bytes: most.least_bytes(),
            flat_to: Some(largest),
            unit: ObservedUnit::Above(largest),
            both: largest,
            ..Curve::of_top(way, top, small_limit)
        };
        let Some(below) = points.iter().position(|point| !is_flat(point, &top)) else {
            return Ok(curve);
        };
        if small_limit == SmallIoLimit::Depth {
            let far = points[points.len() - 1];
            let is_even = far.bytes() > most_bytes * 0.95 && far.rate < top.rate / 5.0;
            let is_held = is_even && far.is_queued(self.found.floor_ns(way), 1.3);
            let aim = "large I/Os at full rate";
            let bulk = if is_held { Some(self.at(aim, way, far.block, far.rate, Care::Fine)?) } else { None };
            let both = if is_held { far.block } else { smallest };
            return Ok(Curve { bulk, flat_to: None, unit: ObservedUnit::Hidden, both, ..curve });
        }
        let (flat, below) = (points[below - 1], points[below]);
        self.shape(curve, (flat, below), most)
    }

    /// The rate at `block`, at a depth that keeps a limit busy whose rate is `guess` at the most.
    pub(crate) fn at(
        &mut self,
        aim: &'static str,
        way: IoDirection,
        block: u64,
        guess: f64,
        care: Care,
    ) -> Result<RateLevel, Halt> {
        let depth = match care {
            Care::Coarse => self.depth_for(way, guess, block),
            Care::Fine => self.depth_for_turns(way, guess, block),
        };
        let load = ProbeLoad { guess: Some(guess), ..ProbeLoad::of(aim, way, block, depth) };
        self.level_one(load, care)
    }

    /// The rate of the smallest requests, as deep as it grows.
    fn top(&mut self, way: IoDirection) -> Result<RateLevel, Halt> {
        let (block, floor) = (self.spec.unit_bytes, self.found.floor_ns(way));
        if let Some(bucket) = self.early(way).filter(|bucket| bucket.account.kind == BucketUnit::Ios) {
            let base = bucket.account.base;
            return self.at("small I/Os without burst credits", way, block, base, Care::Fine);
        }
        let mut depth = 1u32;
        let mut guess = None;
        loop {
            let load = ProbeLoad { guess, ..ProbeLoad::of("depths", way, block, depth) };
            let level = self.level_one(load, Care::Coarse)?;
            let deeper = depth.saturating_mul(4).min(self.spec.most_depth);
            if level.is_queued(floor, 2.0) || deeper == depth {
                let enough = self.depth_for(way, level.rate, block).max(depth.min(4));
                let aim = "small I/Os at full rate";
                let load = ProbeLoad { guess: Some(level.rate), ..ProbeLoad::of(aim, way, block, enough) };
                return self.level_one(load, Care::Fine);
            }
            guess = None.or((level.rate > 0.0).then_some(level.rate * 2.0)).filter(|_| depth > 1);
            depth = deeper;
        }
    }

    /// What holds the rate of the smallest requests, as far as their number tells.
    pub(crate) fn small_limit(&self, way: IoDirection, top: &RateLevel) -> SmallIoLimit {
        match () {
            () if top.is_busy => SmallIoLimit::Client,
            () if !top.is_queued(self.found.floor_ns(way), 1.15) => SmallIoLimit::Depth,
            () => SmallIoLimit::Count,
        }
    }

    /// Tells a fall by bytes from one in steps. `flat` and `below` are points before and behind where it begins, `most` is the one
    /// with the most bytes.
    fn shape(
        &mut self,
        curve: Curve,
        (flat, below): (RateLevel, RateLevel),
        most: RateLevel,
    ) -> Result<Curve, Halt> {
        let (way, top, least) = (curve.way, curve.top, self.spec.unit_bytes);
        let crossover = curve.most_bytes / top.rate;
        let whole = |block: f64| (block / least as f64) as u64 * least;
        if flat.block == least && crossover < least as f64 * 1.015 {
            return self.all_by_bytes(curve);
        }
        let are_bytes = |level: RateLevel| charge(top.rate, &[level, most].map(block_rate)) == Charge::Bytes;
        let aim = "crossover block size";
        let before = whole(crossover * 0.95);
        let after = whole(crossover * 1.1) + least;
        let is_before_flat = before <= flat.block || {
            let level = self.at(aim, way, before, top.rate, Care::Coarse)?;
            is_flat(&level, &top)
        };
        if is_before_flat {
            let guess = curve.most_bytes / after as f64;
            if are_bytes(self.at(aim, way, after, guess, Care::Fine)?) {
                return self.by_bytes(curve, crossover);
            }
        }
        // The first block size with another rate.
        let (mut low, mut high) = (flat.block / least, below.block / least);
        let mut at_high = below;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let level =
                self.at("largest size that counts as one I/O", way, middle * least, top.rate, Care::Coarse)?;
            if is_flat(&level, &top) {
                low = middle;
            } else {
                (high, at_high) = (middle, level);
            }
        }
        if are_bytes(at_high) {
            return self.by_bytes(curve, crossover);
        }
        if curve.small_limit != SmallIoLimit::Count {
            let flat_to = low * least;
            return Ok(Curve { flat_to: Some(flat_to), both: flat_to, unit: ObservedUnit::Hidden, ..curve });
        }
        self.by_steps(curve, low * least, at_high)
    }

    /// Even the smallest requests are held by bytes.
    fn all_by_bytes(&mut self, curve: Curve) -> Result<Curve, Halt> {
        let block = (curve.top.block * 64).min(self.spec.most_block_bytes);
        let guess = curve.most_bytes / block as f64;
        let bulk = self.at("large I/Os at full rate", curve.way, block, guess, Care::Fine)?;
        let small_limit =
            if curve.small_limit == SmallIoLimit::Count { SmallIoLimit::Bytes } else { curve.small_limit };
        // Small enough for a bucket of I/Os to show at what is usual, large enough not to ask for nothing but work.
        let wanted = (bulk.bytes() / USUAL_IOPS) as u64;
        let both = (wanted / self.spec.unit_bytes).max(1) * self.spec.unit_bytes;
        let both = both.min(bulk.block);
        Ok(Curve { small_limit, bulk: Some(bulk), flat_to: None, unit: ObservedUnit::Hidden, both, ..curve })
    }

    /// Large requests are held by bytes, those below `crossover` by their number.
    fn by_bytes(&mut self, curve: Curve, crossover: f64) -> Result<Curve, Halt> {
        let (way, least) = (curve.way, self.spec.unit_bytes);
        let whole = |block: f64| ((block / least as f64) as u64 * least).max(least);
        let large = whole(crossover * 4.0).min(self.spec.most_block_bytes).max(whole(crossover) + least);
        let guess = curve.most_bytes / large as f64;
        let bulk = self.at("large I/Os at full rate", way, large, guess, Care::Fine)?;
        let crossover = bulk.bytes() / curve.top.rate;
        let flat_to = whole(crossover * 0.98);
        // Where no limit holds small requests, there are more of them than need be asked for.
        let both = match curve.small_limit {
            SmallIoLimit::Count => flat_to,
            _ => whole(bulk.bytes() / USUAL_IOPS).clamp(flat_to, bulk.block.max(flat_to)),
        };
        let curve = Curve { bulk: Some(bulk), flat_to: Some(flat_to), both, ..curve };
        self.is_no_less(way, curve.most_bytes, &bulk)?;
        // Many small steps look like bytes from afar.
        let times: &[f64] =
            if curve.small_limit == SmallIoLimit::Count { &[] } else { &[1.13, 1.27, 1.43, 1.61] };
        for times in times {
            let block = whole(crossover * times) + least;
            let aim = "bandwidth or I/O size steps";
            let level = self.at(aim, way, block, bulk.bytes() / block as f64, Care::Fine)?;
            let is_below = level.bytes() < bulk.bytes() * (1.0 - BYTES_DIFFER);
            if is_below {
                return Ok(Curve { bulk: None, unit: ObservedUnit::Hidden, ..curve });
            }
        }
        if curve.small_limit != SmallIoLimit::Count {
            return Ok(Curve { unit: ObservedUnit::Hidden, ..curve });
        }
        let aim = "largest size that counts as one I/O";
        let far = whole(crossover * UNIT_SHOWS);
        let keeps = |level: &RateLevel| level.bytes() > bulk.bytes() * (1.0 - 1.2 * ALIKE);
        let guess = |block: u64| bulk.bytes() / block as f64;
        // Large requests give credit back, and then the unit does not show.
        if self.is_early(way) || far <= whole(crossover) + least {
            return Ok(Curve { unit: ObservedUnit::Above(flat_to), ..curve });
        }
        let level = self.at(aim, way, far, guess(far), Care::Fine)?;
        if keeps(&level) {
            return Ok(Curve { unit: ObservedUnit::Above(far), ..curve });
        }
        let (mut low, mut high) = (whole(crossover) / least, far / least);
        while high - low > 1 {
            let middle = (low + (high - low) / 2) * least;
            let level = self.at(aim, way, middle, guess(middle), Care::Fine)?;
            if keeps(&level) {
                low = middle / least;
            } else {
                high = middle / least;
            }
        }
        let unit = low * least;
        let full = (bulk.bytes() / unit as f64).min(curve.top.rate);
        let [up_to, beyond] = self.step(way, unit, (full, curve.top.rate / 2.0))?;
        // Bytes limit what counts as one; of the others, the largest that they do not limit tells the rate.
        let flat = BlockRate { block: flat_to, iops: curve.top.rate };
        let is_one = keeps(&up_to) && is_unit(unit, curve.top.rate, [flat, block_rate(beyond)]);
        Ok(Curve { unit: if is_one { ObservedUnit::Exactly(unit) } else { ObservedUnit::Hidden }, ..curve })
    }

    /// The rates up to `block` and beyond it once more, of which `before` and `after` a second are expected.
    fn step(
        &mut self,
        way: IoDirection,
        block: u64,
        (before, after): (f64, f64),
    ) -> Result<[RateLevel; 2], Halt> {
        let aim = "largest size that counts as one I/O";
        let up_to = self.at(aim, way, block, before, Care::Fine)?;
        Ok([up_to, self.at(aim, way, block + self.spec.unit_bytes, after, Care::Fine)?])
    }

    /// The rate falls in steps: a request beyond `last` counts as one more.
    fn by_steps(&mut self, curve: Curve, last: u64, beyond: RateLevel) -> Result<Curve, Halt> {
        let (way, least) = (curve.way, self.spec.unit_bytes);
        let ratio = beyond.rate / curve.top.rate;
        let hidden = |curve| Curve { flat_to: Some(last), both: last, unit: ObservedUnit::Hidden, ..curve };
        let unit = if (ratio - 0.5).abs() < 0.03 {
            let step = self.step(way, last, (curve.top.rate, curve.top.rate / 2.0))?;
            if !is_unit(last, curve.top.rate, step.map(block_rate)) {
                return Ok(hidden(curve));
            }
            last
        } else {
            // Another limit hides the first steps; two that follow each other are one unit apart.
            let aim = "largest size that counts as one I/O";
            let (mut low, mut high) = (beyond.block / least, 2 * last / least + 1);
            let flat = |level: &RateLevel| is_flat(level, &beyond);
            let end = self.at(aim, way, high * least, beyond.rate, Care::Coarse)?;
            if flat(&end) {
                return Ok(hidden(curve));
            }
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                let level = self.at(aim, way, middle * least, beyond.rate, Care::Coarse)?;
                if flat(&level) { low = middle } else { high = middle }
            }
            let unit = low * least - last;
            let counted = (low * least).div_ceil(unit) as f64;
            let iops = beyond.rate * counted;
            let step = self.step(way, low * least, (beyond.rate, iops / (counted + 1.0)))?;
            if !is_unit(unit, iops, step.map(block_rate)) {
                return Ok(hidden(curve));
            }
            unit
        };
        // Every request costs as its bytes do.
        if unit == least {
            return Ok(Curve { small_limit: SmallIoLimit::Bytes, ..hidden(curve) });
        }
        // Whole units bring the most bytes; where that is less than so many I/Os carry, bytes limit.
        let steps = (beyond.rate * beyond.block.div_ceil(unit) as f64 / curve.top.rate).ceil();
        let many = (4 * steps as u64).clamp(1, (self.spec.most_block_bytes / unit).max(1));
        let carried = beyond.rate * (beyond.block.div_ceil(unit) * unit) as f64;
        let guess = carried / (many * unit) as f64;
        let bulk = self.at("large I/Os at full rate", way, many * unit, guess, Care::Fine)?;
        // What limits small requests may limit these as well.
        let is_other = bulk.rate < curve.top.rate * 0.9;
        let is_held = is_other && bulk.bytes() < carried * (1.0 - ALIKE);
        Ok(Curve {
            bulk: Some(bulk).filter(|_| is_held),
            flat_to: Some(last),
            unit: ObservedUnit::Exactly(unit),
            both: unit.min(last),
            ..curve.with_bytes_of(&bulk)
        })
    }
}

fn is_flat(level: &RateLevel, top: &RateLevel) -> bool {
    level.rate > top.rate * (1.0 - ALIKE)
}

fn block_rate(level: RateLevel) -> BlockRate {
    BlockRate { block: level.block, iops: level.rate }
}

/// Each `unit` that a request begins counts as one of `iops`, as `rates` show.
fn is_unit(unit: u64, iops: f64, rates: [BlockRate; 2]) -> bool {
    let is_in = |found: IoUnit| found.low <= unit as f64 && (unit as f64) < found.high;
    matches!(charge(iops, &rates), Charge::Units(found) if is_in(found))
}

/// How even rates have to be, to tell that limits are shared or apart, and that they are something in between.
const EVEN: f64 = 0.1;
const VERY_EVEN: f64 = 0.03;

/// Part of the second direction's rate that comes on top where limits are shared, at the most, and where they are not, at the least.
const NOTHING_ON_TOP: f64 = 0.12;
const ALL_ON_TOP: f64 = 0.88;

impl Script<'_> {
    /// Small requests, then large ones.
    pub(crate) fn sharing(&mut self) -> Result<(), Halt> {
        let [Some(read), Some(write)] = self.found.curves.clone() else { return Ok(()) };
        let small = (self.spec.unit_bytes, read.top, write.top);
        let is_held = |curve: &Curve| matches!(curve.small_limit, SmallIoLimit::Count | SmallIoLimit::Bytes);
        self.use_up(BucketUnit::Ios, self.spec.unit_bytes)?;
        if is_held(&read) || is_held(&write) {
            self.found.shares_ios = self.both(small, is_held(&read) && is_held(&write))?;
        }
        let large = match (read.bulk, write.bulk) {
            (Some(one), Some(other)) => one.block.max(other.block),
            (Some(one), None) | (None, Some(one)) => one.block,
            (None, None) => return Ok(()),
        };
        let aim = "large I/Os at full rate";
        let guess = |curve: &Curve| curve.bulk.map_or(curve.top.rate, |bulk| bulk.bytes() / large as f64);
        self.use_up(BucketUnit::Bytes, large)?;
        let one = self.at(aim, read.way, large, guess(&read), Care::Fine)?;
        let other = self.at(aim, write.way, large, guess(&write), Care::Fine)?;
        self.found.shares_bytes =
            self.both((large, one, other), read.bulk.is_some() && write.bulk.is_some())?;
        Ok(())
    }

    /// Both at once with requests of `block`, which came to `read` and `write` alone. Where limits hold both
    /// directions, each may be held by its own; where they hold one, only that there is something on top tells anything.
    fn both(
        &mut self,
        (block, read, write): (u64, RateLevel, RateLevel),
        holds_both: bool,
    ) -> Result<DirectionSharing, Halt> {
        let depth = read.depth.max(write.depth);
        let guess = Some(read.rate.min(write.rate) / 2.0);
        let load = ProbeLoad { guess, ..ProbeLoad::both("reads and writes together", block, depth) };
        let [one, other] = self.level(load, Care::Fine)?;
        let on_top = RateOnTop::of([read.rate, write.rate], [one.rate, other.rate]);
        let uneven = [one, other, read, write].iter().map(|level| level.uneven).fold(0.0, f64::max);
        let is_dry = self.is_early(IoDirection::Read) || self.is_early(IoDirection::Write);
        self.found.has_changed |= on_top.share < -NOTHING_ON_TOP && !is_dry;
        Ok(on_top.sharing(uneven, holds_both))
    }
}

/// What both directions came to together, beyond one of them alone.
#[derive(Clone, Copy, Debug)]
struct RateOnTop {
    /// Shares of their rates alone that the directions kept, less 1: 0 where they draw on one limit, whatever each costs of it.
    share: f64,
    /// The same of the lower of the two rates alone, where the other lost nothing: less where a limit on both is met.
    of_least: f64,
    /// The lower rate alone of the higher one.
    ratio: f64,
}

impl RateOnTop {
    /// From the rates alone and together.
    fn of(alone: [f64; 2], together: [f64; 2]) -> RateOnTop {
        let [most, least] = [alone[0].max(alone[1]), alone[0].min(alone[1])];
        let share = together[0] / alone[0] + together[1] / alone[1] - 1.0;
        RateOnTop { share, of_least: (together[0] + together[1] - most) / least, ratio: least / most }
    }

    fn sharing(&self, uneven: f64, holds_both: bool) -> DirectionSharing {
        match () {
            () if uneven > EVEN || !self.share.is_finite() => DirectionSharing::Unknown,
            // A little of the higher rate is many times the lower one, so that only the shares tell.
            () if self.ratio < NOTHING_ON_TOP && holds_both && self.share > ALL_ON_TOP => {
                DirectionSharing::Apart
            }
            () if self.of_least > ALL_ON_TOP && self.share > ALL_ON_TOP => DirectionSharing::Apart,
            () if !holds_both => DirectionSharing::Unknown,
            () if self.share < NOTHING_ON_TOP => DirectionSharing::Shared,
            () if uneven > VERY_EVEN || self.share > ALL_ON_TOP => DirectionSharing::Unknown,
            () => DirectionSharing::ApartUnderOne,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_share_a_limit_where_both_have_a_part_of_their_rates() {
        use DirectionSharing::{Apart, ApartUnderOne, Shared, Unknown};
        let check = |alone, together, uneven, holds_both, expected| {
            let found = RateOnTop::of(alone, together).sharing(uneven, holds_both);
            assert_eq!(found, expected, "{alone:?} {together:?} {uneven}");
        };
        check([1000.0, 1000.0], [500.0, 500.0], 0.01, true, Shared);
        check([1000.0, 1000.0], [990.0, 1000.0], 0.01, true, Apart);
        check([1000.0, 1000.0], [750.0, 750.0], 0.01, true, ApartUnderOne);
        check([1000.0, 1000.0], [750.0, 750.0], 0.05, true, Unknown);
        check([1000.0, 1000.0], [500.0, 500.0], 0.01, false, Unknown);
        // A write costs twice as much of the one limit.
        check([1000.0, 500.0], [333.0, 333.0], 0.01, true, Shared);
        // Writes have a limit of their own below that of both together.
        check([1000.0, 600.0], [500.0, 500.0], 0.01, true, ApartUnderOne);
        // Reads vary by many times the rate of writes, which has a limit of its own.
        check([355_700.0, 1850.0], [331_000.0, 1850.0], 0.05, true, Apart);
        check([355_700.0, 1850.0], [400_000.0, 1850.0], 0.05, true, Apart);
        // What the writes do comes out of what holds the reads.
        check([1000.0, 100.0], [900.0, 100.0], 0.01, false, Unknown);
    }
}
