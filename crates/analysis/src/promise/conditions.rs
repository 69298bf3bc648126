//! What has to hold for a promise to be judged. A shortfall may be the client's, the queue's or the block size's; a good
//! figure may be a cache's. Each counts against the verdict that it would spoil, and against no other.

use fathom_record::{FindingId, PromiseRecord, RunRecord};

use super::words::spoken;
use crate::criterion::{Comparison, Metric, MetricDirection, MetricKind};
use crate::rows::RecordRow;
use crate::say::{block, count};

/// From here on a rate of bytes is one of bandwidth, and below one of requests.
const LARGE_BYTES: u64 = 64 << 10;
/// What a request usually takes is up to this many times what the quickest took.
const USUAL_OVER_LEAST: f64 = 2.0;
/// Depths agree within this share.
const DEPTH_AGREES: f64 = 0.05;

/// A promise beside what was measured of it.
#[derive(Clone, Copy)]
pub(super) struct PromiseCase<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) rows: &'a [RecordRow<'a>],
    pub(super) row: &'a RecordRow<'a>,
    pub(super) promise: &'a PromiseRecord,
    pub(super) quantity: Metric,
    pub(super) direction: MetricDirection,
    pub(super) comparison: Comparison,
}

/// Why a promise is not judged, and what would change that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    pub(super) why: String,
    pub(super) remedy: Option<String>,
}

fn doubt(why: impl Into<String>, remedy: &str) -> Option<Doubt> {
    Some(Doubt { why: why.into(), remedy: (!remedy.is_empty()).then(|| remedy.to_owned()) })
}

impl PromiseCase<'_> {
    fn is_rate(&self) -> bool {
        !matches!(self.quantity.kind, MetricKind::Latency(..))
    }

    /// A finding of this kind about the test.
    fn found(&self, id: FindingId) -> Option<&str> {
        let concerns = |tests: &[String]| tests.contains(&self.row.test.id);
        let findings = &self.record.findings;
        findings
            .iter()
            .find(|found| found.id == id && concerns(&found.tests))
            .map(|found| found.claim.as_str())
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.record.header.labels.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Requests under way on average; those asked for where latencies were not recorded.
    fn depth(&self) -> f64 {
        let held = self.row.held();
        let asked: f64 = self.row.jobs().iter().map(|job| f64::from(job.iodepth)).sum();
        if held > 0.0 { held } else { asked }
    }
}

/// What makes it a promise about something else altogether, whatever was measured.
pub(super) fn elsewhere(case: &PromiseCase<'_>) -> Option<Doubt> {
    let wanted = case.promise.conditions.instance.as_deref()?;
    let known = case.record.header.conditions.host.provider.instance_type.as_deref();
    let remedy = format!("--label instance={wanted} where it is one");
    match case.label("instance").or(known) {
        Some(found) if found == wanted => None,
        Some(found) => doubt(format!("it holds on {wanted}, and this is {found}"), ""),
        None => doubt(format!("it holds on {wanted}, and what this machine is, is not known"), &remedy),
    }
}

/// Why a figure may be better than what the volume gives.
pub(super) fn flatters(case: &PromiseCase<'_>) -> Option<Doubt> {
    const CACHES: [FindingId; 4] =
        [FindingId::CacheServed, FindingId::Buffered, FindingId::SmallWorkingSet, FindingId::HostCache];
    let found = CACHES.into_iter().find_map(|id| Some((id.clone(), case.found(id)?)))?;
    cached(found)
}

fn cached((id, claim): (FindingId, &str)) -> Option<Doubt> {
    let remedy = match id {
        FindingId::Buffered => "direct I/O (leave --buffered out)",
        _ => "a larger --size, or a target without a cache before it",
    };
    doubt(format!("a cache may have answered ({id}): {}", claim.trim_end_matches('.')), remedy)
}

