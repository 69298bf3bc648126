//! One rate or latency, measured as well as needed: how long it takes, how deep it goes, how sure it is. The latency without load
//! tells whether first accesses take longer, and whether a rate is a limit's or that of a medium that serves so many at once.
//!
//! Limits and media are both flat over depths. But a limiter that was left alone lets a bunch of requests through at once, or one
//! after the other; a medium serves as many as it can and then the next as many.

use super::probe::{Floor, IdentifyProbe, IoDirection, ProbeCounts, Seen};
use super::script::{Halt, Script};
use super::series::{
    LONG_SPAN, SPAN, rate_of_turns, rest_of_turns_ns, runtime_of_turns_ns, turn_s, uncertain_s, unevenness,
};
use super::state::{
    Care, Curve, DISTURBED, EmptiedBucket, FALLEN, ProbeLoad, RateLevel, SmallIoLimit, Touch,
};
use crate::identified::IoScope;

/// Below this rate a probe counts from rest, as its requests are too few for one that begins in the middle.
const FEW: f64 = 150.0;
/// How long such a one is: what limiters let through at once after a rest, 10 ms of their rate, is little of it.
const FEW_SECONDS: f64 = 4.0;
/// What limiters let through at once after a rest, 10 ms of their rate, is gone by then, even where they are asked for
/// only a little more than that.
const RAMP_NS: f64 = 260e6;
/// Turns are no longer than a part of a second, over which their rate is even.
const UNEVEN: f64 = 0.05;
/// From the end of one measurement to the beginning of the next, on a device, s.
const BETWEEN_S: f64 = 0.5;
/// What a rate may be wrong by whatever was counted.
const MIN_ERROR: f64 = 0.002;
/// What a limiter that was left alone lets through ahead of its rate, s.
const AHEAD_SECONDS: f64 = 0.012;
/// Standard deviations of the difference of two means, of which 95 % are less.
const AGES: f64 = 2.8;
/// Turns whose requests wait at once where they are to wait evenly.
const DEEP_TURNS: f64 = 2.0;
/// 97.5 % quantiles of Student's t for two values and more.
const STUDENT: [f64; 4] = [12.71, 4.30, 3.18, 2.78];
/// How often measurements are repeated because of others in all.
const RETRIES: usize = 6;
/// A thread busy for this share of its time is what limits.
const BUSY: f64 = 0.9;

