//! The document of `advise`: `fathom.advise/1`. A figure is null where what is known of the load does not determine it within a
//! tenth; its range is always there.

use std::io::{self, Write};

use fathom_analysis::advise::{Advice, AdvisedCandidate};
use fathom_predict::{ExhaustionRange, Prediction, PredictionRange, PredictionSet};
use fathom_record::OpSummary;
use serde::Serialize;
use serde_json::{Value, json};

use crate::document;

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.advise/1";

/// Writes the document.
///
/// # Errors
/// Those of `out`.
pub fn render(advice: &Advice, out: &mut dyn Write) -> io::Result<()> {
    let answer = advice.answer().map(|answer| {
        json!({
            "id": answer.id,
            "target": answer.target,
            "parameters": answer.parameters,
            "instance": answer.instance,
            "price": answer.price,
            "breaks": answer.breaks,
        })
    });
    let document = json!({
        "schema": SCHEMA,
        "verdict": verdict(advice),
        "tool_version": env!("CARGO_PKG_VERSION"),
        "observed": advice.observed,
        "objective": { "source": advice.source, "requirements": advice.objective },
        "growth": advice.growth,
        "order": advice.order,
        "current": advice.current.as_ref().map(candidate),
        "candidates": advice.candidates.iter().map(candidate).collect::<Vec<Value>>(),
        "unsuitable": advice.unsuitable,
        "left_out": advice.left_out,
        "answer": answer,
        "notes": advice.notes,
    });
    document::write(&document, out)
}

/// The volume to take, or that none is known to meet the objective.
fn verdict(advice: &Advice) -> Value {
    let answer = advice.answer();
    let may = advice.candidates.iter().any(|candidate| candidate.verdict.verdict.is_inconclusive());
    json!({
        "result": match (answer, may) {
            (Some(_), _) => "met",
            (None, true) => "inconclusive",
            (None, false) => "missed",
        },
        "volume": answer.map(|answer| &answer.target),
        "is_current": answer.map(|answer| answer.is_current),
        "price": answer.and_then(|answer| answer.price.as_ref()),
        "met_up_to_growth": answer.and_then(|answer| Some(answer.breaks.as_ref()?.met_at)),
    })
}

pub(super) fn candidate(candidate: &AdvisedCandidate) -> Value {
    let verdict = &candidate.verdict;
    json!({
        "id": candidate.id,
        "target": candidate.target,
        "parameters": candidate.parameters,
        "instance": candidate.instance,
        "is_current": candidate.is_current,
        "meets": verdict.verdict.decided(),
        "verdict": verdict.verdict.name(),
        "why": Some(&verdict.why).filter(|why| !why.is_empty()),
        "remedy": verdict.verdict.reason().and_then(|(_, remedy)| remedy),
        "by": if candidate.is_replayed { "requests" } else { "sums" },
        "predicted": predicted(&candidate.predicted),
        "price": candidate.price,
        "breaks": candidate.breaks,
        "notes": candidate.notes,
    })
}

type OpOf = fn(&Prediction) -> Option<&OpSummary>;

/// A figure where its range determines it.
fn value(range: Option<PredictionRange>) -> Option<f64> {
    range.and_then(PredictionRange::value)
}

/// The latencies of an operation: ranges, or `figure` of each.
fn latencies<T: Serialize>(
    set: &PredictionSet,
    op: OpOf,
    figure: fn(Option<PredictionRange>) -> Option<T>,
) -> Value {
    let range = |of: fn(&OpSummary) -> Option<f64>| figure(set.range(|one| of(op(one)?)));
    json!({
        "mean": range(|op| op.lat_ns.mean),
        "p50": range(|op| op.lat_ns.p50.map(|ns| ns as f64)),
        "p99": range(|op| op.lat_ns.p99.map(|ns| ns as f64)),
        "p999": range(|op| op.lat_ns.p999.map(|ns| ns as f64)),
    })
}

fn predicted(set: &PredictionSet) -> Value {
    let total: OpOf = |one| one.summary.total.as_ref();
    let iops = set.total(|op| Some(op.iops));
    let rate = set.total(|op| Some(op.bytes_per_second));
    let throttled = set.range(|one| Some(one.throttled_share));
    let exhausted = set.exhausted();
    let direction = |op: OpOf| set.all.iter().any(|one| op(one).is_some()).then(|| latencies(set, op, value));
    let most = |figure: fn(&Prediction) -> Option<u64>| set.all.iter().filter_map(figure).max();
    let lowest = set.all.iter().filter_map(|one| one.lowest_credits);
    let first = set.first();
    json!({
        "iops": value(iops),
        "bytes_per_second": value(rate),
        "lat_ns": latencies(set, total, value),
        "read": direction(|one| one.summary.read.as_ref()),
        "write": direction(|one| one.summary.write.as_ref()),
        "throttled_share": value(throttled),
        "exhausted_ns": exhausted.and_then(ExhaustionRange::value),
        // From here on the worst case, but for the share that is served.
        "lowest_credits": lowest.min_by(|one, other| one.share.total_cmp(&other.share)),
        "longest_queue": most(|one| Some(one.longest_queue)).unwrap_or(0),
        "backlog_ns": most(|one| Some(one.backlog_ns)).unwrap_or(0),
        "served_share": value(set.range(|one| Some(one.served_share))),
        "above_objective_ns": most(|one| one.above_objective_ns),
        "throttled_by": first.map(|one| one.causes.as_slice()).unwrap_or_default(),
        "range": {
            "iops": iops,
            "bytes_per_second": rate,
            "lat_ns": latencies(set, total, |range| range),
            "throttled_share": throttled,
            "exhausted_ns": exhausted,
        },
        "course": first.map(|one| one.slices.as_slice()).unwrap_or_default(),
    })
}
