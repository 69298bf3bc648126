//! One rate, measured as well as needed: how long it takes, how deep it goes, how sure it is.

use super::floor::{Floor, REST_NS};
use super::probe::{IdentifyProbe, IoDirection, OtherIo, ProbeCounts, Seen};
use super::script::{Halt, Script};
use super::stretches::{SPAN, unevenness};
use super::turns::{self, rate_of_turns};
use crate::identified::IoScope;

/// A rate under one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateLevel {
    pub(crate) block: u64,
    pub(crate) depth: u32,
    /// Requests a second.
    pub(crate) rate: f64,
    /// By what share the rate may be wrong: half of its 95 % interval.
    pub(crate) error: f64,
    /// Repeats differed by more than those of a limit; the rate is the highest.
    pub(crate) varies: bool,
    /// Length of the turns in which a limiter releases requests, s; 0 where it releases them one by one.
    pub(crate) turn_s: f64,
    /// I/O of other processes meanwhile.
    pub(crate) others: OtherIo,
    /// Mean latency, ns.
    pub(crate) lat_ns: f64,
    /// The thread that asked was busy.
    pub(crate) is_busy: bool,
    /// Requests counted.
    pub(crate) ios: u64,
    /// Spread of the rate over slices of time, beyond what counting whole requests makes of an even one.
    pub(crate) uneven: f64,
    /// When it had been measured, ns.
    pub(crate) at_ns: u64,
}

impl RateLevel {
    pub(crate) fn bytes(&self) -> f64 {
        self.rate * self.block as f64
    }

    /// Bytes a second that are no more than were served: the low end of the interval.
    pub(crate) fn least_bytes(&self) -> f64 {
        self.bytes() * (1.0 - self.error)
    }

    /// Requests a second that the limit may be higher than the rate, as turns release whole requests only.
    pub(crate) fn unreleased(&self) -> f64 {
        if self.turn_s > 0.0 { 1.0 / self.turn_s } else { 0.0 }
    }

    /// Little's law says that requests waited, for longer than they were served.
    pub(crate) fn is_queued(&self, floor_ns: f64, times: f64) -> bool {
        self.lat_ns > times * floor_ns
    }
}

/// How well a rate is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// To tell a limit from twice as much.
    Coarse,
    /// To tell it within a percent.
    Fine,
}

/// What is asked of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProbeLoad {
    pub(crate) aim: &'static str,
    pub(crate) ways: IoScope,
    pub(crate) block: u64,
    pub(crate) depth: u32,
    /// Requests a second that are thought to come.
    pub(crate) guess: Option<f64>,
}

impl ProbeLoad {
    /// The direction, reads where it goes both.
    pub(crate) const fn way(&self) -> IoDirection {
        if self.ways.counts(false) { IoDirection::Read } else { IoDirection::Write }
    }

    pub(crate) fn of(aim: &'static str, way: IoDirection, block: u64, depth: u32) -> ProbeLoad {
        ProbeLoad { aim, ways: way.scope(), block, depth, guess: None }
    }

    pub(crate) fn both(aim: &'static str, block: u64, depth: u32) -> ProbeLoad {
        ProbeLoad { aim, ways: IoScope::Both, block, depth, guess: None }
    }
}

