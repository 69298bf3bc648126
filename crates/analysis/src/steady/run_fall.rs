//! The one fall of a run, within a test or between two: all rows in the order of time on one axis. A limit on I/Os, or on bytes, bounds
//! every row by the same number, whatever its depth and block size; a row below the limit says nothing of it.
//!
//! Two rows of one load show a fall, the later one slower; or one row in which the rate fell. What follows a row by its place is in
//! [`RowCourse`]. Causes are named elsewhere.

use std::rc::Rc;

use fathom_record::stability::Second;
use fathom_record::{RunRecord, TestStatus};

use crate::findings::caps::is_limited;
use crate::findings::client;
use crate::findings::instance_cap::targets;
use crate::rows::{RecordRow, RowKind, tests};
use crate::steady::coefficient_of_variation;
use crate::steady::levels::{EVEN, fall};
use crate::steady::write_cache::{self, SLOW_FLUSH_NS, WriteCache, flush_ns};

/// A row that is slower by this than an earlier one of the same load has fallen: other reasons make smaller differences.
const FALLEN: f64 = 1.25;
/// A second above the level by this share is before the fall.
const ABOVE: f64 = 1.10;
/// Rows within this share of the level are held by its limit.
const AT_LEVEL: f64 = 0.05;
/// By how much depths of like rows differ.
const SAME_DEPTH: f64 = 0.1;

/// What a limit counts that bounds all rows by one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FallUnit {
    Ios,
    Bytes,
}

const UNITS: [FallUnit; 2] = [FallUnit::Ios, FallUnit::Bytes];

impl FallUnit {
    fn rate(self, row: &RecordRow<'_>) -> f64 {
        match self {
            FallUnit::Ios => row.settled_iops(),
            FallUnit::Bytes => row.settled_bytes_per_second(),
        }
    }

    fn of_second(self, second: &Second) -> f64 {
        let amount = match self {
            FallUnit::Ios => second.ios,
            FallUnit::Bytes => second.bytes,
        };
        amount as f64 * 1e9 / second.elapsed_ns.max(1) as f64
    }
}

/// A fall after which no row of a run exceeded a level.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunFall {
    /// What the level counts; `None` where the rows that it holds have one block size.
    pub(crate) unit: Option<FallUnit>,
    /// The direction that fell; `None` = both.
    pub(crate) only: Option<RowKind>,
    /// No row after the fall shows whether the other direction fell as well.
    is_other_unknown: bool,
    /// The highest rate before it and the level after it, in its unit, I/Os where that is unknown.
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// The level in I/Os and in bytes per second, of the load that shows the fall.
    levels: [f64; 2],
    /// Time of measurement before it, ns, and what was moved in that time, in its unit.
    pub(crate) burst_ns: u64,
    pub(crate) moved: f64,
    /// Time of measurement at the level, ns.
    pub(crate) held_ns: u64,
    /// More than the row in which it happened tells of it.
    pub(crate) is_shared: bool,
    /// The cache that filled, where it is one.
    pub(crate) cache: Option<WriteCache>,
}

/// Where in the course of its run a row stands.
#[derive(Clone, Debug, Default)]
pub(crate) enum RowCourse {
    /// The run did not fall, or by the published rule of its volume.
    #[default]
    Steady,
    /// Before the fall, at a rate that was not reached any more; or the fall is within it.
    Burst(Rc<RunFall>, Fell),
    /// After the fall, under its level.
    Lasting(Rc<RunFall>),
}

/// Whether a row holds the fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fell {
    Within,
    Later,
}

impl RunFall {
    /// The most I/Os per second of a load such as `row` that the level allows.
    pub(crate) fn left(&self, row: &RecordRow<'_>) -> f64 {
        let block = row.bytes_per_second() / row.iops().max(f64::MIN_POSITIVE);
        let of_unit = |unit| match unit {
            FallUnit::Ios => self.levels[0],
            FallUnit::Bytes => self.levels[1] / block.max(1.0),
        };
        match self.unit {
            Some(unit) => of_unit(unit),
            None => of_unit(FallUnit::Ios).max(of_unit(FallUnit::Bytes)),
        }
    }

