//! Conditions for checking an expectation. A shortfall may come from the client, the queue depth or the block size; a good
//! value may come from a cache. Each condition affects only the verdict that it would falsify.

use fathom_record::stability::Second;
use fathom_record::{ExpectationRecord, Finding, FindingId, PhaseOutcome, RunRecord};

use super::interval;
use crate::criterion::{Comparison, CriterionVerdict, Metric, MetricDirection, MetricKind, Statistic};
use crate::doubt::{FigureEffect, doubts_of, stolen_at_most};
use crate::findings::instance_limit_of;
use crate::plateau::AGREE;
use crate::rows::RecordRow;
use crate::say::{block, count};

/// From this size on a rate in bytes measures bandwidth, and below it IOPS.
const LARGE_BYTES: u64 = 64 << 10;
/// The usual latency of an I/O is up to this many times the least.
const USUAL_OVER_MIN: f64 = 2.0;
/// Relative difference within which depths agree.
const DEPTH_AGREES: f64 = 0.05;

/// An expectation and what was measured of its test.
#[derive(Clone, Copy)]
pub(super) struct ExpectationCase<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) rows: &'a [RecordRow<'a>],
    pub(super) row: &'a RecordRow<'a>,
    pub(super) expectation: &'a ExpectationRecord,
    pub(super) quantity: Metric,
    pub(super) direction: MetricDirection,
    pub(super) comparison: Comparison,
}

/// Why a verdict is inconclusive, and what would decide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    pub(super) reason: String,
    pub(super) remedy: Option<String>,
}

impl Doubt {
    pub(super) fn verdict(self) -> CriterionVerdict {
        CriterionVerdict::inconclusive(self.reason, self.remedy)
    }
}

fn doubt(reason: impl Into<String>, remedy: &str) -> Option<Doubt> {
    Some(Doubt { reason: reason.into(), remedy: (!remedy.is_empty()).then(|| remedy.to_owned()) })
}

impl ExpectationCase<'_> {
    pub(super) fn is_rate(&self) -> bool {
        !matches!(self.quantity.kind, MetricKind::Latency(..))
    }

    /// The claim of such a finding about the test.
    fn found(&self, id: FindingId) -> Option<&str> {
        let concerns = |tests: &[String]| tests.contains(&self.row.test.id);
        let mut findings = self.record.findings.iter();
        findings.find(|found| found.id == id && concerns(&found.tests)).map(|found| found.claim.as_str())
    }

    /// The first finding on the test with such an effect on its figures. A volume whose limit was found is not held back by the
    /// time that its client lacks.
    fn doubted(
        &self,
        has_effect: impl Fn(FigureEffect) -> bool,
        explains: impl Fn(&Finding) -> bool,
    ) -> Option<Doubt> {
        const LACKS_TIME: [FindingId; 3] =
            [FindingId::CgroupThrottled, FindingId::CpuSteal, FindingId::CpuWait];
        const LIMITS: [FindingId; 3] = [FindingId::IopsCap, FindingId::BandwidthCap, FindingId::UnknownLimit];
        let is_capped = LIMITS.into_iter().any(|id| self.found(id).is_some());
        let is_excused = |id: &FindingId| is_capped && self.is_rate() && LACKS_TIME.contains(id);
        let (known, found) = doubts_of(self.record, &self.row.test.id, has_effect)
            .find(|(known, found)| !is_excused(&known.id) && explains(found))?;
        let claim = found.claim.trim_end_matches('.');
        doubt(format!("{} ({}): {claim}", known.reason, known.id), known.remedy)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.record.header.labels.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Mean queue depth; the configured one where latencies were not recorded.
    fn depth(&self) -> f64 {
        let mean = self.row.mean_queue_depth();
        let configured: f64 = self.row.jobs().iter().map(|job| f64::from(job.iodepth())).sum();
        if mean > 0.0 { mean } else { configured }
    }
}

/// Why the expectation does not apply to this machine.
pub(super) fn elsewhere(case: &ExpectationCase<'_>) -> Option<Doubt> {
    let wanted = case.expectation.conditions.instance.as_deref()?;
    let known = case.record.header.host().provider.instance_type.as_deref();
    let remedy = format!("use --label instance={wanted} if it is one");
    match case.label("instance").or(known) {
        Some(found) if found == wanted => None,
        Some(found) => doubt(format!("it applies to instance type {wanted}; this machine is {found}"), ""),
        None => doubt(
            format!("it applies to instance type {wanted}; the type of this machine is unknown"),
            &remedy,
        ),
    }
}

/// Why a value may be better than the volume delivers.
pub(super) fn flatters(case: &ExpectationCase<'_>) -> Option<Doubt> {
    case.doubted(FigureEffect::flatters, |_| true)
}