impl Script<'_> {
    /// Measures `load`; again, where it turned out to be too short for what was wanted.
    pub(crate) fn level(&mut self, load: ProbeLoad, care: Care) -> Result<[RateLevel; 2], Halt> {
        let mut load = load;
        let mut levels = None;
        for _ in 0..4 {
            let Some(guess) = load.guess else {
                let sighted = self.sight(load)?;
                load.guess = Some(sighted.max(0.2));
                continue;
            };
            let probe = self.probe(load, guess, care, f64::INFINITY);
            let seen = self.ask(probe)?;
            self.notice(load, seen)?;
            self.look_for_turns(load, seen);
            let [read, write] =
                [IoDirection::Read, IoDirection::Write].map(|way| self.level_of(&probe, way, seen));
            let slowest = match load.ways {
                IoScope::Reads => read,
                IoScope::Writes => write,
                IoScope::Both if read.rate < write.rate => read,
                IoScope::Both => write,
            };
            if slowest.rate <= 0.0 {
                return Err(Halt::Useless);
            }
            levels = Some([read, write]);
            // Counted from rest although there were many, or the other way round, or far too few.
            let wanted = self.wanted(load, care) as f64;
            let is_short = if slowest.turn_s > 0.0 {
                false
            } else if probe.counts {
                slowest.rate > 3.0 * FEW || (slowest.ios as f64) < slowest.rate * FEW_SECONDS / 2.0
            } else {
                (slowest.ios as f64) < wanted * 0.6 && probe.ios > 2 * slowest.ios
            };
            let is_disturbed = seen.others.share > DISTURBED && self.found.retries < RETRIES;
            self.found.retries += usize::from(is_disturbed);
            if !is_short && !seen.is_stalled && !is_disturbed {
                break;
            }
            load.guess = Some(slowest.rate);
        }
        levels.ok_or(Halt::Useless)
    }

    /// The rate of one direction.
    pub(crate) fn level_one(&mut self, load: ProbeLoad, care: Care) -> Result<RateLevel, Halt> {
        let [read, write] = self.level(load, care)?;
        let way = load.way();
        let level = if way == IoDirection::Read { read } else { write };
        let most = &mut self.found.max_bytes[way as usize];
        *most = most.max(level.bytes());
        if level.block == self.spec.unit_bytes {
            let most = &mut self.found.max_rate[way as usize];
            *most = most.max(level.rate);
            let fastest = &mut self.found.fastest[way as usize];
            *fastest = fastest.filter(|fastest| fastest.rate > level.rate).or(Some(level));
        }
        Ok(level)
    }

    /// What a measurement that has just ended tells of one direction.
    pub(crate) fn level_of(&self, probe: &IdentifyProbe, way: IoDirection, seen: &Seen) -> RateLevel {
        let done = seen.done(way);
        let turn_s = self.found.turns_s[way as usize];
        let level = level_of(probe, probe.depth(way).max(1), done, turn_s, &self.found.floor(way));
        // What a dry bucket regained while the probe rested may have come with it.
        let rested = if self.is_any_early() && probe.counts { probe.rest_ns as f64 / 1e9 } else { 0.0 };
        let regained = rested / (done.seconds().max(0.1) + rested) / 2.0;
        let (rate, error) = (level.rate * (1.0 - regained), level.error + regained);
        let level = RateLevel { rate, error, ..level };
        RateLevel { at_ns: self.spent.time_ns, others: seen.others, ..level }
    }

    /// Takes down the turns in which requests of one direction are released. They show best with few requests in flight, which
    /// is what is measured first.
    fn look_for_turns(&mut self, load: ProbeLoad, seen: &Seen) {
        let way = load.way();
        if !self.found.is_long || load.ways == IoScope::Both || load.block != self.spec.unit_bytes {
            return;
        }
        let done = seen.done(way);
        // Latencies before and after a fall differ as well.
        if unevenness(done.slices.iter().filter(|slice| slice.start_ns >= done.start_ns), SPAN) > UNEVEN {
            return;
        }
        let found = turn_s(done, self.found.floor_ns(way));
        let known = &mut self.found.turns_s[way as usize];
        if *known == 0.0 {
            *known = found;
        }
    }

    /// A first idea of a rate, from a few requests.
    fn sight(&mut self, load: ProbeLoad) -> Result<f64, Halt> {
        let ios = u64::from(load.depth) * 2 + 8;
        let mut probe = self.plain(load);
        (probe.runtime_ns, probe.counts) = (10_000_000_000, true);
        probe.ios = ios.min(probe.ios);
        let seen = self.ask(probe)?;
        let rate = |way: IoDirection| seen.done(way).rate_between();
        Ok(match load.ways {
            IoScope::Reads => rate(IoDirection::Read),
            IoScope::Writes => rate(IoDirection::Write),
            IoScope::Both => rate(IoDirection::Read).min(rate(IoDirection::Write)),
        })
    }

    /// A probe of `load` without any time.
    pub(crate) fn plain(&self, load: ProbeLoad) -> IdentifyProbe {
        let depth = |way: IoDirection| if way.is_in(load.ways) { load.depth } else { 0 };
        let ways = if load.ways == IoScope::Both { 2 } else { 1 };
        IdentifyProbe {
            aim: load.aim,
            rest_ns: 0,
            block: load.block,
            reads: depth(IoDirection::Read),
            writes: depth(IoDirection::Write),
            rate: None,
            ramp_ns: 0,
            runtime_ns: 0,
            ios: self.left_ios(load.block) / ways,
            counts: false,
            range: self.found.range.unwrap_or(self.size),
            turn: self.asked.len() as u64 + 1,
        }
    }

    pub(crate) fn probe(&self, load: ProbeLoad, guess: f64, care: Care, longest: f64) -> IdentifyProbe {
        let mut probe = self.plain(load);
        let least = self.spec.probe_ns as f64;
        let turn_s = self.found.turns_s[load.way() as usize];
        let share = if care == Care::Fine { 1.0 } else { 0.5 };
        if turn_s > 0.0 && load.block == self.spec.unit_bytes {
            // From rest, so that it consists of whole turns.
            probe.counts = true;
            probe.runtime_ns = whole_ms(runtime_of_turns_ns((least * share).min(longest * 1e9), turn_s));
        } else if turn_s == 0.0 && guess < FEW && !self.is_any_early() {
            let ios = (guess * FEW_SECONDS).ceil() as u64 + 2;
            probe.counts = true;
            probe.ios = ios.min(probe.ios);
            probe.runtime_ns = whole_ms(3.0 * FEW_SECONDS * 1e9);
        } else {
            let floor = self.found.floors.iter().flatten().map(|floor| floor.mean).fold(0.0, f64::max);
            let filling = 2.0 * f64::from(load.depth) / guess * 1e9;
            let ramp = RAMP_NS.max(6.0 * floor).max(filling.min(2e9));
            probe.ramp_ns = whole_ms(ramp.max(self.regained_s() * 1e9));
            let seconds = self.wanted(load, care) as f64 / guess;
            let seconds = if turn_s > 0.0 { 0.0 } else { seconds };
            probe.runtime_ns = whole_ms((seconds * 1e9).max(least * share).min(longest * 1e9));
        }
        let need = guess * (probe.ramp_ns + probe.runtime_ns) as f64 / 1e9 * 1.2;
        let rest = self.rest_for(&probe, need.min(probe.ios as f64));
        probe.rest_ns = rest.max(if probe.counts { REST_NS.max(rest_of_turns_ns(turn_s)) } else { 0 });
        probe
    }

    /// How long it takes at full rate to use up what a dry bucket regains between two measurements, s: a rate that counts from rest
    /// would hold it.
    fn regained_s(&self) -> f64 {
        let of = |bucket: &EmptiedBucket| {
            let base = bucket.account.base;
            BETWEEN_S * base / (bucket.high - base).max(0.1 * base)
        };
        self.found.buckets.iter().filter(|bucket| bucket.is_early).map(of).fold(0.0, f64::max)
    }

    /// Requests that a rate is determined from. A limit completes them evenly; a medium does not.
    fn wanted(&self, load: ProbeLoad, care: Care) -> u64 {
        let way = load.way();
        let is_even = self.found.is_even[way as usize] || self.found.floor(way).spread() < 0.02;
        match (care, is_even) {
            (Care::Coarse, true) => 120,
            (Care::Fine, true) => 500,
            (Care::Coarse, false) => 1500,
            (Care::Fine, false) => 5000,
        }
    }

    /// The depth that keeps a limit of `rate` requests a second busy, with blocks of `block` bytes.
    pub(crate) fn depth_for(&self, way: IoDirection, rate: f64, block: u64) -> u32 {
        self.depth_of(way, rate, block, 0.0)
    }

    /// The same where `rate` is known. More requests than two turns release wait evenly, so that Little's law holds for them; the
    /// smallest blocks are counted over whole turns instead.
    pub(crate) fn depth_for_turns(&self, way: IoDirection, rate: f64, block: u64) -> u32 {
        let is_larger = block > self.spec.unit_bytes;
        let of_turns = if is_larger { DEEP_TURNS * rate * self.found.turns_s[way as usize] } else { 0.0 };
        self.depth_of(way, rate, block, of_turns)
    }

    fn depth_of(&self, way: IoDirection, rate: f64, block: u64, least: f64) -> u32 {
        let floor = self.found.floor_ns(way);
        let depth = ((4.0 * rate * floor / 1e9).ceil() + 4.0).max(least.ceil());
        let by_bytes = (self.spec.most_in_flight_bytes / block.max(1)).max(1) as f64;
        depth.min(f64::from(self.spec.most_depth)).min(by_bytes).max(1.0) as u32
    }
}

