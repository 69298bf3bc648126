//! Buckets: asking as much as there is until the rate falls for good, or for as long as the budget allows; what fell, and whose
//! credit it was; what a bucket holds, and what a rest gives back to it.
//!
//! A bucket is full at first and gains its baseline: nothing depends on when it was exhausted or how often it rested, as long as
//! everything that was asked is counted.

use super::probe::{IdentifyProbe, IoDirection, ProbeCounts, ProbeSlice};
use super::script::{Halt, Script};
use super::series::{LONG_SPAN, MIN_RATE_SECONDS, Stretch, Trend, is_apart, stretches, unevenness};
use super::state::{
    Account, Care, Curve, DirectionSharing, EmptiedBucket, FALLEN, Findings, ObservedUnit, ProbeLoad,
    RateDrift, RateFall, Recovery, RestlessRate, SmallIoLimit, UnclearFall,
};
use crate::identified::{BucketUnit, IoScope};
use crate::steady::levels::is_step;

/// One of the streams that are watched: reads, writes, or both together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DrainStream {
    /// At one rate.
    Flat,
    /// At a lower one since, requests a second; `0` ns = from the beginning.
    Fallen { high: f64, low: f64, since_ns: u64, ios: u64 },
    /// Down and up again.
    Restless { high: f64, low: f64, rises: usize },
}

/// What was watched: from which probe on, since when, ns, and how each stream went.
pub(crate) struct DrainWatch {
    pub(crate) first: usize,
    pub(crate) began: u64,
    pub(crate) courses: Vec<(IoScope, DrainStream)>,
}

/// Shares of the budget: for one emptying, for all together.
const MAX_SHARE_OF_ONE: f64 = 0.7;
const MAX_SHARE_OF_ALL: f64 = 0.82;
/// Share of the highest rate below which a baseline rarely lies.
const MIN_BASELINE_SHARE: f64 = 0.3;
/// Longest piece, ns.
const PIECE_NS: u64 = 60_000_000_000;
/// How long a lower rate has to hold, s: at the least, at the most.
const LOW_SECONDS: (f64, f64) = (30.0, 150.0);
/// Fewest requests that it is determined from.
pub(crate) const LOW_IOS: u64 = 100;

