//! The limits behind a grid of points: rate = min(depth / latency at rest, IOPS limit / I/Os counted, bandwidth limit / block
//! size).
//!
//! A limit is stated where the points carry it: flat over at least two depths and over at least two block sizes, all within
//! 3 %. Otherwise there is only a bound: the most that was seen.

use fathom_record::confidence::student_975;
use fathom_stats::sample::variance;
use serde::Serialize;

use crate::accounting::{BlockRate, Charge, IoUnit, charge, deciding_block};
use crate::estimate::Estimate;
use crate::pattern::AccessPattern;
use crate::plateau::{self, RUN_TO_RUN, RunRate};
use crate::sweep::knee::curve;
use crate::sweep::point::SweepPoint;

/// What a limit that has rested lets through beyond its rate, as time at that rate, ns: limits hold over slices of time.
const AHEAD_NS: f64 = 20e6;
/// Block sizes are multiples of this.
const SECTOR: u64 = 512;
/// Share of both caps that block sizes near the crossover get.
pub const NEAR: f64 = 0.9;

/// The limits in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DirectionLimits {
    /// Requests per second; `None` where nothing was measured.
    pub iops: Option<Estimate>,
    /// Bytes per second.
    pub bytes_per_second: Option<Estimate>,
    /// Bytes; smaller blocks meet the IOPS cap, larger ones the bandwidth cap.
    pub crossover_block_size_bytes: Option<Estimate>,
    /// Block sizes that get at least 90 % of both caps; `None` where one of the caps is unknown.
    pub near_both_block_size_bytes: Option<BlockSizeRange>,
    /// The most bytes that count as one I/O, where larger requests count as several.
    pub io_unit_bytes: Option<Estimate>,
    /// Why neither a bandwidth limit nor an I/O unit is stated although large requests are held; `None` where one is.
    pub undecided: Option<UndecidedCharge>,
    /// The jobs were busy all the time where the rate was greatest: that limit is theirs.
    pub is_client_bound: bool,
}

/// Large requests are held by a bandwidth limit, or count as several I/Os: the sizes that were measured have the same rates
/// under both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UndecidedCharge {
    /// The bandwidth limit, if it is one, bytes per second.
    pub bytes_per_second: f64,
    /// The I/O unit, if it is one.
    pub io_unit_bytes: Estimate,
    /// The block size that decides.
    pub deciding_block_size_bytes: Option<u64>,
}

/// Block sizes between two bounds, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockSizeRange {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl BlockSizeRange {
    /// Those that get at least [`NEAR`] of both caps.
    fn near(crossover: Option<Estimate>) -> Option<BlockSizeRange> {
        let crossover = crossover?.value()?;
        Some(BlockSizeRange { low: crossover * NEAR, high: crossover / NEAR })
    }
}

/// Where the rate of one block size stays, whatever the depth.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DepthPlateau {
    /// Bytes per request.
    pub block: u64,
    /// Requests per second.
    pub iops: f64,
    points: Vec<LevelPoint>,
    is_client_bound: bool,
}

/// A point on a level.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LevelPoint {
    run: RunRate,
    /// Requests that the rate rests on.
    ios: f64,
    /// Share of the rate that a limit may have let through ahead.
    ahead: f64,
}

impl DepthPlateau {
    /// Bytes per second.
    pub(crate) fn bytes_per_second(&self) -> f64 {
        self.iops * self.block as f64
    }
}

/// The level of one block size: at least two depths whose rates agree with the greatest.
pub(crate) fn level(
    points: &[SweepPoint],
    (rw, block, jobs): (AccessPattern, u64, u32),
) -> Option<DepthPlateau> {
    let curve = curve(points, (rw, block, jobs));
    let top = plateau::at_the_top(curve.iter().map(|point| point.iops));
    let flat: Vec<&SweepPoint> = top.into_iter().map(|place| curve[place]).collect();
    if flat.len() < 2 {
        return None;
    }
    let points = flat.iter().map(|point| LevelPoint {
        run: RunRate { rate: point.iops, resolution: point.resolution() },
        ios: point.iops * point.settled_ns as f64 / 1e9,
        ahead: AHEAD_NS / point.settled_ns.max(1) as f64,
    });
    let points: Vec<LevelPoint> = points.collect();
    let iops = plateau::mean(points.iter().map(|point| point.run));
    let is_client_bound = flat.iter().all(|point| point.is_client_bound());
    Some(DepthPlateau { block, iops, points, is_client_bound })
}