/// Below this rate a probe counts from rest, as its requests are too few for one that begins in the middle.
const FEW: f64 = 150.0;
/// How long such a one is: what limiters let through at once after a rest, 10 ms of their rate, is little of it.
const FEW_SECONDS: f64 = 4.0;
/// What limiters let through at once after a rest, 10 ms of their rate, is gone by then, even where they are asked for
/// only a little more than that.
const RAMP_NS: f64 = 260e6;
/// What a rate may be wrong by whatever was counted.
const LEAST_ERROR: f64 = 0.002;
/// What a limiter that was left alone lets through ahead of its rate, s.
const AHEAD_SECONDS: f64 = 0.012;
/// Standard deviations of the difference of two means, of which 95 % are less.
const AGES: f64 = 2.8;
/// Turns whose requests wait at once where they are to wait evenly.
const DEEP_TURNS: f64 = 2.0;
/// 97.5 % quantiles of Student's t for two values and more.
const STUDENT: [f64; 4] = [12.71, 4.30, 3.18, 2.78];
/// Share of the load of others from which on a measurement is repeated, and how often that is done in all.
pub(crate) const DISTURBED: f64 = 0.05;
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
        let most = &mut self.found.most_bytes[way as usize];
        *most = most.max(level.bytes());
        if level.block == self.spec.unit_bytes {
            let most = &mut self.found.most_rate[way as usize];
            *most = most.max(level.rate);
        }
        Ok(level)
    }

    /// What a measurement that has just ended tells of one direction.
    pub(crate) fn level_of(&self, probe: &IdentifyProbe, way: IoDirection, seen: &Seen) -> RateLevel {
        let done = seen.done(way);
        let turn_s = self.found.turns_s[way as usize];
        let level = level_of(probe, probe.depth(way).max(1), done, turn_s, &self.found.floor(way));
        RateLevel { at_ns: self.spent.time_ns, others: seen.others, ..level }
    }

    /// Takes down the turns in which requests of one direction are released. They show best with few requests in flight, which
    /// is what is measured first.
    fn look_for_turns(&mut self, load: ProbeLoad, seen: &Seen) {
        let way = load.way();
        if !self.found.is_long || load.ways == IoScope::Both || load.block != self.spec.unit_bytes {
            return;
        }
        let found = turns::turn_s(seen.done(way), self.found.floor_ns(way));
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
            probe.runtime_ns = whole_ms(turns::runtime_ns((least * share).min(longest * 1e9), turn_s));
        } else if turn_s == 0.0 && guess < FEW {
            let ios = (guess * FEW_SECONDS).ceil() as u64 + 2;
            probe.counts = true;
            probe.ios = ios.min(probe.ios);
            probe.runtime_ns = whole_ms(3.0 * FEW_SECONDS * 1e9);
        } else {
            let floor = self.found.floors.iter().flatten().map(|floor| floor.mean).fold(0.0, f64::max);
            let filling = 2.0 * f64::from(load.depth) / guess * 1e9;
            probe.ramp_ns = whole_ms(RAMP_NS.max(6.0 * floor).max(filling.min(2e9)));
            let seconds = self.wanted(load, care) as f64 / guess;
            let seconds = if turn_s > 0.0 { 0.0 } else { seconds };
            probe.runtime_ns = whole_ms((seconds * 1e9).max(least * share).min(longest * 1e9));
        }
        let need = guess * (probe.ramp_ns + probe.runtime_ns) as f64 / 1e9 * 1.2;
        let rest = self.rest_for(&probe, need.min(probe.ios as f64));
        probe.rest_ns = rest.max(if probe.counts { REST_NS.max(turns::rest_ns(turn_s)) } else { 0 });
        probe
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
        Some(rate) => (rate, turns::uncertain_s(turn_s) / seconds),
        None if probe.counts => {
            let edges = AHEAD_SECONDS + turn_s + floor.tail_ns() / 1e9;
            (done.rate_between(), edges / seconds)
        }
        None => {
            let rate = by_little(f64::from(depth), done);
            let is_deep = f64::from(depth) >= rate * turn_s;
            let edges = if is_deep { 0.0 } else { turn_s };
            // What was in flight at the beginning had waited for longer or shorter than what is at the end.
            let ages = AGES * done.lat.1 / 1e9 / f64::from(depth).sqrt();
            (rate, 1.0 / done.ios.max(1) as f64 + (edges + ages) / seconds)
        }
    };
    let uneven = unevenness(done.slices.iter().filter(|slice| slice.start_ns >= done.start_ns), SPAN);
    let error = LEAST_ERROR + error + spread_of_spans(uneven, seconds);
    let (block, lat_ns, is_busy, ios) = (probe.block, done.lat.0, done.busy >= BUSY, done.ios);
    let (others, varies) = (OtherIo::default(), false);
    RateLevel { block, depth, rate, error, varies, turn_s, others, lat_ns, is_busy, ios, uneven, at_ns: 0 }
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
    if done.lat.0 <= 0.0 || counted <= 0.0 {
        return counted;
    }
    let little = depth * 1e9 / done.lat.0;
    let edges = 2.0 * (depth + 1.0) / done.ios as f64 + 10.0 * done.lat.2 / 1e9 / done.seconds() + 0.01;
    if (little / counted - 1.0).abs() <= edges { little } else { counted }
}