impl Script<'_> {
    /// Empties what there is.
    pub(crate) fn drain(&mut self) -> Result<(), Halt> {
        let began = self.spent.time_ns;
        let left = self.left_ns() as f64;
        let rates_differ = match &self.found.curves {
            [Some(read), Some(write)] => is_apart(read.top.rate, write.top.rate),
            _ => false,
        };
        let shares = self.shares();
        let have_own_limits = shares.contains(&DirectionSharing::Apart)
            && shares.iter().all(|one| matches!(one, DirectionSharing::Apart | DirectionSharing::Unknown));
        // Where a limit holds both, each is looked at alone: together neither gets what it can.
        let turns: &[IoScope] = match (self.spec.writes, self.found.is_shared()) {
            (false, _) => &[IoScope::Reads],
            (true, Some(true)) if !rates_differ => &[IoScope::Reads],
            (true, Some(false)) if have_own_limits => &[IoScope::Both],
            _ => &[IoScope::Reads, IoScope::Writes],
        };
        for (index, &ways) in turns.iter().enumerate() {
            let share = (index + 1) as f64 / turns.len() as f64;
            let until = began + (left * MAX_SHARE_OF_ALL * share) as u64;
            let one = self.spent.time_ns + (left * MAX_SHARE_OF_ONE / turns.len() as f64) as u64;
            self.empty(ways, until.min(one), until)?;
        }
        self.refills()
    }

    /// Empties what `ways` draw on: at the block that uses up both at their fastest, then the kind that is left.
    fn empty(&mut self, ways: IoScope, first: u64, until: u64) -> Result<(), Halt> {
        let Some(block) = self.block_for_both(ways) else { return Ok(()) };
        let early = self.found.buckets.iter().filter(|bucket| bucket.is_early && bucket.draws_on(ways));
        let mut done: Vec<BucketUnit> = early.map(|bucket| bucket.account.kind).collect();
        if done.is_empty() {
            done = self.run_dry(ways, block, first)?;
            // At once, while it is empty and there is time for it: without it nothing is known to be credit.
            self.refills()?;
        }
        if let [only] = done[..] {
            let other = match only {
                BucketUnit::Ios => BucketUnit::Bytes,
                BucketUnit::Bytes => BucketUnit::Ios,
            };
            let block = self.block_for(ways, other);
            if block.is_some_and(|block| !self.uses_up(ways, other, block)) {
                let name = |kind| if kind == BucketUnit::Ios { "I/Os" } else { "bytes" };
                self.found.hidden = Some((name(other), name(only)));
            } else if let Some(block) = block {
                done.extend(self.run_dry(ways, block, until)?);
            }
        }
        Ok(())
    }

    /// What is left to requests of `block` bytes is enough of the highest rate of `kind` for its credit to run dry.
    fn uses_up(&self, ways: IoScope, kind: BucketUnit, block: u64) -> bool {
        let mut curves = self.found.curves(ways);
        let Some(curve) = curves.next() else { return true };
        let left = self.expected(curve.way.scope(), block);
        // Where that is not known, it is tried.
        left <= 0.0
            || match kind {
                BucketUnit::Ios => left > MIN_BASELINE_SHARE * curve.top.rate,
                BucketUnit::Bytes => left * block as f64 > MIN_BASELINE_SHARE * curve.most_bytes,
            }
    }

    fn block_for_both(&self, ways: IoScope) -> Option<u64> {
        let curves = self.found.curves(ways);
        curves.map(|curve| curve.both).min()
    }

    /// The block that uses up one kind fastest once the other is at its baseline.
    pub(crate) fn block_for(&self, ways: IoScope, kind: BucketUnit) -> Option<u64> {
        let mut curves = self.found.curves(ways);
        let curve = curves.next()?;
        match kind {
            BucketUnit::Ios => (curve.small_limit != SmallIoLimit::Bytes || curve.flat_to.is_some())
                .then_some(self.spec.unit_bytes),
            BucketUnit::Bytes => {
                let base = self.found.buckets.last().map_or(curve.top.rate, |bucket| bucket.account.base);
                let wanted = 2.0 * curve.most_bytes / base.max(1e-3);
                // Larger ones might count as several, and what is left of them would look like bytes.
                let (unit, most) = match curve.unit {
                    ObservedUnit::Exactly(unit) => (unit, self.spec.most_block_bytes),
                    ObservedUnit::Above(most) => (self.spec.unit_bytes, most),
                    ObservedUnit::Hidden => (self.spec.unit_bytes, curve.both),
                };
                let block = (wanted as u64).clamp(curve.both, most.max(curve.both));
                Some((block / unit).max(1) * unit)
            }
        }
    }

    /// Asks `ways` at `block` until everything has fallen or the time is over; returns the kinds that were exhausted.
    fn run_dry(&mut self, ways: IoScope, block: u64, until: u64) -> Result<Vec<BucketUnit>, Halt> {
        let block = self.affordable(ways, block, until);
        let depth = self.drain_depth(ways, block, until);
        let load = ProbeLoad { aim: "emptying", ways, block, depth, guess: None };
        let streams = self.streams(ways);
        let expected: Vec<f64> = streams.iter().map(|&stream| self.expected(stream, block)).collect();
        let DrainWatch { first, began, courses } = self.watch(load, &expected, until, LOW_SECONDS.0)?;
        let mut fallen = Vec::new();
        for &(stream, ref course) in &courses {
            match *course {
                DrainStream::Fallen { high, since_ns, ios, .. } => {
                    let dry = (since_ns, self.spent.time_ns);
                    let low = self.low(first, stream, dry);
                    let of_stream = ProbeLoad { ways: stream, ..load };
                    match low.filter(|low| *low <= FALLEN * high) {
                        Some(low) => fallen.push(RateFall { load: of_stream, high, low, dry, ios }),
                        None if let Some(drift) = self.decline_of(&of_stream, first, since_ns, high) => {
                            self.found.drift = Some(drift);
                        }
                        None => {
                            let held = since_ns.saturating_sub(began);
                            self.found.held_ns = Some(self.found.held_ns.unwrap_or(0).max(held));
                            let is_seen = held > 0;
                            self.found.unclear = Some(UnclearFall { ways: stream, high, low, is_seen });
                        }
                    }
                }
                DrainStream::Restless { high, low, .. } => {
                    self.found.restless = Some(RestlessRate { ways: stream, block, high, low });
                }
                DrainStream::Flat if !self.is_highest(stream, first, block) => {}
                DrainStream::Flat if let Some(drift) = self.drift_of(stream, first, block) => {
                    self.found.drift = Some(drift);
                }
                DrainStream::Flat => {
                    let held = self.spent.time_ns - began;
                    self.found.held_ns = Some(self.found.held_ns.unwrap_or(0).max(held));
                }
            }
        }
        let mut kinds = if fallen.is_empty() { Vec::new() } else { self.tell(load, &fallen)? };
        for &(stream, ref course) in &courses {
            if *course == DrainStream::Flat {
                kinds.extend(self.look_for_empty(ProbeLoad { ways: stream, ..load }, first)?);
            }
        }
        kinds.dedup();
        Ok(kinds)
    }

    /// Asks `load` until each stream showed enough or the time is over. `expected` are the rates that each had before.
    /// A lower one has to hold for `least` s at the least.
    pub(crate) fn watch(
        &mut self,
        load: ProbeLoad,
        expected: &[f64],
        until: u64,
        least: f64,
    ) -> Result<DrainWatch, Halt> {
        let streams = self.streams(load.ways);
        let began = self.spent.time_ns;
        let first = self.asked.len();
        let mut piece = 5_000_000_000u64.min(until.saturating_sub(began));
        let mut courses = vec![DrainStream::Flat; streams.len()];
        while piece >= 1_000_000_000 {
            let mut probe = self.plain(load);
            (probe.runtime_ns, probe.counts) = (piece / 1_000_000 * 1_000_000, true);
            self.ask(probe)?;
            courses = streams
                .iter()
                .zip(expected)
                .map(|(&stream, &expected)| course(&self.series(first, stream), expected))
                .collect();
            let now = self.spent.time_ns;
            let wanted: Vec<Option<u64>> =
                courses.iter().filter_map(|course| self.still_wanted(course, began, least)).collect();
            let open = wanted.contains(&None);
            let wanted = wanted.into_iter().max().map(|most| most.filter(|_| !open));
            self.found.watched_ns = self.found.watched_ns.max(now - began);
            match wanted {
                None => break,
                Some(least) => {
                    let doubled = (2 * piece).min(PIECE_NS.max((now - began) / 8));
                    piece = least.unwrap_or(doubled).min(until.saturating_sub(now));
                }
            }
        }
        let courses = streams.into_iter().zip(courses).collect();
        Ok(DrainWatch { first, began, courses })
    }

    /// A decline that looks like the fall of `load` from `high` at `since_ns`, but is not one: two levels explain it no better, and it
    /// goes on.
    fn decline_of(&self, load: &ProbeLoad, first: usize, since_ns: u64, high: f64) -> Option<RateDrift> {
        let ProbeLoad { ways, block, .. } = *load;
        let slices = self.series(first, ways);
        let long = || slices.iter().filter(|slice| slice.seconds() > MIN_RATE_SECONDS && slice.ios > 0);
        let rates: Vec<f64> = long().map(ProbeSlice::rate).collect();
        let after = long().filter(|slice| slice.start_ns >= since_ns).count();
        if !self.found.is_long || after < rates.len() && is_step(&rates, after) {
            return None;
        }
        let to = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let curve = self.found.curves[load.way() as usize].as_ref()?;
        let decline = self.decline(load, (since_ns, self.spent.time_ns));
        let goes_on =
            decline.is_some_and(|decline| decline.explains(high - to, curve.top.at_ns as f64 / 1e9));
        self.drift_of(ways, first, block).or(goes_on.then_some(RateDrift { ways, block, from: high, to }))
    }

    /// A drift of the rate of a stream since the probe `first`.
    fn drift_of(&self, ways: IoScope, first: usize, block: u64) -> Option<RateDrift> {
        let (from, to) = Trend::of_slices(&self.series(first, ways))?.drift()?;
        self.found.is_long.then_some(RateDrift { ways, block, from, to })
    }

    /// Since the probe `first`, requests of `block` bytes came as fast as they ever do.
    fn is_highest(&self, stream: IoScope, first: usize, block: u64) -> bool {
        let slices = self.series(first, stream);
        let seconds: f64 = slices.iter().map(ProbeSlice::seconds).sum();
        let rate = slices.iter().map(|slice| slice.ios).sum::<u64>() as f64 / seconds.max(1e-9);
        let curves = self.found.curves(stream);
        let highest = |curve: &Curve| {
            let by_count =
                if curve.small_limit == SmallIoLimit::Count { curve.top.rate } else { f64::INFINITY };
            by_count.min(curve.bulk.map_or(f64::INFINITY, |bulk| bulk.bytes() / block as f64))
        };
        let highest = curves.map(highest).fold(f64::INFINITY, f64::min);
        highest.is_infinite() || rate > FALLEN * highest
    }

    /// `None` where enough was seen; else how much longer it takes at the least, where that is known, ns.
    fn still_wanted(&self, course: &DrainStream, began: u64, least: f64) -> Option<Option<u64>> {
        match *course {
            DrainStream::Flat => Some(None),
            DrainStream::Restless { rises, .. } => (rises < 3).then_some(None),
            DrainStream::Fallen { low, since_ns, ios, .. } => {
                let burst = since_ns.saturating_sub(began) as f64 / 1e9;
                let least = least.min(self.spec.budget_ns as f64 / 1e9 / 15.0);
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
    fn affordable(&self, ways: IoScope, block: u64, until: u64) -> u64 {
        let seconds = until.saturating_sub(self.spent.time_ns) as f64 / 1e9;
        let curves = self.found.curves(ways);
        let rate: f64 = curves.map(|curve| curve.top.rate.min(curve.most_bytes / block as f64)).sum();
        let bytes = self.left_bytes() as f64 * 0.6;
        let most = bytes / seconds.max(1.0) / rate.max(1e-3);
        let least = self.spec.unit_bytes;
        block.min((most as u64 / least).max(1) * least)
    }

    /// A depth that keeps limits busy and the number of requests within the budget.
    fn drain_depth(&self, ways: IoScope, block: u64, until: u64) -> u32 {
        let curves = self.found.curves(ways);
        let depth = |curve: &Curve| {
            let rate = curve.top.rate.min(curve.most_bytes / block as f64);
            let depth = self.depth_for(curve.way, rate, block);
            let seconds = until.saturating_sub(self.spent.time_ns) as f64 / 1e9;
            let most = self.left_ios(block) as f64 / 2.0 / seconds.max(1.0);
            if curve.small_limit == SmallIoLimit::Depth && rate > most {
                (most * self.found.floor_ns(curve.way) / 1e9).max(1.0) as u32
            } else {
                depth
            }
        };
        curves.map(depth).max().unwrap_or(1)
    }

    /// What is watched by itself: both directions together where they share their limits.
    fn streams(&self, ways: IoScope) -> Vec<IoScope> {
        match ways {
            IoScope::Both => vec![IoScope::Reads, IoScope::Writes],
            one => vec![one],
        }
    }

    /// The rate that one direction had with `block`, as far as it was measured.
    pub(crate) fn expected(&self, ways: IoScope, block: u64) -> f64 {
        let mut curves = self.found.curves(ways);
        let Some(curve) = curves.next() else { return 0.0 };
        if curve.small_limit == SmallIoLimit::Depth {
            return 0.0;
        }
        let full = match curve.flat_to {
            Some(flat_to) if block <= flat_to => curve.top.rate,
            _ => curve.bulk.map_or(0.0, |bulk| (bulk.bytes() / block as f64).min(curve.top.rate)),
        };
        // What was exhausted before still is.
        let dry = self.found.buckets(curve.way);
        let left = dry.map(|bucket| bucket.account.base / bucket.account.cost(&self.found, curve.way, block));
        left.fold(full, f64::min)
    }

    /// Results for shared limits apply to both directions.
    pub(crate) fn shares(&self) -> [DirectionSharing; 2] {
        [self.found.shares_ios, self.found.shares_bytes]
    }
}

/// How the rate went. `expected` is what it was before, 0 where that is not known.
fn course(slices: &[ProbeSlice], expected: f64) -> DrainStream {
    let found = stretches(slices);
    let Some((last, earlier)) = found.split_last() else { return DrainStream::Flat };
    let rises = found.windows(2).filter(|pair| pair[1].rate() > pair[0].rate()).count();
    let rates = || found.iter().map(Stretch::rate);
    let high = rates().fold(expected, f64::max);
    let low = rates().fold(f64::INFINITY, f64::min);
    if rises > 0 {
        return DrainStream::Restless { high, low, rises };
    }
    let is_fallen = !earlier.is_empty() || (expected > 0.0 && last.rate() < 0.93 * expected);
    if is_fallen {
        return DrainStream::Fallen { high, low: last.rate(), since_ns: last.start_ns, ios: last.ios };
    }
    DrainStream::Flat
}

/// Within this time of a fall, slices hold something of both rates.
pub(crate) const SETTLED_NS: u64 = 1_000_000_000;

/// A rate that a limit leaves spreads by no more than this.
const EVEN: f64 = 0.08;
/// A rate this near to what a dry bucket leaves is that.
const KNOWN: f64 = 0.15;
/// Rest and time of the look for a bucket that was empty before anything was seen of it.
const LOOK_SECONDS: f64 = 20.0;

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
            slices.extend(seen.done(way).slices.iter().map(|slice| slice.since(began)));
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
        let known = self.found.buckets(way);
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
        let over = done.ios as f64 - low * (done.seconds() - done.lat.least / 1e9) - f64::from(load.depth);
        if over > 0.15 * low {
            let first = done.slices.first().map_or(low, ProbeSlice::rate);
            let fall = RateFall { load, high: first.max(low * 1.1), low, dry, ios: last.ios };
            return self.tell(load, &[fall]);
        }
        Ok(Vec::new())
    }
}

