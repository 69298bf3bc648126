//! Which point of a sweep comes next. Pure: the points so far in, the next one out, so that a sweep can be tested on a
//! simulated device and go on after it was killed.
//!
//! Cheap points first: one request at a time over all block sizes, then deeper, so that a bucket of burst credits is
//! spent last. A curve that has bent is left alone; block sizes are added where the limits part.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::pattern::AccessPattern;
use crate::plateau::{SETTLE_NS, runtime_of};
use crate::sweep::knee::{curve, has_ended};
use crate::sweep::offered::OfferedRate;
use crate::sweep::point::{SweepPoint, SweepSpot};
use crate::sweep::spec::{Axis, SweepSpec, depths, first_blocks};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NextPoint {
    /// Measure here, for so many ns.
    Run(SweepSpot, u64),
    /// Offer this rate, for so many ns.
    Offer(OfferedRate, u64),
    /// There is nothing left to find.
    Done,
    /// There would be more, and no time for it.
    OutOfTime,
}

/// Measured time of a point: of a short sweep, of a long one, and of one whose requests are few.
const SHORTEST_NS: u64 = 1_000_000_000;
const LONGEST_NS: u64 = 10_000_000_000;
const ROUND_NS: u64 = 500_000_000;
const FEW_NS: u64 = 4_000_000_000;
/// Points that a sweep is thought to have.
const USUAL_POINTS: u64 = 120;
/// Share of the requests that the last slice may let through early.
const EARLY: f64 = 0.008;
/// Longest time of a point that an objective's percentile asks for.
const LONGEST_FOR_SLO_NS: u64 = 30_000_000_000;
/// The next point.
pub fn next(spec: &SweepSpec, points: &[SweepPoint]) -> NextPoint {
    let plan = Planner { spec, points };
    let Some(spot) = plan.coarse().or_else(|| plan.finer()).or_else(|| plan.goals()) else {
        return NextPoint::Done;
    };
    let runtime = plan.runtime(spot);
    let spent: u64 = points.iter().map(|point| point.elapsed_ns).sum();
    if spent + SETTLE_NS + runtime > spec.budget_ns {
        NextPoint::OutOfTime
    } else {
        NextPoint::Run(spot, runtime)
    }
}

/// What the next point is chosen from.
pub(crate) struct Planner<'a> {
    pub(crate) spec: &'a SweepSpec,
    pub(crate) points: &'a [SweepPoint],
}

