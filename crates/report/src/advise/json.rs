//! The document of `advise`: `fathom.advise/1`. A figure is null where what is known of the load does not determine it within a
//! tenth; its range is always there.

use std::io::{self, Write};

use fathom_analysis::advise::{
    Advice, AdvisedCandidate, AdvisedLoad, AdvisedParameters, GrowthBreak, ObjectiveSource,
    UnsuitableCandidate,
};
use fathom_model::MonthlyCost;
use fathom_predict::{
    LowestCredits, PredictedSlice, Prediction, PredictionRange, PredictionSet, ThrottleCause,
};
use fathom_record::OpSummary;
use serde::Serialize;

use crate::document;

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.advise/1";

#[derive(Serialize)]
struct AdviseDocument<'a> {
    schema: &'static str,
    tool_version: &'static str,
    observed: &'a AdvisedLoad,
    objective: ObjectiveDocument<'a>,
    growth: f64,
    /// The present volume under the load as it is; null where it is not known.
    current: Option<CandidateDocument<'a>>,
    /// In order of preference.
    candidates: Vec<CandidateDocument<'a>>,
    /// Types without a volume that could be predicted.
    unsuitable: &'a [UnsuitableCandidate],
    /// Types that are no longer sold and were left out.
    left_out: usize,
    /// The volume to take; null where none meets the objective for sure.
    answer: Option<AnswerDocument<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct ObjectiveDocument<'a> {
    source: ObjectiveSource,
    requirements: &'a [String],
}

#[derive(Serialize)]
struct AnswerDocument<'a> {
    id: &'a str,
    target: &'a str,
    parameters: &'a AdvisedParameters,
    instance: Option<&'a str>,
    price: Option<&'a MonthlyCost>,
    breaks: Option<&'a GrowthBreak>,
}

#[derive(Serialize)]
struct CandidateDocument<'a> {
    id: &'a str,
    /// Its name as a target of other commands.
    target: &'a str,
    parameters: &'a AdvisedParameters,
    instance: Option<&'a str>,
    is_current: bool,
    /// Null where what is known cannot decide.
    meets: Option<bool>,
    /// `met`, `missed` or `inconclusive`.
    verdict: &'static str,
    /// Why it is missed or inconclusive.
    why: Option<&'a str>,
    /// What would decide it.
    remedy: Option<&'a str>,
    /// `requests` were replayed, or `sums` folded.
    by: &'static str,
    predicted: PredictedDocument<'a>,
    price: Option<&'a MonthlyCost>,
    breaks: Option<&'a GrowthBreak>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct PredictedDocument<'a> {
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    lat_ns: LatencyDocument<Option<f64>>,
    read: Option<LatencyDocument<Option<f64>>>,
    write: Option<LatencyDocument<Option<f64>>>,
    /// Share of the time in which requests waited for a limit.
    throttled_share: Option<f64>,
    /// When burst credits were exhausted first; null where they were not, or may not have been.
    exhausted_ns: Option<u64>,
    /// The lowest level of burst credits in the worst case; null without a bucket.
    lowest_credits: Option<LowestCredits>,
    /// The most outstanding requests in the worst case.
    longest_queue: u64,
    /// Time beyond the end of the load that the rest takes, in the worst case, ns.
    backlog_ns: u64,
    /// Share of the rate that is served.
    served_share: Option<f64>,
    /// Time in which the latency objective is missed, in the worst case, ns; null without one.
    above_objective_ns: Option<u64>,
    throttled_by: &'a [ThrottleCause],
    range: RangeDocument,
    course: &'a [PredictedSlice],
}

#[derive(Serialize)]
struct RangeDocument {
    iops: Option<PredictionRange>,
    bytes_per_second: Option<PredictionRange>,
    lat_ns: LatencyDocument<Option<PredictionRange>>,
    throttled_share: Option<PredictionRange>,
    /// Null where credits may not be exhausted.
    exhausted_ns: Option<PredictionRange>,
}

#[derive(Serialize)]
struct LatencyDocument<T> {
    mean: T,
    p50: T,
    p99: T,
    p999: T,
}

type OpOf = fn(&Prediction) -> Option<&OpSummary>;

