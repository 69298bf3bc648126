//! The parts of a stored record add up to its wholes, and the printed document says the same.

use fathom_tests::{LoopDevice, MIB, NbdDisk, loading, need};
use serde_json::Value;

use crate::ours::{Ours, filename};

/// An integer of a record; absent is 0, and sums are strings since they outgrow what JSON readers keep.
fn int(value: &Value) -> u128 {
    match value {
        Value::Null => 0,
        Value::String(digits) => digits.parse().expect("a sum is an integer"),
        number => number.as_u64().unwrap_or_else(|| panic!("{number} is no count")).into(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn bins(value: &Value) -> u128 {
    list(value).iter().map(|bin| int(&bin[1])).sum()
}

/// Checks one operation of one worker, which had `carried` requests in flight at most when its ramp ended: those
/// count as issued there and as completed here.
fn check_op(phase: &Value, op: &str, carried: u128, what: &str) {
    let total = &phase[op];
    let ios = int(&total["ios"]);
    let (issued, ended) = (int(&total["issued"]), ios + int(&total["failed"]));
    assert!((issued..=issued + carried).contains(&ended), "{what}: {issued} issued, {ended} ended");

    let moments = |latency: &str, field: &str| int(&total[latency]["moments"][field]);
    let has_slat = moments("slat", "count") > 0;
    for latency in ["clat", "lat"].into_iter().chain(has_slat.then_some("slat")) {
        assert_eq!(moments(latency, "count"), ios, "{what}: count of {latency}");
        assert_eq!(bins(&total[latency]["bins"]), bins(&total["clat"]["bins"]), "{what}: bins of {latency}");
        let (min, max, sum) = (moments(latency, "min"), moments(latency, "max"), moments(latency, "sum"));
        assert!(min * ios <= sum && sum <= max * ios, "{what}: mean of {latency} between {min} and {max}");
        let squares = moments(latency, "sum_squares");
        assert!(sum * sum <= squares * ios.max(1), "{what}: squares of {latency}");
    }
    assert_eq!(bins(&total["clat"]["bins"]), ios, "{what}: bins of clat");
    assert_eq!(moments("slat", "sum") + moments("clat", "sum"), moments("lat", "sum"), "{what}: slat + clat");

    let series = list(&phase["series"]);
    let over_series = |value: &dyn Fn(&Value) -> u128| series.iter().map(|row| value(&row[op])).sum::<u128>();
    assert_eq!(over_series(&|row| int(&row["ios"])), ios, "{what}: ios of the series");
    assert_eq!(over_series(&|row| int(&row["bytes"])), int(&total["bytes"]), "{what}: bytes of the series");
    assert_eq!(
        over_series(&|row| int(&row["clat_sum_ns"])),
        moments("clat", "sum"),
        "{what}: clat of the series"
    );
    assert_eq!(over_series(&|row| bins(&row["clat_bins"])), ios, "{what}: bins of the series");
}

/// Checks a whole record; returns how many requests completed in it.
fn check_record(record: &Value, what: &str) -> u128 {
    let mut ios = 0;
    for test in list(&record["tests"]) {
        for job in list(&test["jobs"]) {
            let phase = &job["measured"];
            let has_ramp = job["plan"]["time"]["ramp_time_ns"] != 0;
            let carried = if has_ramp { int(&job["plan"]["depth"]["iodepth"]) } else { 0 };
            for op in ["read", "write", "trim"] {
                check_op(phase, op, carried, &format!("{what}, {op}s of {}", job["name"]));
                ios += int(&phase[op]["ios"]);
            }
            // Intervals follow one another without a gap, from the start of the measured part to its end.
            let mut at = int(&phase["start_ns"]);
            for row in list(&phase["series"]) {
                assert_eq!(int(&row["start_ns"]), at, "{what}: a gap in the series");
                at = int(&row["end_ns"]);
            }
            assert_eq!(at, int(&phase["end_ns"]), "{what}: the end of the series");
            let issued: u128 =
                ["read", "write", "trim"].map(|op| int(&phase[op]["issued"])).into_iter().sum();
            let depths: u128 = list(&phase["depth"]).iter().map(int).sum();
            assert!(depths >= issued, "{what}: {depths} depths for {issued} requests");
        }
        for disk in list(&test["disks"]) {
            for (counter, total) in disk["counters"].as_object().expect("counters have names") {
                let parts = list(&disk["intervals"]).iter().map(|row| int(&row["counters"][counter]));
                assert_eq!(parts.sum::<u128>(), int(total), "{what}: {counter} of {}", disk["name"]);
            }
        }
    }
    ios
}

/// Checks the output of one operation: the order of its figures, and that its means add up.
fn check_printed(op: &Value, what: &str) {
    let number = |path: &str| {
        op.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {op:#}"))
    };
    for latency in ["slat_ns", "clat_ns", "lat_ns"] {
        let [min, mean, max] = ["min", "mean", "max"].map(|key| number(&format!("/{latency}/{key}")));
        assert!(min <= mean && mean <= max, "{what}: {latency} {min} {mean} {max}");
    }
    let means = number("/slat_ns/mean") + number("/clat_ns/mean");
    assert!((means - number("/lat_ns/mean")).abs() < 0.001, "{what}: the means give {means}");
    let percentiles = op["clat_ns"]["percentile"].as_object().expect("percentiles are asked for");
    let mut sorted: Vec<(f64, f64)> = percentiles
        .iter()
        .map(|(percent, ns)| (percent.parse().expect("a number"), ns.as_f64().expect("ns")))
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(sorted.len(), 17, "{what}: fio's own list");
    assert!(sorted.is_sorted_by(|a, b| a.1 <= b.1), "{what}: {sorted:?}");
    // A percentile is its bin's middle: it may lie beyond the largest value by the bin's half width, 1 in 128.
    assert!(sorted[16].1 <= number("/clat_ns/max") * (1.0 + 1.0 / 64.0), "{what}: above the largest");
    assert!(sorted[0].1 >= number("/clat_ns/min") * (1.0 - 1.0 / 64.0), "{what}: below the smallest");
}

#[test]
fn the_parts_of_a_record_add_up() {
    need!(root, tool "losetup", path "/dev/shm");
    let _loading = loading();
    let (ours, device) = (Ours::new(), LoopDevice::in_memory(32 * MIB));
    let name = filename(device.path());
    for arguments in [
        "--ioengine=io_uring --iodepth=32 --rw=randrw --rwmixread=75 --time_based --runtime=1300ms",
        "--ioengine=libaio --iodepth=4 --rw=randwrite --time_based --runtime=1100ms --ramp_time=300ms",
        "--ioengine=psync --rw=randrw --time_based --runtime=1200ms --numjobs=3",
        "--ioengine=io_uring --iodepth=16 --rw=read --time_based --runtime=600ms --thinktime=100",
        "--ioengine=psync --rw=write --fdatasync=4",
        "--ioengine=io_uring --iodepth=16 --rw=randread --io_size=1m",
    ] {
        let common = ["--name=parts", "--bs=4k", "--direct=1", &name];
        let (report, record) = ours.record(common.into_iter().chain(arguments.split(' ')));
        let kept = check_record(&record, arguments);
        let jobs = list(&report.document["jobs"]);
        let mut printed = 0;
        for job in jobs {
            for op in ["read", "write"] {
                printed += int(&job[op]["total_ios"]);
                if int(&job[op]["total_ios"]) > 0 {
                    check_printed(&job[op], arguments);
                }
            }
        }
        assert_eq!(printed, kept, "{arguments}");
    }
}

#[test]
fn failed_requests_count_as_issued_and_not_completed() {
    need!(root, tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _loading = loading();
    let disk = NbdDisk::new(16 * MIB, &["error"], &["error=EIO", "error-rate=10%"]);
    let ours = Ours::new();
    let mut command = ours.command();
    command.args(["fio", "--keep", "--name=failing", "--rw=randrw", "--bs=4k", "--direct=1", "--size=16m"]);
    command.args(["--ioengine=libaio", "--iodepth=4", "--io_size=8000k", "--continue_on_error=all"]);
    let output = command.arg("--output-format=json").arg(filename(&disk.path())).output();
    let output = output.expect("fathom was built");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let export = ours.command().args(["history", "export"]).output().expect("fathom was built");
    let record: Value = serde_json::from_slice(&export.stdout).expect("one record");
    let completed = check_record(&record, "failing");
    let job = &record["tests"][0]["jobs"][0];
    let failed: u128 = ["read", "write"].iter().map(|op| int(&job["measured"][op]["failed"])).sum();
    let injected = disk.said().matches("injecting EIO").count() as u128;
    assert_eq!((failed, completed + failed), (injected, 2000));
    assert_eq!(int(&document["jobs"][0]["total_err"]), failed);
    let printed = &document["jobs"][0];
    assert_eq!(int(&printed["read"]["total_ios"]) + int(&printed["write"]["total_ios"]), completed);
}