impl Planner<'_> {
    pub(crate) fn main_jobs(&self) -> u32 {
        self.spec.jobs.first().copied().unwrap_or(1)
    }

    /// A point that stalled, or was too short for the objective, gets a second chance and no third.
    pub(crate) fn is_measured(&self, spot: SweepSpot) -> bool {
        let mut there = self.points.iter().filter(|point| point.spot == spot);
        let is_good = |point: &SweepPoint| point.stalled_ns.is_none() && !self.is_too_short(point);
        there.next().is_some_and(|first| is_good(first) || there.next().is_some())
    }

    /// It is too short to judge the objective, and a longer one would not be.
    fn is_too_short(&self, point: &SweepPoint) -> bool {
        let Some(slo) = self.spec.slo.as_ref().filter(|_| self.is_first_block(point.spot)) else {
            return false;
        };
        let needed_ns = slo.samples() / point.iops * 1e9;
        point.ios > 0
            && slo.verdict(&point.lat_ns).decided().is_none()
            && needed_ns < LONGEST_FOR_SLO_NS as f64
    }

    /// Objectives are looked at for one block size in full, for the others as far as their points tell.
    fn is_first_block(&self, spot: SweepSpot) -> bool {
        first_blocks(self.spec).first() == Some(&spot.block_size_bytes)
    }

    /// A point of this block size could not be measured at all: the others cannot either.
    pub(crate) fn is_refused(&self, rw: AccessPattern, block: u64) -> bool {
        self.points
            .iter()
            .any(|point| (point.spot.rw, point.spot.block_size_bytes) == (rw, block) && point.ios == 0)
    }

    /// The two deepest points of a curve are of no use: deeper ones will not be either.
    fn is_lost(&self, (rw, block, jobs): (AccessPattern, u64, u32)) -> bool {
        let on_it = |point: &&SweepPoint| {
            (point.spot.rw, point.spot.block_size_bytes, point.spot.numjobs) == (rw, block, jobs)
        };
        let mut curve: Vec<&SweepPoint> = self.points.iter().filter(on_it).collect();
        curve.sort_by_key(|point| point.spot.iodepth);
        matches!(curve[..], [.., a, b] if !a.is_sound() && !b.is_sound())
    }

    /// The next depth of a curve that has not bent yet.
    fn on_curve(&self, rw: AccessPattern, block: u64, jobs: u32) -> Option<SweepSpot> {
        let has_ended = has_ended(&curve(self.points, (rw, block, jobs)));
        if self.is_refused(rw, block) || has_ended || self.is_lost((rw, block, jobs)) {
            return None;
        }
        let spots = depths(self.spec).into_iter().map(|depth| SweepSpot {
            rw,
            block_size_bytes: block,
            iodepth: depth,
            numjobs: jobs,
        });
        spots.into_iter().find(|&spot| !self.is_measured(spot))
    }

    /// The curves of the first block sizes: shallow before deep, reads before writes, small before large.
    fn coarse(&self) -> Option<SweepSpot> {
        let mut open = Vec::new();
        for &jobs in &self.spec.jobs {
            for &rw in &self.spec.patterns {
                let spots =
                    first_blocks(self.spec).into_iter().filter_map(|block| self.on_curve(rw, block, jobs));
                open.extend(spots);
            }
        }
        let place = |jobs| self.spec.jobs.iter().position(|&other| other == jobs);
        open.into_iter().min_by_key(|spot| {
            (place(spot.numjobs), spot.in_flight(), spot.rw.writes(), spot.rw, spot.block_size_bytes)
        })
    }

    /// Depths between two of the grid where a goal begins or ends to be met, and jobs in place of depth.
    fn goals(&self) -> Option<SweepSpot> {
        self.spec.patterns.iter().find_map(|&rw| {
            let block = *first_blocks(self.spec).first()?;
            let is_met = |point: &SweepPoint| {
                self.spec.slo.as_ref().is_some_and(|slo| slo.verdict(&point.lat_ns).is_met())
            };
            let by_slo = self.spec.slo.as_ref().and_then(|_| self.between(rw, block, &is_met));
            by_slo.or_else(|| self.reaching(rw, block))
        })
    }

    /// The depth in the middle of where `holds` changes along a curve.
    fn between(
        &self,
        rw: AccessPattern,
        block: u64,
        holds: &dyn Fn(&SweepPoint) -> bool,
    ) -> Option<SweepSpot> {
        if matches!(self.spec.depths, Axis::Exactly(_)) {
            return None;
        }
        let jobs = self.main_jobs();
        let curve = curve(self.points, (rw, block, jobs));
        let changes = |pair: &&[&SweepPoint]| holds(pair[0]) != holds(pair[1]);
        let pair = curve.windows(2).find(changes)?;
        let (from, to) = (pair[0].spot.iodepth, pair[1].spot.iodepth);
        // Between rates that differ no more than two runs do, there is nothing to find.
        let is_alike = (pair[1].iops / pair[0].iops - 1.0).abs() <= 0.03;
        let spot = SweepSpot { rw, block_size_bytes: block, iodepth: from + (to - from) / 2, numjobs: jobs };
        (to - from > 1 && !is_alike && !self.is_measured(spot)).then_some(spot)
    }

    fn reaching(&self, rw: AccessPattern, block: u64) -> Option<SweepSpot> {
        let reach = self.spec.reach.as_ref()?;
        if let Some(spot) = self.between(rw, block, &|point| point.reaches(reach)) {
            return Some(spot);
        }
        let curve = curve(self.points, (rw, block, self.main_jobs()));
        let least = curve.into_iter().find(|point| point.reaches(reach))?.spot;
        in_jobs(least).filter(|&spot| !self.is_measured(spot))
    }

    /// How long to measure at `spot`, ns.
    fn runtime(&self, spot: SweepSpot) -> u64 {
        let usual = (self.spec.budget_ns / USUAL_POINTS).clamp(SHORTEST_NS, LONGEST_NS);
        let mut runtime = usual / ROUND_NS * ROUND_NS;
        if let Some(iops) = self.expected_iops(spot) {
            let seconds = |requests: f64| (requests / iops * 1e9) as u64;
            let few = seconds(f64::from(spot.in_flight()) / EARLY);
            runtime = runtime.max(few.min(FEW_NS.max(usual)));
            if let Some(slo) = self.spec.slo.as_ref().filter(|_| self.is_first_block(spot)) {
                runtime = runtime.max(seconds(slo.samples() * 1.1).min(LONGEST_FOR_SLO_NS));
            }
        }
        runtime_of(runtime)
    }

    /// The rate of the measured point most like `spot`.
    fn expected_iops(&self, spot: SweepSpot) -> Option<f64> {
        let unlike = |point: &SweepPoint| {
            let blocks = (point.spot.block_size_bytes as f64 / spot.block_size_bytes as f64).log2().abs();
            let depths = (f64::from(point.spot.in_flight()) / f64::from(spot.in_flight())).log2().abs();
            blocks + depths
        };
        let of_pattern = self.points.iter().filter(|point| point.spot.rw == spot.rw && point.iops > 0.0);
        let like = of_pattern.min_by(|a, b| unlike(a).partial_cmp(&unlike(b)).unwrap_or(Ordering::Equal))?;
        // A larger block gets no more requests through than its share of the bytes.
        let share = (like.spot.block_size_bytes as f64 / spot.block_size_bytes as f64).min(1.0);
        Some(like.iops * share)
    }
}