fn whole_ms(ns: f64) -> u64 {
    (ns / 1e6).ceil() as u64 * 1_000_000
}

fn level_of(probe: &IdentifyProbe, depth: u32, done: &ProbeCounts, turn_s: f64, floor: &Floor) -> RateLevel {
    let seconds = done.seconds().max(0.1);
    let of_turns = rate_of_turns(probe, depth, done, turn_s);
    let (rate, error) = match of_turns {
        Some(rate) => (rate, uncertain_s(turn_s) / seconds),
        None if probe.counts => {
            let edges = AHEAD_SECONDS + turn_s + floor.tail_ns() / 1e9;
            (done.rate_between(), edges / seconds)
        }
        None => {
            let rate = by_little(f64::from(depth), done);
            let is_deep = f64::from(depth) >= rate * turn_s;
            let edges = if is_deep { 0.0 } else { turn_s };
            // What was in flight at the beginning had waited for longer or shorter than what is at the end.
            let ages = AGES * done.lat.deviation / 1e9 / f64::from(depth).sqrt();
            (rate, 1.0 / done.ios.max(1) as f64 + (edges + ages) / seconds)
        }
    };
    // A span holds one turn more or less.
    let span = if turn_s > 0.0 { LONG_SPAN } else { SPAN };
    let counted = done.slices.iter().filter(|slice| slice.start_ns >= done.start_ns);
    let uneven = (unevenness(counted, span) - turn_s / span / 2.0).max(0.0);
    let error = MIN_ERROR + error + spread_of_spans(uneven, seconds);
    let (block, lat_ns, is_busy, ios) = (probe.block, done.lat.mean, done.busy >= BUSY, done.ios);
    RateLevel { block, depth, rate, error, turn_s, lat_ns, is_busy, ios, uneven, ..RateLevel::default() }
}

