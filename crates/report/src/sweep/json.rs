//! The document of `sweep --json`: `fathom.sweep/1`.

use std::io::{self, Write};

use fathom_analysis::estimate::Estimate;
use fathom_analysis::sweep::knee::Knee;
use fathom_analysis::sweep::limits::DirectionLimits;
use fathom_analysis::sweep::offered::Highest;
use fathom_analysis::sweep::point::SweepPoint;
use fathom_analysis::sweep::{Sweep, SweepAnswer};
use fathom_record::{Finding, LatencySummary, RunRecord, TestStatus};
use serde::Serialize;

use crate::run_json::DocumentHead;
use crate::{Style, document};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.sweep/1";

#[derive(Serialize)]
struct SweepDocument<'a> {
    #[serde(flatten)]
    head: DocumentHead<'a>,
    points: Vec<SweepPointDocument<'a>>,
    limits: LimitsDocument,
    knees: Vec<KneeDocument>,
    /// Null where no objective was given.
    slo: Option<SloDocument<'a>>,
    /// Null where no rate to reach was given.
    reach: Option<GoalDocument<'a>>,
    findings: &'a [Finding],
}

#[derive(Serialize)]
struct SweepPointDocument<'a> {
    #[serde(flatten)]
    spot: SpotDocument,
    status: TestStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Null where nothing completed.
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    lat_ns: &'a LatencySummary,
    depth_mean: Option<f64>,
    cpu_per_request_ns: Option<f64>,
    /// Longest time without a completion; null where that was no stall.
    stalled_ns: Option<u64>,
    elapsed_ns: u64,
    fio: &'a str,
}

#[derive(Serialize)]
struct SpotDocument {
    rw: &'static str,
    block_size_bytes: u64,
    iodepth: u32,
    numjobs: u32,
}

#[derive(Serialize)]
struct LimitsDocument {
    iops: PerDirection,
    bytes_per_second: PerDirection,
    /// That of reads, else that of writes.
    crossover_block_size_bytes: Option<EstimateDocument>,
    crossover_of: PerDirection,
    /// Block sizes that get at least 90 % of both limits.
    near_both_block_size_bytes: Option<RangeDocument>,
    /// The jobs themselves were busy all the time where the rate was greatest.
    client_bound: ClientBound,
}

#[derive(Serialize)]
struct PerDirection {
    read: Option<EstimateDocument>,
    write: Option<EstimateDocument>,
}

#[derive(Serialize)]
struct ClientBound {
    read: bool,
    write: bool,
}

#[derive(Serialize)]
struct RangeDocument {
    low: f64,
    high: f64,
}

/// A value with its bounds. Where only one of them is known, `value` is null and `bound` is that one.
#[derive(Serialize)]
struct EstimateDocument {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<f64>,
}

#[derive(Serialize)]
struct KneeDocument {
    rw: &'static str,
    block_size_bytes: u64,
    numjobs: u32,
    iodepth_latency: u32,
    /// Null where no plateau was reached.
    iodepth_throughput: Option<u32>,
    plateau_iops: Option<f64>,
    broad: bool,
    /// The best rate at no more than 1.10 times the latency at depth 1.
    frugal: Option<FrugalDocument>,
}

#[derive(Serialize)]
struct FrugalDocument {
    iodepth: u32,
    iops: f64,
}

#[derive(Serialize)]
struct GoalDocument<'a> {
    asked: &'a str,
    met: bool,
    answers: Vec<AnswerDocument>,
}

#[derive(Serialize)]
struct SloDocument<'a> {
    #[serde(flatten)]
    goal: GoalDocument<'a>,
    /// The highest rates where requests come at their own pace; empty where there was no time to look.
    offered: Vec<OfferedDocument>,
}

#[derive(Serialize)]
struct OfferedDocument {
    rw: &'static str,
    block_size_bytes: u64,
    /// Requests offered per second; null where no rate was kept.
    rate_iops: Option<u32>,
    /// The lowest rate that was not kept; null where none was tried.
    too_much_iops: Option<u32>,
    /// The search came to its end.
    found: bool,
    /// A rate could not be judged: too few requests for the percentile.
    undecided: bool,
    /// How often the answer was offered, and for how long the last time.
    times: usize,
    measured_ns: Option<u64>,
    /// Due to completed.
    response_ns: Option<LatencySummary>,
    generator_late: Option<bool>,
}

#[derive(Serialize)]
struct AnswerDocument {
    rw: &'static str,
    block_size_bytes: u64,
    /// No point had enough requests to tell.
    undecided: bool,
    /// Null where no point answers.
    iodepth: Option<u32>,
    numjobs: Option<u32>,
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    lat_ns: Option<LatencySummary>,
    cpu_per_request_ns: Option<f64>,
    /// The same number of requests in flight from several jobs; null where that was not measured.
    in_jobs: Option<InJobsDocument>,
    /// `depth` or `jobs`, whichever costs less CPU time per request.
    cheaper: Option<&'static str>,
}

