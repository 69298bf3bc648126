//! Asking as much as there is until the rate falls for good, or for as long as the budget allows.

use super::curve::{ObservedUnit, SmallIoLimit};
use super::fall::{FALLEN, RateFall};
use super::findings::{RateDrift, RestlessRate, UnclearFall};
use super::level::ProbeLoad;
use super::probe::ProbeSlice;
use super::script::{Halt, Script};
use super::sharing::DirectionSharing;
use super::stretches::{is_apart, stretches};
use super::trend::{LEAST_SECONDS, Trend};
use crate::identified::{BucketUnit, IoScope};
use crate::steady::segments::is_step;

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
const ONE: f64 = 0.7;
const ALL: f64 = 0.82;
/// Share of the highest rate below which a baseline rarely lies.
const ENOUGH: f64 = 0.3;
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
        let differ = match &self.found.curves {
            [Some(read), Some(write)] => is_apart(read.top.rate, write.top.rate),
            _ => false,
        };
        let is_apart = [self.found.shares_ios, self.found.shares_bytes];
        let is_apart = is_apart.contains(&DirectionSharing::Apart)
            && is_apart.iter().all(|one| matches!(one, DirectionSharing::Apart | DirectionSharing::Unknown));
        // Where a limit holds both, each is looked at alone: together neither gets what it can.
        let turns: &[IoScope] = match (self.spec.writes, self.found.is_shared()) {
            (false, _) => &[IoScope::Reads],
            (true, Some(true)) if !differ => &[IoScope::Reads],
            (true, Some(false)) if is_apart => &[IoScope::Both],
            _ => &[IoScope::Reads, IoScope::Writes],
        };
        for (index, &ways) in turns.iter().enumerate() {
            let share = (index + 1) as f64 / turns.len() as f64;
            let until = began + (left * ALL * share) as u64;
            let one = self.spent.time_ns + (left * ONE / turns.len() as f64) as u64;
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
        let mut curves = self.found.curves.iter().flatten().filter(|curve| curve.way.is_in(ways));
        let Some(curve) = curves.next() else { return true };
        let left = self.expected(curve.way.scope(), block);
        // Where that is not known, it is tried.
        left <= 0.0
            || match kind {
                BucketUnit::Ios => left > ENOUGH * curve.top.rate,
                BucketUnit::Bytes => left * block as f64 > ENOUGH * curve.most_bytes,
            }
    }

    fn block_for_both(&self, ways: IoScope) -> Option<u64> {
        let curves = self.found.curves.iter().flatten().filter(|curve| curve.way.is_in(ways));
        curves.map(|curve| curve.both).min()
    }

    /// The block that uses up one kind fastest once the other is at its baseline.
    pub(crate) fn block_for(&self, ways: IoScope, kind: BucketUnit) -> Option<u64> {
        let mut curves = self.found.curves.iter().flatten().filter(|curve| curve.way.is_in(ways));
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
        let long = || slices.iter().filter(|slice| slice.seconds() > LEAST_SECONDS && slice.ios > 0);
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
        let curves = self.found.curves.iter().flatten().filter(|curve| curve.way.is_in(stream));
        let highest = |curve: &super::curve::Curve| {
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
        let curves = self.found.curves.iter().flatten().filter(|curve| curve.way.is_in(ways));
        let rate: f64 = curves.map(|curve| curve.top.rate.min(curve.most_bytes / block as f64)).sum();
        let bytes = self.left_bytes() as f64 * 0.6;
        let most = bytes / seconds.max(1.0) / rate.max(1e-3);
        let least = self.spec.unit_bytes;
        block.min((most as u64 / least).max(1) * least)
    }

    /// A depth that keeps limits busy and the number of requests within the budget.
    fn drain_depth(&self, ways: IoScope, block: u64, until: u64) -> u32 {
        let curves = self.found.curves.iter().flatten().filter(|curve| curve.way.is_in(ways));
        let depth = |curve: &super::curve::Curve| {
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
        let mut curves = self.found.curves.iter().flatten().filter(|curve| curve.way.is_in(ways));
        let Some(curve) = curves.next() else { return 0.0 };
        if curve.small_limit == SmallIoLimit::Depth {
            return 0.0;
        }
        let full = match curve.flat_to {
            Some(flat_to) if block <= flat_to => curve.top.rate,
            _ => curve.bulk.map_or(0.0, |bulk| (bulk.bytes() / block as f64).min(curve.top.rate)),
        };
        // What was exhausted before still is.
        let dry = self.found.buckets.iter().filter(|bucket| bucket.account.counts(curve.way));
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
    let rates = || found.iter().map(super::stretches::Stretch::rate);
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
