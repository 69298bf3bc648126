//! Where more ranks stop helping, and what holds the total there.

use fathom_model::units::grouped;
use fathom_record::{FindingId, TestStatus};
use serde::Serialize;

use super::point::{Measured, ScalingPoint, doublings};
use crate::bend::FLAT;
use crate::plateau::{RUN_TO_RUN, RunRate, at_the_top, mean};
use crate::say::{mebibytes, percent};

/// Findings that say what holds the total of several hosts.
const CAUSES: [FindingId; 8] = [
    FindingId::SharedLimit,
    FindingId::InstanceCap,
    FindingId::ClientCpuBound,
    FindingId::CgroupThrottled,
    FindingId::CpuWait,
    FindingId::IopsCap,
    FindingId::BandwidthCap,
    FindingId::UnknownLimit,
];
/// Those that hold a single host: of several hosts each has a limit of its own, which more of them raise.
const OF_ONE_HOST: [FindingId; 3] = [FindingId::IopsCap, FindingId::BandwidthCap, FindingId::UnknownLimit];

/// Whether more ranks help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingOutcome {
    /// From some number of ranks on they do not.
    Limited,
    /// They did to the last.
    Growing,
    /// It cannot be told.
    Inconclusive,
}

/// What holds the total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScalingCause {
    /// The kind of the finding.
    pub id: FindingId,
    /// Ranks of the run that has it.
    pub ranks: u32,
    /// The finding.
    pub claim: String,
}

/// A total that falls again with more ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FallenRate {
    /// Ranks.
    pub ranks: u32,
    /// I/Os per second of all.
    pub iops: f64,
    /// Share of the highest rate.
    pub fraction: f64,
}

/// Where more ranks stop helping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScalingVerdict {
    /// Whether more ranks help.
    pub outcome: ScalingOutcome,
    /// The outcome as a sentence.
    pub text: String,
    /// The least number of ranks that reaches the limit.
    pub ranks: Option<u32>,
    /// The limit: I/Os per second of all ranks.
    pub iops: Option<f64>,
    /// The same in bytes per second.
    pub bytes_per_second: Option<f64>,
    /// The total of the most ranks where it is shown to be lower than the limit.
    pub fallen: Option<FallenRate>,
    /// What holds the total, as far as findings say.
    pub causes: Vec<ScalingCause>,
}

