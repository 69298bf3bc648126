//! What a sweep tells: its points, the knee of each curve, the limits in each direction, and the answers to what was asked.

mod blocks;
pub mod durations;
pub mod knee;
pub mod limits;
pub mod offered;
pub mod plan;
pub mod point;
pub mod spec;

use fathom_record::{Activity, Finding, FindingId, RunRecord, Severity, SweepActivity, TestRecord};
use serde::Serialize;

use crate::criterion::{CriterionVerdict, LatencyObjective, RateGoal};
use crate::doubt::is_doubt;
use crate::pattern::AccessPattern;
use crate::sweep::durations::DirectionDurations;
use crate::sweep::knee::{Knee, curve, knee};
use crate::sweep::limits::{DirectionLimits, limits};
use crate::sweep::offered::{Highest, OfferedPoint, highest};
use crate::sweep::plan::in_jobs;
use crate::sweep::point::{SweepPoint, SweepSpot};

/// A sweep as a reader wants it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sweep {
    /// In the order they were measured.
    pub points: Vec<SweepPoint>,
    /// One per curve that has at least two points.
    pub knees: Vec<Knee>,
    /// The limits that the points show.
    pub limits: SweepLimits,
    /// How long the highest rates last.
    pub rate_durations: RateDurations,
    /// What was asked about latency, and the answer for each pattern and block size.
    pub slo: Option<SweepGoal>,
    /// The highest rate under that objective where requests come at their own pace; empty where none was offered.
    pub offered: Vec<Highest>,
    /// What was asked about a rate, and the answer for each pattern and block size.
    pub reach: Option<SweepGoal>,
}

impl Sweep {
    /// True where a goal is missed, or no offered rate meets the objective.
    pub fn is_missed(&self) -> bool {
        let never_met = |highest: &Highest| highest.search_complete && highest.best.is_none();
        self.goals().any(|goal| goal.verdict.is_missed())
            || !self.offered.is_empty() && self.offered.iter().all(never_met)
    }

    /// True where a goal is inconclusive, or the search for the highest offered rate came to no result.
    pub fn is_inconclusive(&self) -> bool {
        let unknown = |highest: &Highest| !highest.search_complete && highest.best.is_none();
        self.goals().any(|goal| goal.verdict.is_inconclusive()) || self.offered.iter().any(unknown)
    }

    fn goals(&self) -> impl Iterator<Item = &SweepGoal> {
        self.slo.iter().chain(&self.reach)
    }
}

/// The limits of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SweepLimits {
    /// Of reads.
    pub read: DirectionLimits,
    /// Of writes.
    pub write: DirectionLimits,
}

/// How long the highest rates of a sweep last.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RateDurations {
    /// Of reads.
    pub read: DirectionDurations,
    /// Of writes.
    pub write: DirectionDurations,
}

/// What was asked, and the answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepGoal {
    /// As it was asked.
    pub criterion: String,
    /// Met where some point meets it; inconclusive where none does and some had too few samples to tell.
    #[serde(flatten)]
    pub verdict: CriterionVerdict,
    /// The answer for each pattern and block size.
    pub answers: Vec<SweepAnswer>,
}

impl SweepGoal {
    fn new(criterion: &str, answers: Vec<SweepAnswer>) -> SweepGoal {
        let verdict = match () {
            () if answers.iter().any(|answer| answer.best.is_some()) => CriterionVerdict::Met,
            () if answers.iter().any(|answer| answer.inconclusive) => {
                let remedy = "use a longer --budget".to_owned();
                CriterionVerdict::inconclusive("some points had too few samples", Some(remedy))
            }
            () => CriterionVerdict::Missed,
        };
        SweepGoal { criterion: criterion.to_owned(), verdict, answers }
    }
}

/// The answer for one pattern and block size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepAnswer {
    /// The pattern.
    pub rw: AccessPattern,
    /// Bytes per request.
    pub block_size_bytes: u64,
    /// The point that answers: under an objective the one of the highest rate, for a rate the one of the least depth.
    /// `None` where none does.
    pub best: Option<SweepPoint>,
    /// No point answers, and some had too few requests to tell.
    pub inconclusive: bool,
    /// The same number of requests in flight from several jobs, where that was measured.
    pub in_jobs: Option<SweepPoint>,
    /// Which costs less CPU time per request; `None` where they were not compared.
    pub cheaper: Option<Concurrency>,
}

/// How requests are in flight together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Concurrency {
    /// One job with more depth.
    Depth,
    /// Several jobs.
    Jobs,
}

/// Which of two points costs less CPU time per request.
fn cheaper(best: Option<&SweepPoint>, in_jobs: Option<&SweepPoint>) -> Option<Concurrency> {
    let (depth, jobs) = (best?.cpu_per_request_ns?, in_jobs?.cpu_per_request_ns?);
    Some(if depth <= jobs { Concurrency::Depth } else { Concurrency::Jobs })
}

