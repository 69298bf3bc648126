//! What a request takes that waits for no other, and whether the first access to a place takes longer.

use super::level::ProbeLoad;
use super::probe::IoDirection;
use super::script::{Halt, Script};
use super::turns::{rest_ns, turn_s};

/// Latency at rest, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Floor {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    pub(crate) count: f64,
    /// Of the quickest.
    pub(crate) least: f64,
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

/// Requests that tell a first access from a second.
const TOUCHES: u64 = 48;
/// Turns of further places that are accessed for the first time.
const OTHER_PLACES: [u64; 3] = [1_000_003, 1_000_005, 1_000_007];
/// By how much a first access is slower where it is.
const SLOWER: f64 = 1.25;
/// The same of the quickest, of which there is one each.
const SLOWER_LEAST: f64 = 1.6;
/// What a busy client adds to each request, ns: a smaller difference is no cost of first accesses.
const OF_CLIENT_NS: f64 = 100_000.0;
/// Standard errors that are no chance.
const SURE: f64 = 5.0;
/// Those that are likely none.
const LIKELY: f64 = 2.5;
/// The same of rates, which limits hold still; and of those of a target whose latencies vary.
const SLOWER_RATE: f64 = 1.05;
const SLOWER_RATE_SPREAD: f64 = 1.25;
/// Time of a pass on a device, s, and what rates of the same limit differ by.
const PASS_SECONDS: f64 = 2.0;
const SAME_RATE: f64 = 0.05;
/// The places that are kept to where first accesses cost.
const TOUCHED_BYTES: u64 = 64 << 20;
/// What comes with one access at the least.
const CHUNK_BYTES: u64 = 512 << 10;
/// Requests at rest.
const SAMPLES: f64 = 200.0;
/// The same where they are spread.
const SPREAD_SAMPLES: f64 = 2500.0;
/// Rest before what begins anew, ns: what a limiter lets through ahead of its rate is there again.
pub(crate) const REST_NS: u64 = fathom_record::confidence::LIMITER_SLICE_NS;
/// Longest time for them, s.
const SAMPLES_SECONDS: f64 = 8.0;

