//! The document of `simulate --json`: `fathom.simulate/1`.

use std::io::{self, Write};

use fathom_analysis::forecast::{
    CreditCourse, CreditUnit, Forecast, ForecastSlice, OpTotal, OwnPace, Stalled,
};
use fathom_catalog::MonthlyCost;
use fathom_record::LatencySummary;
use serde::Serialize;

use crate::document;
use crate::simulate::PricedForecast;

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.simulate/1";

#[derive(Serialize)]
struct SimulateDocument<'a> {
    schema: &'static str,
    tool_version: &'a str,
    load: &'a str,
    /// What was asked for; null where the load ends by itself.
    asked_ns: Option<u64>,
    volumes: Vec<SimulateVolumeDocument<'a>>,
}

#[derive(Serialize)]
struct SimulateVolumeDocument<'a> {
    target: &'a str,
    title: &'a str,
    size_bytes: u64,
    /// `complete`, `incomplete` or `failed`.
    status: &'static str,
    interrupted: Option<&'a str>,
    failure: Option<&'a str>,
    elapsed_ns: u64,
    iops: f64,
    bytes_per_second: f64,
    total: SimulateOpDocument,
    read: SimulateOpDocument,
    write: SimulateOpDocument,
    trim: SimulateOpDocument,
    sync: SyncDocument,
    /// From when a request was due; null where the volume sets the pace.
    own_pace: Option<PaceDocument>,
    /// Times of a second or more in which nothing completed of a job that had requests under way.
    stalls: &'a [Stalled],
    credits: Vec<CreditDocument<'a>>,
    /// Null where no price is sourced.
    month: Option<&'a MonthlyCost>,
    series: Vec<SliceDocument>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct SimulateOpDocument {
    ios: u64,
    bytes: u64,
    failed: u64,
    iops: f64,
    bytes_per_second: f64,
    lat_ns: LatencySummary,
}

#[derive(Serialize)]
struct SyncDocument {
    syncs: u64,
    lat_ns: LatencySummary,
}

#[derive(Serialize)]
struct PaceDocument {
    response_ns: LatencySummary,
    /// Requests that were due and had not been made at the end.
    backlog: u64,
    most_in_flight: Option<u64>,
    late_ns: Option<u64>,
}

#[derive(Serialize)]
struct CreditDocument<'a> {
    of: &'a str,
    /// `ios` or `bytes`.
    unit: &'static str,
    /// `bucket` keeps tokens; `window` bursts for a time and rests for another.
    kind: &'static str,
    capacity: Option<u64>,
    burst_rate: Option<f64>,
    baseline_rate: f64,
    /// Tokens at the end, and the least that there were; null for a window.
    left: Option<u64>,
    least: Option<u64>,
    first_dry_ns: Option<u64>,
    dry_ns: u64,
}

#[derive(Serialize)]
struct SliceDocument {
    start_ns: u64,
    end_ns: u64,
    iops: f64,
    bytes_per_second: f64,
    /// Null where the sample does not carry it.
    lat_ns: SliceLatency,
    /// Tokens at the end, of each of `credits`; null for a window.
    credits_left: Vec<Option<u64>>,
    credits_dry_ns: Vec<u64>,
}

#[derive(Serialize)]
struct SliceLatency {
    mean: Option<f64>,
    p50: Option<u64>,
    p99: Option<u64>,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(
    (load, asked_ns): (&str, Option<u64>),
    volumes: &[PricedForecast<'_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let document = SimulateDocument {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION"),
        load,
        asked_ns,
        volumes: volumes.iter().map(volume).collect(),
    };
    document::write(&document, out)
}

fn volume<'a>((forecast, cost): &PricedForecast<'a>) -> SimulateVolumeDocument<'a> {
    let [read, write, trim] = &forecast.ops;
    let status = match forecast {
        Forecast { failure: Some(_), .. } => "failed",
        Forecast { interrupted: Some(_), .. } => "incomplete",
        _ => "complete",
    };
    let credits = &forecast.course.credits;
    SimulateVolumeDocument {
        target: &forecast.target,
        title: &forecast.title,
        size_bytes: forecast.size_bytes,
        status,
        interrupted: forecast.interrupted.as_deref(),
        failure: forecast.failure.as_deref(),
        elapsed_ns: forecast.elapsed_ns,
        iops: forecast.iops(),
        bytes_per_second: forecast.bytes_per_second(),
        total: op(forecast, &forecast.total()),
        read: op(forecast, read),
        write: op(forecast, write),
        trim: op(forecast, trim),
        sync: SyncDocument { syncs: forecast.syncs.moments.count, lat_ns: forecast.syncs.summary() },
        own_pace: forecast.own_pace.as_ref().map(pace),
        stalls: &forecast.stalls,
        credits: credits.iter().map(credit).collect(),
        month: *cost,
        series: forecast.course.slices().iter().map(|slice| slice_of(credits, slice)).collect(),
        notes: &forecast.notes,
    }
}

fn op(forecast: &Forecast, total: &OpTotal) -> SimulateOpDocument {
    SimulateOpDocument {
        ios: total.ios,
        bytes: total.bytes,
        failed: total.failed,
        iops: forecast.per_second(total.ios),
        bytes_per_second: forecast.per_second(total.bytes),
        lat_ns: total.lat.summary(),
    }
}

fn pace(pace: &OwnPace) -> PaceDocument {
    PaceDocument {
        response_ns: pace.response.summary(),
        backlog: pace.backlog,
        most_in_flight: pace.most_in_flight,
        late_ns: pace.late_ns,
    }
}

fn credit(credit: &CreditCourse) -> CreditDocument<'_> {
    CreditDocument {
        of: &credit.of,
        unit: match credit.unit {
            CreditUnit::Ios => "ios",
            CreditUnit::Bytes => "bytes",
        },
        kind: if credit.capacity.is_some() { "bucket" } else { "window" },
        capacity: credit.capacity,
        burst_rate: credit.burst,
        baseline_rate: credit.base,
        left: credit.capacity.map(|_| credit.left),
        least: credit.capacity.map(|_| credit.least),
        first_dry_ns: credit.first_dry_ns,
        dry_ns: credit.dry_ns,
    }
}

fn slice_of(credits: &[CreditCourse], slice: &ForecastSlice) -> SliceDocument {
    SliceDocument {
        start_ns: slice.start_ns,
        end_ns: slice.end_ns,
        iops: slice.iops(),
        bytes_per_second: slice.bytes_per_second(),
        lat_ns: SliceLatency { mean: slice.mean_ns(), p50: slice.p50_ns(), p99: slice.p99_ns() },
        credits_left: credits
            .iter()
            .zip(&slice.left)
            .map(|(credit, left)| credit.capacity.map(|_| *left))
            .collect(),
        credits_dry_ns: slice.dry_ns.clone(),
    }
}
