//! The document of `identify --json`: `fathom.identify/1`. Figures are plain numbers, each with `NAME_low` and `NAME_high` beside
//! it, and `NAME_why` where there is something to say. One of which only a bound is known is null.

use std::io::{self, Write};

use fathom_analysis::estimate::Estimate;
use fathom_analysis::identified::candidate::Candidate;
use fathom_analysis::identified::prediction::{Last, Prediction, RatePhase};
use fathom_analysis::identified::{
    BucketScope, BucketUnit, Burst, Confounder, EachWay, Figure, FirstTouchCost, Identified,
};
use fathom_record::{Finding, RunRecord};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::identify::text::IdentifyReport;
use crate::run_json::DocumentHead;
use crate::{Style, document};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.identify/1";

#[derive(Serialize)]
struct IdentifyDocument<'a> {
    #[serde(flatten)]
    head: DocumentHead<'a>,
    limits: Members,
    /// The one that ran dry first; null where none was seen.
    burst: Option<Members>,
    /// All of them: a volume may have one of I/Os and one of bytes.
    bursts: Vec<Members>,
    burst_why: Option<&'a str>,
    /// How long the highest rate went on without a fall.
    held_ns: Option<u64>,
    lat_ns: Members,
    first_touch: Option<Members>,
    first_touch_why: Option<&'a str>,
    /// Other explanations of what was seen.
    confounders: Vec<Value>,
    candidates: Vec<CandidateDocument<'a>>,
    predictions: Vec<PredictionDocument<'a>>,
    findings: &'a [Finding],
    budget: BudgetDocument,
}

/// Members in the order in which they were added.
#[derive(Default)]
struct Members(Vec<(String, Member)>);

/// A value, or members of its own.
#[derive(Serialize)]
#[serde(untagged)]
enum Member {
    Plain(Value),
    Nested(Members),
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Members {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.push((name.to_owned(), Member::Plain(value.into())));
    }

    /// A figure with its bounds; without it, all null.
    fn figure(&mut self, name: &str, figure: Option<&Figure>) {
        self.figure_as(name, figure, |value| json!(value));
    }

    /// One of whole numbers.
    fn whole(&mut self, name: &str, figure: Option<&Figure>) {
        self.figure_as(name, figure, |value| json!(value.round() as u64));
    }

    fn figure_as(&mut self, name: &str, figure: Option<&Figure>, number: fn(f64) -> Value) {
        let (value, low, high) = match figure.and_then(|figure| figure.estimate) {
            Some(Estimate::Known { value, low, high }) => (Some(value), Some(low), Some(high)),
            Some(Estimate::AtLeast(low)) => (None, Some(low), None),
            Some(Estimate::AtMost(high)) => (None, None, Some(high)),
            None => (None, None, None),
        };
        for (suffix, value) in [("", value), ("_low", low), ("_high", high)] {
            let value = value.filter(|value| value.is_finite()).map_or(Value::Null, number);
            self.put(&format!("{name}{suffix}"), value);
        }
        let why = figure.map_or(Some("not looked at"), |figure| figure.why.as_deref());
        if let Some(why) = why {
            self.put(&format!("{name}_why"), why);
        }
    }

    fn each_way(each: &EachWay) -> Members {
        let mut members = Members::default();
        members.figure("read", each.read.as_ref());
        members.figure("write", each.write.as_ref());
        members
    }

    fn nested(&mut self, name: &str, members: Members) {
        self.0.push((name.to_owned(), Member::Nested(members)));
    }
}

#[derive(Serialize)]
struct BudgetDocument {
    /// Null where the run does not say.
    announced: Option<AnnouncedDocument>,
    spent: SpentDocument,
}

/// The most that it was going to take.
#[derive(Serialize)]
struct AnnouncedDocument {
    time_ns: u64,
    ios: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct SpentDocument {
    time_ns: u64,
    ios: u64,
    bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
}

#[derive(Serialize)]
struct CandidateDocument<'a> {
    id: &'a str,
    provider: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    lifecycle: &'a str,
    distance: f64,
    parameters: ParametersDocument<'a>,
}

