//! Draws latencies from measured ones, between the block sizes and depths that were measured and beyond them.

use super::gauge::LimitBacklog;
use super::{LatencyTable, MeasuredLane};
use crate::latency::Quantile;

/// A million, in which normalised latencies have their mean.
const UNIT: u64 = 1_000_000;
/// A mean latency that is longer than a measured one by the first of these parts, or shorter by the second, is that one: with few
/// requests in flight a limiter that saves nothing up loses time.
const NEAR: u64 = 33;
const LOST: u64 = 12;
/// The golden ratio of 2^32: the parts of its multiples cover the quantiles evenly (Weyl 1916), so that few draws have the mean of
/// the whole distribution, also where one request in a hundred takes nearly all of the time.
const GOLDEN: u32 = 0x9e37_79b9;
/// A latency that was drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DrawnLatency {
    pub(crate) ns: u64,
    /// A limit decided it.
    pub(crate) is_limited: bool,
    /// Time that the limit loses beside what the request costs, ns.
    pub(crate) lost_ns: u64,
}

/// Draws the latencies of one direction.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredDraw {
    at_rest: Vec<SizeTables>,
    limited: Vec<SizeTables>,
    share: u32,
}

/// The tables of one block size, by depth.
#[derive(Clone, Debug)]
struct SizeTables {
    bytes: u64,
    by_depth: Vec<DepthTable>,
}

#[derive(Clone, Debug)]
struct DepthTable {
    depth: u64,
    quantiles: Vec<Quantile>,
    mean_ns: u64,
}

impl MeasuredDraw {
    /// `lane` must be valid. Its draws begin at `share` of the distribution, a part of 2^32.
    pub(crate) fn new(lane: &MeasuredLane, share: u32) -> Self {
        MeasuredDraw { at_rest: by_size(&lane.at_rest), limited: by_size(&lane.limited), share }
    }

    /// The next latency of a request of `bytes` that finds `depth` requests in flight, itself included. `backlog` is that of
    /// the limit that takes the longest for it, of those that are reached.
    pub(crate) fn sample(&mut self, bytes: u64, depth: u64, backlog: Option<LimitBacklog>) -> DrawnLatency {
        self.share = self.share.wrapping_add(GOLDEN);
        let share = self.share;
        let limited = nearest(&self.limited, bytes);
        let mean_at_rest = || across_sizes(&self.at_rest, bytes, depth, |table| table.mean_ns);
        if let Some(backlog) = backlog.filter(|backlog| backlog.ns >= mean_at_rest()) {
            let of_limit = DrawnLatency { ns: backlog.ns, is_limited: true, lost_ns: 0 };
            return limited.map_or(of_limit, |tables| {
                let at_rest = |of: &dyn Fn(&DepthTable) -> u64| across_sizes(&self.at_rest, bytes, 1, of);
                tables.at_limit(
                    backlog,
                    share,
                    (at_rest(&|table| table.at(share)), at_rest(&|table| table.mean_ns)),
                )
            });
        }
        // The latencies at rest are those of bursts, in which requests wait for each other. Where a constant queue depth was measured
        // to take less, its latencies apply.
        let kept = limited.filter(|tables| tables.bytes == bytes && tables.has_depth(depth));
        let kept = kept.filter(|tables| tables.across_depths(depth, |table| table.mean_ns) < mean_at_rest());
        let ns = match kept {
            Some(tables) => tables.across_depths(depth, |table| table.at(share)),
            None => across_sizes(&self.at_rest, bytes, depth, |table| table.at(share)),
        };
        DrawnLatency { ns, ..DrawnLatency::default() }
    }
}

fn by_size(tables: &[LatencyTable]) -> Vec<SizeTables> {
    let of = |table: &LatencyTable| DepthTable {
        depth: table.depth.into(),
        quantiles: table.quantiles.clone(),
        mean_ns: table.latency().mean_ns().max(1),
    };
    let groups = tables.chunk_by(|one, next| one.block_bytes == next.block_bytes);
    groups
        .map(|group| SizeTables {
            bytes: group[0].block_bytes.into(),
            by_depth: group.iter().map(of).collect(),
        })
        .collect()
}

/// The tables of the size whose ratio to `bytes` is the smallest.
fn nearest(sizes: &[SizeTables], bytes: u64) -> Option<&SizeTables> {
    let ratio = |tables: &SizeTables| {
        let (less, more) = (tables.bytes.min(bytes).max(1), tables.bytes.max(bytes));
        u128::from(more) * 1_000_000 / u128::from(less)
    };
    sizes.iter().min_by_key(|tables| ratio(tables))
}

/// `of` the tables at a size and depth between those that were measured.
fn across_sizes(sizes: &[SizeTables], bytes: u64, depth: u64, of: impl Fn(&DepthTable) -> u64) -> u64 {
    let mean = |index: usize| sizes[index].across_depths(depth, |table| table.mean_ns);
    interpolate(
        sizes.len(),
        |index| sizes[index].bytes,
        bytes,
        mean,
        |index| sizes[index].across_depths(depth, &of),
    )
}