/// Why a figure may be worse than what the volume gives; `bound` is what it had to reach.
pub(super) fn excuses(case: &PromiseCase<'_>, bound: f64) -> Option<Doubt> {
    let all = [
        case.found(FindingId::Buffered).and_then(|claim| cached((FindingId::Buffered, claim))),
        client(case),
        others(case),
    ];
    let mut all = all.into_iter().flatten();
    if let Some(found) = all.next() {
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

/// The client, unless a cap that was found says whose the limit is.
fn client(case: &PromiseCase<'_>) -> Option<Doubt> {
    const CLIENT: [FindingId; 3] =
        [FindingId::ClientCpuBound, FindingId::CgroupThrottled, FindingId::CpuSteal];
    let is_capped = case.found(FindingId::IopsCap).or(case.found(FindingId::BandwidthCap)).is_some();
    let (id, claim) = CLIENT.into_iter().find_map(|id| Some((id.clone(), case.found(id)?)))?;
    if is_capped && case.is_rate() && id != FindingId::ClientCpuBound {
        return None;
    }
    let why = format!("the client may be what limits ({id}): {}", claim.trim_end_matches('.'));
    doubt(why, "a machine with CPU time to spare")
}

fn others(case: &PromiseCase<'_>) -> Option<Doubt> {
    if let Some(claim) = case.found(FindingId::ForeignIo) {
        let why = format!("others used the device (foreign-io): {}", claim.trim_end_matches('.'));
        return doubt(why, "stop the other load, or measure when it rests");
    }
    let claim = case.found(FindingId::FirstTouch)?;
    let why = format!("blocks were used for the first time (first-touch): {}", claim.trim_end_matches('.'));
    doubt(why, "touch every block once before: `fathom prepare --touch`")
}

fn paced(case: &PromiseCase<'_>) -> Option<Doubt> {
    if case.row.is_paced() { doubt("the test holds itself back: it asks for no more", "") } else { None }
}

/// What the machine lets through: as the promise knows, as the user says, as several targets together showed.
fn machine(case: &PromiseCase<'_>, bound: f64) -> Option<Doubt> {
    // Either limit may be the one that holds requests of this size.
    let size = case.row.block_bytes().map(|bytes| bytes as f64);
    let requests = case.label("instance_iops").and_then(|text| text.parse::<f64>().ok());
    let bytes = case
        .label("instance_bandwidth")
        .and_then(|text| fathom_model::units::parse_bytes(text.trim_end_matches("/s")).ok())
        .map(|bytes| bytes as f64);
    let said = match case.quantity.kind {
        MetricKind::Iops => [requests, bytes.zip(size).map(|(bytes, size)| bytes / size)],
        _ => [bytes, requests.zip(size).map(|(requests, size)| requests * size)],
    };
    let promised = case.promise.conditions.instance_limit;
    let known = said.into_iter().chain([promised]).flatten().reduce(f64::min);
    if let Some(limit) = known.filter(|limit| *limit < bound) {
        let limit = spoken(case.quantity.kind, limit);
        return doubt(
            format!("the machine lets {limit} through, which is less"),
            "a machine that lets more through",
        );
    }
    let claim = case.found(FindingId::InstanceCap)?;
    doubt(
        format!("a limit above the volume holds it (instance-cap): {}", claim.trim_end_matches('.')),
        "one target alone",
    )
}

/// Requests of a size at which the other limit is the one that holds.
fn size(case: &PromiseCase<'_>, bound: f64) -> Option<Doubt> {
    let bytes = case.row.block_bytes()?;
    let (measure, asked) = (case.quantity.kind, case.promise.conditions.block_size_bytes);
    let name = block(bytes);
    match (measure, asked) {
        (MetricKind::Iops, Some(most)) if bytes > most => doubt(
            format!("it is promised for requests of up to {}, and these are of {name}", block(most)),
            "smaller requests",
        ),
        (MetricKind::BytesPerSecond, Some(least)) if bytes < least => doubt(
            format!("it is promised for requests of {} and more, and these are of {name}", block(least)),
            "larger requests",
        ),
        (MetricKind::BytesPerSecond, None) if bytes < LARGE_BYTES => {
            let needed = count(bound / bytes as f64);
            let why = format!(
                "requests of {name} would take {needed} a second to make that bandwidth: they measure requests"
            );
            doubt(why, "requests of 64k and more")
        }
        (MetricKind::Iops, None) if bytes >= LARGE_BYTES => {
            let claim = case.found(FindingId::BandwidthCap)?.trim_end_matches('.');
            let why = format!("at {name} the limit is one of bytes (bandwidth-cap): {claim}");
            doubt(why, "smaller requests")
        }
        _ => None,
    }
}

/// The depth that the promise itself asks for.
fn asked_depth(case: &PromiseCase<'_>) -> Option<Doubt> {
    let asked = case.promise.conditions.depth?;
    let held = case.depth();
    if held >= asked * (1.0 - DEPTH_AGREES) {
        return None;
    }
    let why =
        format!("it takes {} requests under way, and this test had {}", count(asked.ceil()), count(held));
    doubt(why, "a test of greater depth")
}

/// By Little: whether so many under way could have made that rate, had none waited for another.
fn depth(case: &PromiseCase<'_>, bound: f64) -> Option<Doubt> {
    // What is made durable one by one is asked for at the depth it has.
    let measured = case.quantity.of(&case.row.summary).filter(|rate| *rate > 0.0)?;
    if case.row.is_synced() {
        return None;
    }
    let alone_ns = latency_alone(case)?;
    let held = case.depth();
    let needed = case.row.iops() * (bound / measured) * alone_ns / 1e9;
    if needed <= held {
        return None;
    }
    let latency = fathom_model::units::latency(alone_ns as u64);
    let why = format!(
        "at {latency} each it takes {} requests under way, and this test had {}",
        count(needed.ceil()),
        count(held)
    );
    doubt(why, "a test of greater depth")
}

/// What a request takes when no other is in its way: that of the same test at depth 1 where there is one, else the least
/// that was seen, the ramp included, in whose beginning there was no queue yet, with what is usual above that.
fn latency_alone(case: &PromiseCase<'_>) -> Option<f64> {
    let row = case.row;
    let alike = |other: &&RecordRow<'_>| {
        other.kind() == row.kind()
            && other.block_bytes() == row.block_bytes()
            && !other.is_synced()
            && !other.is_paced()
            && other.test.id != row.test.id
            && other.held() > 0.0
            && other.held() <= 1.0 + DEPTH_AGREES
    };
    let single = case.rows.iter().find(alike).map(|other| other.lat_ns());
    let phases = row.jobs().iter().flat_map(|job| job.ramp.iter().chain([&job.measured]));
    let ops = phases.flat_map(|phase| [&phase.read, &phase.write, &phase.trim]);
    let recorded = ops.flat_map(|op| [&op.lat, &op.clat]).filter(|latency| latency.samples() > 0);
    let least = recorded.map(|latency| latency.moments.min).min()? as f64;
    Some(single.unwrap_or(least * USUAL_OVER_LEAST).min(row.lat_ns()).max(least))
}
