//! `fathom advise`: every format of recordings, the answer in every format of reports, and what makes no sense.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Ended, run, scratch};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../observed/tests/fixtures")
}

fn fixture(name: &str) -> String {
    fixtures().join(name).to_str().unwrap().to_owned()
}

/// The document that a call prints, and how it ended.
fn document(dir: &Path, args: &[&str]) -> (Value, Ended) {
    let ended = run(dir, &[&["advise"], args, &["--json"]].concat());
    assert!([Some(0), Some(3)].contains(&ended.code) && ended.stderr.is_empty(), "{args:?}: {ended:?}");
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

/// Recordings with the device that has to be chosen.
const RECORDINGS: [(&str, &[&str]); 11] = [
    ("app.iolog", &[]),
    ("blkparse.txt", &[]),
    ("iostat.json", &["--device", "nvme0n1"]),
    ("sadf.json", &[]),
    ("sar.txt", &["--device", "nvme0n1"]),
    ("prometheus.json", &[]),
    ("cloudwatch-data.json", &[]),
    ("cloudwatch-statistics.json", &[]),
    ("cloudwatch.csv", &[]),
    ("azure.json", &[]),
    ("gcp.json", &[]),
];

#[test]
fn every_recording_is_predicted_for_own_limits() {
    let dir = scratch();
    for (name, device) in RECORDINGS {
        let file = fixture(name);
        let volume = ["--candidate", "sim:custom?iops=100000&latency=1ms&size=1TiB"];
        let (found, ended) = document(dir.path(), &[&[file.as_str()], device, &volume].concat());
        assert_eq!(found["schema"], "fathom.advise/1");
        let [candidate] = &found["candidates"].as_array().unwrap()[..] else { panic!("{name}: {found}") };
        assert_eq!((&candidate["id"], &candidate["price"]), (&Value::from("custom"), &Value::Null), "{name}");
        let range = &candidate["predicted"]["range"];
        let (low, high) = (&range["iops"]["low"], &range["iops"]["high"]);
        let observed = found["observed"]["iops"].as_f64().unwrap();
        assert!(low.as_f64().unwrap() <= high.as_f64().unwrap() && observed > 0.0, "{name}: {range}");
        assert_eq!(ended.code == Some(0), !found["answer"].is_null(), "{name}");
        let text = run(dir.path(), &[&["advise", &file], device, &volume[..]].concat()).stdout;
        assert!(text.contains("objective") && text.contains("Candidates"), "{name}:\n{text}");
    }
}

#[test]
fn a_stated_load_has_an_answer_in_every_format() {
    let dir = scratch();
    let args = ["--iops", "4000", "--size", "100GiB", "--candidate", "aws-gp3", "--candidate", "aws-gp2"];
    let (found, ended) = document(dir.path(), &args);
    assert_eq!((ended.code, &found["answer"]["id"]), (Some(0), &Value::from("aws-gp3")));
    assert!(found["answer"]["target"].as_str().unwrap().starts_with("sim:aws-gp3?size=100GiB&iops="));
    let page = dir.path().join("advice.html");
    for format in ["text", "markdown", "csv", "jsonl"] {
        let report = ["--report", page.to_str().unwrap()];
        let text =
            run(dir.path(), &[&["advise"], &args[..], &["--format", format], &report[..]].concat()).quietly();
        assert!(text.stdout.contains("aws-gp3"), "{format}: {}", text.stdout);
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!") && page.contains("aws-gp3"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = scratch();
    let log = fixture("app.iolog");
    let cases: [(&[&str], &str); 7] = [
        (&["none.json"], "cannot read the trace none.json"),
        (&[&log, "--iops", "3000"], "recorded or stated, not both"),
        (&[&log, "--growth", "0x"], "is not a factor"),
        (&[&log, "--expect", "p97<5ms"], "is not predicted"),
        (&[&log, "--candidate", "aws-gp4"], "unknown volume type 'aws-gp4'"),
        (&[&log, "--report", "advice.txt"], "whose name ends in .html"),
        (&["--json"], "no load given"),
    ];
    for (args, expected) in cases {
        let ended = run(dir.path(), &[&["advise"], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
    }
}

/// A stated load has no end: what meets it never falls behind, and is what `catalog fit` offers.
#[test]
fn a_stated_rate_is_met_by_what_sustains_it() {
    let dir = scratch();
    for iops in ["3000", "777", "12345"] {
        let (advice, _) = document(dir.path(), &["--iops", iops, "--provider", "aws"]);
        let fit = run(dir.path(), &["catalog", "fit", "--iops", iops, "--provider", "aws", "--json"]);
        let fit: Value = serde_json::from_str(&fit.stdout).unwrap();
        let offers = fit["priced"][0]["offers"].as_array().unwrap();
        let met = advice["candidates"].as_array().unwrap().iter().filter(|one| one["meets"] == true);
        for candidate in met {
            let (p99, target) = (&candidate["predicted"]["lat_ns"]["p99"], &candidate["target"]);
            assert!(p99.as_f64().unwrap() < 1e9, "{iops}: {target} {p99}");
            let offer = offers.iter().find(|offer| offer["id"] == candidate["id"]);
            let offer = &offer.unwrap_or_else(|| panic!("{iops}: {target} is not offered"))["parameters"];
            for key in ["size_bytes", "iops"] {
                assert_eq!(candidate["parameters"][key], offer[key], "{iops}: {key} of {target}");
            }
        }
    }
}
