//! `fathom trace info`: every format of recordings in every format of reports, and what cannot be read.

use std::path::{Path, PathBuf};

use fathom_model::Op;
use fathom_observed::recording::{RecordingDetail, RecordingEnd, RecordingHeader, RequestBlock};
use fathom_observed::{ObservedRequest, RequestPoint};
use serde_json::Value;

use crate::{run, scratch};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../observed/tests/fixtures")
}

/// Recordings with the device that has to be chosen.
const RECORDINGS: [(&str, &[&str]); 13] = [
    ("app.iolog", &[]),
    ("app-2.iolog", &[]),
    ("blkparse.txt", &[]),
    ("iostat.json", &["--device", "nvme0n1"]),
    ("sadf.json", &[]),
    ("sar.txt", &["--device", "nvme0n1"]),
    ("sar-old.txt", &[]),
    ("prometheus.json", &[]),
    ("cloudwatch-data.json", &[]),
    ("cloudwatch-statistics.json", &[]),
    ("cloudwatch.csv", &[]),
    ("azure.json", &[]),
    ("gcp.json", &[]),
];

#[test]
fn every_recording_is_shown_in_every_format() {
    let dir = scratch();
    for (name, device) in RECORDINGS {
        let file = fixtures().join(name);
        let args = [&["trace", "info", file.to_str().unwrap()], device].concat();
        let text = run(dir.path(), &args).quietly().stdout;
        // A log of version 2 has no times.
        let has_rates = name != "app-2.iolog";
        assert!(text.contains("total") && text.contains("IOPS") == has_rates, "{name}:\n{text}");
        let document = run(dir.path(), &[&args[..], &["--json"]].concat()).quietly().stdout;
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["schema"], "fathom.trace/1");
        let slices = document["course"]["slices"].as_array().unwrap();
        let total = document["operations"].as_array().unwrap().last().unwrap();
        let sum: f64 = slices.iter().map(|slice| slice["total"]["ops"].as_f64().unwrap_or(0.0)).sum();
        let expected = if has_rates { total["ops"].as_f64().unwrap() } else { 0.0 };
        assert!((sum - expected).abs() < 1.0, "{name}: {sum} {total}");
        let csv = run(dir.path(), &[&args[..], &["--format", "csv"]].concat()).quietly().stdout;
        assert_eq!(csv.lines().count(), slices.len() + 1, "{name}:\n{csv}");
        run(dir.path(), &[&args[..], &["--format", "markdown"]].concat()).quietly();
        run(dir.path(), &[&args[..], &["--format", "jsonl"]].concat()).quietly();
    }
}

#[test]
fn a_recording_of_requests_has_sizes_order_and_latencies() {
    let dir = scratch();
    let file = fixtures().join("blkparse.txt");
    let text = run(dir.path(), &["trace", "info", file.to_str().unwrap()]).quietly().stdout;
    for expected in ["blkparse text", "60 I/Os", "Request sizes", "4.0 KiB", "working set", "from the driver"]
    {
        assert!(text.contains(expected), "no {expected}:\n{text}");
    }
}

