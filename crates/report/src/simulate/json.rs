//! The document of `simulate --json`: `fathom.simulate/1`.

use std::io::{self, Write};

use fathom_record::RunRecord;
use fathom_record::forecast::{Forecast, ForecastOp, ForecastSlice, OwnPace};
use serde_json::{Value, json};

use super::VolumeForecast;
use super::verdict::SimulateVerdict;
use crate::{Style, run_json};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.simulate/1";

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let forecasts = super::volumes(record);
    let verdict = SimulateVerdict::of(&forecasts);
    let volumes: Vec<Value> = forecasts.iter().map(|&forecast| volume(forecast)).collect();
    run_json::write(SCHEMA, record, &verdict, json!({ "volumes": volumes }), style, out)
}

fn volume((test, forecast): VolumeForecast<'_>) -> Value {
    let Forecast { target, size_bytes, elapsed_ns, ops, stalls, credits, monthly_cost, .. } = forecast;
    json!({
        "target": target,
        "title": test.title,
        "size_bytes": size_bytes,
        "status": test.status,
        "reason": test.reason,
        "elapsed_ns": elapsed_ns,
        "total": operation(forecast, &forecast.total()),
        "read": operation(forecast, &ops.read),
        "write": operation(forecast, &ops.write),
        "trim": operation(forecast, &ops.trim),
        "sync_lat_ns": forecast.syncs.summary(),
        "own_pace": forecast.own_pace.as_ref().map(own_pace),
        "stalls": stalls,
        "credits": credits,
        "monthly_cost": monthly_cost,
        "series": forecast.slices.iter().map(slice).collect::<Vec<Value>>(),
        "notes": test.notes,
    })
}

pub(super) fn operation(forecast: &Forecast, total: &ForecastOp) -> Value {
    json!({
        "ios": total.ios,
        "bytes": total.bytes,
        "failed": total.failed,
        "iops": forecast.per_second(total.ios),
        "bytes_per_second": forecast.per_second(total.bytes),
        "lat_ns": total.lat.summary(),
    })
}

fn own_pace(pace: &OwnPace) -> Value {
    json!({
        "response_ns": pace.response.summary(),
        "backlog": pace.backlog,
        "most_in_flight": pace.most_in_flight,
        "late_ns": pace.late_ns,
    })
}

pub(super) fn slice(slice: &ForecastSlice) -> Value {
    let lat = slice.lat.summary();
    json!({
        "start_ns": slice.start_ns,
        "end_ns": slice.end_ns,
        "iops": slice.iops(),
        "bytes_per_second": slice.bytes_per_second(),
        "lat_ns": { "mean": lat.mean, "p50": lat.p50, "p99": lat.p99 },
        "credits_left": slice.credits_left,
        "credits_exhausted_ns": slice.credits_exhausted_ns,
    })
}
