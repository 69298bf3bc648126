//! `fathom trace info`: every format of recordings in every format of reports, and what cannot be read.

use std::path::{Path, PathBuf};

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
        (&["notes.txt"], &["notes.txt:1: it is no observed load of a known format"]),
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