#[test]
fn limits_credits_and_gaps_of_a_cloud_volume_are_shown() {
    let dir = scratch();
    let file = fixtures().join("cloudwatch-data.json");
    let text = run(dir.path(), &["trace", "info", file.to_str().unwrap()]).quietly().stdout;
    for expected in [
        "5 intervals of 5 min",
        "reached in 20.0 % of the time",
        "58.0 % left",
        "Gaps",
        "11-22 10:15:00",
        "read as Sum",
    ] {
        assert!(text.contains(expected), "no {expected}:\n{text}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_a_hint() {
    let dir = scratch();
    let fixture = |name: &str| fixtures().join(name).to_str().unwrap().to_owned();
    std::fs::write(dir.path().join("empty"), "").unwrap();
    std::fs::write(dir.path().join("notes.txt"), "hello\n").unwrap();
    std::fs::write(dir.path().join("bad.iolog"), "fio version 3 iolog\n1 /t raed 0 1\n").unwrap();
    std::fs::write(dir.path().join("bytes"), b"\xff\xfe\x00").unwrap();
    let sar = fixture("sar.txt");
    let cases: [(&[&str], &[&str]); 8] = [
        (&["none"], &["cannot read the trace none: No such file"]),
        (&["empty"], &["empty: it is empty", "hint: use an fio iolog"]),
        (&["notes.txt"], &["notes.txt:1: the format is unknown"]),
        (&["bad.iolog"], &["bad.iolog:2: unknown action 'raed'", "hint: correct or remove"]),
        (&["bytes"], &["line 1 is not valid UTF-8"]),
        (&["."], &["it is a directory, not a regular file"]),
        (&[&sar], &["it has several devices: nvme0n1, nvme1n1", "hint: choose one with --device"]),
        (&[&sar, "--device", "sda"], &["it has no device 'sda'", "hint: use one of nvme0n1, nvme1n1"]),
    ];
    for (args, expected) in cases {
        let ended = run(dir.path(), &[&["trace", "info"], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
        for text in expected {
            assert!(ended.stderr.contains(text), "{args:?} lacks {text}: {}", ended.stderr);
        }
    }
}

/// A recording of ten seconds: a read of 4 KiB every ms, and a write of 16 KiB every 10 ms.
fn recording() -> Vec<u8> {
    let header = RecordingHeader {
        detail: RecordingDetail::Requests,
        point: RequestPoint::Driver,
        device: "nvme0n1".to_owned(),
        size_bytes: 1 << 30,
        sector_bytes: 512,
        host: "db1".to_owned(),
        started_unix_ns: 1_790_000_000_000_000_000,
        file: 1,
        from_ns: 0,
        tool_version: "0.1.0".to_owned(),
        notes: Vec::new(),
    };
    let mut block = RequestBlock::default();
    for at_ms in 0..10_000_u64 {
        let request = |op, offset, bytes, latency_us: u64| ObservedRequest {
            at_ns: at_ms * 1_000_000,
            offset,
            latency_ns: std::num::NonZeroU64::new(latency_us * 1_000),
            bytes,
            file: 0,
            thread: 0,
            op,
        };
        block.push(&request(Op::Read, at_ms * 7_919 % 65_536 * 4096, 4096, 100 + at_ms % 50));
        if at_ms % 10 == 0 {
            block.push(&request(Op::Write, at_ms / 10 * 16_384, 16_384, 900));
        }
    }
    let end = RecordingEnd { end_ns: 10_000_000_000, continues: false, in_flight: 0 };
    [header.block(), block.take(10_000_000_000, 0, 0), end.block()].concat()
}

#[test]
fn recordings_of_fathom_are_read_as_a_stream() {
    let dir = scratch();
    std::fs::write(dir.path().join("app.load"), recording()).unwrap();
    let text = run(dir.path(), &["trace", "info", "app.load"]).quietly().stdout;
    for expected in ["fathom recording", "nvme0n1", "11,000 I/Os", "10 s long", "from the driver", "4.0 KiB"]
    {
        assert!(text.contains(expected), "no {expected}:\n{text}");
    }
    let document = run(dir.path(), &["trace", "info", "app.load", "--json"]).quietly().stdout;
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!((&document["format"], &document["entries"]), (&"fathom-recording".into(), &11_000.into()));
    assert_eq!(document["operations"][0]["iops"], 1_000.0);
    assert_eq!(document["working_set"]["unit_bytes"], 512);
    // Half of it.
    let bytes = recording();
    std::fs::write(dir.path().join("cut.load"), &bytes[..bytes.len() - 40]).unwrap();
    let cut = run(dir.path(), &["trace", "info", "cut.load"]).quietly().stdout;
    assert!(cut.contains("The recorder was killed"), "{cut}");
}

#[test]
fn recordings_become_iologs_that_are_the_same_load() {
    let dir = scratch();
    std::fs::write(dir.path().join("app.load"), recording()).unwrap();
    let ended = run(dir.path(), &["trace", "convert", "app.load", "--file", "/mnt/test/file"]).quietly();
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 11_000 + 4);
    assert_eq!(
        lines[..5],
        [
            "fio version 3 iolog",
            "0 /mnt/test/file add",
            "0 /mnt/test/file open",
            "0 /mnt/test/file read 0 4096",
            "0 /mnt/test/file write 0 16384"
        ]
    );
    std::fs::write(dir.path().join("app.iolog"), &ended.stdout).unwrap();
    let info = |name: &str| -> Value {
        let document = run(dir.path(), &["trace", "info", name, "--json"]).quietly().stdout;
        serde_json::from_str(&document).unwrap()
    };
    let (ours, theirs) = (info("app.load"), info("app.iolog"));
    for member in ["sizes", "order", "working_set", "read_share"] {
        assert_eq!(ours[member], theirs[member], "{member}");
    }
    let volume = "custom?iops=5000&latency=200us&size=1GiB";
    let simulated = run(dir.path(), &["simulate", volume, "--trace", "app.load"]).quietly().stdout;
    assert!(simulated.contains("fathom recording"), "{simulated}");
    for (args, expected) in
        [(&["app.load", "--file", "a b"][..], "an iolog cannot name 'a b'"), (&["app.load"], "--file <PATH>")]
    {
        let ended = run(dir.path(), &[&["trace", "convert"], args].concat());
        assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{ended:?}");
    }
    let sums = fixtures().join("gcp.json");
    let ended = run(dir.path(), &["trace", "convert", sums.to_str().unwrap(), "--file", "f"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("it has intervals, not requests"), "{ended:?}");
}
