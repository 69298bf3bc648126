//! Asking as much as there is until the rate falls for good, or for as long as the budget allows.

use super::BucketUnit;
use super::curve::{Held, Unit};
use super::ledger::{Account, Bucket};
use super::level::{Care, Load};
use super::probe::{Slice, Way};
use super::script::{Halt, Script};
use super::sharing::Sharing;
use super::stretches::{is_apart, stretches, unevenness};

/// A rate that fell for good: the load, the rates before and after, the span of the latter, and its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fall {
    load: Load,
    high: f64,
    low: f64,
    dry: (u64, u64),
    ios: u64,
}

/// One of the streams that are watched: reads, writes, or both together.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Course {
    /// At one rate.
    Flat,
    /// At a lower one since, requests a second; `0` ns = from the beginning.
    Fallen { high: f64, low: f64, since_ns: u64, ios: u64 },
    /// Down and up again.
    Restless { high: f64, low: f64, rises: usize },
}

/// Shares of the budget: for one emptying, for all together.
const ONE: f64 = 0.7;
const ALL: f64 = 0.82;
/// Longest piece, ns.
const PIECE_NS: u64 = 60_000_000_000;
/// How long a lower rate has to hold, s: at the least, at the most.
const LOW_SECONDS: (f64, f64) = (30.0, 150.0);
/// Requests it is told from at the least.
const LOW_IOS: u64 = 100;
/// Within this time of a fall, slices hold something of both rates.
pub(crate) const SETTLED_NS: u64 = 1_000_000_000;
/// What is left once credit is used up is at most this share of the rate before, and this even. Less than
/// that is no fall that a user need know of, and what varies more is held by no limit.
const FALLEN: f64 = 0.9;
const EVEN: f64 = 0.08;
/// A rate this near to what a dry bucket leaves is that.
const KNOWN: f64 = 0.15;
/// Rest and time of the look for a bucket that was empty before anything was seen of it.
const LOOK_SECONDS: f64 = 20.0;

