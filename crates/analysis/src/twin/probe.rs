//! The measurements of latencies that a twin is made of, after an identification: each direction, block size and queue depth under
//! full load, then what a limit hid at rest.

use fathom_model::units::parse_bytes;
use fathom_record::{IdentifyActivity, TestRecord};

use super::Twin;
use super::measured::{LoadMeasurement, LoadMeasurements};
use crate::identified::Identified;
use crate::identify::probe::IoDirection;
use crate::pattern::block_name;

/// One measurement of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyProbe {
    /// The direction.
    pub way: IoDirection,
    /// Bytes per request.
    pub block_bytes: u64,
    /// Queue depth.
    pub depth: u32,
    /// The load.
    pub load: ProbedLoad,
    /// Times that it was measured before.
    pub repeat: u32,
    /// Time that is not counted, ns.
    pub ramp_ns: u64,
    /// Time after that, ns.
    pub runtime_ns: u64,
}

/// The load of a measurement of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProbedLoad {
    /// The queue depth is kept.
    Full,
    /// As many requests at once as the depth, then a pause of so many ns, so that no limit is reached.
    Bursts(u64),
    /// A sync after each request.
    Synced,
}

/// Block sizes: small ones, and larger ones of which the transfer takes time.
const BLOCKS: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];
/// Depths of the smallest block, and of the others.
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const FEWER_DEPTHS: [u32; 3] = [1, 8, 64];
/// Latencies of a distribution: of the smallest block so many that its 99th percentile is known to some percent; and the time that
/// they may take, s.
const SAMPLES: (f64, f64) = (10_000.0, 3000.0);
const SECONDS: (f64, f64) = (4.0, 15.0);
/// Longest repeat, s, and times that a load is measured at the most.
const LONGEST_REPEAT_S: f64 = 60.0;
const MAX_TIMES: u32 = 4;
/// Turns of a limit in a measurement: one more or less changes the mean by 1 %.
const TURNS: f64 = 100.0;
/// Share of a limit that bursts with pauses use.
const BELOW: f64 = 0.4;
/// Share of a limit from which on a load has reached it.
pub(super) const REACHED: f64 = 0.93;
/// Of the requests that a limit admits at once, those that bursts use.
const OF_TURN: f64 = 0.5;

impl LatencyProbe {
    /// `twin-read-4k-d8`, `twin-read-4k-d8-again1`, `twin-read-4k-d8-rest`, `twin-sync`.
    pub fn id(&self) -> String {
        let of = format!("twin-{}-{}-d{}", self.way.name(), block_name(self.block_bytes), self.depth);
        let first = match self.load {
            ProbedLoad::Full => of,
            ProbedLoad::Bursts(_) => format!("{of}-rest"),
            ProbedLoad::Synced => "twin-sync".to_owned(),
        };
        if self.repeat > 0 { format!("{first}-again{}", self.repeat) } else { first }
    }

    /// The probe under full load that [`LatencyProbe::id`] named, without its times.
    pub(super) fn of_full_load(id: &str) -> Option<LatencyProbe> {
        let mut words = id.strip_prefix("twin-")?.split('-');
        let ways = [IoDirection::Read, IoDirection::Write];
        let name = words.next()?;
        let way = ways.into_iter().find(|way| way.name() == name)?;
        let block_bytes = parse_bytes(words.next()?).ok()?;
        let depth = words.next()?.strip_prefix('d')?.parse().ok()?;
        let load = ProbedLoad::Full;
        let probe = LatencyProbe { way, block_bytes, depth, load, repeat: 0, ramp_ns: 0, runtime_ns: 0 };
        words.next().is_none().then_some(probe)
    }

    /// `latencies of 4k reads, QD 8`.
    pub fn title(&self) -> String {
        let (block, way) = (block_name(self.block_bytes), self.way.name());
        match self.load {
            ProbedLoad::Full => format!("latencies of {block} {way}s, QD {}", self.depth),
            ProbedLoad::Bursts(_) => {
                format!("latencies of {block} {way}s below the limit, QD {}", self.depth)
            }
            ProbedLoad::Synced => "latencies of syncs".to_owned(),
        }
    }
}

/// The next measurement after those in `tests`; `None` where all are there.
pub fn next(found: &Identified, limits: &IdentifyActivity, tests: &[TestRecord]) -> Option<LatencyProbe> {
    let is_new = |probe: &LatencyProbe| !tests.iter().any(|test| test.id == probe.id());
    probes(found, limits, tests).into_iter().find(is_new)
}

/// The loads that a twin is checked under: those of the smallest block at depths 1, 8 and 64, as they were measured.
pub fn checked(
    found: &Identified,
    limits: &IdentifyActivity,
    tests: &[TestRecord],
) -> Vec<(LatencyProbe, LoadMeasurement)> {
    let is_checked = |probe: &LatencyProbe| probe.is_checked(limits) && probe.repeat == 0;
    let probes = probes(found, limits, tests).into_iter().filter(is_checked);
    probes.filter_map(|probe| Some((probe, LoadMeasurements::of(&probe, tests)?.one))).collect()
}

/// `probe` once more; `None` where it was measured often enough.
pub fn again(probe: &LatencyProbe, tests: &[TestRecord]) -> Option<LatencyProbe> {
    let repeat = LoadMeasurements::of(probe, tests)?.times;
    (repeat < MAX_TIMES).then_some(LatencyProbe { repeat, ..*probe })
}

