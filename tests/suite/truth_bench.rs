//! The document of `fathom bench` on a capped device: the cap, the device's own counts, and sums that agree.

use fathom_tests::{
    Cap, LoopDevice, Throttle, document, fathom_under, measuring_capped, need, number, scratch,
};
use serde_json::Value;

use crate::ours::{steadily, within};

/// Reads and writes per second, each.
const CAP: u64 = 4000;

/// Checks one test of the document, of 4 KiB blocks and `depth` requests in flight over all jobs.
fn check(test: &Value, depth: f64) -> Result<(), String> {
    let id = test["id"].as_str().expect("a test has an id");
    assert_eq!((&test["status"], &test["errors"]), (&"complete".into(), &Value::Array(Vec::new())), "{id}");
    let ops: Vec<&str> = ["read", "write"].into_iter().filter(|op| test[*op].is_object()).collect();
    for key in ["ios", "bytes", "iops", "bytes_per_second", "lat_ns/samples"] {
        let sum: f64 = ops.iter().map(|op| number(test, &format!("/{op}/{key}"))).sum();
        within(&format!("{id}: total {key}"), number(test, &format!("/total/{key}")), sum, 1e-6)?;
    }
    for op in ops.iter().chain(["total"].iter()) {
        let of = |key: &str| number(test, &format!("/{op}/{key}"));
        assert_eq!(of("bytes"), of("ios") * 4096.0, "{id}: {op}");
        within(&format!("{id}: {op}"), of("bytes_per_second"), of("iops") * 4096.0, 1e-6)?;
        within(&format!("{id}: {op}"), of("slat_ns/mean") + of("clat_ns/mean"), of("lat_ns/mean"), 1e-6)?;
        for latency in ["clat_ns", "lat_ns"] {
            // Percentiles with too few samples are null.
            let order = ["min", "p50", "p90", "p95", "p99", "p999", "p9999", "max"];
            let order: Vec<f64> = order.iter().filter_map(|key| test[*op][latency][*key].as_f64()).collect();
            assert!(order.len() >= 6, "{id}: {op} {latency} {order:?}");
            // A percentile is the middle of its bin: half a bin's width, 1 in 128, either way.
            assert!(
                order.is_sorted_by(|a, b| *a <= b * (1.0 + 1.0 / 64.0)),
                "{id}: {op} {latency} {order:?}"
            );
        }
    }
    // Requests are in flight at the end of the ramp, and each job's ramp ends separately, up to 10 ms apart: up to that many
    // requests may be counted by only one of both sides.
    let most = 2.0 * depth + CAP as f64 / 100.0;
    for (op, ios, bytes) in [("read", "reads", "read_bytes"), ("write", "writes", "write_bytes")] {
        let own = |key: &str| if test[op].is_object() { number(test, &format!("/{op}/{key}")) } else { 0.0 };
        let off = number(test, &format!("/device/{ios}")) - own("ios");
        if off.abs() > most {
            return Err(format!("{id}: {off} {ios} of the device more than ours"));
        }
        let off = number(test, &format!("/device/{bytes}")) - own("bytes");
        if off.abs() > most * 4096.0 {
            return Err(format!("{id}: {off} {bytes} of the device more than ours"));
        }
    }
    Ok(())
}

/// Rates of one test against the cap and against its own latencies.
fn rates(test: &Value, depth: f64) -> Result<(), String> {
    let id = test["id"].as_str().expect("a test has an id");
    let rate = |op: &str| test[op]["iops"].as_f64().unwrap_or(0.0);
    // Each direction has a separate allowance; in a mix, the larger share reaches its cap first. The end of the ramp
    // lies anywhere in a slice of 100 ms, and so does the end of the run.
    let elapsed_s = number(test, "/elapsed_ns") / 1e9;
    within(&format!("{id}: the cap, in {elapsed_s:.3} s"), rate("read").max(rate("write")), CAP as f64, 5.0)?;
    let in_flight = rate("total") * number(test, "/total/lat_ns/mean") / 1e9;
    within(&format!("{id}: rate times latency"), in_flight, depth, 10.0)
}

/// The document of a bench of four tests on `device` under `throttle`.
fn bench(device: &LoopDevice, throttle: &Throttle) -> Value {
    let home = scratch();
    let mut command = fathom_under(throttle, home.path());
    command.args(["bench", "--quick", "--runtime=2s", "--json"]);
    command.arg("--only=rand-read,rand-write,rand-mixed,rand-read-jobs");
    let target = device.path();
    document(command.arg(format!("--destroy-data={}", target.display())).arg(target))
}

#[test]
fn the_bench_document_agrees_with_the_device_and_with_itself() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(128 << 20);
    let throttle = Throttle::new(device.path(), &Cap::iops(CAP));
    steadily(|| {
        let document = bench(&device, &throttle);
        let status = &document["run"]["status"];
        assert_eq!((&document["schema"], status), (&"fathom.bench/1".into(), &"complete".into()));
        let tests = document["tests"].as_array().expect("tests");
        let ids: Vec<&str> = tests.iter().filter_map(|test| test["id"].as_str()).collect();
        assert_eq!(ids, ["rand-read", "rand-write", "rand-mixed", "rand-read-jobs"]);
        let depth = |test: &Value| if test["id"] == "rand-read-jobs" { 8.0 } else { 64.0 };
        tests.iter().try_for_each(|test| check(test, depth(test)))?;
        let shares = ["read", "write"].map(|op| number(&tests[2], &format!("/{op}/ios")));
        within("the mix", shares[0] / (shares[0] + shares[1]), 0.75, 0.7)?;
        tests.iter().try_for_each(|test| rates(test, depth(test)))
    });
}