impl ScalingVerdict {
    pub(super) fn of(points: &[ScalingPoint], measured: &[Measured<'_>]) -> ScalingVerdict {
        let rated: Vec<&ScalingPoint> = points.iter().filter(|point| point.iops.is_some()).collect();
        if rated.len() < 2 {
            return inconclusive("fewer than two numbers of ranks have a rate in sum");
        }
        if measured.iter().any(lacks_ranks) {
            return inconclusive(
                "ranks are missing from a run, or did not come to its end: measure it again",
            );
        }
        if rated.iter().any(|point| point.half_fraction().is_none()) {
            return inconclusive("a run is too short for an interval of its rate: use --runtime 10s or more");
        }
        if let Some(place) = (0..rated.len() - 1).find(|&place| is_limit(&rated, place)) {
            return limited(&rated[place..], measured);
        }
        let [.., before, last] = rated.as_slice() else { return inconclusive("no step") };
        let (low, high) = gain_ends(before, last);
        if low > FLAT {
            let gain = percent(last.gain_per_doubling.unwrap_or(low));
            return ScalingVerdict {
                outcome: ScalingOutcome::Growing,
                text: format!(
                    "{} ranks do not reach a limit: the last doubling gains {gain}.",
                    grouped(last.ranks.into())
                ),
                ..inconclusive("")
            };
        }
        let reason = format!(
            "from {} to {} ranks the rate changes by {} to {} per doubling, which shows neither a gain nor its end",
            before.ranks,
            last.ranks,
            signed(low),
            signed(high)
        );
        inconclusive(&reason)
    }
}

/// True where the total of a run is not that of all its ranks.
fn lacks_ranks(one: &Measured<'_>) -> bool {
    let is_missing = one.record.header.fleet.as_ref().is_some_and(|fleet| !fleet.missing.is_empty());
    let mut hosts = one.test.fleet.iter().flat_map(|fleet| &fleet.hosts);
    is_missing || hosts.any(|host| host.status != TestStatus::Complete)
}

fn inconclusive(reason: &str) -> ScalingVerdict {
    ScalingVerdict {
        outcome: ScalingOutcome::Inconclusive,
        text: format!("Not determined: {reason}."),
        ranks: None,
        iops: None,
        bytes_per_second: None,
        fallen: None,
        causes: Vec::new(),
    }
}

fn signed(share: f64) -> String {
    if share < 0.0 { format!("-{}", percent(-share)) } else { percent(share) }
}

/// Both ends of the gain per doubling from one point to another.
fn gain_ends(from: &ScalingPoint, to: &ScalingPoint) -> (f64, f64) {
    let unknown = (-1.0, f64::INFINITY);
    let Some((before, after)) = from.iops.zip(to.iops) else { return unknown };
    let Some((one, other)) = from.half_fraction().zip(to.half_fraction()) else { return unknown };
    let half = one.hypot(other);
    let end = |factor: f64| (after / before * factor.max(0.0)).powf(1.0 / doublings(from, to)) - 1.0;
    (end(1.0 - half), end(1.0 + half))
}

/// True where every later point is shown to gain less than 5 % per doubling.
fn is_limit(points: &[&ScalingPoint], place: usize) -> bool {
    points[place + 1..].iter().all(|later| gain_ends(points[place], later).1 < FLAT)
}

/// The verdict on a limit that is reached at the first of these points.
fn limited(points: &[&ScalingPoint], measured: &[Measured<'_>]) -> ScalingVerdict {
    let rates: Vec<f64> = points.iter().filter_map(|point| point.iops).collect();
    let top = at_the_top(rates.iter().copied());
    let iops = mean(top.iter().map(|&place| RunRate { rate: rates[place], resolution: RUN_TO_RUN }));
    let first = points[0];
    let block = first.bytes_per_second.zip(first.iops).map(|(bytes, iops)| bytes / iops);
    let bytes_per_second = block.map(|block| block * iops);
    let causes = causes(first.ranks, measured);
    let fallen = points.last().and_then(|last| fallen(first, last, iops));
    let bandwidth = bytes_per_second.map(|bytes| format!(", {}", mebibytes(bytes))).unwrap_or_default();
    let who = if first.ranks == 1 { "rank does" } else { "ranks do" };
    let mut text = format!(
        "More than {} {who} not raise the total of {} IOPS{bandwidth}",
        grouped(first.ranks.into()),
        grouped(iops.round() as u64)
    );
    if let Some(fallen) = fallen {
        let (ranks, share) = (grouped(fallen.ranks.into()), percent(fallen.fraction));
        text += &format!("; with {ranks} ranks it falls to {share} of that");
    }
    text += match causes.is_empty() {
        true => ". No finding names what holds it.",
        false => ".",
    };
    ScalingVerdict {
        outcome: ScalingOutcome::Limited,
        text,
        ranks: Some(first.ranks),
        iops: Some(iops),
        bytes_per_second,
        fallen,
        causes,
    }
}

/// The total of the most ranks where it is shown to be below the limit.
fn fallen(first: &ScalingPoint, last: &ScalingPoint, iops: f64) -> Option<FallenRate> {
    let (rate, half) = last.iops.zip(last.half_fraction())?;
    let known = half.hypot(first.half_fraction()?);
    let fraction = rate / iops;
    (fraction * (1.0 + known) < 1.0 - FLAT).then_some(FallenRate { ranks: last.ranks, iops: rate, fraction })
}

/// What the findings of the runs at the limit say of it, the most telling first, each kind once.
fn causes(from: u32, measured: &[Measured<'_>]) -> Vec<ScalingCause> {
    let mut found: Vec<ScalingCause> = Vec::new();
    for id in CAUSES {
        let is_of_test = |finding: &fathom_record::Finding, test: &str| {
            finding.tests.is_empty() || finding.tests.iter().any(|known| known == test)
        };
        let at_limit = measured.iter().filter(|one| one.ranks >= from);
        // What holds the fewest ranks at the limit is the limit.
        let mut claims: Vec<(u32, String)> = at_limit
            .filter(|one| one.ranks == 1 || !OF_ONE_HOST.contains(&id))
            .flat_map(|one| {
                let of_test = one.record.findings.iter().filter(|finding| is_of_test(finding, &one.test.id));
                of_test.filter(|finding| finding.id == id).map(|finding| (one.ranks, finding.claim.clone()))
            })
            .collect();
        claims.sort();
        let first = claims.into_iter().next();
        found.extend(first.map(|(ranks, claim)| ScalingCause { id, ranks, claim }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaling::point::RateInterval;
    use fathom_record::{FleetRecord, FleetTest, HostOutcome, RunRecord, TestRecord};

    fn point(ranks: u32, iops: f64) -> ScalingPoint {
        let iops_interval = Some(RateInterval { low: iops * 0.99, high: iops * 1.01 });
        ScalingPoint { ranks, iops: Some(iops), iops_interval, ..ScalingPoint::default() }
    }

    #[test]
    fn runs_without_all_their_ranks_determine_nothing() {
        let points = [point(1, 1000.0), point(2, 1000.0), point(4, 1000.0)];
        let outcome = |record: &RunRecord, test: &TestRecord| {
            ScalingVerdict::of(&points, &[Measured { ranks: 4, record, test }]).outcome
        };
        let (mut record, mut test) = (RunRecord::default(), TestRecord::default());
        assert_eq!(outcome(&record, &test), ScalingOutcome::Limited);
        let host = HostOutcome { status: TestStatus::Incomplete, ..HostOutcome::default() };
        test.fleet = Some(FleetTest { hosts: vec![host], ..FleetTest::default() });
        assert_eq!(outcome(&record, &test), ScalingOutcome::Inconclusive);
        test.fleet = None;
        record.header.fleet = Some(FleetRecord { missing: vec![3], ..FleetRecord::default() });
        assert_eq!(outcome(&record, &test), ScalingOutcome::Inconclusive);
    }
}
