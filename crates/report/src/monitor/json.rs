//! The lines of `monitor --json`, `fathom.monitor/1`: one object per interval and device. Pure.

use std::io::{self, Write};

use fathom_analysis::monitor::load::OpLoad;
use fathom_analysis::monitor::{MonitorInterval, OpActivity};
use fathom_model::Op;
use serde_json::{Value, json};

/// The `schema` of each line.
pub const SCHEMA: &str = "fathom.monitor/1";

/// Writes the line of one device in one interval.
///
/// # Errors
/// Those of `out`.
pub fn line(interval: &MonitorInterval, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &document(interval))?;
    out.write_all(b"\n")
}

/// The object of one device in one interval. Rates are null while nothing completes although requests are in flight (`stalled_ns`), and
/// `requests` where they are not traced. The mean queue depth is the time that completed requests spent in the queue and in service
/// over the interval; busy time over requests is a service time only where the device serves one at a time.
pub fn document(interval: &MonitorInterval) -> Value {
    let (activity, in_flight) = (&interval.activity, &interval.in_flight);
    let requests = interval.load.as_ref().map(|load| {
        let of = |op| load.ops.get(&op).map(requests);
        json!({
            "lost": load.lost,
            "read": of(Op::Read),
            "write": of(Op::Write),
            "trim": of(Op::Trim),
            "flush": of(Op::Sync),
        })
    });
    json!({
        "schema": SCHEMA,
        "interval": interval.number,
        "end_unix_ms": interval.end_unix_ms,
        "elapsed_ns": interval.elapsed_ns,
        "device": interval.device,
        "presence": interval.presence,
        "stalled_ns": interval.stalled_ns,
        "read": op(interval, &activity.ops.read),
        "write": op(interval, &activity.ops.write),
        "trim": op(interval, &activity.ops.trim),
        "flush": op(interval, &activity.flush),
        "total": op(interval, &activity.total()),
        "in_flight": {
            "last": in_flight.last,
            "mean": in_flight.mean(),
            "max": in_flight.most,
            "samples": in_flight.samples,
        },
        "queue_depth_mean": interval.queue_depth_mean(),
        "utilisation": interval.utilisation(),
        "busy_per_request_ns": interval.busy_per_request_ns(),
        "requests": requests,
        "owners": interval.owners,
    })
}

/// What completed of one operation; the error of its latency is there since the kernel counts whole ms.
fn op(interval: &MonitorInterval, done: &OpActivity) -> Value {
    json!({
        "ios": done.ios,
        "merges": done.merges,
        "iops": interval.per_second(done.ios),
        "bytes_per_second": interval.per_second(done.bytes),
        "request_bytes_mean": done.mean_bytes(),
        "await_mean_ns": done.await_ns(),
        "await_error_ns": done.await_error_ns(),
    })
}

fn requests(load: &OpLoad) -> Value {
    let all = load.all();
    json!({
        "seen": all.requests,
        "sequential_share": load.sequential_share(),
        "sizes": all.sizes,
        "service_ns": load.service.summary(),
    })
}

#[cfg(test)]
mod tests {
    use fathom_analysis::monitor::load::LoadWatch;
    use fathom_analysis::monitor::{DeviceActivity, WatchedDevice};
    use fathom_model::PerOp;

    use super::*;

    fn parsed(interval: &MonitorInterval) -> Value {
        let mut out = Vec::new();
        line(interval, &mut out).unwrap();
        assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1, "one line");
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_line_has_rates_and_nulls_where_nothing_was() {
        let read = OpActivity { ios: 200, merges: 4, bytes: 200 * 4096, ticks_ms: 100 };
        let mut watch = LoadWatch::default();
        watch.issued(Op::Read, 0, 4096, 10);
        watch.completed(Op::Read, 0, 510);
        let interval = MonitorInterval {
            number: 3,
            elapsed_ns: 2_000_000_000,
            device: WatchedDevice {
                name: "sda1".into(),
                under: vec!["sda".into()],
                ..WatchedDevice::default()
            },
            activity: DeviceActivity {
                ops: PerOp { read, ..PerOp::default() },
                busy_ms: 90,
                queue_ms: 100,
                ..DeviceActivity::default()
            },
            load: Some(watch.take()),
            ..MonitorInterval::default()
        };
        let document = parsed(&interval);
        assert_eq!(document["schema"], "fathom.monitor/1");
        assert_eq!(
            (&document["device"]["name"], &document["device"]["under"]),
            (&json!("sda1"), &json!(["sda"]))
        );
        assert_eq!(
            document["read"],
            json!({"ios": 200, "merges": 4, "iops": 100.0, "bytes_per_second": 409_600.0,
                   "request_bytes_mean": 4096.0, "await_mean_ns": 500_000.0, "await_error_ns": 5_000.0})
        );
        assert_eq!(
            (&document["write"]["iops"], &document["write"]["await_mean_ns"]),
            (&json!(0.0), &Value::Null)
        );
        assert_eq!((&document["queue_depth_mean"], &document["utilisation"]), (&json!(0.05), &json!(0.045)));
        assert_eq!(document["requests"]["read"]["sizes"], json!({"4096": 1}));
        assert_eq!(document["requests"]["read"]["service_ns"]["max"], 500);
        assert_eq!(document["requests"]["write"], Value::Null);
    }

    #[test]
    fn a_stall_has_no_rates() {
        let stalled =
            MonitorInterval { elapsed_ns: 1, stalled_ns: Some(2_000_000_000), ..MonitorInterval::default() };
        let document = parsed(&stalled);
        assert_eq!(
            (&document["stalled_ns"], &document["total"]["iops"]),
            (&json!(2_000_000_000_u64), &Value::Null)
        );
        assert_eq!(document["requests"], Value::Null);
    }
}