impl Script<'_> {
    /// What is missing from the bucket at the end of each slice of time: `(instant, ns; missing)`.
    pub(crate) fn missing(&self, account: &Account) -> Vec<(u64, f64)> {
        self.missing_by(account, Account::cost)
    }

    /// The same, every request costing as much as it may, and those of both directions counting where they may share it.
    pub(crate) fn missing_at_most(&self, account: &Account) -> Vec<(u64, f64)> {
        let shares = self.shares()[usize::from(account.kind == BucketUnit::Bytes)];
        let scope = if shares == DirectionSharing::Unknown { IoScope::Both } else { account.scope };
        self.missing_by(&Account { scope, ..*account }, Account::cost_at_most)
    }

    fn missing_by(
        &self,
        account: &Account,
        cost: fn(&Account, &Findings, IoDirection, u64) -> f64,
    ) -> Vec<(u64, f64)> {
        let mut spent: Vec<(u64, u64, f64)> = Vec::new();
        for (probe, began, seen) in self.answers() {
            for way in [IoDirection::Read, IoDirection::Write] {
                if !account.counts(way) {
                    continue;
                }
                let cost = cost(account, &self.found, way, probe.block);
                let slice = |slice: &ProbeSlice| {
                    (began + slice.start_ns, began + slice.end_ns, slice.ios as f64 * cost)
                };
                spent.extend(seen.done(way).slices.iter().map(slice));
            }
        }
        spent.sort_by_key(|slice| slice.1);
        let mut missing = Vec::with_capacity(spent.len());
        let (mut at, mut now) = (0, 0.0f64);
        for (start, end, cost) in spent {
            // A rest may fill it.
            if start > at {
                now = (now - account.base * (start - at) as f64 / 1e9).max(0.0);
                at = start;
            }
            now = (now + cost - account.base * end.saturating_sub(at) as f64 / 1e9).max(0.0);
            at = at.max(end);
            missing.push((end, now));
        }
        missing
    }

    /// What is missing now.
    pub(crate) fn missing_now(&self, account: &Account) -> f64 {
        let missing = self.missing(account);
        let Some(&(at, now)) = missing.last() else { return 0.0 };
        (now - account.base * self.spent.time_ns.saturating_sub(at) as f64 / 1e9).max(0.0)
    }
}