impl SizeTables {
    /// `of` the tables at a depth between those that were measured.
    fn across_depths(&self, depth: u64, of: impl Fn(&DepthTable) -> u64) -> u64 {
        let tables = &self.by_depth;
        interpolate(
            tables.len(),
            |index| tables[index].depth,
            depth,
            |index| tables[index].mean_ns,
            |index| of(&tables[index]),
        )
    }

    /// Whether the depth is one of those that were measured, or between them.
    fn has_depth(&self, depth: u64) -> bool {
        let depth_of = |table: Option<&DepthTable>| table.map_or(0, |table| table.depth);
        (depth_of(self.by_depth.first())..=depth_of(self.by_depth.last())).contains(&depth)
    }

    /// A latency at a limit whose mean is `backlog.ns`. It differs from the mean by as much time as the measured one did from its own, or,
    /// at a much higher rate than was measured, as those at rest do (above and below their mean), of which less is hidden by
    /// the width of bins. Where the measured ones differ by most of their mean, as behind a limiter that releases requests in turns, it
    /// has their ratio; in a queue longer than any measured, less of it, so that its order is kept.
    fn at_limit(
        &self,
        backlog: LimitBacklog,
        share: u32,
        (at_rest, mean_at_rest): (u64, u64),
    ) -> DrawnLatency {
        let last = self.by_depth.last().map_or(1, |table| table.depth);
        let depth = backlog.depth.min(last);
        let of = |value: fn(&DepthTable, u32) -> u64| self.across_depths(depth, |table| value(table, share));
        let (drawn, mean) = (of(|table, share| table.at(share)), of(|table, _| table.mean_ns));
        // As it was measured: rates of one limit differ a little from depth to depth.
        let longer = mean.saturating_sub(backlog.ns);
        let is_near = longer <= mean / LOST && backlog.ns <= mean + mean / NEAR;
        if backlog.depth == depth && is_near {
            return DrawnLatency { ns: drawn, is_limited: true, lost_ns: longer / depth };
        }
        let held = |ns: u64| DrawnLatency { ns, is_limited: true, lost_ns: 0 };
        let below_mean = mean.saturating_sub(of(|table, _| table.at(0)));
        if below_mean <= mean / 2 {
            let (drawn, mean) = if backlog.ns < mean / 2 { (at_rest, mean_at_rest) } else { (drawn, mean) };
            return held(backlog.ns.saturating_add(drawn).saturating_sub(mean));
        }
        let apart = |ns: u64| scaled(scaled(backlog.ns, ns, mean), depth, backlog.depth);
        held(match drawn.checked_sub(mean) {
            Some(above) => backlog.ns.saturating_add(apart(above)),
            None => backlog.ns.saturating_sub(apart(mean - drawn)),
        })
    }
}

impl DepthTable {
    /// The latency that `share` of 2^32 requests do not exceed.
    fn at(&self, share: u32) -> u64 {
        let share = u64::from(share) * UNIT;
        let place = |quantile: &Quantile| u64::from(quantile.per_million) << 32;
        let upper = self.quantiles.partition_point(|quantile| place(quantile) < share);
        let upper = upper.clamp(1, self.quantiles.len() - 1);
        let (from, to) = (&self.quantiles[upper - 1], &self.quantiles[upper]);
        let width = place(to) - place(from);
        from.ns + scaled(to.ns - from.ns, share.saturating_sub(place(from)).min(width), width)
    }
}

/// `value` at `x`, between points that have `x_at` and `value`: linear between two, that of the first below it. Beyond the last the
/// share of its mean that is proportional to `x`, which the last two points show, goes on to grow.
fn interpolate(
    points: usize,
    x_at: impl Fn(usize) -> u64,
    x: u64,
    mean: impl Fn(usize) -> u64,
    value: impl Fn(usize) -> u64,
) -> u64 {
    let above = (0..points).position(|index| x_at(index) >= x);
    match above {
        Some(0) => value(0),
        Some(upper) => {
            let (from, to) = (x_at(upper - 1), x_at(upper));
            let (low, high) = (value(upper - 1), value(upper));
            let part = |span| scaled(span, x - from, to - from);
            if high >= low { low + part(high - low) } else { low - part(low - high) }
        }
        None => {
            let last = points - 1;
            let own = value(last);
            if last == 0 {
                return own;
            }
            let (from, to) = (x_at(last - 1), x_at(last));
            let grown = mean(last).saturating_sub(mean(last - 1));
            // Of a million: how much of the mean would have grown from 0 with the same slope.
            let slope = scaled(scaled(grown, UNIT, mean(last).max(1)), to, to - from).min(UNIT);
            own.saturating_add(scaled(scaled(own, slope, UNIT), x - to, to))
        }
    }
}