/// The levels of every block size of a pattern, ascending.
pub(crate) fn levels(points: &[SweepPoint], rw: AccessPattern, jobs: u32) -> Vec<DepthPlateau> {
    let mut blocks: Vec<u64> = points
        .iter()
        .map(|point| point.spot)
        .filter(|spot| spot.rw == rw)
        .map(|spot| spot.block_size_bytes)
        .collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks.into_iter().filter_map(|block| level(points, (rw, block, jobs))).collect()
}

/// Those of `levels` that agree with the greatest by `measure`.
pub(crate) fn at_the_top(
    levels: &[DepthPlateau],
    measure: impl Fn(&DepthPlateau) -> f64,
) -> Vec<DepthPlateau> {
    let rates: Vec<f64> = levels.iter().map(measure).collect();
    plateau::at_the_top(rates).into_iter().map(|place| levels[place].clone()).collect()
}

/// `levels` without the `others`, of which a block size at the crossover is one: that one may be held a little lower by the
/// other limit. All of them where nothing else remains.
fn without(levels: &[DepthPlateau], others: &[DepthPlateau]) -> Vec<DepthPlateau> {
    let is_other = |level: &&DepthPlateau| others.iter().any(|other| other.block == level.block);
    let left: Vec<DepthPlateau> = levels.iter().filter(|level| !is_other(level)).cloned().collect();
    if left.is_empty() { levels.to_vec() } else { left }
}

/// The mean of levels that agree, with the 95 % interval that their points leave by Student's distribution, and what all of them may
/// be off by: the spread between runs, an I/O more or less, and what the limit let through ahead.
fn together(levels: &[DepthPlateau], scale: impl Fn(&DepthPlateau) -> f64) -> Estimate {
    let points: Vec<LevelPoint> = levels
        .iter()
        .flat_map(|level| {
            let scale = scale(level);
            let scaled = move |run: RunRate| RunRate { rate: run.rate * scale, ..run };
            level.points.iter().map(move |point| LevelPoint { run: scaled(point.run), ..*point })
        })
        .collect();
    let value = plateau::mean(points.iter().map(|point| point.run));
    let rates: Vec<f64> = points.iter().map(|point| point.run.rate).collect();
    let count = rates.len() as f64;
    let half = student_975(count - 1.0) * (variance(&rates) / count).sqrt();
    let ios: f64 = points.iter().map(|point| point.ios).sum();
    let ahead = points.iter().map(|point| point.ahead).fold(1.0, f64::min);
    let alike = RUN_TO_RUN + 1.0 / ios.max(1.0);
    Estimate::Known {
        value,
        low: (value * (1.0 - alike - ahead) - half).max(0.0),
        high: value * (1.0 + alike) + half,
    }
}

/// The limits that the points of `rw` show.
pub fn limits(points: &[SweepPoint], rw: AccessPattern, jobs: u32) -> DirectionLimits {
    let levels = levels(points, rw, jobs);
    let seen = |measure: fn(&SweepPoint) -> f64| {
        let of_pattern = points.iter().filter(|point| point.spot.rw == rw && point.ios > 0);
        let most = of_pattern.map(measure).fold(0.0, f64::max);
        (most > 0.0).then_some(Estimate::AtLeast(most))
    };
    let by_count = at_the_top(&levels, |level| level.iops);
    let by_bytes = at_the_top(&levels, DepthPlateau::bytes_per_second);
    let is_client_bound = !by_count.is_empty() && by_count.iter().all(|level| level.is_client_bound);
    let iops = if by_count.len() >= 2 && !is_client_bound {
        Some(together(&without(&by_count, &by_bytes), |_| 1.0))
    } else {
        seen(|point| point.iops)
    };
    // Where every size at the top is also held by the IOPS cap, larger ones might get more bytes; so might they where one size
    // alone is at the top, as on a disk that seeks for each I/O.
    let is_byte_limited = by_bytes.len() >= 2
        && by_bytes
            .iter()
            .any(|level| !by_count.iter().any(|other| other.block == level.block) && !level.is_client_bound);
    let counted = charge_of(iops, &levels);
    let bytes_per_second = if is_byte_limited && !matches!(counted, Charge::Units(_) | Charge::Either(_)) {
        Some(together(&without(&by_bytes, &by_count), |level| level.block as f64))
    } else {
        seen(|point| point.bytes_per_second)
    };
    let crossover = match (iops, bytes_per_second, counted) {
        (Some(iops), Some(bytes), Charge::Bytes | Charge::Neither) => crossover(iops, bytes),
        _ => None,
    };
    let (io_unit_bytes, undecided) = match counted {
        Charge::Units(unit) => (Some(unit.estimate()), None),
        Charge::Either(unit) => (None, Some(undecided(&by_bytes, unit))),
        Charge::Bytes | Charge::Neither => (None, None),
    };
    DirectionLimits {
        iops,
        bytes_per_second,
        io_unit_bytes,
        undecided,
        crossover_block_size_bytes: crossover,
        near_both_block_size_bytes: BlockSizeRange::near(crossover),
        is_client_bound,
    }
}

