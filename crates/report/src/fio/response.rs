//! What fio's forms have no place for where requests are due by a rate: response times from when each was due.

use fathom_model::{Op, units};
use fathom_record::{LatencySummary, ReportEntry, ScheduleSummary};

use crate::fio::json_value::Object;

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
pub(crate) fn response_object(entry: &ReportEntry) -> Option<Object> {
    let directions = directions(entry);
    if directions.is_empty() {
        return None;
    }
    let mut object = Object::default();
    object.set("jobname", entry.job.name.as_str());
    object.set("groupid", entry.job.group);
    for ResponseDirection { op, response, schedule } in &directions {
        let mut direction = Object::default();
        direction.set("response_ns", latency(response));
        direction.set("late_ns", latency(&schedule.late_ns));
        direction.set("latest_ns", schedule.latest_ns);
        direction.set("offered_iops", schedule.offered_iops);
        direction.set("backlog", schedule.backlog);
        direction.set("sustained", schedule.sustained);
        object.set(op.name(), direction);
    }
    Some(object)
}

fn latency(summary: &LatencySummary) -> Object {
    let mut object = Object::default();
    object.set("samples", summary.samples);
    object.set("min", summary.min);
    object.set("mean", summary.mean);
    object.set("max", summary.max);
    object.set("stdev", summary.stdev);
    object.set("p50", summary.p50);
    object.set("p90", summary.p90);
    object.set("p95", summary.p95);
    object.set("p99", summary.p99);
    object.set("p999", summary.p999);
    object.set("p9999", summary.p9999);
    object
}