#[derive(Serialize)]
struct InJobsDocument {
    iodepth: u32,
    numjobs: u32,
    iops: f64,
    cpu_per_request_ns: Option<f64>,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, sweep: &Sweep, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let fio_of = |point: &SweepPoint| {
        let test = record.tests.iter().find(|test| test.id == point.spot.id());
        test.map(|test| test.fio.as_str()).unwrap_or_default()
    };
    let document = SweepDocument {
        head: DocumentHead::new(SCHEMA, record, style),
        points: sweep.points.iter().map(|point| point_document(point, fio_of(point))).collect(),
        limits: limits(&sweep.read, &sweep.write),
        knees: sweep.knees.iter().map(knee).collect(),
        slo: sweep.slo.as_ref().map(|asked| SloDocument {
            goal: goal(asked),
            offered: sweep.offered.iter().map(offered).collect(),
        }),
        reach: sweep.reach.as_ref().map(goal),
        findings: &record.findings,
    };
    document::write(&document, out)
}

fn point_document<'a>(point: &'a SweepPoint, fio: &'a str) -> SweepPointDocument<'a> {
    let spot = point.spot;
    let some = point.ios > 0;
    SweepPointDocument {
        spot: SpotDocument {
            rw: spot.rw.name(),
            block_size_bytes: spot.block,
            iodepth: spot.depth,
            numjobs: spot.jobs,
        },
        status: point.status,
        reason: point.reason.as_deref(),
        iops: some.then_some(point.iops),
        bytes_per_second: some.then_some(point.bytes_per_second),
        lat_ns: &point.lat,
        depth_mean: point.depth_mean(),
        cpu_per_request_ns: point.cpu_per_request_ns,
        stalled_ns: point.stalled_ns,
        elapsed_ns: point.elapsed_ns,
        fio,
    }
}

fn limits(read: &DirectionLimits, write: &DirectionLimits) -> LimitsDocument {
    let both = |field: fn(&DirectionLimits) -> Option<Estimate>| PerDirection {
        read: field(read).map(estimate),
        write: field(write).map(estimate),
    };
    let main = if read.iops.is_some() { read } else { write };
    LimitsDocument {
        iops: both(|limits| limits.iops),
        bytes_per_second: both(|limits| limits.bytes_per_second),
        crossover_block_size_bytes: main.crossover.map(estimate),
        crossover_of: both(|limits| limits.crossover),
        near_both_block_size_bytes: main.near_both().map(|(low, high)| RangeDocument { low, high }),
        client_bound: ClientBound { read: read.is_client_bound, write: write.is_client_bound },
    }
}

fn estimate(estimate: Estimate) -> EstimateDocument {
    let (value, low, high, bound) = match estimate {
        Estimate::Known { value, low, high } => (Some(value), Some(low), Some(high), None),
        Estimate::AtLeast(low) => (None, Some(low), None, Some(low)),
        Estimate::AtMost(high) => (None, None, Some(high), Some(high)),
    };
    EstimateDocument { value, low, high, bound }
}

fn knee(knee: &Knee) -> KneeDocument {
    KneeDocument {
        rw: knee.rw.name(),
        block_size_bytes: knee.block,
        numjobs: knee.jobs,
        iodepth_latency: knee.iodepth_latency,
        iodepth_throughput: knee.iodepth_throughput,
        plateau_iops: knee.plateau_iops,
        broad: knee.is_broad,
        frugal: knee.frugal.map(|(iodepth, iops)| FrugalDocument { iodepth, iops }),
    }
}

fn goal((asked, answers): &(String, Vec<SweepAnswer>)) -> GoalDocument<'_> {
    GoalDocument {
        asked,
        met: answers.iter().any(|answer| answer.best.is_some()),
        answers: answers.iter().map(answer).collect(),
    }
}

fn offered(highest: &Highest) -> OfferedDocument {
    let best = highest.best.as_ref();
    OfferedDocument {
        rw: highest.rw.name(),
        block_size_bytes: highest.block,
        rate_iops: best.map(|best| best.offer.rate),
        too_much_iops: highest.too_much,
        found: highest.is_found,
        undecided: highest.is_undecided,
        times: highest.times,
        measured_ns: best.map(|best| best.measured_ns),
        response_ns: best.map(|best| best.response.clone()),
        generator_late: best.map(|best| best.is_generator_late),
    }
}

fn answer(answer: &SweepAnswer) -> AnswerDocument {
    let best = answer.best.as_ref();
    AnswerDocument {
        rw: answer.rw.name(),
        block_size_bytes: answer.block,
        undecided: answer.is_undecided,
        iodepth: best.map(|point| point.spot.depth),
        numjobs: best.map(|point| point.spot.jobs),
        iops: best.map(|point| point.iops),
        bytes_per_second: best.map(|point| point.bytes_per_second),
        lat_ns: best.map(|point| point.lat.clone()),
        cpu_per_request_ns: best.and_then(|point| point.cpu_per_request_ns),
        in_jobs: answer.in_jobs.as_ref().map(|point| InJobsDocument {
            iodepth: point.spot.depth,
            numjobs: point.spot.jobs,
            iops: point.iops,
            cpu_per_request_ns: point.cpu_per_request_ns,
        }),
        cheaper: answer.depth_is_cheaper().map(|depth| if depth { "depth" } else { "jobs" }),
    }
}