impl Script<'_> {
    /// Empties what there is.
    pub(crate) fn drain(&mut self) -> Result<(), Halt> {
        let began = self.spent.time_ns;
        let left = self.left_ns() as f64;
        let differ = match &self.found.curves {
            [Some(read), Some(write)] => is_apart(read.top.rate, write.top.rate),
            _ => false,
        };
        let is_apart = [self.found.shares_ios, self.found.shares_bytes];
        let is_apart = is_apart.contains(&Sharing::Apart)
            && is_apart.iter().all(|one| matches!(one, Sharing::Apart | Sharing::Unknown));
        // Where a limit holds both, each is looked at alone: together neither gets what it can.
        let turns: &[(bool, bool)] = match (self.spec.writes, self.found.is_shared()) {
            (false, _) => &[(true, false)],
            (true, Some(true)) if !differ => &[(true, false)],
            (true, Some(false)) if is_apart => &[(true, true)],
            _ => &[(true, false), (false, true)],
        };
        for (index, &ways) in turns.iter().enumerate() {
            let share = (index + 1) as f64 / turns.len() as f64;
            let until = began + (left * ALL * share) as u64;
            let one = self.spent.time_ns + (left * ONE / turns.len() as f64) as u64;
            self.empty(ways, (until.min(one), until))?;
        }
        self.refills()
    }

    /// Empties what `ways` draw on: at the block that uses up both at their fastest, then the kind that is left.
    fn empty(&mut self, ways: (bool, bool), (first, until): (u64, u64)) -> Result<(), Halt> {
        let Some(block) = self.block_for_both(ways) else { return Ok(()) };
        let mut done: Vec<BucketUnit> = self.run_dry(ways, block, first)?;
        if let [only] = done[..] {
            let other = match only {
                BucketUnit::Ios => BucketUnit::Bytes,
                BucketUnit::Bytes => BucketUnit::Ios,
            };
            if let Some(block) = self.block_for(ways, other) {
                done.extend(self.run_dry(ways, block, until)?);
            }
        }
        Ok(())
    }

    fn block_for_both(&self, ways: (bool, bool)) -> Option<u64> {
        let curves = self.found.curves.iter().flatten().filter(|curve| ways_of(ways, curve.way));
        curves.map(|curve| curve.both).min()
    }

    /// The block that uses up one kind fastest once the other is at its baseline.
    fn block_for(&self, ways: (bool, bool), kind: BucketUnit) -> Option<u64> {
        let mut curves = self.found.curves.iter().flatten().filter(|curve| ways_of(ways, curve.way));
        let curve = curves.next()?;
        match kind {
            BucketUnit::Ios => {
                (curve.held != Held::Bytes || curve.flat_to.is_some()).then_some(self.spec.unit)
            }
            BucketUnit::Bytes => {
                let base = self.found.buckets.last().map_or(curve.top.rate, |bucket| bucket.account.base);
                let wanted = 2.0 * curve.most_bytes / base.max(1e-3);
                // Larger ones might count as several, and what is left of them would look like bytes.
                let (unit, most) = match curve.unit {
                    Unit::Exactly(unit) => (unit, self.spec.most_block),
                    Unit::Above(most) => (self.spec.unit, most),
                    Unit::Hidden => (self.spec.unit, curve.both),
                };
                let block = (wanted as u64).clamp(curve.both, most.max(curve.both));
                Some((block / unit).max(1) * unit)
            }
        }
    }

    /// Asks `ways` at `block` until everything has fallen or the time is over; returns the kinds that ran dry.
    fn run_dry(&mut self, ways: (bool, bool), block: u64, until: u64) -> Result<Vec<BucketUnit>, Halt> {
        let block = self.affordable(ways, block, until);
        let depth = self.drain_depth(ways, block, until);
        let load = Load { aim: "emptying", ways, block, depth, guess: None };
        let streams = self.streams(ways);
        let expected: Vec<f64> = streams.iter().map(|&stream| self.expected(stream, block)).collect();
        let began = self.spent.time_ns;
        let first = self.asked.len();
        let mut piece = 5_000_000_000u64.min(until.saturating_sub(began));
        let mut courses = vec![Course::Flat; streams.len()];
        while piece >= 1_000_000_000 {
            let mut probe = self.plain(load);
            (probe.runtime_ns, probe.counts) = (piece / 1_000_000 * 1_000_000, true);
            self.ask(probe)?;
            courses = streams
                .iter()
                .zip(&expected)
                .map(|(&stream, &expected)| course(&self.series(first, stream), expected))
                .collect();
            let now = self.spent.time_ns;
            let wanted: Vec<Option<u64>> =
                courses.iter().filter_map(|course| self.still_wanted(course, began)).collect();
            let open = wanted.contains(&None);
            let wanted = wanted.into_iter().max().map(|most| most.filter(|_| !open));
            self.found.watched_ns = self.found.watched_ns.max(now - began);
            match wanted {
                None => break,
                Some(least) => {
                    let doubled = (2 * piece).min(PIECE_NS);
                    piece = least.unwrap_or(doubled).min(until.saturating_sub(now));
                }
            }
        }
        let mut fallen = Vec::new();
        for (&stream, course) in streams.iter().zip(&courses) {
            match *course {
                Course::Fallen { high, since_ns, ios, .. } => {
                    let dry = (since_ns, self.spent.time_ns);
                    let low = self.low(first, stream, dry);
                    match low.filter(|low| *low <= FALLEN * high) {
                        Some(low) => {
                            let load = Load { ways: stream, ..load };
                            fallen.push(Fall { load, high, low, dry, ios });
                        }
                        None => {
                            let held = since_ns.saturating_sub(began);
                            self.found.held_ns = Some(self.found.held_ns.unwrap_or(0).max(held));
                            self.found.unclear = Some((high, low));
                        }
                    }
                }
                Course::Restless { high, low, .. } => self.found.restless = Some((high, low)),
                Course::Flat => {
                    let held = self.spent.time_ns - began;
                    self.found.held_ns = Some(self.found.held_ns.unwrap_or(0).max(held));
                }
            }
        }
        let mut kinds = if fallen.is_empty() { Vec::new() } else { self.tell(load, &fallen)? };
        for (&stream, course) in streams.iter().zip(&courses) {
            if *course == Course::Flat {
                kinds.extend(self.look_for_empty(Load { ways: stream, ..load }, first)?);
            }
        }
        kinds.dedup();
        Ok(kinds)
    }

    /// `None` where enough was seen; else how much longer it takes at the least, where that is known, ns.
    fn still_wanted(&self, course: &Course, began: u64) -> Option<Option<u64>> {
        match *course {
            Course::Flat => Some(None),
            Course::Restless { rises, .. } => (rises < 3).then_some(None),
            Course::Fallen { low, since_ns, ios, .. } => {
                let burst = since_ns.saturating_sub(began) as f64 / 1e9;
                let least = LOW_SECONDS.0.min(self.spec.budget.time_ns as f64 / 1e9 / 15.0);
                let seconds = (1.25 * burst).clamp(least, LOW_SECONDS.1.max(least));
                let now = self.spent.time_ns;
                let by_ios = LOW_IOS.saturating_sub(ios) as f64 / low.max(1e-3);
                let seen = now.saturating_sub(since_ns) as f64 / 1e9;
                let left = (seconds - seen).max(by_ios);
                (left > 0.5).then_some(Some((left * 1e3) as u64 * 1_000_000 + 500_000_000))
            }
        }
    }

    /// The largest block up to `block` whose bytes the budget holds until then.
    fn affordable(&self, ways: (bool, bool), block: u64, until: u64) -> u64 {
        let seconds = until.saturating_sub(self.spent.time_ns) as f64 / 1e9;
        let curves = self.found.curves.iter().flatten().filter(|curve| ways_of(ways, curve.way));
        let rate: f64 = curves.map(|curve| curve.top.rate.min(curve.most_bytes / block as f64)).sum();
        let bytes = self.left_bytes() as f64 * 0.6;
        let most = bytes / seconds.max(1.0) / rate.max(1e-3);
        let least = self.spec.unit;
        block.min((most as u64 / least).max(1) * least)
    }

    /// A depth that keeps limits busy and the number of requests within the budget.
    fn drain_depth(&self, ways: (bool, bool), block: u64, until: u64) -> u32 {
        let curves = self.found.curves.iter().flatten().filter(|curve| ways_of(ways, curve.way));
        let depth = |curve: &super::curve::Curve| {
            let rate = curve.top.rate.min(curve.most_bytes / block as f64);
            let depth = self.depth_for(curve.way, rate, block);
            let seconds = until.saturating_sub(self.spent.time_ns) as f64 / 1e9;
            let most = self.left_ios(block) as f64 / 2.0 / seconds.max(1.0);
            if curve.held == Held::Depth && rate > most {
                (most * self.found.floor_ns(curve.way) / 1e9).max(1.0) as u32
            } else {
                depth
            }
        };
        curves.map(depth).max().unwrap_or(1)
    }

    /// What is watched by itself: both directions together where they share their limits.
    fn streams(&self, ways: (bool, bool)) -> Vec<(bool, bool)> {
        match ways {
            (true, true) => vec![(true, false), (false, true)],
            one => vec![one],
        }
    }

    /// The rate that one direction had with `block`, as far as it was measured.
    fn expected(&self, ways: (bool, bool), block: u64) -> f64 {
        let mut curves = self.found.curves.iter().flatten().filter(|curve| ways_of(ways, curve.way));
        let Some(curve) = curves.next() else { return 0.0 };
        if curve.held == Held::Depth {
            return 0.0;
        }
        let full = match curve.flat_to {
            Some(flat_to) if block <= flat_to => curve.top.rate,
            _ => curve.bulk.map_or(0.0, |bulk| (bulk.bytes() / block as f64).min(curve.top.rate)),
        };
        // What ran dry before still is.
        let dry = self.found.buckets.iter().filter(|bucket| bucket.account.counts(curve.way));
        let left = dry.map(|bucket| bucket.account.base / bucket.account.cost(&self.found, curve.way, block));
        left.fold(full, f64::min)
    }

    /// The rate in a span, but for its beginning, in which the fall lies.
    fn low(&self, first: usize, stream: (bool, bool), (from, to): (u64, u64)) -> Option<f64> {
        let slices = self.series(first, stream);
        let inside: Vec<&Slice> =
            slices.iter().filter(|slice| slice.start_ns > from + SETTLED_NS && slice.end_ns <= to).collect();
        let seconds: f64 = inside.iter().map(|slice| slice.seconds()).sum();
        let ios: u64 = inside.iter().map(|slice| slice.ios).sum();
        let is_even = unevenness(inside.iter().copied()) <= EVEN;
        (ios >= LOW_IOS / 2 && seconds > 2.0 && is_even).then(|| ios as f64 / seconds)
    }

    /// The requests of one stream since the probe `first`.
    fn series(&self, first: usize, ways: (bool, bool)) -> Vec<Slice> {
        let mut slices = Vec::new();
        for (_, began, seen) in self.answers().skip(first) {
            let way = if ways.0 { Way::Read } else { Way::Write };
            slices.extend(seen.done(way).slices.iter().map(|slice| Slice {
                start_ns: began + slice.start_ns,
                end_ns: began + slice.end_ns,
                ios: slice.ios,
            }));
        }
        slices
    }

    /// What kinds ran dry under `load`: another block size at once tells, as the same number of requests or the same bytes
    /// come through. All of what fell is asked again at once, lest it rests meanwhile.
    fn tell(&mut self, load: Load, fallen: &[Fall]) -> Result<Vec<BucketUnit>, Halt> {
        let least = self.spec.unit;
        let half = load.block / 2 / least * least;
        let block = if half >= least { half } else { load.block * 2 };
        let slowest = fallen.iter().map(|fall| fall.low).fold(f64::INFINITY, f64::min);
        let other = Load { aim: "I/Os or bytes", block, guess: Some(slowest), ..load };
        let others = self.level(other, Care::Coarse)?;
        let mut kinds = Vec::new();
        for fall in fallen {
            let way = if fall.load.ways.0 { Way::Read } else { Way::Write };
            let is_ios = (others[way as usize].rate / fall.low - 1.0).abs() < 0.04;
            let kind = if is_ios { BucketUnit::Ios } else { BucketUnit::Bytes };
            if self.is_known(fall, way) {
                continue;
            }
            let is_shared = self.found.is_shared() == Some(true);
            let (reads, writes) = if is_shared { (true, true) } else { fall.load.ways };
            let unpriced = Account { kind, reads, writes, base: 0.0 };
            let cost = unpriced.cost(&self.found, way, load.block);
            let account = Account { base: fall.low * cost, ..unpriced };
            let error = 0.0005 + 1.0 / fall.ios.max(1) as f64;
            let (high, dry, load) = (fall.high * cost, fall.dry, fall.load);
            self.found.buckets.push(Bucket { account, error, high, dry, load, regained: None, full: None });
            kinds.push(kind);
        }
        Ok(kinds)
    }

    /// What is left is the baseline of a bucket that was dry before.
    fn is_known(&self, fall: &Fall, way: Way) -> bool {
        let known = self.found.buckets.iter().filter(|bucket| bucket.account.counts(way));
        known.into_iter().any(|bucket| {
            let left = bucket.account.base / bucket.account.cost(&self.found, way, fall.load.block);
            (left - fall.low).abs() < KNOWN * left.max(fall.low)
        })
    }

    /// A bucket so small that it was empty before the first rate was told: a rest brings a little of it back.
    fn look_for_empty(&mut self, load: Load, first: usize) -> Result<Vec<BucketUnit>, Halt> {
        let series = self.series(first, load.ways);
        let all = stretches(&series);
        let Some(last) = all.last() else { return Ok(Vec::new()) };
        let low = last.rate();
        let mut probe = self.plain(Load { aim: "after a rest", ..load });
        probe.rest_ns = (LOOK_SECONDS * 1e9) as u64;
        (probe.runtime_ns, probe.counts) = ((LOOK_SECONDS / 2.0 * 1e9) as u64, true);
        let way = if load.ways.0 { Way::Read } else { Way::Write };
        let dry = (last.start_ns, last.end_ns);
        let seen = self.ask(probe)?;
        let done = seen.done(way);
        let over = done.ios as f64 - low * (done.seconds() - done.lat.2 / 1e9) - f64::from(load.depth);
        if over > 0.15 * low {
            let first = done.slices.first().map_or(low, Slice::rate);
            let fall = Fall { load, high: first.max(low * 1.1), low, dry, ios: last.ios };
            return self.tell(load, &[fall]);
        }
        Ok(Vec::new())
    }

    /// What happened to shared limits is told of both directions.
    pub(crate) fn shares(&self) -> [Sharing; 2] {
        [self.found.shares_ios, self.found.shares_bytes]
    }
}

fn ways_of(ways: (bool, bool), way: Way) -> bool {
    match way {
        Way::Read => ways.0,
        Way::Write => ways.1,
    }
}

/// How the rate went. `expected` is what it was before, 0 where that is not known.
fn course(slices: &[Slice], expected: f64) -> Course {
    let found = stretches(slices);
    let Some((last, earlier)) = found.split_last() else { return Course::Flat };
    let rises = found.windows(2).filter(|pair| pair[1].rate() > pair[0].rate()).count();
    let rates = || found.iter().map(super::stretches::Stretch::rate);
    let high = rates().fold(expected, f64::max);
    let low = rates().fold(f64::INFINITY, f64::min);
    if rises > 0 {
        return Course::Restless { high, low, rises };
    }
    let is_fallen = !earlier.is_empty() || (expected > 0.0 && last.rate() < 0.93 * expected);
    if is_fallen {
        return Course::Fallen { high, low: last.rate(), since_ns: last.start_ns, ios: last.ios };
    }
    Course::Flat
}