/// Why a value may be worse than the volume delivers; `bound` is the value to reach, `best` the best that was measured, where
/// one figure is judged.
pub(super) fn excuses(case: &ExpectationCase<'_>, bound: f64, best: Option<f64>) -> Option<Doubt> {
    let explains = |found: &Finding| best.is_none_or(|best| may_explain(case, found, bound, best));
    if let Some(found) = case.doubted(FigureEffect::impedes, explains) {
        return Some(found);
    }
    if !case.is_rate() || !case.comparison.wants_more() {
        return None;
    }
    paced(case)
        .or_else(|| machine(case, bound))
        .or_else(|| size(case, bound))
        .or_else(|| asked_depth(case))
        .or_else(|| depth(case, bound))
}

/// True where what was found may be what keeps a figure from its bound: `best` is the best value that was measured.
fn may_explain(case: &ExpectationCase<'_>, found: &Finding, bound: f64, best: f64) -> bool {
    let number = |name: &str| found.evidence.get(name).and_then(|value| value.as_f64());
    match found.id {
        FindingId::ForeignIo => {
            number("impeding_fraction").is_none_or(|share| foreign_may_explain(case, bound, best, share))
        }
        // Later accesses are faster by so much.
        FindingId::FirstTouch => number("times_slower").is_none_or(|times| {
            case.comparison.holds(if case.is_rate() { best * times } else { best / times }, bound)
        }),
        FindingId::CpuSteal => stolen_at_most(case.record, found).is_none_or(|share| {
            let kept = 1.0 - share;
            match case.quantity.kind {
                MetricKind::Iops | MetricKind::BytesPerSecond => case.comparison.holds(best / kept, bound),
                MetricKind::Latency(_, Statistic::Mean) => case.comparison.holds(best * kept, bound),
                MetricKind::Latency(..) => true,
            }
        }),
        _ => true,
    }
}

/// True where I/O of others, as a share of the test's own, may be what keeps a figure from its bound. A limit that both share
/// gives the test no more than all of it. For a percentile each foreign I/O delays no more I/Os than were in flight, so
/// without the slowest of so many the others must meet the bound.
fn foreign_may_explain(case: &ExpectationCase<'_>, bound: f64, best: f64, share: f64) -> bool {
    let holds = |value: f64| case.comparison.holds(value, bound);
    match case.quantity.kind {
        MetricKind::Iops | MetricKind::BytesPerSecond => holds(best * (1.0 + share)),
        MetricKind::Latency(_, Statistic::Mean) => holds(best / (1.0 + share)),
        MetricKind::Latency(span, Statistic::Percentile(per_million)) => {
            let delayed = share * case.depth().max(1.0);
            let rank = f64::from(per_million) / 1e6 * (1.0 - delayed);
            let without = interval::at_rank(&case.row.test, span, case.direction, rank);
            delayed >= 1.0 || without.is_none_or(holds)
        }
        MetricKind::Latency(_, Statistic::Least | Statistic::Greatest) => true,
    }
}

fn paced(case: &ExpectationCase<'_>) -> Option<Doubt> {
    if case.row.is_paced() { doubt("the settings of the test limit its rate", "") } else { None }
}

/// The limit of the machine: from the expectation, from labels, or from the findings of several targets together.
fn machine(case: &ExpectationCase<'_>, bound: f64) -> Option<Doubt> {
    // Either limit may apply to I/Os of this size.
    let size = case.row.block_bytes().map(|bytes| bytes as f64);
    let requests = case.label("instance_iops").and_then(|text| text.parse::<f64>().ok());
    let bytes = case
        .label("instance_bandwidth")
        .and_then(|text| fathom_model::units::parse_bytes(text.trim_end_matches("/s")).ok())
        .map(|bytes| bytes as f64);
    let labelled = match case.quantity.kind {
        MetricKind::Iops => [requests, bytes.zip(size).map(|(bytes, size)| bytes / size)],
        _ => [bytes, requests.zip(size).map(|(requests, size)| requests * size)],
    };
    let published = case.expectation.conditions.instance_limit;
    let known = labelled.into_iter().chain([published]).flatten().reduce(f64::min);
    let is_burst = published == known && is_above_burstable(case, bound);
    if let Some(limit) = known.filter(|limit| *limit < bound && !is_burst) {
        let limit = case.quantity.kind.quantity(limit);
        return doubt(
            format!("the limit of this machine is lower: {limit}"),
            "use a machine with a higher limit",
        );
    }
    let claim = case.found(FindingId::InstanceCap)?;
    let tests = std::slice::from_ref(&case.row.test.id);
    let remedy = match instance_limit_of(&case.record.findings, tests) {
        Some(_) => "use a machine with a higher limit",
        None => "measure one target alone",
    };
    doubt(format!("a limit above the volume applies (instance-cap): {}", claim.trim_end_matches('.')), remedy)
}

