//! Twins: kept by `identify --save`, used as `sim:@NAME`, checked against their volume.

use std::path::Path;

use serde_json::Value;

use crate::{run, scratch};

const VOLUME: &str = "sim:custom?iops=1000&bandwidth=50MiB&latency=300us&latency_spread=1&size=10GiB";

fn document(dir: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(dir, arguments).quietly().stdout).unwrap()
}

#[test]
fn a_twin_is_kept_used_checked_and_removed() {
    let dir = scratch();
    let none = document(dir.path(), &["twin", "list", "--json"]);
    assert_eq!(none["twins"], Value::Array(Vec::new()));
    let kept = run(dir.path(), &["identify", "--save", "data-1", "--budget=5m", VOLUME]).quietly().stdout;
    assert!(kept.contains("Use it as sim:@data-1"), "{kept}");
    let twin = document(dir.path(), &["twin", "show", "data-1", "--json"]);
    assert_eq!((&twin["schema"], &twin["source"]["target"]), (&"fathom.twin/1".into(), &VOLUME.into()));
    assert_eq!(twin["limits"][0]["scope"], "both");
    let iops = twin["limits"][0]["iops"]["baseline"].as_f64().unwrap();
    assert!((iops / 1000.0 - 1.0).abs() < 0.005, "{iops}");
    let check = document(dir.path(), &["twin", "check", "data-1", VOLUME, "--json"]);
    assert_eq!(
        (&check["schema"], &check["agrees"]),
        (&"fathom.twin-check/1".into(), &true.into()),
        "{check:#}"
    );
    assert_eq!(check["loads"].as_array().unwrap().len(), 6);
    let bench = document(dir.path(), &["bench", "--json", "--only=rand-read", "sim:@data-1?seed=3"]);
    let rate = bench["tests"][0]["read"]["iops"].as_f64().unwrap();
    assert!((rate / 1000.0 - 1.0).abs() < 0.01, "{rate}");
    let simulated =
        run(dir.path(), &["simulate", "@data-1", "--profile", "oltp", "--for", "10m"]).quietly().stdout;
    assert!(simulated.contains("sim:@data-1: twin of sim:custom"), "{simulated}");
    run(dir.path(), &["twin", "remove", "data-1"]).quietly();
    assert_eq!(document(dir.path(), &["twin", "list", "--json"])["twins"], Value::Array(Vec::new()));
}

#[test]
fn a_volume_unlike_the_twin_differs_and_few_latencies_decide_nothing() {
    let dir = scratch();
    run(dir.path(), &["identify", "--save", "a", "--budget=5m", "--read-only", VOLUME]).quietly();
    let other = "sim:custom?iops=1100&bandwidth=50MiB&latency=300us&size=10GiB";
    let check = run(dir.path(), &["twin", "check", "a", other, "--only=read-d8"]);
    assert_eq!(check.code, Some(3), "{check:?}");
    assert!(check.stdout.contains("Twin a differs from sim:custom?iops=1100"), "{check:?}");
    assert!(check.stdout.contains("-9.1 %"), "{check:?}");
    let few = ["twin", "check", "a", VOLUME, "--only=read-d8", "--runtime=200ms"];
    assert_eq!(run(dir.path(), &few).code, Some(0));
    let strict = run(dir.path(), &[&few[..], &["--strict"]].concat());
    assert_eq!(strict.code, Some(4), "{strict:?}");
    assert!(strict.stdout.contains("too few latencies"), "{strict:?}");
}

#[test]
fn twins_that_cannot_be_are_refused_with_the_remedy() {
    let dir = scratch();
    for (arguments, parts) in [
        (
            &["bench", "sim:@none"][..],
            &["error: twin none: does not exist in ", "hint: make one: fathom identify --save none"][..],
        ),
        (&["twin", "check", "none", VOLUME], &["error: twin none: does not exist in "]),
        (&["bench", "sim:@../none"], &["error: twin '../none': is not a valid name"]),
        (&["identify", "--save", "../none", VOLUME], &["is not a valid name"]),
        (&["twin", "remove", "none"], &["error: twin none: cannot be removed: "]),
    ] {
        let output = run(dir.path(), arguments);
        assert_eq!(output.code, Some(2), "{output:?}");
        for part in parts {
            assert!(output.stderr.contains(part), "{part:?} is not in {}", output.stderr);
        }
    }
}

#[test]
fn burst_credits_begin_as_they_are_given() {
    let dir = scratch();
    let rate = |credits: &str| {
        let volume = format!("sim:custom?iops=100&burst_iops=1000&bucket_ios=900000&latency=1ms{credits}");
        let bench = document(dir.path(), &["bench", "--json", "--only=rand-read", &volume]);
        bench["tests"][0]["read"]["iops"].as_f64().unwrap()
    };
    for (credits, expected) in [("", 1000.0), ("&credits=50%", 1000.0), ("&credits=0%", 100.0)] {
        let rate = rate(credits);
        assert!((rate / expected - 1.0).abs() < 0.03, "{credits}: {rate}");
    }
}