/// All measurements, as far as those in `tests` decide them.
pub(super) fn probes(
    found: &Identified,
    limits: &IdentifyActivity,
    tests: &[TestRecord],
) -> Vec<LatencyProbe> {
    let twin = Twin::limited_by(found, tests);
    // Bursts with pauses come last: they let credits accrue, with which a full load would begin.
    let (mut probes, mut bursts) = (Vec::new(), Vec::new());
    let ways =
        if limits.writes { &[IoDirection::Read, IoDirection::Write][..] } else { &[IoDirection::Read] };
    for &way in ways {
        for (block, depths) in blocks(limits) {
            let full = |&depth: &u32| twin.probe(way, block, depth, ProbedLoad::Full);
            let full: Vec<LatencyProbe> = depths.iter().map(full).collect();
            let is_limited = |probe: &&LatencyProbe| {
                FEWER_DEPTHS.contains(&probe.depth) && twin.is_limited_in(probe, tests)
            };
            bursts.extend(full.iter().filter(is_limited).filter_map(|probe| twin.bursts(probe)));
            let is_checked = |probe: &&LatencyProbe| probe.is_checked(limits);
            let repeats: Vec<LatencyProbe> =
                full.iter().filter(is_checked).flat_map(|probe| twin.repeats(probe, tests)).collect();
            probes.extend(full.into_iter().chain(repeats));
        }
    }
    if limits.writes {
        let block = smallest(limits);
        probes.push(twin.probe(IoDirection::Write, block, 1, ProbedLoad::Synced));
    }
    probes.extend(bursts);
    probes
}

fn smallest(limits: &IdentifyActivity) -> u64 {
    BLOCKS[0].max(limits.unit_bytes)
}

/// Block sizes, each with its depths.
fn blocks(limits: &IdentifyActivity) -> Vec<(u64, Vec<u32>)> {
    let mut blocks = BLOCKS.map(|block| block.clamp(smallest(limits), limits.most_block_bytes)).to_vec();
    blocks.dedup();
    let of = |(index, block): (usize, u64)| {
        let depths = if index == 0 { &DEPTHS[..] } else { &FEWER_DEPTHS };
        let fits = |depth: &&u32| {
            let in_flight = u64::from(**depth) * block;
            **depth == 1 || in_flight <= limits.most_in_flight_bytes && **depth <= limits.most_depth
        };
        (block, depths.iter().filter(fits).copied().collect())
    };
    blocks.into_iter().enumerate().map(of).collect()
}

impl LatencyProbe {
    fn is_checked(&self, limits: &IdentifyActivity) -> bool {
        let is_usual = self.block_bytes == smallest(limits) && FEWER_DEPTHS.contains(&self.depth);
        is_usual && self.load == ProbedLoad::Full
    }
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64 * 1_000_000
}

impl Twin {
    /// The repeats of `full` as far as `tests` decide them: one at the least, which shows whether it can be repeated.
    fn repeats(&self, full: &LatencyProbe, tests: &[TestRecord]) -> Vec<LatencyProbe> {
        let Some(all) = LoadMeasurements::of(full, tests) else { return Vec::new() };
        let wanted_s = if self.is_limited_in(full, tests) { 0.0 } else { all.wanted_s() };
        let wanted = match all.times {
            1 => 2,
            times if !all.agree || wanted_s > 0.0 => (times + 1).min(MAX_TIMES),
            times => times,
        };
        let least_s = full.runtime_ns as f64 / 1e9;
        let runtime_ns = ns(wanted_s.clamp(least_s, LONGEST_REPEAT_S.max(least_s)));
        (1..wanted).map(|repeat| LatencyProbe { repeat, runtime_ns, ..*full }).collect()
    }

    fn probe(&self, way: IoDirection, block_bytes: u64, depth: u32, load: ProbedLoad) -> LatencyProbe {
        let rate = self.limits_of(way, block_bytes).last().copied().unwrap_or(f64::INFINITY);
        let share = if matches!(load, ProbedLoad::Bursts(_)) { BELOW } else { 1.0 };
        let (least, most) = SECONDS;
        let is_full_at_limit = load == ProbedLoad::Full && rate.is_finite();
        let turns = if is_full_at_limit { TURNS * self.turn_ns as f64 / 1e9 } else { 0.0 };
        let samples = if block_bytes <= BLOCKS[0] { SAMPLES.0 } else { SAMPLES.1 };
        let seconds = (samples / (rate * share)).max(turns).clamp(least, most);
        let ramp = (2.0 * f64::from(depth) / rate).clamp(1.0, most / 2.0);
        LatencyProbe { way, block_bytes, depth, load, repeat: 0, ramp_ns: ns(ramp), runtime_ns: ns(seconds) }
    }

    /// What a limit hid in `full`: as many requests at once, and pauses. `None` where the limit does not admit as many.
    fn bursts(&self, full: &LatencyProbe) -> Option<LatencyProbe> {
        let LatencyProbe { way, block_bytes, depth, .. } = *full;
        let rate = *self.limits_of(way, block_bytes).last()?;
        let admitted = (rate * self.turn_ns as f64 / 1e9 * OF_TURN).max(1.0);
        let pause_ns = (f64::from(depth) / (rate * BELOW) * 1e9) as u64;
        (f64::from(depth) <= admitted)
            .then(|| self.probe(way, block_bytes, depth, ProbedLoad::Bursts(pause_ns)))
    }
}
