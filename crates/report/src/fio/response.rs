//! What fio's forms have no place for where requests are due by a rate: response times from when each was due.

use fathom_model::{Op, units};
use fathom_record::{LatencySummary, ReportEntry, ScheduleSummary};
use serde_json::{Value, json};

/// One direction of an entry that has a rate.
struct ResponseDirection {
    op: Op,
    response: LatencySummary,
    schedule: ScheduleSummary,
    /// Requests per second that were due; `None` of several hosts, of which each has its own schedule.
    offered_iops: Option<f64>,
}

fn directions(entry: &ReportEntry) -> Vec<ResponseDirection> {
    let measured = &entry.job.measured;
    let direction = |op: Op| {
        let counted = measured.op(op);
        let schedule = ScheduleSummary::new(measured, counted)?;
        let offered_iops = entry.job.workers.is_none().then_some(schedule.offered_iops);
        let response = counted.open_loop.response.summary();
        Some(ResponseDirection { op, response, schedule, offered_iops })
    };
    Op::DATA.into_iter().filter_map(direction).collect()
}

/// A line for each direction of an entry that has a rate.
pub(crate) fn response_lines(entry: &ReportEntry) -> Vec<String> {
    let line = |ResponseDirection { op, response, offered_iops, .. }: &ResponseDirection| {
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
        let offered = offered_iops.map(|rate| format!(" at {rate:.1} offered per second"));
        format!(
            "{}: {op} response from the intended start{}: {}",
            entry.job.name,
            offered.unwrap_or_default(),
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
    for ResponseDirection { op, response, schedule, offered_iops } in &directions {
        object[op.name()] = json!({
            "response_ns": latency(response),
            "late_ns": latency(&schedule.late_ns),
            "latest_ns": schedule.latest_ns,
            "offered_iops": offered_iops,
            "backlog": schedule.backlog,
            "sustained": offered_iops.map(|_| schedule.sustained),
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

#[cfg(test)]
mod tests {
    use fathom_record::{JobRecord, WorkerSums};

    use super::*;

    #[test]
    fn several_hosts_have_no_rate_that_was_due() {
        let mut job = JobRecord { name: "job".to_owned(), ..JobRecord::default() };
        (job.measured.end_ns, job.measured.schedule_end_ns) = (1_000_000_000, 1_000_000_000);
        let read = &mut job.measured.read;
        (read.issued, read.ios) = (100, 100);
        (0..100).for_each(|_| read.open_loop.response.record(1_000_000));
        let shown = |job: &JobRecord| {
            let entry = ReportEntry::new(&[job], 0);
            (
                response_lines(&entry).remove(0),
                response_object(&entry).unwrap()["read"]["offered_iops"].clone(),
            )
        };
        let (line, offered) = shown(&job);
        assert!(line.contains("intended start at 100.0 offered per second: p50"), "{line}");
        assert_eq!(offered, json!(100.0));
        job.workers = Some(Box::new(WorkerSums::default()));
        let (line, offered) = shown(&job);
        assert!(line.contains("intended start: p50"), "{line}");
        assert_eq!(offered, Value::Null);
    }
}