/// By what share a rate may be wrong whose spans of [`SPAN`] spread by `uneven`.
fn spread_of_spans(uneven: f64, seconds: f64) -> f64 {
    let spans = (seconds / SPAN).floor().max(2.0);
    let student = STUDENT[(spans as usize - 2).min(STUDENT.len() - 1)];
    student * uneven / spans.sqrt()
}

/// The interval of `levels`, which measured the same rate one after the other: their mean, and by what share it may be wrong.
pub(crate) fn pooled(levels: &[RateLevel]) -> (f64, f64) {
    let count = levels.len() as f64;
    let mean = levels.iter().map(|level| level.rate).sum::<f64>() / count;
    let of_one = levels.iter().map(|level| level.error).sum::<f64>() / count;
    let squares: f64 = levels.iter().map(|level| (level.rate / mean - 1.0).powi(2)).sum();
    let Some(student) = levels.len().checked_sub(2).and_then(|index| STUDENT.get(index)) else {
        return (mean, of_one);
    };
    let spread = student * (squares / (count - 1.0) / count).sqrt();
    (mean, of_one.max(spread))
}

/// Requests a second by Little's law, which knows no edges: with so many always in flight, each is over after `depth / rate`.
/// Where the count over time says otherwise by more than its edges do, as the depth was not held, that stands.
fn by_little(depth: f64, done: &ProbeCounts) -> f64 {
    let counted = done.rate();
    if done.lat.mean <= 0.0 || counted <= 0.0 {
        return counted;
    }
    let little = depth * 1e9 / done.lat.mean;
    let edges = 2.0 * (depth + 1.0) / done.ios as f64 + 10.0 * done.lat.least / 1e9 / done.seconds() + 0.01;
    if (little / counted - 1.0).abs() <= edges { little } else { counted }
}

/// Repeats of a rate, and the share of the budget that those of all rates take.
const REPEATS: usize = 2;
const SHARE: f64 = 0.08;
/// A rate whose interval is wider than this on either side is held by no limit.
const REPEATABLE: f64 = 0.05;
/// Time of a repeat over that of its measured part, ns.
const AROUND_NS: u64 = 1_000_000_000;

impl Script<'_> {
    /// `curve` with its limits measured again. Where measurements are short, what they are wrong by follows from their counts; where
    /// credits are exhausted, other measurements have restored some of them.
    pub(crate) fn confirmed(&mut self, curve: Curve) -> Result<Curve, Halt> {
        if !self.found.is_long || self.is_early(curve.way) {
            return Ok(curve);
        }
        let top = match curve.small_limit {
            SmallIoLimit::Count => self.repeated(curve.way, curve.top)?,
            _ => curve.top,
        };
        let bulk = match curve.bulk {
            Some(bulk) => Some(self.repeated(curve.way, bulk)?),
            None => None,
        };
        Ok(Curve { top, bulk, ..curve })
    }

    fn repeated(&mut self, way: IoDirection, level: RateLevel) -> Result<RateLevel, Halt> {
        let mut levels = vec![level];
        if !self.holds_repeats() {
            return Ok(level);
        }
        while levels.len() <= REPEATS {
            let began = self.spent.time_ns;
            let again = match self.at("the same again", way, level.block, level.rate, Care::Fine) {
                Err(Halt::OutOfBudget) => break,
                again => again?,
            };
            self.found.repeats_ns += self.spent.time_ns - began;
            if self.found.is_watching && !self.is_early(way) && again.rate < FALLEN * level.rate {
                return self.fell_to(way, &again, level.rate);
            }
            levels.push(again);
        }
        Ok(as_one(&levels))
    }

    fn holds_repeats(&self) -> bool {
        let repeats = REPEATS as u64 * (self.spec.probe_ns + AROUND_NS);
        let most = (self.spec.budget_ns as f64 * SHARE) as u64;
        self.found.repeats_ns + repeats <= most && repeats < self.left_ns()
    }
}