/// True where the machine had burst credits in each second, for the rate was above its baseline, and its burst allows the value.
fn is_above_burstable(case: &ExpectationCase<'_>, bound: f64) -> bool {
    let conditions = &case.expectation.conditions;
    let Some((limit, most)) = conditions.instance_limit.zip(conditions.instance_maximum) else {
        return false;
    };
    let is_rate = case.quantity.kind == MetricKind::Iops;
    let rate = |second: &Second| {
        let count = if is_rate { second.ios } else { second.bytes };
        count as f64 * 1e9 / second.elapsed_ns.max(1) as f64
    };
    let seconds = case.row.settled();
    let is_above = |second: &Second| rate(second) > limit * (1.0 + AGREE);
    most >= bound && !seconds.is_empty() && seconds.iter().all(is_above)
}

/// A block size at which the other limit applies.
fn size(case: &ExpectationCase<'_>, bound: f64) -> Option<Doubt> {
    let bytes = case.row.block_bytes()?;
    let (measure, asked) = (case.quantity.kind, case.expectation.conditions.block_size_bytes);
    let name = block(bytes);
    match (measure, asked) {
        (MetricKind::Iops, Some(most)) if bytes > most => doubt(
            format!("it applies to I/Os of up to {}; this test issues {name}", block(most)),
            "use smaller I/Os",
        ),
        (MetricKind::BytesPerSecond, Some(least)) if bytes < least => doubt(
            format!("it applies to I/Os of at least {}; this test issues {name}", block(least)),
            "use larger I/Os",
        ),
        (MetricKind::BytesPerSecond, None) if bytes < LARGE_BYTES => {
            let needed = count(bound / bytes as f64);
            let reason =
                format!("{name} I/Os measure IOPS, not bandwidth: that bandwidth needs {needed} IOPS");
            doubt(reason, "use I/Os of at least 64k")
        }
        (MetricKind::Iops, None) if bytes >= LARGE_BYTES => {
            let claim = case.found(FindingId::BandwidthCap)?.trim_end_matches('.');
            let reason = format!("the bandwidth limit applies at {name} (bandwidth-cap): {claim}");
            doubt(reason, "use smaller I/Os")
        }
        _ => None,
    }
}

/// The queue depth that the expectation itself requires.
fn asked_depth(case: &ExpectationCase<'_>) -> Option<Doubt> {
    let asked = case.expectation.conditions.depth?;
    let depth = case.depth();
    if depth >= asked * (1.0 - DEPTH_AGREES) {
        return None;
    }
    let reason = format!("it needs queue depth {}; this test had {}", count(asked.ceil()), count(depth));
    doubt(reason, "use a greater queue depth")
}

/// By Little's law: whether this queue depth could reach the rate without queueing delay.
fn depth(case: &ExpectationCase<'_>, bound: f64) -> Option<Doubt> {
    // Synchronous writes are expected at the depth they have.
    let measured = case.quantity.of(&case.row.summary).filter(|rate| *rate > 0.0)?;
    if case.row.is_synced() {
        return None;
    }
    let alone_ns = latency_alone(case)?;
    let depth = case.depth();
    let needed = case.row.iops() * (bound / measured) * alone_ns / 1e9;
    if needed <= depth {
        return None;
    }
    let latency = fathom_model::units::latency(alone_ns as u64);
    let reason = format!(
        "at {latency} per I/O it needs queue depth {}; this test had {}",
        count(needed.ceil()),
        count(depth)
    );
    doubt(reason, "use a greater queue depth")
}

/// The latency without queueing delay: that of the same test at depth 1 where there is one, else twice the least latency,
/// which includes the ramp because the queue is still empty when it starts.
fn latency_alone(case: &ExpectationCase<'_>) -> Option<f64> {
    let row = case.row;
    let alike = |other: &&RecordRow<'_>| {
        other.kind() == row.kind()
            && other.block_bytes() == row.block_bytes()
            && !other.is_synced()
            && !other.is_paced()
            && other.test.id != row.test.id
            && other.mean_queue_depth() > 0.0
            && other.mean_queue_depth() <= 1.0 + DEPTH_AGREES
    };
    let single = case.rows.iter().find(alike).map(|other| other.lat_ns());
    let phases = row.jobs().iter().flat_map(|job| job.ramp.iter().chain([&job.measured]));
    let recorded = phases
        .flat_map(PhaseOutcome::ops)
        .flat_map(|op| [&op.lat, &op.clat])
        .filter(|latency| latency.samples() > 0);
    let least = recorded.map(|latency| latency.moments.min).min()? as f64;
    Some(single.unwrap_or(least * USUAL_OVER_MIN).min(row.lat_ns()).max(least))
}
