//! `identify` on simulated volumes: what it finds of them, what it says of its budget, and how it is shown again.

use serde_json::Value;

use crate::{run, scratch};

/// 3,000 I/Os a second for 21 s, then 150.
const BUCKET: &str =
    "sim:custom?iops=150&burst_iops=3000&bucket_ios=60000&bandwidth=128MiB&latency=500us&size=50GiB";

fn number(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}"))
}

#[track_caller]
fn within(document: &Value, path: &str, expected: f64, percent: f64) {
    let value = number(document, path);
    assert!((value / expected - 1.0).abs() * 100.0 <= percent, "{path}: {value}, not {expected}");
}

#[test]
fn a_bucket_is_found_kept_and_shown_again() {
    let dir = scratch();
    let output = run(dir.path(), &["identify", "--json", "--keep", "--budget=15m", BUCKET]).quietly().stdout;
    let document: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(document["schema"], "fathom.identify/1");
    assert_eq!(document["shares_limits"], true);
    for (path, expected, percent) in [
        ("/iops/read", 3000.0, 3.0),
        ("/iops/write", 3000.0, 3.0),
        ("/bytes_per_second/read", 134_217_728.0, 3.0),
        ("/bursts/0/baseline_rate", 150.0, 5.0),
        ("/bursts/0/capacity", 60_000.0, 5.0),
        ("/bursts/0/seconds_to_refill", 400.0, 10.0),
    ] {
        let of = |part: &str| number(&document, &format!("{path}/{part}"));
        within(&document, &format!("{path}/value"), expected, percent);
        assert!(of("low") <= of("high"));
    }
    for (spent, budget) in [("/spent/time_ns", "/run/budget_ns"), ("/spent/ios", "/run/budget_ios")] {
        let (spent, budget) = (number(&document, spent), number(&document, budget));
        assert!(spent > 0.0 && spent <= budget, "{spent} {budget}");
    }
    let small = &document["predictions"][0];
    assert_eq!(small["title"], "4k random reads");
    within(small, "/phases/1/iops", 150.0, 5.0);
    let shown = run(dir.path(), &["history", "show", "--json"]).quietly().stdout;
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), document);
    // The rates of its probes, of which many are above the limit while credits last, are no figures of the volume.
    let listed = run(dir.path(), &["history", "list", "--json"]).quietly().stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let run = &listed[0];
    assert_eq!((&run["kind"], &run["best"]["read_iops"]), (&"identify".into(), &Value::Null), "{run:#}");
    // Nor are they tests that another run has.
    let refused = crate::run(dir.path(), &["compare", "1", "1"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for part in
        ["error: cannot compare run 1: it is a run of `identify`", "hint: compare runs of fathom bench"]
    {
        assert!(refused.stderr.contains(part), "{part:?} is not in {}", refused.stderr);
    }
}

#[test]
fn the_list_has_no_rates_of_the_transfers_of_a_surface() {
    let dir = scratch();
    let volume = "sim:custom?size=1GiB&iops=3000";
    run(dir.path(), &["surface", "--points=4", "--keep", volume]).quietly();
    let listed = run(dir.path(), &["history", "list", "--json"]).quietly().stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let row = &listed[0];
    assert_eq!(row["kind"], "surface");
    for figure in ["read_iops", "write_iops", "bytes_per_second", "lat_p50_ns"] {
        assert_eq!(row["best"][figure], Value::Null, "{figure} of {row:#}");
    }
}

#[test]
fn reads_alone_leave_writes_open() {
    let dir = scratch();
    let volume = "sim:custom?iops=5000&bandwidth=200MB&latency=1ms";
    let args = ["identify", "--no-history", "--read-only", "--budget=5m", "--full", volume];
    let page = run(dir.path(), &args).quietly().stdout;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["Unknown writes", "read IOPS", "writes not measured."] {
        assert!(words.contains(part), "no {part:?} in\n{page}");
    }
    assert!(!page.contains("write IOPS"), "{page}");
}