/// The rate of `levels`, of which there is one at least: those beside other processes count where there are no others. Where they
/// differ by more than a limit's do, it is the highest.
fn as_one(levels: &[RateLevel]) -> RateLevel {
    let alone: Vec<RateLevel> =
        levels.iter().filter(|level| level.others.share < DISTURBED).copied().collect();
    let levels = if alone.is_empty() { levels } else { &alone };
    let highest =
        levels[1..].iter().fold(levels[0], |one, other| if other.rate > one.rate { *other } else { one });
    match pooled(levels) {
        (_, error) if error > REPEATABLE => RateLevel { varies: true, ..highest },
        (rate, error) => RateLevel { rate, error, ..highest },
    }
}

/// Requests that tell a first access from a second.
const TOUCHES: u64 = 48;
/// Turns of further places that are accessed for the first time.
const OTHER_PLACES: [u64; 3] = [1_000_003, 1_000_005, 1_000_007];
/// By how much a first access is slower where it is.
const SLOWER: f64 = 1.25;
/// The same of the quickest, of which there is one each.
const SLOWER_MIN: f64 = 1.6;
/// What a busy client adds to each request, ns: a smaller difference shows no first-touch penalty.
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
            paced = done.lat;
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
        Ok(seen.done(way).lat)
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
    /// in between, so that a limit that changes meanwhile is not taken for a first-touch penalty.
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
            (probe.runtime_ns, probe.rest_ns) = (60_000_000_000, REST_NS.max(rest_of_turns_ns(turn_s)));
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

/// First accesses took longer. The quickest know nothing of a target that stood still meanwhile.
fn is_slower(first: &Floor, again: &Floor) -> bool {
    let (mean, least) = (first.mean - again.mean, first.least - again.least);
    first.is_beyond(again, SLOWER, SURE) && mean > OF_CLIENT_NS
        || first.least > SLOWER_MIN * again.least && least > OF_CLIENT_NS
}

/// Requests of bunches of one size, and the most bunches: where latencies are even, and where they are spread.
const REQUESTS: (u64, u64) = (24, 600);
const MAX_BUNCHES: (u64, u64) = (6, 48);

/// A latency without load that is known no better, as a share, tells nothing of how many requests are served at once.
const FLOOR_ERROR: f64 = 0.1;
/// Standard errors of a mean that are chance.
const SIGMAS: f64 = 3.0;