/// The same number of requests in flight from more than one job; `None` where that cannot be.
pub(crate) fn in_jobs(spot: SweepSpot) -> Option<SweepSpot> {
    let jobs =
        [4, 3, 2].into_iter().find(|jobs| spot.iodepth >= *jobs && spot.iodepth.is_multiple_of(*jobs))?;
    (spot.numjobs == 1).then_some(SweepSpot { iodepth: spot.iodepth / jobs, numjobs: jobs, ..spot })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criterion::{LatencyObjective, RateGoal};
    use crate::estimate::Estimate;
    use crate::sweep::limits::limits;
    use crate::sweep::point::model::Model;

    const KIB: u64 = 1024;

    fn spec() -> SweepSpec {
        SweepSpec {
            patterns: vec![AccessPattern::RandRead],
            blocks: Axis::Within(512, 1 << 20),
            depths: Axis::Within(1, 256),
            jobs: vec![1],
            unit: 512,
            budget_ns: 150_000_000_000,
            slo: None,
            reach: None,
        }
    }

    fn swept(spec: &SweepSpec, model: &Model) -> (Vec<SweepPoint>, NextPoint) {
        let (points, ended) = swept_again(spec, model);
        for (index, point) in points.iter().enumerate() {
            assert!(!points[..index].iter().any(|other| other.spot == point.spot), "{:?} twice", point.spot);
        }
        (points, ended)
    }

    fn swept_again(spec: &SweepSpec, model: &Model) -> (Vec<SweepPoint>, NextPoint) {
        let mut points = Vec::new();
        loop {
            match next(spec, &points) {
                NextPoint::Run(spot, runtime) => {
                    points.push(model.measure(spot, runtime, 0.004));
                    assert!(points.len() < 500);
                }
                ended => return (points, ended),
            }
        }
    }

    fn near(estimate: Option<Estimate>, expected: f64) {
        let value = estimate.and_then(|estimate| estimate.value()).unwrap_or(f64::NAN);
        assert!((value / expected - 1.0).abs() < 0.015, "{estimate:?}, not {expected}");
    }

    #[test]
    fn caps_are_found_within_the_time() {
        for (iops, crossover) in [
            (300.0, 64 * KIB),
            (300.0, 256 * KIB),
            (1_000.0, 40 * KIB),
            (5_000.0, 2 * KIB),
            (20_000.0, 2 * KIB),
            (20_000.0, 20 * KIB),
            (3_000.0, 130 * KIB),
            (2_000.0, 5 * KIB),
        ] {
            let bytes_per_second = iops * crossover as f64;
            let (points, ended) =
                swept(&spec(), &Model { rest_ns: 60_000.0, ..Model::limited(iops, bytes_per_second) });
            let found = limits(&points, AccessPattern::RandRead, 1);
            near(found.iops, iops);
            near(found.bytes_per_second, bytes_per_second);
            near(found.crossover_block_size_bytes, crossover as f64);
            let spent: u64 = points.iter().map(|point| point.elapsed_ns).sum();
            assert!(spent < 120_000_000_000, "{iops} {crossover}: {spent} ns in {} points", points.len());
            assert_eq!(ended, NextPoint::Done);
            let at_crossover = |point: &SweepPoint| {
                (point.spot.block_size_bytes as f64 / crossover as f64 - 1.0).abs() < 0.05
            };
            assert!(points.iter().any(at_crossover), "{iops} {crossover}");
        }
    }

    #[test]
    fn a_size_is_added_that_tells_units_from_bytes() {
        for unit in [4, 16, 24, 64, 128].map(|kib| kib * KIB) {
            let model = Model { rest_ns: 60_000.0, unit: Some(unit), ..Model::limited(1_000.0, 1e12) };
            let found = limits(&swept(&spec(), &model).0, AccessPattern::RandRead, 1);
            let reported = found.io_unit_bytes.and_then(|estimate| estimate.value()).unwrap_or(f64::NAN);
            assert!((reported / unit as f64 - 1.0).abs() < 0.05, "{unit}: {found:?}");
            assert_eq!((found.crossover_block_size_bytes, found.undecided), (None, None), "{unit}");
            let same = Model { rest_ns: 60_000.0, ..Model::limited(1_000.0, 1e3 * unit as f64) };
            let found = limits(&swept(&spec(), &same).0, AccessPattern::RandRead, 1);
            near(found.crossover_block_size_bytes, unit as f64);
            assert_eq!((found.io_unit_bytes, found.undecided), (None, None), "{unit}");
        }
    }

    #[test]
    fn cheap_points_come_first_and_flat_ones_not_at_all() {
        let model = Model { rest_ns: 500_000.0, ..Model::limited(8_000.0, 4e8) };
        let (points, _) = swept(&spec(), &model);
        let first: Vec<(u64, u32)> =
            points[..6].iter().map(|p| (p.spot.block_size_bytes / KIB, p.spot.iodepth)).collect();
        assert_eq!(first, [(4, 1), (16, 1), (64, 1), (256, 1), (4, 2), (16, 2)]);
        // Flat from 4 on: two doublings more tell so.
        let deepest = points.iter().map(|point| point.spot.iodepth).max();
        assert_eq!(deepest, Some(16));
    }

    #[test]
    fn a_list_is_kept_to_and_a_budget_ends_it() {
        let model = Model::unlimited(50_000.0);
        let lists = SweepSpec {
            blocks: Axis::Exactly(vec![4 * KIB, 8 * KIB]),
            depths: Axis::Exactly(vec![1, 16]),
            jobs: vec![1, 2],
            ..spec()
        };
        let (points, ended) = swept(&lists, &model);
        assert_eq!((points.len(), ended), (8, NextPoint::Done));
        let short = SweepSpec { budget_ns: 5_000_000_000, ..spec() };
        let (points, ended) = swept(&short, &model);
        assert_eq!((points.len(), ended), (3, NextPoint::OutOfTime));
        assert_eq!(next(&SweepSpec { budget_ns: 1, ..spec() }, &[]), NextPoint::OutOfTime);
    }

    #[test]
    fn goals_are_looked_for_between_the_depths() {
        let model = Model { rest_ns: 1e6, ..Model::limited(50_000.0, 1e12) };
        let reach = RateGoal::parse("iops>=5000").ok();
        let (points, _) = swept(&SweepSpec { reach, ..spec() }, &model);
        let least =
            points.iter().filter(|point| point.iops >= 5_000.0 && point.spot.block_size_bytes == 4096);
        assert_eq!(least.map(|point| point.spot.iodepth * point.spot.numjobs).min(), Some(5));
        // A hundred requests a second: the first point is too short for a percentile, and is measured again.
        let slow = Model { rest_ns: 1e7, ..Model::limited(1e5, 1e12) };
        let slo = LatencyObjective::parse_recorded("p99<15ms").ok();
        let (points, _) = swept_again(&SweepSpec { slo, ..spec() }, &slow);
        let reported =
            points.iter().filter(|point| point.spot.block_size_bytes == 4096 && point.spot.iodepth == 1);
        assert_eq!(reported.map(|point| point.lat_ns.p99.is_some()).collect::<Vec<_>>(), [false, true]);
        let slo = LatencyObjective::parse_recorded("mean<1.5ms").ok();
        let (points, _) = swept(&SweepSpec { slo: slo.clone(), ..spec() }, &model);
        let met = |point: &&SweepPoint| slo.as_ref().is_some_and(|slo| slo.verdict(&point.lat_ns).is_met());
        let best = points
            .iter()
            .filter(met)
            .filter(|point| point.spot.block_size_bytes == 4096)
            .map(|point| point.spot.iodepth);
        assert!(best.max() >= Some(64));
    }

    #[test]
    fn a_block_size_that_is_refused_is_left_alone() {
        let mut points = Vec::new();
        let model = Model { rest_ns: 50_000.0, ..Model::limited(1_000.0, 2e6) };
        while let NextPoint::Run(spot, runtime) = next(&spec(), &points) {
            let mut point = model.measure(spot, runtime, 0.0);
            if spot.block_size_bytes < 4096 {
                (point.ios, point.iops) = (0, 0.0);
            }
            points.push(point);
        }
        let tried: Vec<u64> =
            points.iter().map(|point| point.spot.block_size_bytes).filter(|&block| block < 4096).collect();
        assert!(tried.len() <= 3 && tried.windows(2).all(|pair| pair[0] != pair[1]), "{tried:?}");
    }

    #[test]
    fn a_point_that_stalled_gets_one_more_chance() {
        let lists =
            SweepSpec { blocks: Axis::Exactly(vec![4 * KIB]), depths: Axis::Exactly(vec![1, 2]), ..spec() };
        let model = Model { rest_ns: 50_000.0, ..Model::limited(1_000.0, 1e9) };
        let mut points = Vec::new();
        while let NextPoint::Run(spot, runtime) = next(&lists, &points) {
            let mut point = model.measure(spot, runtime, 0.0);
            point.stalled_ns = Some(3_000_000_000).filter(|_| points.is_empty());
            points.push(point);
        }
        let depths: Vec<u32> = points.iter().map(|point| point.spot.iodepth).collect();
        assert_eq!(depths, [1, 1, 2]);
    }

    #[test]
    fn jobs_in_place_of_depth() {
        let spot = |depth| SweepSpot {
            rw: AccessPattern::RandRead,
            block_size_bytes: 4096,
            iodepth: depth,
            numjobs: 1,
        };
        for (depth, expected) in
            [(1, None), (2, Some((1, 2))), (6, Some((2, 3))), (8, Some((2, 4))), (5, None)]
        {
            assert_eq!(in_jobs(spot(depth)).map(|spot| (spot.iodepth, spot.numjobs)), expected, "{depth}");
        }
    }
}