    fn bounds(&self, row: &RecordRow<'_>) -> bool {
        row.is_direct() && row.kind().is_some() && (self.only.is_none() || row.kind() == self.only)
    }
}

/// Enters into rows in the order of time where they stand in the course of their run.
pub(crate) fn mark(rows: &mut [RecordRow<'_>]) {
    if let Some(cache) = write_cache::find(rows).filter(|cache| cache.size.is_some()) {
        return mark_filled(rows, cache);
    }
    let Some((fall, place)) = find(rows) else { return };
    let fall = Rc::new(fall);
    for (at, row) in rows.iter_mut().enumerate() {
        let is_within = place.is_within && at == place.row;
        let is_above = row.settled_iops() > fall.left(row) * (1.0 + AT_LEVEL);
        row.course = match () {
            () if !fall.bounds(row) => RowCourse::Steady,
            () if is_within || is_above && at == place.row => {
                RowCourse::Burst(Rc::clone(&fall), Fell::Within)
            }
            () if at > place.row => RowCourse::Lasting(Rc::clone(&fall)),
            () if is_above => RowCourse::Burst(Rc::clone(&fall), Fell::Later),
            () => RowCourse::Steady,
        };
    }
}

/// Each flush empties a write cache, so that each row of writes begins anew.
fn mark_filled(rows: &mut [RecordRow<'_>], cache: WriteCache) {
    let block = rows[cache.filled[0]].block_bytes().unwrap_or(1) as f64;
    let fall = Rc::new(RunFall {
        unit: Some(FallUnit::Bytes),
        only: Some(RowKind::Write),
        is_other_unknown: false,
        before: cache.before,
        after: cache.rate,
        levels: [cache.rate / block, cache.rate],
        burst_ns: (cache.size.unwrap_or_default() / (cache.before - cache.rate).max(1.0) * 1e9) as u64,
        moved: cache.size.unwrap_or_default(),
        held_ns: cache.held_ns,
        is_shared: true,
        cache: Some(cache),
    });
    let filled = fall.cache.iter().flat_map(|cache| cache.filled.iter().copied()).collect::<Vec<_>>();
    for (at, row) in rows.iter_mut().enumerate().filter(|(_, row)| fall.bounds(row) && !row.is_synced()) {
        let is_above = row.settled_bytes_per_second() > fall.after * (1.0 + 2.0 * AT_LEVEL);
        row.course = match filled.contains(&at) {
            true if is_above => RowCourse::Burst(Rc::clone(&fall), Fell::Within),
            true => RowCourse::Lasting(Rc::clone(&fall)),
            false if is_above => RowCourse::Burst(Rc::clone(&fall), Fell::Later),
            false => RowCourse::Steady,
        };
    }
}

/// What a row shows by itself of a limit that holds it.
fn is_able(row: &RecordRow<'_>) -> bool {
    row.is_direct()
        && !row.is_paced()
        && !row.is_synced()
        && !client::is_bound(row)
        && row.block_bytes().is_some()
        && row.settled_iops() > 0.0
        && row.test.status == TestStatus::Complete
}

/// The last second above the level, of the rows in the order of time.
#[derive(Clone, Copy, Debug)]
struct FallPlace {
    row: usize,
    /// Seconds of the row that are before the fall.
    seconds: usize,
    is_within: bool,
}

/// A row at the level, and the load that shows it.
struct Witness {
    row: usize,
    levels: [f64; 2],
    /// The rate before it of the same load, I/Os per second.
    before: f64,
    /// The fall is within the row.
    is_within: bool,
}

fn find(rows: &[RecordRow<'_>]) -> Option<(RunFall, FallPlace)> {
    let is_ruled = |row: &RecordRow<'_>| {
        let published = row.test.published.as_ref();
        published.and_then(|published| published.own.as_ref()).is_some_and(|own| own.burst.is_some())
    };
    if rows.iter().any(is_ruled) || rows.iter().any(|row| row.test.fleet.is_some()) {
        return None;
    }
    let witness =
        (0..rows.len()).rev().find_map(|at| within(rows, at).or_else(|| beside_earlier(rows, at)))?;
    let kind = rows[witness.row].kind()?;
    let only = Some(kind).filter(|kind| *kind != RowKind::Mixed);
    // Both directions fell if the level holds the other one as well.
    fall_of(rows, &witness, None).or_else(|| fall_of(rows, &witness, Some(only?)))
}

/// The rate fell within this row.
fn within(rows: &[RecordRow<'_>], at: usize) -> Option<Witness> {
    let row = &rows[at];
    let rates: Vec<f64> = row.seconds.iter().map(Second::iops).collect();
    let drop = fall(&rates).filter(|drop| drop.after.cv <= EVEN && is_able(row))?;
    let block = row.block_bytes()? as f64;
    let levels = [drop.after.median, drop.after.median * block];
    Some(Witness { row: at, levels, before: drop.before.median, is_within: true })
}

/// An even row that is slower than an earlier one of the same load which was no deeper, at a rate that a limit holds.
fn beside_earlier(rows: &[RecordRow<'_>], at: usize) -> Option<Witness> {
    let row = &rows[at];
    let load = |row: &RecordRow<'_>| (row.kind(), row.block_bytes(), row.is_random());
    let is_slower = |before: &&RecordRow<'_>| {
        load(before) == load(row)
            && targets(before) == targets(row)
            && before.settled_iops() > row.settled_iops() * FALLEN
            && row.mean_queue_depth() * (1.0 + SAME_DEPTH) >= before.mean_queue_depth()
    };
    if !is_able(row) || !is_even(row) {
        return None;
    }
    let earlier = rows[..at].iter().filter(|before| is_able(before));
    let before = earlier.filter(is_slower).map(|row| row.settled_iops()).reduce(f64::max)?;
    let levels = UNITS.map(|unit| unit.rate(row));
    let is_at_level = |(other, candidate): (usize, &RecordRow<'_>)| {
        let is_alike = |unit: FallUnit, level: f64| is_at(unit.rate(candidate), level);
        other != at
            && is_able(candidate)
            && is_even(candidate)
            && (load(candidate) != load(row) || candidate.mean_queue_depth() != row.mean_queue_depth())
            && UNITS.into_iter().zip(levels).any(|(unit, level)| is_alike(unit, level))
    };
    let is_held = is_limited(row) || rows.iter().enumerate().any(is_at_level);
    is_held.then_some(Witness { row: at, levels, before, is_within: false })
}

fn is_at(rate: f64, level: f64) -> bool {
    (rate / level - 1.0).abs() <= AT_LEVEL
}

fn is_even(row: &RecordRow<'_>) -> bool {
    let rates: Vec<f64> = row.settled().iter().map(Second::iops).collect();
    rates.len() >= 2 && coefficient_of_variation(&rates) <= EVEN + 1.5 / row.iops().max(1.0)
}

/// The fall that `witness` shows, of one direction or of both; `None` where the rows contradict it.
fn fall_of(rows: &[RecordRow<'_>], witness: &Witness, only: Option<RowKind>) -> Option<(RunFall, FallPlace)> {
    let is_of = |row: &RecordRow<'_>| row.is_direct() && (only.is_none() || row.kind() == only);
    let place_of = |unit: FallUnit, level: f64| {
        let is_above = |second: &Second| unit.of_second(second) > level * ABOVE + one(unit, rows, witness);
        let last = |(row, it): (usize, &RecordRow<'_>)| {
            let cold = it.seconds.len() - it.settled().len();
            let seconds = cold + it.settled().iter().rposition(is_above)? + 1;
            Some(FallPlace { row, seconds, is_within: seconds < it.seconds.len() })
        };
        rows.iter().enumerate().rev().filter(|(_, row)| is_of(row)).find_map(last)
    };
    let held_by = |unit: FallUnit, level: f64, place: FallPlace| -> Vec<usize> {
        let is_held = |at: &usize| is_able(&rows[*at]) && is_at(unit.rate(&rows[*at]), level);
        (place.row + 1..rows.len()).filter(is_held).collect()
    };
    let candidates = UNITS.into_iter().zip(witness.levels).filter_map(|(unit, level)| {
        let place = place_of(unit, level)?;
        let is_before = place.row < witness.row || witness.is_within && place.row == witness.row;
        is_before.then(|| (unit, level, place, held_by(unit, level, place)))
    });
    let candidates: Vec<_> = candidates.collect();
    let sizes = |held: &[usize]| {
        let mut blocks: Vec<u64> = held.iter().filter_map(|&at| rows[at].block_bytes()).collect();
        blocks.extend(witness.is_within.then(|| rows[witness.row].block_bytes()).flatten());
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len()
    };
    let most = candidates.iter().map(|(.., held)| sizes(held)).max()?;
    let mut best = candidates.iter().filter(|(.., held)| sizes(held) == most);
    let &(unit, after, place, ref held) = best.next()?;
    let known = Some(unit).filter(|_| most > 1 && best.next().is_none());
    let other = |row: &RecordRow<'_>| row.kind().is_some_and(|kind| Some(kind) != rows[witness.row].kind());
    if only.is_none() && !held.iter().any(|&at| other(&rows[at])) && rows.iter().any(other) {
        return None;
    }
    // A rate that declines all the time is at last a little above any level.
    let last_held = rows[..=place.row].iter().rev().find(|row| is_of(row) && is_able(row) && is_limited(row));
    if !place.is_within && last_held.is_some_and(|row| (ABOVE..FALLEN).contains(&(unit.rate(row) / after))) {
        return None;
    }
    let later = &rows[place.row + 1..];
    let is_other_unknown =
        only.is_some() && !later.iter().any(|row| other(row) && unit.rate(row) > after * ABOVE);
    let before = rows[..=place.row].iter().filter(|row| is_of(row) && is_able(row)).map(|row| unit.rate(row));
    let highest = before.fold(0.0, f64::max);
    let of_witness = match unit {
        FallUnit::Ios => witness.before,
        FallUnit::Bytes => witness.before * witness.levels[1] / witness.levels[0],
    };
    let is_before =
        |at: &usize| *at < place.row && is_of(&rows[*at]) && unit.rate(&rows[*at]) > after * ABOVE;
    let (burst_ns, moved) = until(rows, place, unit, only);
    let rest = &rows[place.row].seconds[place.seconds.min(rows[place.row].seconds.len())..];
    let held_ns = held.iter().map(|&at| rows[at].summary.measured_ns).sum::<u64>()
        + rest.iter().map(|second| second.elapsed_ns).sum::<u64>();
    let fall = RunFall {
        unit: known,
        only,
        is_other_unknown,
        before: if place.is_within { highest.max(of_witness) } else { highest },
        after,
        levels: witness.levels,
        burst_ns,
        moved,
        held_ns,
        cache: None,
        is_shared: !held.is_empty() || (0..rows.len()).any(|at| is_before(&at)),
    };
    Some((fall, place))
}

/// Of so few I/Os a second, one more or less moves their number.
fn one(unit: FallUnit, rows: &[RecordRow<'_>], witness: &Witness) -> f64 {
    match unit {
        FallUnit::Ios => 1.5,
        FallUnit::Bytes => 1.5 * rows[witness.row].block_bytes().unwrap_or(0) as f64,
    }
}

/// Time of measurement before the fall, ns, and what those rows moved in it.
fn until(rows: &[RecordRow<'_>], place: FallPlace, unit: FallUnit, only: Option<RowKind>) -> (u64, f64) {
    let phases = |row: &RecordRow<'_>| -> (u64, f64) {
        let jobs = || row.jobs().iter();
        let start = jobs().map(|job| job.ramp.as_ref().unwrap_or(&job.measured).start_ns).min();
        let end = jobs().map(|job| job.measured.end_ns).max();
        let ops = jobs().flat_map(|job| job.ramp.iter().chain([&job.measured])).flat_map(|phase| phase.ops());
        let moved = ops.map(|op| if unit == FallUnit::Ios { op.ios } else { op.bytes }).sum::<u64>();
        (end.unwrap_or(0).saturating_sub(start.unwrap_or(0)), moved as f64)
    };
    let is_of = |row: &RecordRow<'_>| only.is_none() || row.kind() == only;
    let mut sum = (0, 0.0);
    for (at, row) in rows[..=place.row].iter().enumerate() {
        let (mut ns, mut moved) = phases(row);
        if at == place.row && place.is_within {
            let after = &row.seconds[place.seconds..];
            ns = ns.saturating_sub(after.iter().map(|second| second.elapsed_ns).sum());
            moved -= after
                .iter()
                .map(|second| unit.of_second(second) * second.elapsed_ns as f64 / 1e9)
                .sum::<f64>();
        }
        sum = (sum.0 + ns, sum.1 + if is_of(row) { moved.max(0.0) } else { 0.0 });
    }
    sum
}

/// The test of a run that decides, measured once more, whether the run fell between its tests: where a row that a limit holds is slower
/// than the limits allow that earlier rows reached. `None` where nothing hangs on it, or it was measured again already.
pub fn test_to_repeat(record: &RunRecord) -> Option<usize> {
    let rows = tests(record);
    let is_known =
        |row: &RecordRow<'_>| row.test.published.as_ref().is_some_and(|published| published.own.is_some());
    if rows.iter().any(is_known) {
        return None;
    }
    let able: Vec<usize> = (0..rows.len()).filter(|&at| is_able(&rows[at])).collect();
    let is_repeated = |at: usize| {
        let alike = |later: &RecordRow<'_>| {
            let load =
                |row: &RecordRow<'_>| (row.kind(), row.block_bytes(), row.is_random(), row.jobs().len());
            load(later) == load(&rows[at]) && later.jobs()[0].iodepth() == rows[at].jobs()[0].iodepth()
        };
        rows[at + 1..].iter().any(alike)
    };
    let top = |kind: Option<RowKind>, before: usize, units: &[FallUnit], above: [f64; 2]| {
        let exceeds =
            |at: usize| units.iter().all(|unit| unit.rate(&rows[at]) > above[*unit as usize] * FALLEN);
        let fast = able.iter().copied().filter(|&at| at < before && rows[at].kind() == kind && exceeds(at));
        // Of those alike the first.
        fast.rev().max_by(|&one, &other| rows[one].settled_iops().total_cmp(&rows[other].settled_iops()))
    };
    if let Some((fall, place)) = find(&rows) {
        let other = match fall.only? {
            RowKind::Read => RowKind::Write,
            _ => RowKind::Read,
        };
        let unit = fall.unit.unwrap_or(FallUnit::Ios);
        let found = top(Some(other), place.row + 1, &[unit], fall.levels);
        return found.filter(|&at| fall.is_other_unknown && !is_repeated(at));
    }
    // Of a row that fell itself the last second counts.
    let rates_of = |at: usize| {
        let (row, all) = (&rows[at], rows[at].settled());
        let last = all.last().filter(|_| !is_even(row));
        UNITS.map(|unit| last.map_or_else(|| unit.rate(row), |second| unit.of_second(second)))
    };
    let has_fallen = |at: usize| {
        let highest = rows[at].settled().iter().map(Second::iops).fold(0.0, f64::max);
        !is_even(&rows[at]) && highest > rates_of(at)[0] * FALLEN
    };
    let suspect = |&at: &usize| {
        let rates = rates_of(at);
        let earlier = || able.iter().filter(move |&&other| other < at).map(|&other| &rows[other]);
        let is_below = |unit: FallUnit| earlier().any(|row| unit.rate(row) > rates[unit as usize] * FALLEN);
        let exceeds_later =
            |row: &RecordRow<'_>| UNITS.iter().all(|unit| unit.rate(row) > rates[*unit as usize] * ABOVE);
        // A write cache that filled shows within the row.
        (is_limited(&rows[at]) || has_fallen(at))
            && !(rows[at].kind() == Some(RowKind::Write) && flush_ns(&rows[at]) >= SLOW_FLUSH_NS)
            && UNITS.into_iter().all(is_below)
            && !able.iter().any(|&later| later > at && exceeds_later(&rows[later]))
    };
    let suspect = able.iter().copied().rfind(suspect)?;
    let rates = rates_of(suspect);
    let kinds = [rows[suspect].kind(), Some(RowKind::Read), Some(RowKind::Write)];
    let by = |units: &'static [FallUnit]| kinds.into_iter().find_map(|kind| top(kind, suspect, units, rates));
    let both = by(&UNITS);
    let apart = || [by(&UNITS[..1]), by(&UNITS[1..])];
    let wanted = both.map_or_else(apart, |both| [Some(both), None]);
    wanted.into_iter().flatten().find(|&at| !is_repeated(at))
}