impl Script<'_> {
    /// What holds the rate `top` of small requests: whether they wait for a place in the medium.
    pub(crate) fn width(
        &mut self,
        way: IoDirection,
        top: &RateLevel,
        small_limit: SmallIoLimit,
    ) -> Result<SmallIoLimit, Halt> {
        let floor = self.found.floor(way);
        let served = top.rate * floor.mean / 1e9;
        let is_known = floor.mean > 0.0 && floor.interval().1 < (1.0 + FLOOR_ERROR) * floor.mean;
        if small_limit != SmallIoLimit::Count || served < 0.9 || !is_known {
            return Ok(small_limit);
        }
        let width = served.round().max(1.0);
        // Of few at once the number is a whole one.
        let uncertain = 0.01 + top.error + (floor.interval().1 / floor.mean - 1.0);
        let is_whole = (served - width).abs() <= (served * uncertain).max(0.02);
        if !is_whole || width * 2.0 > f64::from(self.spec.most_depth) {
            return Ok(small_limit);
        }
        let width = width as u64;
        let (one, two) = (self.bunch(way, width)?, self.bunch(way, 2 * width)?);
        let (one, two) = (one / floor.mean, two / floor.mean);
        let spread = floor.spread();
        let (sure, requests) = if spread > 0.05 { (0.02, REQUESTS.1) } else { (0.06, REQUESTS.0) };
        // Both are shares of a floor that is not known exactly either.
        let floor_share = floor.interval().1 / floor.mean - 1.0;
        let off = |count: u64| sure + floor_share + SIGMAS * spread / (requests.max(count) as f64).sqrt();
        let is_medium = one < 1.0 + off(width) && (two - 1.5).abs() < 0.02 + 1.5 * off(2 * width);
        Ok(if is_medium { SmallIoLimit::Width(width) } else { small_limit })
    }

    /// Mean latency of `count` requests that come together after a rest, ns.
    fn bunch(&mut self, way: IoDirection, count: u64) -> Result<f64, Halt> {
        let (mut sum, mut all) = (0.0, 0.0);
        let floor = self.found.floor_ns(way);
        let is_spread = self.found.floor(way).spread() > 0.05;
        let of = |(even, spread): (u64, u64)| if is_spread { spread } else { even };
        let bunches = (of(REQUESTS) / count).clamp(1, of(MAX_BUNCHES));
        for _ in 0..bunches {
            let mut probe =
                self.plain(ProbeLoad::of("a batch after idling", way, self.spec.unit_bytes, count as u32));
            probe.rest_ns = REST_NS.max((4.0 * floor) as u64).max(self.rest_for(&probe, count as f64));
            probe.runtime_ns = 20_000_000_000;
            (probe.ios, probe.counts) = (count.min(probe.ios), true);
            let seen = self.ask(probe)?;
            if seen.is_stalled {
                continue;
            }
            let done = seen.done(way);
            sum += done.lat.mean * done.ios as f64;
            all += done.ios as f64;
        }
        Ok(sum / f64::max(all, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::IdentifyActivity;

    use crate::identify::probe::OtherIo;
    use crate::identify::script::IdentifySpec;

    use super::*;

    #[test]
    fn repeats_are_one_rate_or_vary() {
        let level = |rate: f64, share: f64| RateLevel {
            block: 4096,
            depth: 4,
            rate,
            error: 0.002,
            others: OtherIo { share, ..OtherIo::default() },
            ..RateLevel::default()
        };
        let check = |rates: &[(f64, f64)], rate: f64, varies: bool| {
            let levels: Vec<RateLevel> = rates.iter().map(|(rate, share)| level(*rate, *share)).collect();
            let one = as_one(&levels);
            assert_eq!((one.rate, one.varies), (rate, varies), "{rates:?}");
        };
        check(&[(1000.0, 0.0)], 1000.0, false);
        check(&[(999.0, 0.0), (1001.0, 0.0), (1000.0, 0.0)], 1000.0, false);
        check(&[(1000.0, 0.0), (930.0, 0.0), (860.0, 0.0)], 1000.0, true);
        // What others left of a limit is not the limit.
        check(&[(500.0, 1.0), (1001.0, 0.0), (999.0, 0.0)], 1000.0, false);
        let spread = as_one(&[level(990.0, 0.0), level(1010.0, 0.0), level(1000.0, 0.0)]).error;
        assert!((spread - 4.30 * 0.01 / 3f64.sqrt()).abs() < 1e-3, "{spread}");
    }

    #[test]
    fn parallelism_needs_a_latency_that_is_known() {
        let top = RateLevel {
            block: 4096,
            depth: 8,
            rate: 1000.0,
            error: 0.002,
            lat_ns: 8e6,
            ios: 4000,
            ..RateLevel::default()
        };
        let limits = IdentifyActivity {
            unit_bytes: 4096,
            most_depth: 64,
            budget_ns: 60_000_000_000,
            budget_ios: 1_000_000,
            budget_bytes: 1 << 40,
            ..IdentifyActivity::default()
        };
        let spec = IdentifySpec { size: 1 << 30, limits };
        let check = |deviation: f64, is_measured: bool| {
            let mut script = Script::new(&spec, &[]);
            script.found.floors[0] = Some(Floor { mean: 1e6, deviation, count: 100.0, least: 5e4 });
            let found = script.width(IoDirection::Read, &top, SmallIoLimit::Count);
            assert_eq!(matches!(found, Err(Halt::Ask(_))), is_measured, "{deviation}: {found:?}");
            assert!(is_measured || found == Ok(SmallIoLimit::Count), "{deviation}: {found:?}");
        };
        check(1e4, true);
        check(4e6, false);
    }
}