impl LatencyDocument<Option<PredictionRange>> {
    fn of(set: &PredictionSet, op: OpOf) -> Self {
        let range = |figure: fn(&OpSummary) -> Option<f64>| set.range(|one| figure(op(one)?));
        LatencyDocument {
            mean: range(|op| op.lat_ns.mean),
            p50: range(|op| op.lat_ns.p50.map(|ns| ns as f64)),
            p99: range(|op| op.lat_ns.p99.map(|ns| ns as f64)),
            p999: range(|op| op.lat_ns.p999.map(|ns| ns as f64)),
        }
    }

    fn values(&self) -> LatencyDocument<Option<f64>> {
        let value = |range: Option<PredictionRange>| range.and_then(PredictionRange::value);
        LatencyDocument {
            mean: value(self.mean),
            p50: value(self.p50),
            p99: value(self.p99),
            p999: value(self.p999),
        }
    }
}

impl<'a> PredictedDocument<'a> {
    fn of(set: &'a PredictionSet) -> Self {
        let total: OpOf = |one| one.summary.total.as_ref();
        let range = RangeDocument {
            iops: set.range(|one| Some(total(one)?.iops)),
            bytes_per_second: set.range(|one| Some(total(one)?.bytes_per_second)),
            lat_ns: LatencyDocument::of(set, total),
            throttled_share: set.range(|one| Some(one.throttled_share)),
            exhausted_ns: set.exhausted(),
        };
        let direction = |op: OpOf| {
            let has = set.all.iter().any(|one| op(one).is_some());
            has.then(|| LatencyDocument::of(set, op).values())
        };
        let value = |range: Option<PredictionRange>| range.and_then(PredictionRange::value);
        let most = |figure: fn(&Prediction) -> Option<u64>| set.all.iter().filter_map(figure).max();
        let first = set.first();
        let lowest = set.all.iter().filter_map(|one| one.lowest_credits);
        PredictedDocument {
            iops: value(range.iops),
            bytes_per_second: value(range.bytes_per_second),
            lat_ns: range.lat_ns.values(),
            read: direction(|one| one.summary.read.as_ref()),
            write: direction(|one| one.summary.write.as_ref()),
            throttled_share: value(range.throttled_share),
            exhausted_ns: value(range.exhausted_ns).map(|ns| ns as u64),
            lowest_credits: lowest.min_by(|one, other| one.share.total_cmp(&other.share)),
            longest_queue: most(|one| Some(one.longest_queue)).unwrap_or(0),
            backlog_ns: most(|one| Some(one.backlog_ns)).unwrap_or(0),
            served_share: value(set.range(|one| Some(one.served_share))),
            above_objective_ns: most(|one| one.above_objective_ns),
            throttled_by: first.map(|one| one.causes.as_slice()).unwrap_or_default(),
            course: first.map(|one| one.slices.as_slice()).unwrap_or_default(),
            range,
        }
    }
}

impl<'a> CandidateDocument<'a> {
    fn of(candidate: &'a AdvisedCandidate) -> Self {
        let verdict = &candidate.verdict;
        CandidateDocument {
            id: &candidate.id,
            target: &candidate.target,
            parameters: &candidate.parameters,
            instance: candidate.instance.as_deref(),
            is_current: candidate.is_current,
            meets: verdict.verdict.decided(),
            verdict: verdict.verdict.name(),
            why: Some(verdict.why.as_str()).filter(|why| !why.is_empty()),
            remedy: verdict.verdict.reason().and_then(|(_, remedy)| remedy),
            by: if candidate.is_replayed { "requests" } else { "sums" },
            predicted: PredictedDocument::of(&candidate.predicted),
            price: candidate.price.as_ref(),
            breaks: candidate.breaks.as_ref(),
            notes: &candidate.notes,
        }
    }
}

/// Writes the document.
///
/// # Errors
/// Those of `out`.
pub fn render(advice: &Advice, out: &mut dyn Write) -> io::Result<()> {
    let answer = advice.answer().map(|answer| AnswerDocument {
        id: &answer.id,
        target: &answer.target,
        parameters: &answer.parameters,
        instance: answer.instance.as_deref(),
        price: answer.price.as_ref(),
        breaks: answer.breaks.as_ref(),
    });
    let document = AdviseDocument {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION"),
        observed: &advice.observed,
        objective: ObjectiveDocument { source: advice.source, requirements: &advice.objective },
        growth: advice.growth,
        current: advice.current.as_ref().map(CandidateDocument::of),
        candidates: advice.candidates.iter().map(CandidateDocument::of).collect(),
        unsuitable: &advice.unsuitable,
        left_out: advice.left_out,
        answer,
        notes: &advice.notes,
    };
    document::write(&document, out)
}