fn scaled(value: u64, by: u64, of: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(by) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::tests::{flat, table};

    #[test]
    fn latencies_between_measured_ones_are_interpolated() {
        let at_rest = vec![
            flat(4096, 1, 100_000),
            flat(4096, 8, 100_000),
            flat(4096, 16, 200_000),
            flat(65_536, 1, 220_000),
        ];
        let mut draw = MeasuredDraw::new(&MeasuredLane { at_rest, limited: Vec::new() }, 0);
        for (bytes, depth, expected) in [
            (4096, 1, 100_000),
            (512, 1, 100_000),
            (4096, 4, 100_000),
            (4096, 12, 150_000),
            // A medium that is busy serves each of twice as many in twice the time.
            (4096, 32, 400_000),
            (34_816, 1, 160_000),
            (65_536, 64, 220_000),
        ] {
            let drawn = draw.sample(bytes, depth, None);
            assert_eq!((drawn.ns, drawn.is_limited), (expected, false), "{bytes} {depth}");
        }
    }

    #[test]
    fn few_draws_have_the_quantiles_and_the_mean() {
        // One in a hundred takes nearly all of the time.
        let points = [(0, 50_000), (990_000, 60_000), (990_001, 95_000_000), (1_000_000, 95_000_000)];
        let lane = MeasuredLane { at_rest: vec![table(4096, 1, &points)], limited: Vec::new() };
        let mut draw = MeasuredDraw::new(&lane, 7);
        let drawn: Vec<u64> = (0..2000).map(|_| draw.sample(4096, 1, None).ns).collect();
        let slow = drawn.iter().filter(|ns| **ns > 60_000).count();
        assert!((19..=21).contains(&slow), "{slow}");
        let mean = drawn.iter().sum::<u64>() as f64 / 2000.0;
        let expected = 0.99 * 55_000.0 + 0.01 * 95_000_000.0;
        assert!((mean / expected - 1.0).abs() < 0.03, "{mean} of {expected}");
    }

    #[test]
    fn a_limit_gives_the_mean_and_the_measurement_the_shape() {
        let at_rest = vec![flat(4096, 1, 50_000)];
        let limited = vec![table(4096, 8, &[(0, 1_000_000), (1_000_000, 15_000_000)])];
        let mut draw = MeasuredDraw::new(&MeasuredLane { at_rest, limited }, 0);
        let backlog = Some(LimitBacklog { ns: 8_000_000, depth: 8 });
        let drawn: Vec<u64> = (0..1000).map(|_| draw.sample(4096, 8, backlog).ns).collect();
        let mean = drawn.iter().sum::<u64>() / 1000;
        assert!(mean.abs_diff(8_000_000) < 20_000, "{mean}");
        assert!(drawn.iter().all(|ns| (1_000_000..=15_000_000).contains(ns)));
        // At another rate turns have the same ratio, and all else the same difference.
        let within = |draw: &mut MeasuredDraw, ns, least: u64, most: u64| {
            let drawn = (0..1000).map(|_| draw.sample(4096, 8, Some(LimitBacklog { ns, depth: 8 })).ns);
            let (low, high) = drawn.fold((u64::MAX, 0), |(low, high), ns| (low.min(ns), high.max(ns)));
            assert!(low.abs_diff(least) < 100_000 && high.abs_diff(most) < 100_000, "{ns}: {low} {high}");
        };
        within(&mut draw, 800_000, 100_000, 1_500_000);
        let limited = vec![table(4096, 8, &[(0, 5_000_000), (1_000_000, 11_000_000)])];
        let at_rest = vec![table(4096, 1, &[(0, 500_000), (1_000_000, 900_000)])];
        let mut even = MeasuredDraw::new(&MeasuredLane { at_rest, limited }, 0);
        within(&mut even, 80_000_000, 77_000_000, 83_000_000);
        within(&mut even, 2_000_000, 1_800_000, 2_200_000);
        // No limit makes a volume faster than it is at rest.
        let unlimited = draw.sample(4096, 1, Some(LimitBacklog { ns: 40_000, depth: 1 }));
        assert_eq!((unlimited.ns, unlimited.is_limited), (50_000, false));
    }

    #[test]
    fn as_many_in_flight_take_no_longer_below_the_limit_than_was_measured_at_it() {
        // Eight at once wait for each other's transfer, as eight in flight do not.
        let at_rest = vec![flat(4096, 1, 842_000), flat(4096, 8, 1_216_000), flat(65_536, 8, 9_000_000)];
        let limited = vec![flat(4096, 8, 1_071_000), flat(4096, 64, 8_360_000)];
        let mut draw = MeasuredDraw::new(&MeasuredLane { at_rest, limited }, 0);
        let mut drawn = |bytes: u64, depth: u64| draw.sample(bytes, depth, None).ns;
        assert_eq!([drawn(4096, 1), drawn(4096, 8), drawn(65_536, 8)], [842_000, 1_071_000, 9_000_000]);
        let found = draw.sample(4096, 8, Some(LimitBacklog { ns: 1_044_000, depth: 8 }));
        assert_eq!((found.ns, found.is_limited), (1_071_000, false));
    }
}