/// Assesses the points of `record`, and what was looked for.
pub fn assess(record: &RunRecord) -> Sweep {
    let (slo, reach) = match &record.header.activity {
        Activity::Sweep(SweepActivity { slo, reach }) => (slo.as_deref(), reach.as_deref()),
        _ => (None, None),
    };
    let slo = slo.and_then(|text| LatencyObjective::parse_recorded(text).ok());
    let reach = reach.and_then(|text| RateGoal::parse(text).ok());
    let measured: Vec<(SweepPoint, &TestRecord)> =
        record.tests.iter().filter_map(|test| Some((SweepPoint::of(test)?, test))).collect();
    let points: Vec<SweepPoint> = measured.iter().map(|(point, _)| point.clone()).collect();
    let curves = curves(&points);
    let least = points.iter().map(|point| point.spot.iodepth).min().unwrap_or(1);
    let knees = curves.iter().filter_map(|&of| knee(&curve(&points, of), least)).collect();
    type Choice<'a> = &'a dyn Fn(&[&SweepPoint]) -> Option<SweepPoint>;
    let answers = |answer: Choice<'_>, is_told: &dyn Fn(&SweepPoint) -> bool| -> Vec<SweepAnswer> {
        let main = curves.iter().filter(|(.., jobs)| Some(*jobs) == main_jobs(&points));
        main.map(|&(rw, block, jobs)| {
            let curve = curve(&points, (rw, block, jobs));
            let best = answer(&curve);
            let inconclusive = best.is_none() && !curve.iter().all(|point| is_told(point));
            let other = best.as_ref().and_then(|best| in_jobs(best.spot));
            let in_jobs = other.and_then(|spot| found(&points, spot));
            let cheaper = cheaper(best.as_ref(), in_jobs.as_ref());
            SweepAnswer { rw, block_size_bytes: block, best, inconclusive, in_jobs, cheaper }
        })
        .collect()
    };
    let tried: Vec<OfferedPoint> = record.tests.iter().filter_map(OfferedPoint::of).collect();
    let offered = slo.as_ref().map(|slo| highest(slo, &points, &tried)).unwrap_or_default();
    let slo = slo.map(|slo| {
        let best = |curve: &[&SweepPoint]| {
            let met = curve.iter().filter(|point| slo.verdict(&point.lat_ns).is_met());
            met.max_by(|a, b| a.iops.total_cmp(&b.iops)).map(|&point| point.clone())
        };
        let is_told = |point: &SweepPoint| slo.verdict(&point.lat_ns).decided().is_some();
        SweepGoal::new(slo.text(), answers(&best, &is_told))
    });
    let reach = reach.map(|reach| {
        let least = |curve: &[&SweepPoint]| {
            curve.iter().find(|point| point.reaches(&reach)).map(|&point| point.clone())
        };
        SweepGoal::new(reach.text(), answers(&least, &|_| true))
    });
    let of_direction = |writes: bool| main_pattern(&points, writes).zip(main_jobs(&points));
    let limits_of = |writes| {
        of_direction(writes).map(|(pattern, jobs)| limits(&points, pattern, jobs)).unwrap_or_default()
    };
    let durations_of = |writes| {
        let durations = |(pattern, jobs)| DirectionDurations::of(&measured, pattern, jobs);
        of_direction(writes).map(durations).unwrap_or_default()
    };
    let limits = SweepLimits { read: limits_of(false), write: limits_of(true) };
    let rate_durations = RateDurations { read: durations_of(false), write: durations_of(true) };
    Sweep { knees, limits, rate_durations, slo, offered, reach, points }
}

/// The findings of `record` that a sweep tells of. Its points go past the knee on purpose, so what one of them is counts less than
/// what it suffers from; what puts a verdict in doubt always counts.
pub fn findings(record: &RunRecord) -> Vec<Finding> {
    // The search for the highest rate looks for rates that are not sustained.
    let counts = |found: &Finding| {
        found.id != FindingId::RateNotSustained
            && (found.severity >= Severity::Warning
                || matches!(found.id, FindingId::BurstPossible | FindingId::InstanceCap)
                || is_doubt(&found.id))
    };
    let mut found = crate::Analysis::of(record).findings();
    found.retain(counts);
    found
}

/// The jobs of the curves that are swept in full.
fn main_jobs(points: &[SweepPoint]) -> Option<u32> {
    points.first().map(|point| point.spot.numjobs)
}

fn found(points: &[SweepPoint], spot: SweepSpot) -> Option<SweepPoint> {
    points.iter().find(|point| point.spot == spot && point.is_sound()).cloned()
}

/// The pattern that the limits of a direction are those of. Random order tells of the volume, sequential order also of read-ahead
/// and merging: where there are both, it is random order.
fn main_pattern(points: &[SweepPoint], writes: bool) -> Option<AccessPattern> {
    let patterns = AccessPattern::ALL.into_iter().filter(|pattern| pattern.writes() == writes);
    let is_there = |pattern: &AccessPattern| points.iter().any(|point| point.spot.rw == *pattern);
    patterns.into_iter().find(is_there)
}

/// Every curve: by pattern, jobs and block size.
fn curves(points: &[SweepPoint]) -> Vec<(AccessPattern, u64, u32)> {
    let mut curves: Vec<(AccessPattern, u64, u32)> =
        points.iter().map(|point| (point.spot.rw, point.spot.block_size_bytes, point.spot.numjobs)).collect();
    curves.sort_unstable_by_key(|&(rw, block, jobs)| (rw, jobs, block));
    curves.dedup();
    curves
}

#[cfg(test)]
mod goal_tests;