impl Script<'_> {
    /// The latency at rest of one direction: of requests so far apart that no limit holds them up.
    pub(crate) fn floor(&mut self, way: IoDirection) -> Result<(), Halt> {
        let block = self.spec.unit_bytes;
        let load = ProbeLoad::of("latency without load", way, block, 1);
        let alone = self.few(load, 24, 0, None)?;
        let apart = (4.0 * alone.mean).max(50_000.0);
        let (samples, most) = if alone.spread() > 0.05 {
            (SPREAD_SAMPLES, 3.0 * SAMPLES_SECONDS)
        } else {
            (SAMPLES, SAMPLES_SECONDS)
        };
        let most = most.min(self.spec.budget_ns as f64 / 1e9 / 40.0);
        let seconds = (samples * apart / 1e9).min(most);
        let rate = (1e9 / apart).floor().max(1.0);
        let (mut paced, mut is_held) = (Floor::default(), false);
        for _ in 0..3 {
            let mut probe = self.plain(load);
            probe.rate = Some(rate as u64);
            probe.rest_ns = REST_NS;
            probe.runtime_ns = (seconds * 1e3).ceil() as u64 * 1_000_000;
            probe.ios = probe.ios.min(((seconds * rate) as u64).max(8));
            let done = self.ask(probe)?.done(way);
            paced = floor_of(done.lat, done.ios);
            is_held = turn_s(done, alone.mean) > 0.0;
            // One that stood still in between is no measure of the others.
            if is_held || paced.deviation < 2.0 * paced.mean {
                break;
            }
        }
        // Requests that follow each other at once are the better measure where a limit holds more of them.
        let floor = if is_held || paced.is_beyond(&alone, 1.1, LIKELY) { alone } else { paced };
        self.found.floors[way as usize] = Some(floor);
        Ok(())
    }

    /// A few requests one after the other, at places that `turn` decides.
    fn few(&mut self, load: ProbeLoad, ios: u64, turn: u64, rate: Option<u64>) -> Result<Floor, Halt> {
        let mut probe = self.plain(load);
        probe.runtime_ns = 20_000_000_000;
        (probe.ios, probe.counts) = (ios.min(probe.ios), true);
        (probe.rest_ns, probe.rate) = (REST_NS, rate);
        if turn > 0 {
            probe.turn = turn;
        }
        let way = load.way();
        let seen = self.ask(probe)?;
        Ok(floor_of(seen.done(way).lat, seen.done(way).ios))
    }

    /// Whether first accesses take longer: the same places in the same order, twice.
    pub(crate) fn first_touch_latency(&mut self) -> Result<(), Halt> {
        let turn = 1_000_001;
        let load = ProbeLoad::of("first accesses", IoDirection::Read, self.spec.unit_bytes, 1);
        // So far apart that no limit holds them up, which would hide what they take.
        let alone = self.few(load, 12, 0, None)?;
        let rate = Some((1e9 / (3.0 * alone.mean).max(50_000.0)).floor().max(1.0) as u64);
        let first = self.few(load, TOUCHES, turn, rate)?;
        let again = self.few(ProbeLoad { aim: "the same offsets again", ..load }, TOUCHES, turn, rate)?;
        self.found.touch = Some(Touch { first, again, share: f64::NAN, has_changed: false });
        if !is_slower(&first, &again) {
            return Ok(());
        }
        // Other places tell the same each time, before and after which the same limits hold, or it was something else: a busy client
        // makes any of them slower.
        for turn in OTHER_PLACES {
            let more = ProbeLoad { aim: "first accesses at other offsets", ..load };
            let other = self.few(more, TOUCHES, turn, rate)?;
            let other_again =
                self.few(ProbeLoad { aim: "the same offsets again", ..load }, TOUCHES, turn, rate)?;
            if !is_slower(&other, &again) || !is_slower(&other, &other_again) {
                return Ok(());
            }
        }
        self.keep_to_touched()
    }

    /// Whether they count for more than one: the same places again with as many in flight as the limits take, and other places
    /// in between, so that a limit that changes meanwhile is no cost of first accesses.
    pub(crate) fn first_touch_rate(&mut self, depth: u32, rate: f64) -> Result<(), Halt> {
        let seconds = if self.found.is_long { PASS_SECONDS } else { 0.2 };
        let ios = (u64::from(depth) * 3).max(TOUCHES).max((rate * seconds) as u64);
        let load =
            ProbeLoad::of("first accesses at full rate", IoDirection::Read, self.spec.unit_bytes, depth);
        let turn_s = self.found.turns_s[IoDirection::Read as usize];
        let pass = |script: &mut Self, turn: u64| -> Result<f64, Halt> {
            let mut probe = script.plain(load);
            probe.range = script.size;
            (probe.ios, probe.counts, probe.turn) = (ios.min(probe.ios), true, turn);
            (probe.runtime_ns, probe.rest_ns) = (60_000_000_000, REST_NS.max(rest_ns(turn_s)));
            Ok(script.ask(probe)?.read.rate_between())
        };
        let is_even = self.found.floor(IoDirection::Read).spread() < 0.02 && turn_s == 0.0;
        let times = if is_even { SLOWER_RATE } else { SLOWER_RATE_SPREAD };
        let (first, again) = (pass(self, 1_000_002)?, pass(self, 1_000_002)?);
        let passes = if again > times * first {
            let other = pass(self, 1_000_004)?;
            Some((other, pass(self, 1_000_002)?))
        } else {
            None
        };
        // Where few places are left untouched, the others tell nothing: then the latency of first accesses has to be longer.
        let is_slower = passes.is_some_and(|(other, last)| {
            let is_kept = last > times * first && (last / again - 1.0).abs() < SAME_RATE;
            is_kept && (last > times * other || self.found.range.is_some())
        });
        if let Some(touch) = &mut self.found.touch {
            touch.share = if is_slower { first / again } else { 1.0 };
            touch.has_changed = passes.is_some() && !is_slower;
        }
        if is_slower && self.found.range.is_none() {
            self.keep_to_touched()?;
        }
        Ok(())
    }

    /// Touches a range once, in which everything else is then measured.
    fn keep_to_touched(&mut self) -> Result<(), Halt> {
        let range = TOUCHED_BYTES.min(self.size);
        self.found.range = Some(range);
        let ios = range.div_ceil(CHUNK_BYTES) * 14;
        let time = self.left_ns() / 10;
        let mut probe =
            self.plain(ProbeLoad::of("touching a range", IoDirection::Read, self.spec.unit_bytes, 16));
        (probe.ios, probe.counts) = (ios.min(probe.ios), true);
        probe.runtime_ns = time.max(120_000_000_000);
        self.ask(probe)?;
        Ok(())
    }
}

impl Floor {
    /// Between which values the mean lies, ns.
    pub(crate) fn interval(&self) -> (f64, f64) {
        let half = 2.1 * self.deviation / self.count.max(1.0).sqrt() + 0.005 * self.mean + 1.0;
        ((self.mean - half).max(0.0), self.mean + half)
    }

    /// By how much a request may take longer than the quickest, ns.
    pub(crate) fn tail_ns(&self) -> f64 {
        self.mean - self.least + 2.0 * self.deviation
    }

    /// True where the mean is so many times that of `other`, and so many standard errors beyond it.
    fn is_beyond(&self, other: &Floor, times: f64, errors: f64) -> bool {
        let variance = |floor: &Floor| floor.deviation.powi(2) / floor.count.max(1.0);
        let chance = (variance(self) + variance(other)).sqrt();
        self.mean > times * other.mean && self.mean - other.mean > errors * chance
    }

    /// Spread of single requests over their mean.
    pub(crate) fn spread(&self) -> f64 {
        if self.mean > 0.0 { self.deviation / self.mean } else { 0.0 }
    }
}

/// First accesses took longer. The quickest know nothing of a target that stood still meanwhile.
fn is_slower(first: &Floor, again: &Floor) -> bool {
    let (mean, least) = (first.mean - again.mean, first.least - again.least);
    first.is_beyond(again, SLOWER, SURE) && mean > OF_CLIENT_NS
        || first.least > SLOWER_LEAST * again.least && least > OF_CLIENT_NS
}

fn floor_of((mean, deviation, least): (f64, f64, f64), count: u64) -> Floor {
    Floor { mean, deviation, count: count as f64, least }
}