/// What counts of a large request; unknown without a limit on I/Os.
fn charge_of(iops: Option<Estimate>, levels: &[DepthPlateau]) -> Charge {
    let Some(iops) = iops.and_then(|iops| iops.value()) else { return Charge::Neither };
    let of_target = levels.iter().filter(|level| !level.is_client_bound);
    let rates: Vec<BlockRate> =
        of_target.map(|level| BlockRate { block: level.block, iops: level.iops }).collect();
    charge(iops, &rates)
}

fn undecided(by_bytes: &[DepthPlateau], unit: IoUnit) -> UndecidedCharge {
    UndecidedCharge {
        bytes_per_second: together(by_bytes, |level| level.block as f64).value().unwrap_or_default(),
        io_unit_bytes: unit.estimate(),
        deciding_block_size_bytes: deciding_block(unit.low, SECTOR),
    }
}

/// Bandwidth cap over IOPS cap, as far as both are known.
fn crossover(iops: Estimate, bytes: Estimate) -> Option<Estimate> {
    let low = bytes.low().zip(iops.high()).map(|(bytes, iops)| bytes / iops);
    let high = bytes.high().zip(iops.low()).map(|(bytes, iops)| bytes / iops);
    match (bytes.value().zip(iops.value()), low, high) {
        (Some((bytes, iops)), Some(low), Some(high)) => {
            Some(Estimate::Known { value: bytes / iops, low, high })
        }
        (None, Some(low), None) => Some(Estimate::AtLeast(low)),
        (None, None, Some(high)) => Some(Estimate::AtMost(high)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::point::SweepSpot;
    use crate::sweep::point::model::Model;

    const KIB: u64 = 1024;

    fn measured(model: &Model, blocks: &[u64]) -> Vec<SweepPoint> {
        let spots = blocks.iter().flat_map(|&block| {
            [1, 2, 4].map(|depth| SweepSpot {
                rw: AccessPattern::RandRead,
                block_size_bytes: block,
                iodepth: depth,
                numjobs: 1,
            })
        });
        spots.map(|spot| model.measure(spot, 1_500_000_000, 0.005)).collect()
    }

    fn near(estimate: Option<Estimate>, expected: f64) {
        let Some(Estimate::Known { value, low, high }) = estimate else {
            panic!("{estimate:?}, not {expected}")
        };
        assert!((value / expected - 1.0).abs() < 0.01, "{value}, not {expected}");
        assert!(
            low <= value && value <= high && low <= expected && expected <= high,
            "{low} {expected} {high}"
        );
    }

    #[test]
    fn both_caps_and_their_crossover() {
        for (iops, kib) in [(300.0, 64.0), (1_000.0, 40.0), (5_000.0, 20.0), (3_000.0, 5.0)] {
            let model = Model::limited(iops, iops * kib * 1024.0);
            let blocks = [KIB, 2 * KIB, 4 * KIB, 16 * KIB, 64 * KIB, 80 * KIB, 256 * KIB];
            let limits = limits(&measured(&model, &blocks), AccessPattern::RandRead, 1);
            near(limits.iops, iops);
            near(limits.bytes_per_second, iops * kib * 1024.0);
            near(limits.crossover_block_size_bytes, kib * 1024.0);
        }
    }

    #[test]
    fn a_hidden_cap_has_a_bound() {
        let model = Model::limited(1e4, 10.0 * 1048576.0);
        let found = limits(&measured(&model, &[4 * KIB, 16 * KIB, 64 * KIB]), AccessPattern::RandRead, 1);
        assert!(
            matches!(found.iops, Some(Estimate::AtLeast(most)) if (2_500.0..2_620.0).contains(&most)),
            "{found:?}"
        );
        near(found.bytes_per_second, 10.0 * 1048576.0);
        assert!(
            matches!(found.crossover_block_size_bytes, Some(Estimate::AtMost(most)) if most < 4_200.0),
            "{found:?}"
        );

        let model = Model::limited(500.0, 1e9);
        let found = limits(&measured(&model, &[4 * KIB, 16 * KIB, 64 * KIB]), AccessPattern::RandRead, 1);
        near(found.iops, 500.0);
        assert!(matches!(found.bytes_per_second, Some(Estimate::AtLeast(_))), "{found:?}");
        assert!(
            matches!(found.crossover_block_size_bytes, Some(Estimate::AtLeast(least)) if least > 60_000.0),
            "{found:?}"
        );
    }

    #[test]
    fn units_of_ios_are_no_bandwidth_limit() {
        let model = Model { unit: Some(16 * KIB), ..Model::limited(1000.0, f64::INFINITY) };
        let grid = [4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB];
        let found = limits(&measured(&model, &grid), AccessPattern::RandRead, 1);
        let undecided = found.undecided.expect("whole units tell nothing");
        near(Some(undecided.io_unit_bytes), 16_384.0);
        assert_eq!(undecided.deciding_block_size_bytes, Some(20 * KIB));
        near(found.iops, 1000.0);
        assert!(matches!(found.bytes_per_second, Some(Estimate::AtLeast(_))), "{found:?}");
        assert_eq!((found.crossover_block_size_bytes, found.io_unit_bytes), (None, None));
        let decided = [4 * KIB, 16 * KIB, 20 * KIB, 64 * KIB, 256 * KIB];
        let found = limits(&measured(&model, &decided), AccessPattern::RandRead, 1);
        near(found.io_unit_bytes, 16_384.0);
        assert!(matches!(found.bytes_per_second, Some(Estimate::AtLeast(_))), "{found:?}");
        assert_eq!((found.crossover_block_size_bytes, found.undecided), (None, None));
    }

    #[test]
    fn the_largest_block_of_a_disk_that_seeks_shows_no_limit() {
        let blocks = [4, 16, 64, 256].map(|kib| kib * KIB);
        let mut points = measured(&Model::limited(1e6, 1e12), &blocks);
        for point in &mut points {
            point.iops = 1.0 / (0.008 + point.spot.block_size_bytes as f64 / 150e6);
            point.bytes_per_second = point.iops * point.spot.block_size_bytes as f64;
        }
        let found = limits(&points, AccessPattern::RandRead, 1);
        assert!(matches!(found.bytes_per_second, Some(Estimate::AtLeast(_))), "{found:?}");
        assert!(!matches!(found.crossover_block_size_bytes, Some(Estimate::Known { .. })), "{found:?}");
    }

    #[test]
    fn a_device_without_caps_has_none() {
        let model = Model::unlimited(100_000.0);
        let limits = limits(&measured(&model, &[4 * KIB, 64 * KIB]), AccessPattern::RandRead, 1);
        assert!(matches!(limits.iops, Some(Estimate::AtLeast(_))), "{limits:?}");
        assert!(matches!(limits.bytes_per_second, Some(Estimate::AtLeast(_))), "{limits:?}");
        assert_eq!((limits.crossover_block_size_bytes, limits.near_both_block_size_bytes), (None, None));
    }

    #[test]
    fn a_client_that_is_busy_all_the_time_is_no_cap_of_the_target() {
        let model = Model::limited(5_000.0, 1e9);
        let mut points = measured(&model, &[4 * KIB, 8 * KIB]);
        points.iter_mut().for_each(|point| point.cpu_per_job = 0.97);
        let limits = limits(&points, AccessPattern::RandRead, 1);
        assert!(limits.is_client_bound && limits.iops.is_some_and(|iops| iops.value().is_none()));
    }

    #[test]
    fn nothing_measured_is_nothing_known() {
        assert_eq!(limits(&[], AccessPattern::RandRead, 1), DirectionLimits::default());
    }
}