/// What is taken from a bucket over what it holds, at the most, but for a second at its highest rate.
const MORE: f64 = 1.1;
/// Time to use up what came back, over the least that it takes.
const AGAIN: f64 = 1.4;
/// Share of its credit without which a bucket is nearly empty.
const NEARLY: f64 = 0.9;

/// Share of the budget that a rest takes at the most, and time to be seen dry again, s: where the limits are still to be
/// measured, and at the end.
const EARLY: (f64, f64) = (0.04, 4.0);
const LATE: (f64, f64) = (0.08, 8.0);

/// What an idle period has to give back, over the least that tells, and the share of the time that is left which it may take.
const ENOUGH: f64 = 2.3;
const MAX_REST_SHARE: f64 = 0.4;

impl Script<'_> {
    /// Rests, and looks how much came back of what has not been looked at yet.
    pub(crate) fn refills(&mut self) -> Result<(), Halt> {
        for index in 0..self.found.buckets.len() {
            let bucket = &self.found.buckets[index];
            if !bucket.is_early && bucket.recovery.is_none() {
                self.refill(index)?;
            }
        }
        Ok(())
    }

    /// The same of one bucket.
    pub(crate) fn refill(&mut self, index: usize) -> Result<(), Halt> {
        let bucket = self.found.buckets[index].clone();
        let Account { base, .. } = bucket.account;
        let beyond = (bucket.high - base).max(0.05 * base);
        let Some((full, _)) = self.capacity(&bucket) else { return Ok(()) };
        let (share, settling) = if bucket.is_early { EARLY } else { LATE };
        // A shorter rest brings back too little to tell credit from anything else.
        let telling = ENOUGH * self.least_restored_s() * beyond / base;
        let most = MAX_REST_SHARE * self.left_ns() as f64 / 1e9;
        let longest = (self.spec.budget_ns as f64 / 1e9 * share).max(10.0).max(telling.min(most));
        // Once it is full nothing more comes back; and what came back has to be used up again.
        let rest =
            (6.0 * beyond / base).clamp(10.0, longest).max(telling.min(longest)).min(0.6 * full / base);
        // Large requests may exhaust bytes meanwhile, so that fewer I/Os come than the baseline has.
        let block = match bucket.account.kind {
            BucketUnit::Ios => self.block_for(bucket.load.ways, BucketUnit::Ios).unwrap_or(bucket.load.block),
            BucketUnit::Bytes => bucket.load.block,
        };
        let load = ProbeLoad { aim: "after idling", block, ..bucket.load };
        let way = load.way();
        let cost = bucket.account.cost(&self.found, way, block);
        let missing = self.missing_now(&bucket.account);
        let emptying = 4.0 + 1.5 * (full - missing).max(0.0) / beyond;
        let later = self.found.buckets[index..].iter().filter(|bucket| bucket.recovery.is_none()).count();
        let left = self.left_ns() as f64 / 1e9 / if bucket.is_early { 1.0 } else { later.max(1) as f64 };
        let affordable = (left - emptying - settling) / (1.0 + AGAIN * base / beyond);
        let rest = rest.min(longest * beyond / base).min(affordable).max(1.0);
        // It has to be empty when the rest begins, as it is at once after it was exhausted.
        let pieces = [(0.0, emptying), (rest, base * rest / beyond * AGAIN + settling)];
        let is_dry_now = bucket.is_early && bucket.account.kind == BucketUnit::Ios;
        let pieces = &pieces[usize::from(is_dry_now)..];
        let middle = (base + beyond / 2.0) / cost;
        let (mut is_used_up, mut has_risen) = (true, false);
        for &(rest_s, seconds) in pieces {
            let mut probe = self.plain(load);
            probe.rest_ns = (rest_s * 1e3) as u64 * 1_000_000;
            let runtime_ns = (seconds * 1e3) as u64 * 1_000_000;
            (probe.runtime_ns, probe.counts) = (runtime_ns, true);
            let seen = self.ask(probe)?;
            let done = seen.done(way);
            // Where it ended before its time, the budget cut it short.
            let is_whole = done.all_ios() < probe.ios && seen.elapsed_ns >= probe.rest_ns + runtime_ns;
            has_risen |= rises_through(done, probe.rest_ns, middle) || is_whole && done.ends_above(middle);
            is_used_up &= done.ends_at(base / cost);
            let last = done.slices.last().map_or(0, |slice| slice.end_ns);
            let from = probe.rest_ns.min(last);
            let over = done.all_ios() as f64 * cost - base * (last - from) as f64 / 1e9;
            let regained = over.max(0.0);
            let recovery = Recovery {
                rest_s,
                gained: (base * rest_s).min(full),
                regained,
                restored_s: regained / beyond,
                is_used_up,
                has_risen,
                may_be_full: rest_s >= NEARLY * full / base,
            };
            self.found.buckets[index].recovery = Some(recovery).filter(|_| rest_s > 0.0);
        }
        Ok(())
    }

    /// What was taken from a bucket until it was empty, and by how much that varies.
    pub(crate) fn capacity(&self, bucket: &EmptiedBucket) -> Option<(f64, f64)> {
        self.while_dry(bucket, self.missing(&bucket.account))
    }

    /// More was taken after it was exhausted than it can hold, so its capacity is unknown.
    pub(crate) fn rises(&self, bucket: &EmptiedBucket) -> bool {
        let Some((capacity, _)) = self.capacity(bucket) else { return false };
        let most = MORE * capacity + bucket.high;
        self.missing(&bucket.account).iter().any(|one| one.0 > bucket.dry.1 && one.1 > most)
    }

    /// Whether a bucket of one direction was empty, or nearly so, at an instant, ns.
    pub(crate) fn was_dry(&self, way: IoDirection, at_ns: u64) -> bool {
        let of_way = self.found.buckets(way);
        of_way.into_iter().any(|bucket| {
            let missing = self.missing(&bucket.account);
            let then = missing.iter().rfind(|one| one.0 <= at_ns).map_or(0.0, |one| one.1);
            self.capacity(bucket).is_none_or(|(capacity, _)| then >= NEARLY * capacity)
        })
    }

    /// The same, every request having cost as much as it may.
    pub(crate) fn capacity_at_most(&self, bucket: &EmptiedBucket) -> Option<f64> {
        Some(self.while_dry(bucket, self.missing_at_most(&bucket.account))?.0)
    }

    fn while_dry(&self, bucket: &EmptiedBucket, missing: Vec<(u64, f64)>) -> Option<(f64, f64)> {
        let is_dry = |at: u64| at > bucket.dry.0 + SETTLED_NS && at <= bucket.dry.1;
        let dry: Vec<f64> = missing.into_iter().filter(|one| is_dry(one.0)).map(|one| one.1).collect();
        let mean = dry.iter().sum::<f64>() / dry.len().max(1) as f64;
        let most = dry.iter().map(|one| (one - mean).abs()).fold(0.0, f64::max);
        (!dry.is_empty()).then_some((mean, most))
    }

    /// The rest before `probe` that leaves enough credit for `ios` requests, ns.
    pub(crate) fn rest_for(&self, probe: &IdentifyProbe, ios: f64) -> u64 {
        if !self.found.is_resting {
            return 0;
        }
        let mut rest = 0.0f64;
        for bucket in &self.found.buckets {
            let account = &bucket.account;
            let Some(capacity) = bucket.full else { continue };
            let need: f64 = probe
                .ways()
                .filter(|&way| account.counts(way))
                .map(|way| ios * account.cost(&self.found, way, probe.block))
                .sum();
            let over = self.missing_now(account) + need.min(0.85 * capacity) - 0.9 * capacity;
            rest = rest.max(over.max(0.0) / account.base);
        }
        (rest * 1e3).ceil() as u64 * 1_000_000
    }
}

/// The rate rose through `middle` after the idle period that ended at `from_ns`: what a bucket regained comes at first.
fn rises_through(done: &ProbeCounts, from_ns: u64, middle: f64) -> bool {
    let slices: Vec<ProbeSlice> =
        done.slices.iter().filter(|slice| slice.start_ns >= from_ns).copied().collect();
    stretches(&slices).windows(2).any(|pair| pair[0].rate() < middle && pair[1].rate() > middle)
}
