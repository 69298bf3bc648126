//! Which block sizes a sweep adds to those it began with: where the limits are not seen yet, and where they part.

use crate::accounting::deciding_block;
use crate::pattern::AccessPattern;
use crate::sweep::knee::{curve, has_ended};
use crate::sweep::limits::{DepthPlateau, at_the_top, levels, limits};
use crate::sweep::plan::Planner;
use crate::sweep::point::SweepSpot;
use crate::sweep::spec::{Axis, depths, first_blocks};

/// Blocks closer than this to the crossover need no other one.
const CLOSE: f64 = 0.02;
/// Steps between rounded sizes that make up a size, at least: rounding changes it by less than [`CLOSE`].
const ROUND: f64 = 32.0;

impl Planner<'_> {
    /// More block sizes where the limits are not seen yet, and at their crossover.
    pub(crate) fn finer(&self) -> Option<SweepSpot> {
        let Axis::Within(least, most) = self.spec.blocks else { return None };
        self.spec.patterns.iter().find_map(|&rw| {
            let levels = levels(self.points, rw, self.main_jobs());
            let block =
                self.unfinished(rw, &levels).or_else(|| self.block_to_add(rw, &levels, (least, most)))?;
            self.at_level(rw, block, &levels)
        })
    }

    /// A block size that was added and has no level yet.
    fn unfinished(&self, rw: AccessPattern, levels: &[DepthPlateau]) -> Option<u64> {
        let of_pattern = self.points.iter().map(|point| point.spot).filter(|spot| spot.rw == rw);
        let mut added = of_pattern.map(|spot| spot.block_size_bytes).filter(|block| {
            !first_blocks(self.spec).contains(block) && !levels.iter().any(|level| level.block == *block)
        });
        added.find(|&block| self.at_level(rw, block, levels).is_some())
    }

    /// The next block size worth adding.
    fn block_to_add(
        &self,
        rw: AccessPattern,
        levels: &[DepthPlateau],
        (least, most): (u64, u64),
    ) -> Option<u64> {
        let (first, last) = (levels.first()?, levels.last()?);
        let by_count = at_the_top(levels, |level| level.iops);
        let by_bytes = at_the_top(levels, DepthPlateau::bytes_per_second);
        let is_in = |levels: &[DepthPlateau], block: u64| levels.iter().any(|level| level.block == block);
        let is_new = |block: &u64| {
            (least..=most).contains(block)
                && block.is_multiple_of(self.spec.unit)
                && !self
                    .points
                    .iter()
                    .any(|point| (point.spot.rw, point.spot.block_size_bytes) == (rw, *block))
        };
        // Sizes below the smallest, while that one is not held by the count of requests alone.
        if by_count.len() < 2 {
            let is_held_by_bytes = is_in(&by_bytes, first.block) && by_bytes.len() > 1;
            let smaller = first.block / if is_held_by_bytes { 4 } else { 2 };
            let smaller = smaller.max(least);
            let between =
                levels.get(1).map(|second| self.rounded(((first.block * second.block) as f64).sqrt()));
            let found = Some(smaller).filter(is_new).or_else(|| between.flatten().filter(is_new));
            if found.is_some() {
                return found;
            }
        }
        // Sizes above the largest, while that one is held by the count, or alone in being held by bytes.
        let largest_alone = by_bytes.len() < 2;
        if is_in(&by_count, last.block) || largest_alone {
            let larger = last.block.saturating_mul(2).min(most);
            if is_new(&larger) {
                return Some(larger);
            }
        }
        let limits = limits(self.points, rw, self.main_jobs());
        if let Some(deciding) = limits
            .undecided
            .and_then(|undecided| deciding_block(undecided.io_unit_bytes.low()?, self.spec.unit))
        {
            return Some(deciding).filter(is_new);
        }
        let crossover = limits.crossover_block_size_bytes?.value()?;
        let is_close = |level: &DepthPlateau| (level.block as f64 / crossover - 1.0).abs() <= CLOSE;
        self.rounded(crossover).filter(|_| !levels.iter().any(is_close)).filter(is_new)
    }

    /// The nearest size with a short name that requests may have.
    fn rounded(&self, bytes: f64) -> Option<u64> {
        let step = 1 << ((bytes / ROUND) as u64).max(1).ilog2();
        let unit = if self.spec.unit.is_power_of_two() { self.spec.unit.max(step) } else { self.spec.unit };
        Some((bytes / unit as f64).round() as u64 * unit).filter(|&block| block > 0)
    }

    /// A depth for a block size that was added: from where its neighbour is flat, doubling, until it is flat itself.
    fn at_level(&self, rw: AccessPattern, block: u64, levels: &[DepthPlateau]) -> Option<SweepSpot> {
        let jobs = self.main_jobs();
        if self.is_refused(rw, block) || levels.iter().any(|level| level.block == block) {
            return None;
        }
        let apart = |level: &&DepthPlateau| (level.block as f64 / block as f64).log2().abs();
        let neighbour = levels.iter().min_by(|a, b| apart(a).total_cmp(&apart(b)))?;
        let flat = curve(self.points, (rw, neighbour.block, jobs))
            .into_iter()
            .find(|point| point.iops >= 0.95 * neighbour.iops)
            .map_or(1, |point| point.spot.iodepth);
        if has_ended(&curve(self.points, (rw, block, jobs))) {
            return None;
        }
        let deeper = depths(self.spec).into_iter().filter(|&depth| depth >= flat);
        deeper
            .map(|depth| SweepSpot { rw, block_size_bytes: block, iodepth: depth, numjobs: jobs })
            .find(|&spot| !self.is_measured(spot))
    }
}