/// What to choose to have such a volume. Null is what its figures do not depend on, or what is included.
#[derive(Serialize)]
struct ParametersDocument<'a> {
    size_bytes: Option<u64>,
    /// Sizes that fit about as well.
    size_bytes_low: Option<u64>,
    size_bytes_high: Option<u64>,
    /// False where the target has another size, null where that is not known.
    size_is_the_targets: Option<bool>,
    iops: Option<u64>,
    bytes_per_second: Option<u64>,
    tier: Option<&'a str>,
    /// Bursts that are billed have to be ordered.
    on_demand: bool,
}

#[derive(Serialize)]
struct PredictionDocument<'a> {
    what: String,
    direction: &'static str,
    pattern: &'static str,
    block_size_bytes: u64,
    iops: f64,
    bytes_per_second: f64,
    /// How long that lasts; null = for good, where `then_iops` is the same, or it is not known.
    seconds: Option<f64>,
    /// The least that it may be: without an end, for how long it was watched.
    seconds_low: Option<f64>,
    seconds_high: Option<f64>,
    /// The rate that holds for good; null where it is not known.
    then_iops: Option<f64>,
    then_bytes_per_second: Option<f64>,
    /// Rest after which all credit is back; null where none is used up.
    seconds_to_refill: Option<f64>,
    /// Every rate on the way.
    phases: Vec<PhaseDocument>,
    text: &'a str,
}

#[derive(Serialize)]
struct PhaseDocument {
    iops: f64,
    bytes_per_second: f64,
    seconds: Option<f64>,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(report: &IdentifyReport<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let IdentifyReport { record, found, .. } = report;
    let document = IdentifyDocument {
        head: DocumentHead::new(SCHEMA, record, style),
        limits: limits(found),
        burst: found.bursts.first().map(burst),
        bursts: found.bursts.iter().map(burst).collect(),
        burst_why: found.burst_why.as_deref(),
        held_ns: found.held_ns,
        lat_ns: Members::each_way(&found.lat_ns),
        first_touch: found.first_touch.as_ref().map(first_touch),
        first_touch_why: found.first_touch_why.as_deref(),
        confounders: found.confounders.iter().map(confounder).collect(),
        candidates: report.candidates.iter().map(candidate).collect(),
        predictions: report.predictions.iter().map(prediction).collect(),
        findings: &record.findings,
        budget: budget(record, found),
    };
    document::write(&document, out)
}

fn limits(found: &Identified) -> Members {
    let mut members = Members::default();
    members.nested("iops", Members::each_way(&found.iops));
    members.nested("bytes_per_second", Members::each_way(&found.bytes_per_second));
    members.put("shared", found.is_shared);
    if let Some(why) = found.shared_why.as_deref() {
        members.put("shared_why", why);
    }
    members.figure("crossover_block_size_bytes", Some(&found.crossover));
    members.whole("io_unit_bytes", Some(&found.io_unit));
    members.whole("parallelism", Some(&found.parallelism));
    members
}

fn burst(burst: &Burst) -> Members {
    let mut members = Members::default();
    members.put(
        "unit",
        match burst.unit {
            BucketUnit::Ios => "ios",
            BucketUnit::Bytes => "bytes",
        },
    );
    members.put(
        "draws",
        match burst.draws {
            BucketScope::Both => "both",
            BucketScope::Reads => "reads",
            BucketScope::Writes => "writes",
        },
    );
    for (name, figure) in [
        ("burst_rate", &burst.burst_rate),
        ("baseline_rate", &burst.baseline_rate),
        ("capacity", &burst.capacity),
        ("refill_rate", &burst.refill_rate),
        ("seconds_to_empty", &burst.seconds_to_empty),
        ("seconds_to_refill", &burst.seconds_to_refill),
    ] {
        members.figure(name, Some(figure));
    }
    members
}

fn first_touch(cost: &FirstTouchCost) -> Members {
    let mut members = Members::default();
    members.figure("first_ns", Some(&cost.first_ns));
    members.figure("again_ns", Some(&cost.again_ns));
    members.figure("rate_share", Some(&cost.rate_share));
    members
}

fn confounder((confounder, text): &(Confounder, String)) -> Value {
    let id = match confounder {
        Confounder::WriteCacheFull => "write-cache-full",
        Confounder::Throttling => "throttling",
        Confounder::CpuSteal => "cpu-steal",
        Confounder::ByItself => "by-itself",
    };
    json!({ "id": id, "text": text })
}

fn candidate(candidate: &Candidate) -> CandidateDocument<'_> {
    let size = candidate.size;
    CandidateDocument {
        id: &candidate.id,
        provider: &candidate.provider,
        type_name: &candidate.type_name,
        lifecycle: &candidate.lifecycle,
        distance: candidate.distance,
        parameters: ParametersDocument {
            size_bytes: size.map(|size| size.bytes),
            size_bytes_low: size.map(|size| size.low),
            size_bytes_high: size.map(|size| size.high),
            size_is_the_targets: size.and_then(|size| size.is_the_targets),
            iops: candidate.iops,
            bytes_per_second: candidate.bytes_per_second,
            tier: candidate.tier.as_deref(),
            on_demand: candidate.on_demand,
        },
    }
}

