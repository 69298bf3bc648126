//! What fio's forms have no place for where requests are due by a rate: response times from when each was due.

use fathom_model::{Op, units};
use fathom_record::{LatencySummary, ReportEntry, ScheduleSummary};
use serde_json::{Value, json};

/// One direction of an entry that has a rate.
struct ResponseDirection {
    op: Op,
    response: LatencySummary,
    schedule: ScheduleSummary,
}

fn directions(entry: &ReportEntry) -> Vec<ResponseDirection> {
    let measured = &entry.job.measured;
    let direction = |op: Op| {
        let counted = measured.op(op);
        let schedule = ScheduleSummary::new(measured, counted)?;
        Some(ResponseDirection { op, response: counted.open_loop.response.summary(), schedule })
    };
    Op::DATA.into_iter().filter_map(direction).collect()
}

/// A line for each direction of an entry that has a rate.
pub(crate) fn response_lines(entry: &ReportEntry) -> Vec<String> {
    let line = |ResponseDirection { op, response, schedule }: &ResponseDirection| {
        let times = [
            ("p50", response.p50),
            ("p95", response.p95),
            ("p99", response.p99),
            ("p99.9", response.p999),
            ("max", response.max),
        ];
        let times: Vec<String> = times
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", units::latency(value?))))
            .collect();
        format!(
            "{}: {op} response from the intended start at {:.1} offered per second: {}",
            entry.job.name,
            schedule.offered_iops,
            if times.is_empty() { "nothing completed".to_owned() } else { times.join(", ") }
        )
    };
    directions(entry).iter().map(line).collect()
}

/// The same as an object with an entry for each direction; `None` where the entry has no rate.
pub(crate) fn response_object(entry: &ReportEntry) -> Option<Value> {
    let directions = directions(entry);
    if directions.is_empty() {
        return None;
    }
    let mut object = json!({ "jobname": entry.job.name, "groupid": entry.job.group });
    for ResponseDirection { op, response, schedule } in &directions {
        object[op.name()] = json!({
            "response_ns": latency(response),
            "late_ns": latency(&schedule.late_ns),
            "latest_ns": schedule.latest_ns,
            "offered_iops": schedule.offered_iops,
            "backlog": schedule.backlog,
            "sustained": schedule.sustained,
        });
    }
    Some(object)
}

fn latency(summary: &LatencySummary) -> Value {
    json!({
        "samples": summary.samples,
        "min": summary.min,
        "mean": summary.mean,
        "max": summary.max,
        "stdev": summary.stdev,
        "p50": summary.p50,
        "p90": summary.p90,
        "p95": summary.p95,
        "p99": summary.p99,
        "p999": summary.p999,
        "p9999": summary.p9999,
    })
}
