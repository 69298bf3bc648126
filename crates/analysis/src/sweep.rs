//! What a sweep tells: its points, the knee of each curve, the limits in each direction, and the answers to what was asked.

mod blocks;
mod goal;
pub mod knee;
pub mod limits;
pub mod offered;
pub mod plan;
pub mod point;
pub mod spec;

use fathom_record::{Activity, RunRecord, SweepActivity};

use crate::criterion::{CriterionVerdict, LatencyObjective, RateGoal};
use crate::pattern::AccessPattern;
use crate::sweep::goal::is_reached;
use crate::sweep::knee::{Knee, curve, knee};
use crate::sweep::limits::{DirectionLimits, limits};
use crate::sweep::offered::{Highest, OfferedPoint, highest};
use crate::sweep::plan::in_jobs;
use crate::sweep::point::{SweepPoint, SweepSpot};

/// A sweep as a reader wants it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// In the order they were measured.
    pub points: Vec<SweepPoint>,
    /// One per curve that has at least two points.
    pub knees: Vec<Knee>,
    /// The limits of reads.
    pub read: DirectionLimits,
    /// The limits of writes.
    pub write: DirectionLimits,
    /// What was asked about latency, and the answer for each pattern and block size.
    pub slo: Option<(String, Vec<SweepAnswer>)>,
    /// The highest rate under that objective where requests come at their own pace; empty where none was offered.
    pub offered: Vec<Highest>,
    /// What was asked about a rate, and the answer for each pattern and block size.
    pub reach: Option<(String, Vec<SweepAnswer>)>,
}

/// The answer for one pattern and block size.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepAnswer {
    /// The pattern.
    pub rw: AccessPattern,
    /// Bytes per request.
    pub block: u64,
    /// The point that answers: under an objective the one of the highest rate, for a rate the one of the least depth.
    /// `None` where none does.
    pub best: Option<SweepPoint>,
    /// No point had enough requests to tell.
    pub is_undecided: bool,
    /// The same number of requests in flight from several jobs, where that was measured.
    pub in_jobs: Option<SweepPoint>,
}

impl SweepAnswer {
    /// True where one job with more depth costs less CPU time per request than several jobs; `None` where they were not
    /// compared.
    pub fn depth_is_cheaper(&self) -> Option<bool> {
        let depth = self.best.as_ref()?.cpu_per_request_ns?;
        let jobs = self.in_jobs.as_ref()?.cpu_per_request_ns?;
        Some(depth <= jobs)
    }
}

/// Assesses the points of `record`, and what was looked for.
pub fn assess(record: &RunRecord) -> Sweep {
    let (slo, reach) = match &record.header.activity {
        Activity::Sweep(SweepActivity { slo, reach }) => (slo.as_deref(), reach.as_deref()),
        _ => (None, None),
    };
    let slo = slo.and_then(|text| LatencyObjective::parse_recorded(text).ok());
    let reach = reach.and_then(|text| RateGoal::parse(text).ok());
    let points: Vec<SweepPoint> = record.tests.iter().filter_map(SweepPoint::of).collect();
    let curves = curves(&points);
    let least = points.iter().map(|point| point.spot.depth).min().unwrap_or(1);
    let knees = curves.iter().filter_map(|&of| knee(&curve(&points, of), least)).collect();
    type Choice<'a> = &'a dyn Fn(&[&SweepPoint]) -> Option<SweepPoint>;
    let answers = |answer: Choice<'_>, is_told: &dyn Fn(&SweepPoint) -> bool| -> Vec<SweepAnswer> {
        let main = curves.iter().filter(|(.., jobs)| Some(*jobs) == main_jobs(&points));
        main.map(|&(rw, block, jobs)| {
            let curve = curve(&points, (rw, block, jobs));
            let is_undecided = !curve.iter().any(|point| is_told(point));
            let best = answer(&curve);
            let other = best.as_ref().and_then(|best| in_jobs(best.spot));
            let in_jobs = other.and_then(|spot| found(&points, spot));
            SweepAnswer { rw, block, best, is_undecided, in_jobs }
        })
        .collect()
    };
    let tried: Vec<OfferedPoint> = record.tests.iter().filter_map(OfferedPoint::of).collect();
    let offered = slo.as_ref().map(|slo| highest(slo, &points, &tried)).unwrap_or_default();
    let slo = slo.map(|slo| {
        let best = |curve: &[&SweepPoint]| {
            let met = curve.iter().filter(|point| slo.verdict(&point.lat) == CriterionVerdict::Met);
            met.max_by(|a, b| a.iops.total_cmp(&b.iops)).map(|&point| point.clone())
        };
        (
            slo.text().to_owned(),
            answers(&best, &|point| slo.verdict(&point.lat) != CriterionVerdict::Inconclusive),
        )
    });
    let reach = reach.map(|reach| {
        let least = |curve: &[&SweepPoint]| {
            curve.iter().find(|point| is_reached(&reach, point)).map(|&point| point.clone())
        };
        (reach.text().to_owned(), answers(&least, &|_| true))
    });
    let (read, write) = (direction(&points, false), direction(&points, true));
    Sweep { knees, read, write, slo, offered, reach, points }
}

/// The jobs of the curves that are swept in full.
fn main_jobs(points: &[SweepPoint]) -> Option<u32> {
    points.first().map(|point| point.spot.jobs)
}

fn found(points: &[SweepPoint], spot: SweepSpot) -> Option<SweepPoint> {
    points.iter().find(|point| point.spot == spot && point.is_sound()).cloned()
}

/// Random order tells of the volume, sequential order also of read-ahead and merging: where there are both, the limits
/// are those of random order.
fn direction(points: &[SweepPoint], writes: bool) -> DirectionLimits {
    let patterns = AccessPattern::ALL.into_iter().filter(|pattern| pattern.writes() == writes);
    let is_there = |pattern: &AccessPattern| points.iter().any(|point| point.spot.rw == *pattern);
    match (patterns.into_iter().find(is_there), main_jobs(points)) {
        (Some(pattern), Some(jobs)) => limits(points, pattern, jobs),
        _ => DirectionLimits::default(),
    }
}

/// Every curve: by pattern, jobs and block size.
fn curves(points: &[SweepPoint]) -> Vec<(AccessPattern, u64, u32)> {
    let mut curves: Vec<(AccessPattern, u64, u32)> =
        points.iter().map(|point| (point.spot.rw, point.spot.block, point.spot.jobs)).collect();
    curves.sort_unstable_by_key(|&(rw, block, jobs)| (rw, jobs, block));
    curves.dedup();
    curves
}
