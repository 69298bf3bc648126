//! The document of `simulate --json`: `fathom.simulate/1`.

use std::io::{self, Write};

use fathom_model::MonthlyCost;
use fathom_record::forecast::{CreditCourse, Forecast, ForecastOp, ForecastSlice, ForecastStall, OwnPace};
use fathom_record::{LatencySummary, RunRecord, TestStatus};
use serde::Serialize;

use super::VolumeForecast;
use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.simulate/1";

#[derive(Serialize)]
struct SimulateDocument<'a> {
    volumes: Vec<SimulateVolumeDocument<'a>>,
}

#[derive(Serialize)]
struct SimulateVolumeDocument<'a> {
    target: &'a str,
    title: &'a str,
    size_bytes: u64,
    status: TestStatus,
    /// What ended it before its time, or went wrong on the volume.
    reason: Option<&'a str>,
    elapsed_ns: u64,
    total: SimulateOpDocument,
    read: SimulateOpDocument,
    write: SimulateOpDocument,
    trim: SimulateOpDocument,
    sync_lat_ns: LatencySummary,
    /// From when a request was due; null where the volume sets the pace.
    own_pace: Option<PaceDocument>,
    /// Times of a second or more in which nothing completed of a job that had requests in flight.
    stalls: &'a [ForecastStall],
    credits: &'a [CreditCourse],
    /// Null where no price is sourced.
    monthly_cost: Option<&'a MonthlyCost>,
    series: Vec<SliceDocument<'a>>,
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
struct PaceDocument {
    response_ns: LatencySummary,
    /// Requests that were due and had not been made at the end.
    backlog: u64,
    most_in_flight: Option<u64>,
    late_ns: Option<u64>,
}

#[derive(Serialize)]
struct SliceDocument<'a> {
    start_ns: u64,
    end_ns: u64,
    iops: f64,
    bytes_per_second: f64,
    /// Null where the sample does not carry it.
    lat_ns: SliceLatency,
    /// Tokens at the end, of each of `credits`; null for a window.
    credits_left: &'a [Option<u64>],
    credits_exhausted_ns: &'a [u64],
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
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let volumes = super::volumes(record).into_iter().map(volume).collect();
    run_json::write(SCHEMA, record, &SimulateDocument { volumes }, style, out)
}

fn volume<'a>((test, forecast): VolumeForecast<'a>) -> SimulateVolumeDocument<'a> {
    SimulateVolumeDocument {
        target: &forecast.target,
        title: &test.title,
        size_bytes: forecast.size_bytes,
        status: test.status,
        reason: test.reason.as_deref(),
        elapsed_ns: forecast.elapsed_ns,
        total: op(forecast, &forecast.total()),
        read: op(forecast, &forecast.ops.read),
        write: op(forecast, &forecast.ops.write),
        trim: op(forecast, &forecast.ops.trim),
        sync_lat_ns: forecast.syncs.summary(),
        own_pace: forecast.own_pace.as_ref().map(pace),
        stalls: &forecast.stalls,
        credits: &forecast.credits,
        monthly_cost: forecast.monthly_cost.as_ref(),
        series: forecast.slices.iter().map(slice_of).collect(),
        notes: &test.notes,
    }
}

fn op(forecast: &Forecast, total: &ForecastOp) -> SimulateOpDocument {
    let &ForecastOp { ios, bytes, failed, ref lat } = total;
    let (iops, bytes_per_second) = (forecast.per_second(ios), forecast.per_second(bytes));
    SimulateOpDocument { ios, bytes, failed, iops, bytes_per_second, lat_ns: lat.summary() }
}

fn pace(pace: &OwnPace) -> PaceDocument {
    let &OwnPace { ref response, backlog, most_in_flight, late_ns } = pace;
    PaceDocument { response_ns: response.summary(), backlog, most_in_flight, late_ns }
}

fn slice_of(slice: &ForecastSlice) -> SliceDocument<'_> {
    let LatencySummary { mean, p50, p99, .. } = slice.lat.summary();
    SliceDocument {
        start_ns: slice.start_ns,
        end_ns: slice.end_ns,
        iops: slice.iops(),
        bytes_per_second: slice.bytes_per_second(),
        lat_ns: SliceLatency { mean, p50, p99 },
        credits_left: &slice.credits_left,
        credits_exhausted_ns: &slice.credits_exhausted_ns,
    }
}