fn prediction(prediction: &Prediction) -> PredictionDocument<'_> {
    let bytes = |iops: f64| iops * prediction.block as f64;
    let first = prediction.phases.first().copied().unwrap_or(RatePhase { iops: 0.0, lasts: None });
    let last = prediction.phases.last().filter(|_| prediction.last == Last::ForGood);
    let last = last.map(|phase| phase.iops);
    let watched = match prediction.last {
        Last::AtLeast(seconds) if prediction.phases.len() == 1 => Some(seconds),
        _ => None,
    };
    let finite = |seconds: f64| Some(seconds).filter(|seconds| seconds.is_finite());
    PredictionDocument {
        what: prediction.what(),
        direction: if prediction.pattern.writes() { "write" } else { "read" },
        pattern: prediction.pattern.name(),
        block_size_bytes: prediction.block,
        iops: first.iops,
        bytes_per_second: bytes(first.iops),
        seconds: first.lasts.map(|lasts| lasts.seconds),
        seconds_low: first.lasts.map_or(watched, |lasts| lasts.low),
        seconds_high: first.lasts.and_then(|lasts| finite(lasts.high)),
        then_iops: last,
        then_bytes_per_second: last.map(bytes),
        seconds_to_refill: prediction.refilled_after_s,
        phases: prediction
            .phases
            .iter()
            .map(|phase| PhaseDocument {
                iops: phase.iops,
                bytes_per_second: bytes(phase.iops),
                seconds: phase.lasts.map(|lasts| lasts.seconds),
            })
            .collect(),
        text: &prediction.text,
    }
}

fn budget(record: &RunRecord, found: &Identified) -> BudgetDocument {
    let allowed = match &record.header.activity {
        fathom_record::Activity::Identify(allowed) => Some(allowed),
        _ => None,
    };
    let announced = allowed.map(|allowed| AnnouncedDocument {
        time_ns: allowed.budget_ns,
        ios: allowed.budget_ios,
        bytes: allowed.budget_bytes,
    });
    let spent = found.spent;
    BudgetDocument {
        announced,
        spent: SpentDocument {
            time_ns: spent.time_ns,
            ios: spent.ios,
            bytes: spent.read_bytes + spent.written_bytes,
            read_bytes: spent.read_bytes,
            written_bytes: spent.written_bytes,
        },
    }
}
